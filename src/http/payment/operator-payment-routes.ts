/**
 * Payments in the admin API: the list over all methods and accounts, one payment with the effect of its refund, and
 * refunds of payments by card.
 * Source: docs/reference/payment.md#actions-of-operators.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { JsonObject } from "../../lib/json.ts";
import { lineSchema } from "../../lib/value-schema.ts";
import {
  findOperatorPayment,
  listPayments,
  type OperatorPayment,
  type PaymentPosition,
  paidText,
  paymentMethods,
  type RefundEffect,
  refundEffect,
} from "../../payment/operator/operator-payments.ts";
import type { RefundOrder } from "../../payment/operator/operator-refunds.ts";
import type { PriceRules } from "../../payment/prices/price-rules.ts";
import { writeMoney } from "../../payment/prices/price-types.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import { type AdminDescription, type AdminEndpoint, adminFields, get, post } from "../admin-endpoints.ts";
import { bodyOf, needed } from "../body-fields.ts";
import { queryParameter, requiredParameter } from "../parameter.ts";
import { failureResponses, json, record, type Schema, textSchema } from "../reference/openapi-types.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse } from "../responses.ts";
import {
  actionFields,
  actionRecord,
  addressIn,
  afterParameter,
  limitParameter,
  nextCursor,
  nullableText,
  readCreditPage,
  sampleAction,
  unixMs,
} from "./operator-account-routes.ts";
import { signedWinc, winc } from "./payment-common.ts";

/** Refunds a payment by card. */
export type RefundPayment = (order: RefundOrder, signal: AbortSignal) => Promise<JsonObject>;

type PaymentEndpointParts = Readonly<{
  ledger: Pick<LedgerDatabase, "read">;
  /** Decimals of tokens. */
  rules: Pick<PriceRules, "tokens">;
  /** Undefined: payments by card are off. */
  refund: RefundPayment | undefined;
}>;

const idFormat = lineSchema(1, 300);
const idParameter = requiredParameter(queryParameter("id", idFormat, "Id of the payment."), "an-example");
const accountParameter = queryParameter("account", { schema: textSchema }, "Only payments of this account.");

const paymentFields: Readonly<Record<string, Schema>> = {
  id: textSchema,
  method: { type: "string", enum: paymentMethods },
  account: { ...nullableText, description: "The credited account; null for a gift." },
  at: unixMs,
  winc,
  withheldWinc: { ...winc, description: "The part that refunds, disputes and reversals withhold now." },
  amount: { ...textSchema, description: "In the smallest unit of `currency`, a currency or a token." },
  currency: textSchema,
  paid: { ...textSchema, description: "The amount for people, such as `25.00 USD`." },
};

const refundBody = bodyOf({ id: needed(idFormat, "missing_id"), ...actionFields });

const descriptions = {
  list: {
    summary: "List the credited payments of all methods, newest first",
    parameters: [limitParameter, afterParameter, accountParameter],
    responses: {
      200: json("A page.", record({ payments: { type: "array", items: record(paymentFields) }, next: nextCursor })),
      ...failureResponses("malformed_input", "invalid_paying_address", "busy", "database_unavailable"),
    },
  },
  show: {
    summary: "Show a payment, and what its refund would do to the credits that it bought",
    parameters: [idParameter],
    responses: {
      200: json(
        "The payment.",
        record({
          ...paymentFields,
          refund: {
            ...record({
              amount: { ...textSchema, description: "What is paid back: the payment less its earlier refunds." },
              paid: { ...textSchema, description: "The amount for people." },
              winc: { ...winc, description: "Credits that the refund takes back." },
              spentWinc: { ...winc, description: "The part of them that is spent: the account will owe it." },
            }),
            nullable: true,
            description: "Null for a payment that is not by card, or has no credits left to take back.",
          },
        }),
      ),
      ...failureResponses("malformed_input", "payment_not_found", "busy", "database_unavailable"),
    },
  },
  refund: {
    summary: "Refund a payment by card completely, and take its credits back",
    description:
      "Through the card provider. Spent credits are taken back too: `spentWinc` is what the account owes then, and " +
      "`effect` says so in words. Without a response of the provider the refund is repeated in the background, and " +
      "the same key returns its outcome.",
    body: refundBody,
    example: { id: "an-example", ...sampleAction },
    responses: {
      200: json(
        "What was done; the same for every repetition with the key.",
        record({
          kind: { type: "string", enum: ["refund"] },
          id: textSchema,
          account: nullableText,
          amount: { ...textSchema, description: "Of the payment, with earlier refunds of parts of it." },
          currency: textSchema,
          paid: { ...textSchema, description: "The amount for people." },
          winc: { ...winc, description: "Credits that all its refunds took back." },
          spentWinc: winc,
          balance: { ...signedWinc, description: "Of the account, or of the gift." },
          effect: textSchema,
          ...actionRecord,
        }),
      ),
      ...failureResponses("malformed_input", "missing_id", "payment_rejected"),
      ...failureResponses("payment_not_found", "idempotency_conflict"),
      ...failureResponses("fiat_off", "payment_session_failed", "busy", "database_unavailable"),
    },
  },
} as const satisfies Readonly<Record<string, AdminDescription>>;

/** The endpoints of payments. */
export function createPaymentEndpoints({ ledger, rules, refund }: PaymentEndpointParts): AdminEndpoint[] {
  return [
    get("/payments", descriptions.list, async (request) => {
      const { limit, after } = readCreditPage(request);
      const account = queryOf(request, "account");
      const page = {
        account: account === undefined ? undefined : addressIn(account),
        after: after === undefined ? undefined : readPosition(after),
        limit: limit + 1,
      };
      const rows = await ledger.read((tx) => listPayments(tx, page));
      const payments = rows.slice(0, limit);
      const last = rows.length > limit ? payments.at(-1) : undefined;
      return jsonResponse({
        payments: payments.map((payment) => paymentRecord(payment, rules)),
        next: last ? writePosition(last) : null,
      });
    }),
    get("/payment", descriptions.show, async (request) => {
      const id = queryOf(request, "id");
      if (!idFormat.is(id)) throw new Failure("malformed_input", { id });
      const [payment, effect] = await ledger.read(
        async (tx) => [await findOperatorPayment(tx, id), await refundEffect(tx, id)] as const,
      );
      if (payment === undefined) throw new Failure("payment_not_found", { id });
      const refundRecord = effect === undefined ? null : effectRecord(effect, payment.currency);
      return jsonResponse({ ...paymentRecord(payment, rules), refund: refundRecord });
    }),
    post("/payments/refund", descriptions.refund, async (request) => {
      const order = refundBody.read(await adminFields(request));
      if (refund === undefined) throw new Failure("fiat_off");
      return jsonResponse(await refund(order, request.signal));
    }),
  ];
}

function paymentRecord(payment: OperatorPayment, rules: Pick<PriceRules, "tokens">) {
  const { account, winc: credited, withheldWinc, ...rest } = payment;
  const paid = paidText(payment, BigInt(payment.amount), rules);
  return { ...rest, paid, account: account ?? null, winc: credited.toString(), withheldWinc: withheldWinc.toString() };
}

/** Only payments by card are refunded here. */
function effectRecord({ amount, winc: taken, spentWinc }: RefundEffect, currency: string) {
  const paid = writeMoney(amount, currency);
  return { amount: amount.toString(), paid, winc: taken.toString(), spentWinc: spentWinc.toString() };
}

function queryOf(request: Request, name: string): string | undefined {
  return new URLSearchParams(contextOf(request).target.query).get(name) ?? undefined;
}

function writePosition({ at, id }: PaymentPosition): string {
  return `${at}.${id}`;
}

function readPosition(text: string): PaymentPosition {
  const [, at = "", id = ""] = /^(\d{1,15})\.(.+)$/.exec(text) ?? [];
  if (id === "") throw new Failure("malformed_input", { cursor: text });
  return { at: Number(at), id };
}
