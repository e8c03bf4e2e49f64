/**
 * What the API reference says of uploads that come with their payment (x402).
 * Source: docs/reference/upload.md#paying-with-the-request.
 * @module
 */
import { x402Schemas } from "../payment/x402-routes.ts";
import { itemRefusals, receiptFields } from "./upload-descriptions.ts";
import {
  type Description,
  inHeader,
  inPath,
  json,
  type Parameter,
  type Responses,
  type Result,
  record,
  ref,
  refusals,
  type Schema,
  textSchema,
} from "./words.ts";

const { X402Required, X402Requirement } = x402Schemas;

/** Records that the descriptions below refer to. */
export const uploadX402Records: Readonly<Record<string, Schema>> = {
  X402Required,
  X402Requirement,
  PaidReceipt: record(
    {
      ...receiptFields,
      "x402PaymentTxId?": { ...textSchema, description: "The transaction that paid." },
      "mUSDCPaid?": { ...textSchema, description: "Smallest unit of the asset." },
      "payer?": textSchema,
      "receipt?": ref("Receipt"),
      "x402Payment?": record({
        paymentId: textSchema,
        transactionHash: textSchema,
        network: textSchema,
        mode: { type: "string", enum: ["payg"] },
      }),
    },
    "What is said of the payment is absent where the item was there already, or is free. The last three are said of " +
      "items that the service signed.",
  ),
};

/** The payment that a request carries. */
export const paymentHeaders: readonly Parameter[] = [
  inHeader("X-PAYMENT", textSchema, "A payment of version 1, base64 of JSON."),
  inHeader("PAYMENT-SIGNATURE", textSchema, "A payment of version 2, base64 of JSON."),
];

/** What is asked for where nothing, or not enough, was paid. */
export const paymentRequired: Result = json(
  "What is to be paid; or the payment did not settle, and why is in the header of its answer.",
  ref("X402Required"),
);

/** What can go wrong with a payment. */
export const paymentFault: Responses = refusals(
  "invalid_signature",
  "settlement_unknown",
  "payment_method_off",
  "busy",
  "pricing_oracle_unavailable",
  "fiat_oracle_unavailable",
  "database_unavailable",
  "no_space",
  "disk_failed",
  "not_synced",
  "uploads_off",
);

const tag = "Paid by x402";
const settledFirst =
  "The payment is settled before anything is stored. What is refused afterwards leaves the payer the credits, and " +
  "the answer has the header of the settled payment all the same. The same payment for the same upload is answered " +
  "the same; where the first request broke off, it goes on.";
const network = inPath("network", textSchema, "base", "The network of the payment, by either version's name.");
const tagsHeader = inHeader("x-data-item-tags", textSchema, "JSON list of objects with name and value.");

const responses: Responses = {
  ...itemRefusals,
  ...refusals("upload_rejected", "length_required", "item_too_large"),
  ...paymentFault,
  402: paymentRequired,
  403: refusals("invalid_signature", "upload_forbidden")[403] ?? paymentRequired,
  200: json("The receipt.", ref("PaidReceipt")),
};

type Kind = Pick<Description, "summary" | "description" | "parameters" | "body">;

const signed: Kind = {
  summary: "Upload an item with its payment",
  description: `An item that is there already costs nothing. ${settledFirst}`,
  parameters: paymentHeaders,
  body: {
    type: "application/octet-stream",
    schema: { type: "string", format: "binary" },
    example: "an item's bytes",
  },
};

const unsigned: Kind = {
  summary: "Upload bytes with their payment; the service signs the item",
  description:
    "The item has the tags Content-Type, those of the header, Data-Item-Authority and X402-Payer-Address, and is " +
    `signed by a key that the service keeps for this alone. ${settledFirst} With more than 64 KiB it does not go on: ` +
    "nobody can tell then whether the same bytes come, and the payer has the credits.",
  parameters: [tagsHeader, ...paymentHeaders],
  body: { type: "*/*", schema: { type: "string", format: "binary" }, example: "any bytes" },
};

function at(path: string, { parameters = [], ...kind }: Kind, more: readonly Parameter[] = []): Description {
  return { ...kind, method: "POST", path, tag, parameters: [...more, ...parameters], responses };
}

/** Every route of paid uploads. */
export const uploadX402Descriptions: readonly Description[] = [
  at("/x402/upload/signed", signed),
  at("/x402/upload/unsigned", unsigned),
  at("/x402/data-item/signed", signed),
  at("/x402/data-item/unsigned", unsigned),
  at("/x402/data-item/signed/:network", signed, [network]),
  at("/x402/data-item/unsigned/:network", unsigned, [network]),
];
