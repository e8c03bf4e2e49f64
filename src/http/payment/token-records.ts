/**
 * Payments in tokens in their wire format, and its schemas: the pending, the credited and the failed record.
 * Source: docs/reference/payment.md#routes.
 * @module
 */
import { type AddressType, addressTypesOf } from "../../payment/addresses.ts";
import type { TokenPayment } from "../../payment/tokens/token-payment-store.ts";
import type { Submitted } from "../../payment/tokens/token-payments.ts";
import { record, type Schema, textSchema } from "../reference/words.ts";
import { isoDate } from "./credit-records.ts";
import { adjustments, dateTime, winc } from "./payment-schemas.ts";
import { adjustmentRecord, wireInteger } from "./price-records.ts";

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
export type SubmittedResponse = Readonly<{ status: number; body: Readonly<Record<string, unknown>> }>;

/** @param word - The token's name as the request has it. */
export function submittedResponse({ payment, isKnown }: Submitted, word: string): SubmittedResponse {
  const already = isKnown ? "already " : "";
  switch (payment.state) {
    case "credited":
      return {
        status: 200,
        body: {
          message: `Transaction ${already}credited`,
          creditedTransaction: { ...creditedPart(payment), ...paymentRecord(payment, word) },
        },
      };
    case "pending":
      return {
        status: 202,
        body: {
          message: `Transaction ${already}pending`,
          pendingTransaction: paymentRecord(payment, word),
        },
      };
    case "reversed":
    case "failed":
      return {
        status: 400,
        body: {
          message: "Transaction has already failed!",
          failedTransaction: { ...paymentRecord(payment, word), ...failedPart(payment) },
        },
      };
  }
}

/** Clients of other services read the dates under a second name. */
function paymentRecord(payment: TokenPayment, word: string) {
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
