/**
 * The payments that a wallet was credited for, page by page, and those that are on their way: for the wallet itself.
 * Source: docs/reference/payment.md#routes; the published SDK's `getPaymentHistory`.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { utf8Bytes } from "../../lib/bytes.ts";
import type { WalletAccess } from "../../payment/access/wallet-access.ts";
import type { UserAddress } from "../../payment/addresses.ts";
import type { TokenPayment } from "../../payment/tokens/token-payment-store.ts";
import {
  type PaymentMade,
  type PaymentPlace,
  type PaymentsPage,
  paymentsPageMax,
} from "../../payment/top-ups/payment-history.ts";
import { contextOf } from "../context.ts";
import { jsonResponse } from "../responses.ts";
import { isoDate } from "./credit-records.ts";
import { accountParameters, pageUsual } from "./parameters.ts";
import { noStore, signedRequestOf } from "./signer.ts";
import { fromLedger } from "./unavailable.ts";

/** What the routes ask. */
export type HistoryRoutesOptions = Readonly<{
  access: Pick<WalletAccess, "admit">;
  /** A page of an account's payments, `readPayments`. */
  payments: (address: UserAddress, page: PaymentsPage) => Promise<readonly PaymentMade[]>;
  /** The newest payments in tokens that are not confirmed yet, `pendingPaymentsOf`. */
  pending: (address: UserAddress, limit: number) => Promise<readonly TokenPayment[]>;
}>;

/** Payments on their way that are told; nobody sends more at once in good faith. */
const pendingMax = 100;

/** Creates the routes. */
export function createHistoryRoutes({ access, payments, pending }: HistoryRoutesOptions): AnyElysia {
  async function page(request: Request): Promise<Response> {
    const query = new URLSearchParams(contextOf(request).target.query);
    const limit = readLimit(query.get(accountParameters.limit.name));
    const before = readCursor(query.get(accountParameters.cursor.name));
    // Only now: a request that is wrong in itself does not use its signature up.
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

  return new Elysia({ strictPath: true }).get("/account/payments", ({ request }) =>
    fromLedger("database_unavailable", page(request)),
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

/** What is paid and not credited yet stands apart: what clients list as payments has landed. */
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

function readLimit(text: string | null): number {
  if (text === null) return pageUsual;
  const limit = accountParameters.limit.read(text);
  if (limit === undefined)
    throw new Failure("payment_rejected", {
      reason: `Invalid limit: a whole number from 1 to ${paymentsPageMax}`,
    });
  return limit;
}

function writeCursor({ at, kind, id }: PaymentPlace): string {
  return encodeBase64url(utf8Bytes(`${at}.${kind}.${id}`));
}

function readCursor(text: string | null): PaymentPlace | undefined {
  if (text === null) return undefined;
  const place = accountParameters.cursor.read(text);
  if (place === undefined) throw new Failure("payment_rejected", { reason: "Invalid cursor" });
  return place;
}
