/**
 * Balances, approvals, prices and token payments in their wire format, with the schemas of the records.
 * Source: docs/reference/payment.md#routes; docs/reference/payment.md#approvals.
 * @module
 */
import { type AddressType, addressTypesOf } from "../../payment/addresses.ts";
import type { Approval } from "../../payment/credits/approvals.ts";
import type { Balance } from "../../payment/credits/credits.ts";
import type { Adjustment, BytesPrice, CurrencyLimits, PaymentPrice, Rates } from "../../payment/prices/price-types.ts";
import type { TokenPayment } from "../../payment/tokens/token-payment-store.ts";
import type { Submitted } from "../../payment/tokens/token-payments.ts";
import { record, ref, type Schema, textSchema } from "../reference/openapi-types.ts";
import { adjustments, dateTime, largeInteger, signedWinc, winc } from "./payment-common.ts";

const approvals: Schema = { type: "array", items: ref("Approval") };

const balanceFields = {
  winc: signedWinc,
  controlledWinc: signedWinc,
  effectiveBalance: signedWinc,
  givenApprovals: approvals,
  receivedApprovals: approvals,
};

export const approvalSchema: Schema = record({
  approvalDataItemId: textSchema,
  approvedAddress: textSchema,
  payingAddress: textSchema,
  approvedWincAmount: signedWinc,
  usedWincAmount: signedWinc,
  creationDate: dateTime,
  "expirationDate?": dateTime,
});

/** The records of balances and approvals, as components of the API reference. */
export const creditSchemas: Readonly<Record<string, Schema>> = {
  Approval: approvalSchema,
  Approvals: record({
    approvals,
    amount: signedWinc,
    "expiresBy?": { type: "integer", description: "Earliest expiry, Unix milliseconds." },
  }),
  ApprovalsOfAddress: record({ givenApprovals: approvals, receivedApprovals: approvals }),
  Balance: record(
    balanceFields,
    "`winc` is what the account can spend or share; `controlledWinc` adds the unused part of approvals that it gave, " +
      "`effectiveBalance` the unused part of approvals that it received. At most 1,000 approvals are listed.",
  ),
  BalanceOfAddress: record({ ...balanceFields, balance: signedWinc }),
  FreeAllowance: record({
    bytesRemaining: { type: "integer", nullable: true, description: "`null` means without limit." },
    freeUploadLimitBytes: { type: "integer", description: "The largest item that is uploaded free of charge." },
  }),
};

/** `expirationDate` is absent of an approval that never expires. */
export function approvalRecord(approval: Approval) {
  const { expiresAt } = approval;
  return {
    approvalDataItemId: approval.id,
    approvedAddress: approval.approvedAddress,
    payingAddress: approval.payingAddress,
    approvedWincAmount: String(approval.approvedWinc),
    usedWincAmount: String(approval.usedWinc),
    creationDate: isoDate(approval.createdAt),
    ...(expiresAt === undefined ? {} : { expirationDate: isoDate(expiresAt) }),
  };
}

export function balanceRecord(balance: Balance) {
  return {
    controlledWinc: String(balance.controlledWinc),
    winc: String(balance.winc),
    effectiveBalance: String(balance.effectiveBalance),
    givenApprovals: balance.givenApprovals.map(approvalRecord),
    receivedApprovals: balance.receivedApprovals.map(approvalRecord),
  };
}

/** @param at - Unix milliseconds. */
export function isoDate(at: number): string {
  return new Date(at).toISOString();
}

const integer: Schema = { type: "integer", minimum: 0 };

/** The records of prices, as components of the API reference. */
export const priceSchemas: Readonly<Record<string, Schema>> = {
  Adjustment: record(
    {
      name: textSchema,
      description: textSchema,
      operatorMagnitude: { type: "string", pattern: "^-?[0-9]+(\\.[0-9]+)?$" },
      operator: { type: "string", enum: ["multiply", "add"] },
      adjustmentAmount: {
        type: "string",
        pattern: "^-?[0-9]+$",
        description:
          "What the step added, below 0 where it took away: winc, or of a payment in fiat money its smallest unit.",
      },
      "promoCode?": { type: "string", description: "Only where a promo code was used." },
    },
    "One step on the way to a price.",
  ),
  BytesPrice: record({ winc, adjustments }),
  PaymentPrice: record(
    {
      winc,
      adjustments,
      fees: adjustments,
      actualPaymentAmount: largeInteger,
      quotedPaymentAmount: largeInteger,
    },
    "`winc` is what the account is credited with. Of fiat money `actualPaymentAmount` is what is charged and " +
      "`quotedPaymentAmount` what it is without promo codes; of tokens both are the payment's worth in winc, before " +
      "fees.",
  ),
  Rates: record({
    winc: largeInteger,
    fiat: {
      type: "object",
      additionalProperties: { type: "number" },
      description: "By currency, whole units; fees are in it.",
    },
    adjustments,
  }),
  Rate: record({ currency: textSchema, rate: { type: "number" } }),
  Currencies: record({
    supportedCurrencies: { type: "array", items: textSchema },
    limits: { type: "object", additionalProperties: ref("CurrencyLimits") },
  }),
  CurrencyLimits: record(
    {
      minimumPaymentAmount: integer,
      maximumPaymentAmount: integer,
      suggestedPaymentAmounts: { type: "array", items: integer },
      stripeMinimumPaymentAmount: integer,
      zeroDecimalCurrency: { type: "boolean", description: "The smallest unit is the whole one." },
    },
    "In the currency's smallest unit, both ends inclusive.",
  ),
};

/** The adjustment record: six texts; only adjustments by a promo code have `promoCode`. */
export function adjustmentRecord(adjustment: Adjustment) {
  const { name, description, operator, operatorMagnitude, promoCode } = adjustment;
  const adjustmentAmount = adjustment.adjustmentAmount.toString();
  const record = { name, description, operatorMagnitude, operator, adjustmentAmount };
  return promoCode === undefined ? record : { ...record, promoCode };
}

export function bytesPriceRecord({ winc, adjustments }: BytesPrice) {
  return { winc: winc.toString(), adjustments: adjustments.map(adjustmentRecord) };
}

export function paymentPriceRecord(price: PaymentPrice) {
  return {
    winc: price.winc.toString(),
    adjustments: price.adjustments.map(adjustmentRecord),
    fees: price.fees.map(adjustmentRecord),
    actualPaymentAmount: wireInteger(price.actualPaymentAmount),
    quotedPaymentAmount: wireInteger(price.quotedPaymentAmount),
  };
}

export function currenciesRecord(limits: ReadonlyMap<string, CurrencyLimits>) {
  const records = [...limits].map(([currency, limit]) => [currency, limitsRecord(limit)] as const);
  return { supportedCurrencies: [...limits.keys()], limits: Object.fromEntries(records) };
}

/** The rates as JSON text, whose numbers are decimal digits without an exponent. */
export function ratesText({ winc, fiat, adjustments }: Rates): string {
  const prices = [...fiat].map(([currency, price]) => `${JSON.stringify(currency)}:${price}`);
  const others = JSON.stringify({ winc: wireInteger(winc), adjustments: adjustments.map(adjustmentRecord) });
  return `${others.slice(0, -1)},"fiat":{${prices.join(",")}}}`;
}

/** One rate as JSON text. @param rate - Decimal text. */
export function rateText(currency: string, rate: string): string {
  return `{"currency":${JSON.stringify(currency)},"rate":${rate}}`;
}

/** An integer in JSON: a number below 2^53, its digits as text from there up. */
export function wireInteger(amount: bigint): number | string {
  const number = Number(amount);
  return Number.isSafeInteger(number) ? number : amount.toString();
}

function limitsRecord(limit: CurrencyLimits) {
  return {
    minimumPaymentAmount: wireInteger(limit.minimum),
    maximumPaymentAmount: wireInteger(limit.maximum),
    suggestedPaymentAmounts: limit.suggested.map(wireInteger),
    stripeMinimumPaymentAmount: wireInteger(limit.stripeMinimum),
    zeroDecimalCurrency: limit.isZeroDecimal,
  };
}

const paymentFields = {
  transactionId: textSchema,
  transactionQuantity: {
    oneOf: [{ type: "integer" }, textSchema],
    description: "Smallest unit of the token; decimal text from 2^53 up.",
  },
  transactionSenderAddress: textSchema,
  createdAt: dateTime,
  createdDate: dateTime,
  tokenType: textSchema,
  destinationAddress: textSchema,
  destinationAddressType: textSchema,
  winstonCreditAmount: winc,
  adjustments,
};

/** The records of payments in tokens, as components of the API reference. */
export const tokenSchemas: Readonly<Record<string, Schema>> = {
  PendingTransaction: record(paymentFields),
  CreditedTransaction: record({
    ...paymentFields,
    blockHeight: { type: "integer" },
    creditedAt: dateTime,
    creditedDate: dateTime,
  }),
  FailedTransaction: record({
    ...paymentFields,
    failedAt: dateTime,
    failedDate: dateTime,
    failureReason: textSchema,
    failedReason: textSchema,
  }),
};

/** The response to a report of a payment. */
type SubmittedResponse = Readonly<{ status: number; body: Readonly<Record<string, unknown>> }>;

/** @param word - The token's name as the request has it. */
export function submittedResponse({ payment, isKnown }: Submitted, word: string): SubmittedResponse {
  const already = isKnown ? "already " : "";
  switch (payment.state) {
    case "credited":
      return {
        status: 200,
        body: {
          message: `Transaction ${already}credited`,
          creditedTransaction: { ...creditedPart(payment), ...tokenPaymentRecord(payment, word) },
        },
      };
    case "pending":
      return {
        status: 202,
        body: {
          message: `Transaction ${already}pending`,
          pendingTransaction: tokenPaymentRecord(payment, word),
        },
      };
    case "reversed":
    case "failed":
      return {
        status: 400,
        body: {
          message: "Transaction has already failed!",
          failedTransaction: { ...tokenPaymentRecord(payment, word), ...failedPart(payment) },
        },
      };
  }
}

/** Clients of other services read the dates under a second name. */
function tokenPaymentRecord(payment: TokenPayment, word: string) {
  const seen = isoDate(payment.seenAt);
  return {
    transactionId: payment.transactionId,
    transactionQuantity: wireInteger(payment.quantity),
    transactionSenderAddress: payment.sender,
    createdAt: seen,
    createdDate: seen,
    tokenType: word,
    destinationAddress: payment.destination,
    destinationAddressType: typeInWordsOf(payment.destinationType, word),
    winstonCreditAmount: payment.winc.toString(),
    adjustments: payment.fees.map(adjustmentRecord),
  };
}

function creditedPart({ block, creditedAt }: TokenPayment) {
  const credited = creditedAt === undefined ? undefined : isoDate(creditedAt);
  return { blockHeight: block?.height, creditedAt: credited, creditedDate: credited };
}

function failedPart({ endedAt, failureReason }: TokenPayment) {
  const failed = endedAt === undefined ? undefined : isoDate(endedAt);
  return { failedAt: failed, failedDate: failed, failureReason, failedReason: failureReason };
}

/** The address type, in the request's own word where that word names both a token and an address type. */
function typeInWordsOf(type: AddressType, word: string): string {
  const isNamed = addressTypesOf(word)?.includes(type) === true && aliases.includes(word);
  return isNamed ? word : type;
}

/** Words that name both a token and an address type. */
const aliases: readonly string[] = ["native", "arweave", "ethereum", "solana", "kyve"];
