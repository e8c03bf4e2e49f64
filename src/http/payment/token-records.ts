/**
 * Payments in tokens as they stand on the wire: the pending, the credited and the failed record.
 * Source: docs/reference/payment.md#routes.
 * @module
 */
import { type AddressType, addressTypesOf } from "../../payment/addresses.ts";
import type { TokenPayment } from "../../payment/tokens/token-payment-store.ts";
import type { Submitted } from "../../payment/tokens/token-payments.ts";
import { isoDate } from "./credit-records.ts";
import { adjustmentRecord, wireInteger } from "./price-records.ts";

/** What a report of a payment is answered with, and the status that goes with it. */
export type SubmittedResponse = Readonly<{ status: number; body: Readonly<Record<string, unknown>> }>;

/** Writes the answer. @param word - The token's name as the request has it. */
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

/** What all three records have; the peer's clients read other names of the dates than the specification has. */
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

/** A request that names its token with an alias of the address's type is answered in that word. */
function typeInWordsOf(type: AddressType, word: string): string {
  const isNamed = addressTypesOf(word)?.includes(type) === true && aliases.includes(word);
  return isNamed ? word : type;
}

/** Words for both a token and a type of address. */
const aliases: readonly string[] = ["native", "arweave", "ethereum", "solana", "kyve"];
