/**
 * Payments of the wallet that signs, page by page: those that were credited, and those that are pending.
 * Source: docs/reference/payment.md#routes; the published SDK's `getPaymentHistory`.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { utf8Bytes } from "../../lib/bytes.ts";
import { digitsReading } from "../../lib/kind.ts";
import type { WalletAccess } from "../../payment/access/wallet-access.ts";
import type { UserAddress } from "../../payment/addresses.ts";
import type { TokenPayment } from "../../payment/tokens/token-payment-store.ts";
import {
  type PaymentMade,
  type PaymentPlace,
  type PaymentsPage,
  paymentsPageMax,
} from "../../payment/top-ups/payment-history.ts";
import { failureResponses, json, record, ref, type Schema, textSchema } from "../reference/words.ts";
import { jsonResponse } from "../responses.ts";
import { described, optionalQuery, type RouteDescription, readQuery } from "../route-schema.ts";
import { isoDate } from "./credit-records.ts";
import { dateTime, signatureHeaders, signedWinc } from "./payment-schemas.ts";
import { noStore, signedRequestOf } from "./signer.ts";
import { fromLedger } from "./unavailable.ts";

export type HistoryRoutesOptions = Readonly<{
  access: Pick<WalletAccess, "admit">;
  /** A page of an account's payments, `readPayments`. */
  payments: (address: UserAddress, page: PaymentsPage) => Promise<readonly PaymentMade[]>;
  /** The newest payments in tokens that are not confirmed yet, `pendingPaymentsOf`. */
  pending: (address: UserAddress, limit: number) => Promise<readonly TokenPayment[]>;
}>;

/** Pending payments of a response; an honest payer has fewer. */
const pendingMax = 100;

/** Payments of a page, unless the client gives a limit. */
const pageDefault = 50;

const cursorLengthMax = 1_024;

const maybeText: Schema = { ...textSchema, nullable: true };

/** The records of payments, as components of the API reference. */
export const paymentHistorySchemas: Readonly<Record<string, Schema>> = {
  TokenPaymentMade: record({
    type: { type: "string", enum: ["crypto"] },
    date: dateTime,
    wincCredited: signedWinc,
    tokenType: textSchema,
    tokenQuantity: textSchema,
    usdEquivalent: textSchema,
    senderAddress: textSchema,
    transactionId: textSchema,
    blockHeight: textSchema,
  }),
  TokenPaymentPending: record({
    type: { type: "string", enum: ["crypto"] },
    date: dateTime,
    wincPending: signedWinc,
    tokenType: textSchema,
    tokenQuantity: textSchema,
    senderAddress: textSchema,
    transactionId: textSchema,
  }),
  CardPaymentMade: record({
    type: { type: "string", enum: ["fiat"] },
    date: dateTime,
    wincCredited: signedWinc,
    paymentAmount: textSchema,
    currencyType: textSchema,
    paymentProvider: textSchema,
    receiptId: textSchema,
    giftMessage: maybeText,
  }),
  PaymentsMade: record({
    payments: { type: "array", items: { oneOf: [ref("TokenPaymentMade"), ref("CardPaymentMade")] } },
    "pending?": {
      type: "array",
      items: ref("TokenPaymentPending"),
      description: "On the first page: payments in tokens that wait for confirmations, newest first; at most 100.",
    },
    hasMore: { type: "boolean" },
    cursor: { ...maybeText, description: "The cursor of the next page; `null` on the last." },
  }),
};

const limitReading = digitsReading(1, paymentsPageMax, 3);

const pageQuery = {
  limit: optionalQuery(
    "limit",
    { description: "Payments of a page." },
    {
      schema: limitReading.schema,
      parse: limitReading.read,
      invalid: () =>
        new Failure("payment_rejected", { reason: `Invalid limit: a whole number from 1 to ${paymentsPageMax}` }),
    },
    pageDefault,
  ),
  before: optionalQuery(
    "cursor",
    { description: "The `cursor` of the page before." },
    {
      schema: { type: "string", maxLength: cursorLengthMax },
      parse: readCursor,
      invalid: () => new Failure("payment_rejected", { reason: "Invalid cursor" }),
    },
    undefined,
  ),
};

const ofPayments: RouteDescription = {
  tag: "Accounts",
  summary: "Payments that an account was credited for",
  description:
    "Of the account that signed, or whose token is sent; newest first. The first page also lists the payments that " +
    "are not confirmed yet.",
  parameters: [...Object.values(pageQuery), ...signatureHeaders],
  responses: {
    200: json("A page.", ref("PaymentsMade")),
    ...failureResponses("payment_rejected", "invalid_signature", "too_many_requests", "database_unavailable"),
  },
};

export function createHistoryRoutes({ access, payments, pending }: HistoryRoutesOptions): AnyElysia {
  async function page(request: Request): Promise<Response> {
    const { limit, before } = readQuery(request, pageQuery);
    // After validation: an invalid request does not use up the nonce of its signature.
    const wallet = await access.admit(signedRequestOf(request));
    if (wallet === undefined) throw new Failure("invalid_signature", { reason: "nobody signed" });
    const { address } = wallet;
    const found = wallet.hasAccount ? await payments(address, { before, limit: limit + 1 }) : [];
    const waiting = before === undefined ? { pending: (await pending(address, pendingMax)).map(pendingRecord) } : {};
    const shown = found.slice(0, limit);
    const last = shown.at(-1);
    const hasMore = found.length > limit;
    const cursor = hasMore && last !== undefined ? writeCursor(last.place) : null;
    return jsonResponse({ payments: shown.map(paymentRecord), ...waiting, hasMore, cursor }, 200, noStore);
  }

  return new Elysia({ strictPath: true }).get(
    "/account/payments",
    ({ request }) => fromLedger("database_unavailable", page(request)),
    { detail: described(ofPayments) },
  );
}

function paymentRecord(payment: PaymentMade) {
  const common = { date: isoDate(payment.place.at), wincCredited: String(payment.winc) };
  if (payment.kind === "token") {
    return {
      type: "crypto",
      ...common,
      tokenType: payment.token,
      tokenQuantity: String(payment.quantity),
      usdEquivalent: payment.usd ?? "",
      senderAddress: payment.sender,
      transactionId: payment.transactionId,
      blockHeight: String(payment.blockHeight ?? ""),
    };
  }
  return {
    type: "fiat",
    ...common,
    paymentAmount: String(payment.amount),
    currencyType: payment.currency,
    paymentProvider: "stripe",
    receiptId: payment.receiptId,
    giftMessage: payment.giftMessage ?? null,
  };
}

/** Pending payments are listed apart, because clients count every entry of `payments` as credited. */
function pendingRecord(payment: TokenPayment) {
  return {
    type: "crypto",
    date: isoDate(payment.seenAt),
    wincPending: String(payment.winc),
    tokenType: payment.token,
    tokenQuantity: String(payment.quantity),
    senderAddress: payment.sender,
    transactionId: payment.transactionId,
  };
}

function writeCursor({ at, kind, id }: PaymentPlace): string {
  return encodeBase64url(utf8Bytes(`${at}.${kind}.${id}`));
}

function readCursor(text: string): PaymentPlace | undefined {
  const bytes = text.length > cursorLengthMax ? undefined : decodeBase64url(text);
  const [, at = "", kind = "", id = ""] =
    /^(\d{1,15})\.(\d)\.([\x21-\x7e]+)$/.exec(bytes === undefined ? "" : Buffer.from(bytes).toString()) ?? [];
  return id === "" ? undefined : { at: Number(at), kind: Number(kind), id };
}
