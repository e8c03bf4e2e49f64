/**
 * Schemas that several routes of the upload service declare.
 *
 * The operator decides which network payments use (`X402_NETWORK`), and headers are parsed where they are read
 * (docs/decisions/080-api-reference.md).
 * Source: docs/reference/upload.md#routes.
 * @module
 */
import { idFormat } from "../../arweave/id.ts";
import { signatureSchemes } from "../../arweave/signature.ts";
import { integerParser, refined, stringSchema, type TextParser } from "../../lib/value-schema.ts";
import { accountText, tokenText } from "../../payment/addresses.ts";
import { byteCountText } from "../../payment/amounts.ts";
import { paidByMax } from "../../payment/credits/reservations.ts";
import { chunkSizeMax, chunkSizeMin } from "../../upload/multipart/multipart-uploads.ts";
import { type Parameter, pathParameter, queryParameter } from "../parameter.ts";
import {
  countSchema,
  failureResponses,
  inHeader,
  json,
  type Responses,
  type Result,
  ref,
  type Schema,
  sampleId,
  textSchema,
} from "../reference/openapi-types.ts";

/** Exceeds the size of any item: 15 digits. Bytes. */
export const byteCountMax = 999_999_999_999_999;

const signatureType: TextParser<number> = {
  ...integerParser(0, 99_999, 5),
  schema: { type: "integer", enum: signatureSchemes.map(({ type }) => type) },
};

/** The length of an upload id is not checked: an unknown id gives 404. */
const uploadId = refined(
  stringSchema(),
  (text): text is string => /^[0-9A-Za-z_-]+$/.test(text),
  "Alphanumeric characters, - and _.",
);

export const pathParameters = {
  token: pathParameter("token", tokenText, "arweave", "The token of the signer."),
  tokenOrSize: pathParameter(
    "token",
    { schema: { oneOf: [tokenText.schema, byteCountText.schema] } },
    "arweave",
    "A token: the price of one GiB. Digits: the price of that many bytes.",
  ),
  id: pathParameter("id", idFormat, sampleId, "Id of an uploaded item."),
  uploadId: pathParameter("uploadId", uploadId, "upload-id", "Id of the upload in parts."),
  offset: pathParameter("offset", integerParser(0, byteCountMax), "0", "Offset of the part in the item, bytes."),
} as const;

/** Parameters of queries: options of an upload in parts. */
export const queryParameters = {
  chunkSize: queryParameter("chunkSize", integerParser(chunkSizeMin, chunkSizeMax), "Bytes of a part."),
  totalBytes: queryParameter("totalBytes", integerParser(1, byteCountMax), "Size of the whole item at most, bytes."),
  address: queryParameter("address", accountText, "The account that unused credits go to."),
  signatureType: queryParameter("signatureType", signatureType, "Signature type of the address, numbered as in items."),
} as const;

export const winc: Schema = { type: "string", pattern: "^[0-9]+$", description: "Winc." };
export const texts: Schema = { type: "array", items: textSchema };

/** A number of bytes. */
export function byteSchema(description: string): Schema {
  return { ...countSchema, description };
}

/** Headers that name payers other than the signer. */
export const payerHeaders: readonly Parameter[] = [
  inHeader(
    "x-paid-by",
    textSchema,
    `Addresses whose approvals pay, in this order, separated by commas; at most ${paidByMax}.`,
  ),
  inHeader(
    "x-payment-directive",
    { type: "string", default: "list-or-signer" },
    "`list-only`: the signer's own credits are not spent; any other value: they are spent last.",
  ),
];

/** Responses that reject an item. */
export const itemRejections: Responses = {
  ...failureResponses(
    "upload_rejected",
    "upload_forbidden",
    "blocked",
    "body_timeout",
    "item_too_large",
    "busy",
    "no_space",
    "disk_failed",
    "not_synced",
    "pricing_oracle_unavailable",
    "database_unavailable",
    "uploads_off",
  ),
  402: json("Insufficient credits; nothing is charged or stored.", ref("InsufficientBalance")),
};

/** Headers that carry a payment. */
export const paymentHeaders: readonly Parameter[] = [
  inHeader("X-PAYMENT", textSchema, "A payment of version 1, base64 of JSON."),
  inHeader("PAYMENT-SIGNATURE", textSchema, "A payment of version 2, base64 of JSON."),
];

/** The response without a sufficient payment. */
export const paymentRequired: Result = json(
  "The price; or the payment did not settle, for the reason in the header of the settlement.",
  ref("X402Required"),
);

/** Responses that reject a payment. */
export const paymentFault: Responses = failureResponses(
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
