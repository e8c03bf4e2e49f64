/**
 * The parameters of the payment service's routes, as they are judged and as the API reference shows them.
 *
 * Currencies are not judged here: which there are is the operator's (`PAYMENT_RULES_FILE`). Neither are the headers of
 * signed requests, of which one says what another is (docs/decisions/080-api-reference.md).
 * Source: docs/reference/payment.md#routes.
 * @module
 */
import { decodeBase64url } from "../../lib/base64url.ts";
import { digitsReading, narrowed, reading, textKind, wordKind } from "../../lib/kind.ts";
import { accountText, tokenText, tokenWords } from "../../payment/addresses.ts";
import { amountText, amountUpText, byteCountText } from "../../payment/amounts.ts";
import { type PaymentPlace, paymentsPageMax } from "../../payment/top-ups/payment-history.ts";
import { giftWord, topUpMethods } from "../../payment/top-ups/quotes.ts";
import { pathParameter, queryParameter, requiredParameter } from "../parameter.ts";

/** An account that looks right and is nobody's. */
export const sampleAccount = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A";
const sampleBytes = "A".repeat(43);

const ofPayment = "In the smallest unit; `1e+21` is understood.";
const addressKinds = "What the address is of; `native` when absent.";

/** Of prices. */
export const priceParameters = {
  bytes: pathParameter("amount", byteCountText, "1048576", "Bytes."),
  bytesAlone: pathParameter("type", byteCountText, "1048576", "Bytes."),
  amount: pathParameter("amount", amountText, "1000", ofPayment),
} as const;

/** Payments of a page where the caller does not say. */
export const pageUsual = 50;

/** Of accounts and their approvals. */
export const accountParameters = {
  address: queryParameter("address", accountText, "The account."),
  payingAddress: account("payingAddress", "Whose credits."),
  approvedAddress: account("approvedAddress", "Who may spend them."),
  userAddress: account("userAddress", "The account."),
  limit: queryParameter("limit", digitsReading(1, paymentsPageMax, 3), "Payments of a page.", pageUsual),
  cursor: queryParameter("cursor", reading(textKind({ maxLength: 1_024 }), readCursor), "Of the page before."),
  token: pathParameter("token", tokenText, "native", "The token that was sent."),
} as const;

/** Pages that a checkout may lead to: readable letters, and no backslashes, which readers understand differently. */
const page = textKind({
  pattern: "^[hH][tT][tT][pP][sS]?://[\\x21-\\x5b\\x5d-\\x7e]+$",
  maxLength: 2_048,
  description: "Https, or http on this machine; of an origin that the operator lets be named.",
});
const destinations = wordKind([...tokenWords, giftWord, "email"]);

/** Where a checkout is shown. */
export const uiModes = ["hosted", "embedded"] as const;
export const uiModeUsual = "hosted";

/** No text of the ledger may hold a NUL. */
const giftMessage = narrowed(
  textKind({ minLength: 1, maxLength: 250 }),
  (text): text is string => !text.includes("\0"),
  "1 to 250 characters, none of them NUL.",
);

/** Of top-ups by card. */
export const topUpParameters = {
  method: pathParameter("method", wordKind(topUpMethods), "checkout-session", "How it is paid."),
  amount: pathParameter("amount", amountText, "1000", ofPayment),
  token: queryParameter("token", destinations, addressKinds),
  addressType: queryParameter("destinationAddressType", destinations, "The same, and stands before it."),
  giftMessage: queryParameter("giftMessage", giftMessage, "Kept with a gift."),
  uiMode: queryParameter("uiMode", wordKind(uiModes), "Where the checkout is shown.", uiModeUsual),
  successUrl: queryParameter("successUrl", page, "Where a hosted checkout leads when it was paid."),
  cancelUrl: queryParameter("cancelUrl", page, "Where a hosted checkout leads back to."),
  returnUrl: queryParameter("returnUrl", page, "Where an embedded checkout leads."),
  quoteId: pathParameter("id", textKind({ pattern: "^[0-9a-f]{32}$" }), "0".repeat(32), "`topUpQuoteId`."),
} as const;

const giftSecret = textKind({ pattern: "^[A-Za-z0-9_-]{43}$" });

/** Enough to tell an address for mail from other text. */
const email = textKind({ pattern: "^[^\\s@]{1,64}@[^\\s@]{1,255}$" });

/** Of gifts. */
export const giftParameters = {
  secret: requiredParameter(queryParameter("id", giftSecret, "`giftId` of the top-up."), sampleBytes),
  destination: requiredParameter(
    queryParameter("destinationAddress", textKind({ minLength: 1 }), "The account that gets the credits."),
    sampleBytes,
  ),
  token: queryParameter("token", wordKind(tokenWords), addressKinds),
  addressType: queryParameter("destinationAddressType", wordKind(tokenWords), "The same, and stands after it."),
  email: queryParameter("email", email, "Not needed: no mail is sent."),
} as const;

/** Of payments by x402. */
export const x402Parameters = {
  type: requiredParameter(queryParameter("type", wordKind(["bytes", "credits"]), "What `qty` counts."), "bytes"),
  quantity: requiredParameter(
    queryParameter("qty", amountUpText, "Bytes to be uploaded, or winc. Nothing costs less than a tenth of a cent."),
    "1048576",
  ),
} as const;

function account(name: string, description: string) {
  return requiredParameter(queryParameter(name, accountText, description), sampleAccount);
}

function readCursor(text: string): PaymentPlace | undefined {
  const bytes = decodeBase64url(text);
  const [, at = "", kind = "", id = ""] =
    /^(\d{1,15})\.(\d)\.([\x21-\x7e]+)$/.exec(bytes === undefined ? "" : Buffer.from(bytes).toString()) ?? [];
  return id === "" ? undefined : { at: Number(at), kind: Number(kind), id };
}
