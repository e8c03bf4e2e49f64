/**
 * Accounts over HTTP: balances, approvals and payments.
 *
 * The response to a signed balance request carries a token for an hour. The history of payments has pages: those that
 * were credited, and those that are pending.
 * Source: docs/reference/payment.md#routes; docs/reference/payment.md#tokens-of-a-session;
 *   docs/reference/payment.md#approvals; the published SDK's `getPaymentHistory`.
 * @module
 */
import { type AnyElysia, Elysia, t } from "elysia";
import { Failure } from "../../failures.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { utf8Bytes } from "../../lib/bytes.ts";
import { integerParser } from "../../lib/value-schema.ts";
import type { WalletAccess } from "../../payment/access/wallet-access.ts";
import { accountText, type UserAddress } from "../../payment/addresses.ts";
import type { Credits } from "../../payment/credits/credits.ts";
import type { FreeAllowance } from "../../payment/prices/price-types.ts";
import type { TokenPayment } from "../../payment/tokens/token-payment-store.ts";
import {
  type PaymentMade,
  type PaymentPlace,
  type PaymentsPage,
  paymentsPageMax,
} from "../../payment/top-ups/payment-history.ts";
import { queryParameter } from "../parameter.ts";
import { failureResponses, json, record, ref, type Schema, textSchema } from "../reference/openapi-types.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse, noStore } from "../responses.ts";
import { described, optionalQuery, plainText, type RouteDescription, readQuery } from "../route-schema.ts";
import { accountQuery, dateTime, fromLedger, signatureHeaders, signedRequestOf, signedWinc } from "./payment-common.ts";
import { approvalRecord, balanceRecord, isoDate } from "./payment-records.ts";

type BalanceRoutesOptions = Readonly<{
  credits: Pick<Credits, "balance">;
  access: WalletAccess;
  free: (address: UserAddress) => FreeAllowance;
}>;

/** Validated after the signature, so that only an authentic request learns which addresses have an account. */
const parameter = queryParameter("address", accountText, "The account.");

const missingAddress = () => new Failure("payment_rejected", { reason: "Missing address in query parameters" });
const balanceQuery = { address: accountQuery("address", "The account.", "user_not_found", missingAddress) };
const freeQuery = { address: accountQuery("address", "The account.", "invalid_paying_address", missingAddress) };

const tag = "Accounts";
const notFound = failureResponses("user_not_found", "database_unavailable");

const ofWallet: RouteDescription = {
  tag,
  summary: "Balance of a wallet",
  description:
    "Signed, with the token that the response to a signed request carries, or with an address. The response to a " +
    "signed request carries a token for an hour in the header `Authorization`.",
  parameters: [parameter, ...signatureHeaders],
  responses: {
    200: json("The balance.", ref("Balance")),
    ...failureResponses("invalid_signature", "too_many_requests"),
    ...notFound,
  },
};

const ofAddress: RouteDescription = {
  tag,
  summary: "Balance of an address",
  parameters: Object.values(balanceQuery),
  responses: {
    200: json("The balance.", ref("BalanceOfAddress")),
    ...failureResponses("payment_rejected"),
    ...notFound,
  },
};

const ofFree: RouteDescription = {
  tag,
  summary: "Bytes that an address can upload free of charge",
  parameters: Object.values(freeQuery),
  responses: {
    200: json("The allowance.", ref("FreeAllowance")),
    ...failureResponses("payment_rejected", "invalid_paying_address"),
  },
};

export function createBalanceRoutes({ credits, access, free }: BalanceRoutesOptions): AnyElysia {
  const balanceOf = async (address: UserAddress | undefined) => {
    const balance = address === undefined ? undefined : await credits.balance(address);
    if (balance === undefined) throw new Failure("user_not_found", { address });
    return balance;
  };

  async function balanceForWallet(request: Request): Promise<Response> {
    const wallet = await access.admit(signedRequestOf(request));
    const named = queryOf(request).get(parameter.name);
    if (wallet === undefined && named === null)
      throw new Failure("invalid_signature", { reason: "neither a signature nor an address" });
    const balance = await balanceOf(wallet?.address ?? parameter.read(named ?? ""));
    const token = wallet?.by === "signature" ? access.issue(wallet.address) : undefined;
    const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    return jsonResponse(balanceRecord(balance), 200, { ...noStore, ...authorization });
  }

  /** Some clients read the sum as `balance`. */
  async function balanceOfAddress(request: Request): Promise<Response> {
    const { address } = readQuery(request, balanceQuery);
    const balance = await balanceOf(address);
    const record = balanceRecord(balance);
    return jsonResponse({ ...record, balance: record.winc }, 200, noStore);
  }

  function freeOfAddress(request: Request): Response {
    const { address } = readQuery(request, freeQuery);
    const { bytesRemaining, itemBytesMax } = free(address);
    return jsonResponse({ bytesRemaining, freeUploadLimitBytes: itemBytesMax }, 200, noStore);
  }

  const guarded = <Result>(response: Promise<Result>) => fromLedger("database_unavailable", response);
  return new Elysia({ strictPath: true })
    .get("/balance", ({ request }) => guarded(balanceForWallet(request)), { detail: described(ofWallet) })
    .get("/account/balance", ({ request }) => guarded(balanceOfAddress(request)), {
      detail: described(ofAddress),
    })
    .get("/account/balance/:token", ({ request }) => guarded(balanceOfAddress(request)), {
      params: t.Object({
        token: plainText({ description: "Any token: the balance is the address's.", example: "native" }),
      }),
      detail: described(ofAddress),
    })
    .get("/account/free", ({ request }) => freeOfAddress(request), {
      detail: described(ofFree),
    });
}

function queryOf(request: Request): URLSearchParams {
  return new URLSearchParams(contextOf(request).target.query);
}

type ApprovalRoutesOptions = Readonly<{ credits: Pick<Credits, "approvals" | "balance"> }>;

const pairQuery = {
  payer: accountQuery("payingAddress", "The account that pays."),
  approved: accountQuery("approvedAddress", "The account that may spend."),
};
const addressQuery = { address: accountQuery("userAddress", "The account.") };

const approvalsTag = "Approvals";
const invalid = failureResponses("invalid_paying_address", "approvals_unavailable");

const ofApprovalsBetween: RouteDescription = {
  tag: approvalsTag,
  summary: "Approvals from one account to another",
  parameters: Object.values(pairQuery),
  responses: { 200: json("The approvals, earliest expiry first.", ref("Approvals")), ...invalid },
};

const ofApprovals: RouteDescription = {
  tag: approvalsTag,
  summary: "Approvals that an account has given and received",
  parameters: Object.values(addressQuery),
  responses: { 200: json("The approvals.", ref("ApprovalsOfAddress")), ...invalid },
};

export function createApprovalRoutes({ credits }: ApprovalRoutesOptions): AnyElysia {
  async function between(request: Request): Promise<Response> {
    const { approvals, unusedWinc } = await credits.approvals(readQuery(request, pairQuery));
    // The earliest expiry comes first; approvals that never expire come last.
    const expiresBy = approvals[0]?.expiresAt;
    const record = {
      approvals: approvals.map(approvalRecord),
      amount: String(unusedWinc),
      ...(expiresBy === undefined ? {} : { expiresBy }),
    };
    return jsonResponse(record, 200, noStore);
  }

  async function approvalsOf(request: Request): Promise<Response> {
    const { address } = readQuery(request, addressQuery);
    // Every address of an approval, on either side, has a balance.
    const balance = await credits.balance(address);
    const record = {
      givenApprovals: balance?.givenApprovals.map(approvalRecord) ?? [],
      receivedApprovals: balance?.receivedApprovals.map(approvalRecord) ?? [],
    };
    return jsonResponse(record, 200, noStore);
  }

  const guarded = <Result>(response: Promise<Result>) => fromLedger("approvals_unavailable", response);
  return new Elysia({ strictPath: true })
    .get("/account/approvals", ({ request }) => guarded(between(request)), { detail: described(ofApprovalsBetween) })
    .get("/account/approval", ({ request }) => guarded(between(request)), { detail: described(ofApprovalsBetween) })
    .get("/account/approvals/get", ({ request }) => guarded(approvalsOf(request)), { detail: described(ofApprovals) });
}

type HistoryRoutesOptions = Readonly<{
  access: Pick<WalletAccess, "admit">;
  /** Returns a page of an account's payments (`readPayments`). */
  payments: (address: UserAddress, page: PaymentsPage) => Promise<readonly PaymentMade[]>;
  /** Returns the newest unconfirmed payments in tokens (`pendingPaymentsOf`). */
  pending: (address: UserAddress, limit: number) => Promise<readonly TokenPayment[]>;
}>;

/** Pending payments of a response; an honest payer has fewer. */
const pendingMax = 100;

/** Rows of a page, unless the client gives a limit. */
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

const limitParser = integerParser(1, paymentsPageMax, 3);

/** Rows of a page of an account's history. */
export const pageLimit = optionalQuery(
  "limit",
  { description: "Rows of a page." },
  {
    schema: limitParser.schema,
    parse: limitParser.read,
    invalid: () =>
      new Failure("payment_rejected", { reason: `Invalid limit: a whole number from 1 to ${paymentsPageMax}` }),
  },
  pageDefault,
);

const pageQuery = {
  limit: pageLimit,
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
    if (wallet === undefined) throw new Failure("invalid_signature", { reason: "the request is not signed" });
    const { address } = wallet;
    const found = wallet.hasAccount ? await payments(address, { before, limit: limit + 1 }) : [];
    const waiting = before === undefined ? { pending: (await pending(address, pendingMax)).map(pendingRecord) } : {};
    const shown = found.slice(0, limit);
    const last = shown.at(-1);
    const hasMore = found.length > limit;
    const cursor = hasMore && last !== undefined ? writeCursor(last.place) : null;
    return jsonResponse({ payments: shown.map(creditedRecord), ...waiting, hasMore, cursor }, 200, noStore);
  }

  return new Elysia({ strictPath: true }).get(
    "/account/payments",
    ({ request }) => fromLedger("database_unavailable", page(request)),
    { detail: described(ofPayments) },
  );
}

function creditedRecord(payment: PaymentMade) {
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
