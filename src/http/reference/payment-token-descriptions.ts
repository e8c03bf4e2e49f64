/**
 * What the API reference says of payments in tokens.
 * Source: docs/reference/payment.md#token-payments.
 * @module
 */
import { accountParameters } from "../payment/parameters.ts";
import { tokenReport } from "../payment/token-report.ts";
import { type Description, json, record, ref, refusals, type Schema, textSchema } from "./words.ts";

const winc: Schema = { type: "string", pattern: "^[0-9]+$", description: "Winc." };
const date: Schema = { type: "string", format: "date-time" };

const paymentFields = {
  transactionId: textSchema,
  transactionQuantity: {
    oneOf: [{ type: "integer" }, textSchema],
    description: "Smallest unit of the token; decimal text from 2^53 up.",
  },
  transactionSenderAddress: textSchema,
  createdAt: date,
  createdDate: date,
  tokenType: textSchema,
  destinationAddress: textSchema,
  destinationAddressType: textSchema,
  winstonCreditAmount: winc,
  adjustments: { type: "array", items: ref("Adjustment") },
};

/** Records that the descriptions below refer to. */
export const paymentTokenRecords: Readonly<Record<string, Schema>> = {
  PendingTransaction: record(paymentFields),
  CreditedTransaction: record({
    ...paymentFields,
    blockHeight: { type: "integer" },
    creditedAt: date,
    creditedDate: date,
  }),
  FailedTransaction: record({
    ...paymentFields,
    failedAt: date,
    failedDate: date,
    failureReason: textSchema,
    failedReason: textSchema,
  }),
};

const failed: Schema = record({ message: textSchema, failedTransaction: ref("FailedTransaction") });
const refused = refusals(
  "malformed_json",
  ...tokenReport.refusals,
  "token_not_supported",
  "transaction_not_found",
  "too_large",
  "too_many_requests",
  "transaction_fault",
);

/** Every route of payments in tokens. */
export const paymentTokenDescriptions: readonly Description[] = [
  {
    method: "POST",
    path: "/account/balance/:token",
    tag: "Token payments",
    summary: "Report a payment",
    description:
      "A transfer to one of the addresses of `/info`. The price is fixed when the payment is first seen, for an hour " +
      "if no block has it by then; the credits come when it is confirmed, reported or not. They go to the account " +
      "that the transfer names (a tag `Turbo-Credit-Destination-Address`; calldata or a memo " +
      "`turboCreditDestinationAddress=…`), or to its sender. What was paid before payments were taken is refused.",
    parameters: [accountParameters.token],
    body: {
      type: "application/json",
      schema: tokenReport.schema,
      example: { tx_id: "A".repeat(43) },
    },
    responses: {
      ...refused,
      200: json("It is credited.", record({ message: textSchema, creditedTransaction: ref("CreditedTransaction") })),
      202: json(
        "It waits for confirmations.",
        record({ message: textSchema, pendingTransaction: ref("PendingTransaction") }),
      ),
      400: json("It failed, or the chain took it back, or the report is refused for the reason given.", {
        oneOf: [failed, textSchema],
      }),
      403: json("The sender's payments are refused.", textSchema),
    },
  },
];
