/**
 * Specification part 4C with what published clients need beyond it, the records of their responses, and the messages
 * that are the upload service's, as tables: what the test of the walk goes by.
 * @module
 */
import { list, named, record, type Schema, text } from "./record-schemas.ts";

/** Every row of part 4C, then every one beyond it: method and path. */
export const specified = ["GET /price/{token}/{byteCount}", "GET /price/{token}", "GET /", "GET /info"] as const;
export const added = [
  "POST /tx",
  "POST /tx/{token}",
  "GET /tx/{id}/status",
  "GET /tx/{id}/offsets",
  "GET /tx/{id}/receipt",
  "GET /chunks/{token}/-1/-1",
  "POST /chunks/{token}/{uploadId}/{offset}",
  "GET /chunks/{token}/{uploadId}/-1",
  "GET /chunks/{token}/{uploadId}/status",
  "POST /chunks/{token}/{uploadId}/-1",
  "POST /chunks/{token}/{uploadId}/finalize",
  "POST /x402/upload/signed",
  "POST /x402/upload/unsigned",
  "POST /x402/data-item/signed",
  "POST /x402/data-item/unsigned",
  "POST /x402/data-item/signed/{network}",
  "POST /x402/data-item/unsigned/{network}",
  "GET /health",
] as const;

export type Endpoint = (typeof specified)[number] | (typeof added)[number];

/** The fixed part of a message; a cause may follow, and … replaces an id or a limit. */
const fixed = [
  /^Invalid Data Item! /,
  /^Invalid chunk\. /,
  /^Invalid tags: /,
  /^Invalid payment for an upload: /,
  /^Data item is too large, this service only accepts data items up to (?=\d+ bytes!$)/,
  /^Multi-part upload with ID (?=\S+ not found!$)/,
  /^Network (?=\S+ is not enabled$)/,
];

/** A message without what may vary. */
export function fixedPartOf(message: string): string {
  const match = fixed.map((pattern) => pattern.exec(message)).find((found) => found !== null);
  return match === null || match === undefined ? message : match[0].trim();
}

const notFound = { "Not Found": [404] };
const noToken = { "Token not supported": [400] };
const noPrice = { "Pricing Oracle Unavailable": [503] };
const isOff = { "Uploads are switched off: no wallet is set": [503] };
const badItem = { "Invalid Data Item!": [400] };
const tooLarge = { "Data item is too large, this service only accepts data items up to": [413] };
const unknown = { "Multi-part upload with ID": [404], "Malformed path": [400] };
const noPayer = { "x-paid-by contains an invalid address": [400] };
const poor = { "Insufficient balance": [402] };
const item = {
  ...badItem,
  ...tooLarge,
  ...noPayer,
  ...poor,
  ...noPrice,
  ...isOff,
  Forbidden: [403],
  "Invalid Content Type": [400],
  "Approval x-amount tag missing a winc value!": [400],
  "Chain state not available yet": [503],
  "No space for uploads": [503],
};
const finalize = { ...noToken, ...unknown, ...badItem, ...noPayer, ...isOff };
const x402 = {
  "X-PAYMENT header is required": [402],
  "Payment settlement failed": [402],
  "Invalid signature or missing required headers": [403],
  "Missing Content Length. Content Length is required for raw data post.": [411],
  "This payment method is switched off": [503],
  ...tooLarge,
};
const noNetwork = { Network: [400] };
const badTags = { "Invalid tags:": [400] };

/** Every message that an endpoint may say, with its statuses: those of part 7 first. */
export const messages: Readonly<Record<Endpoint, Readonly<Record<string, readonly number[]>>>> = {
  "GET /price/{token}/{byteCount}": {
    "Invalid byte count": [400],
    ...noToken,
    ...noPrice,
    ...notFound,
  },
  "GET /price/{token}": { "Invalid byte count": [400], ...noToken, ...noPrice, ...notFound },
  "GET /": {},
  "GET /info": notFound,
  "POST /tx": item,
  "POST /tx/{token}": { ...noToken, ...notFound, ...badItem, ...isOff, ...poor },
  "GET /tx/{id}/status": { "TX doesn't exist": [404], "Malformed path": [400], ...notFound },
  "GET /tx/{id}/offsets": { "TX doesn't exist": [404], "Malformed path": [400], ...notFound },
  "GET /tx/{id}/receipt": { "TX doesn't exist": [404], "Malformed path": [400], ...isOff, ...notFound },
  "GET /chunks/{token}/-1/-1": {
    "Invalid chunk size": [400],
    "Invalid payment for an upload:": [400],
    ...noToken,
    ...notFound,
    ...isOff,
    "X-PAYMENT header is required": [402],
    "Payment settlement failed": [402],
    ...tooLarge,
  },
  "POST /chunks/{token}/{uploadId}/{offset}": {
    "Invalid chunk.": [400],
    "Content-Length header is required a must be a positive integer.": [400],
    ...noToken,
    ...unknown,
    ...tooLarge,
    ...isOff,
  },
  "GET /chunks/{token}/{uploadId}/-1": { ...noToken, ...unknown, ...isOff, ...notFound },
  "GET /chunks/{token}/{uploadId}/status": { ...noToken, ...unknown, ...isOff, ...notFound },
  "POST /chunks/{token}/{uploadId}/-1": { ...finalize, ...poor, Forbidden: [403] },
  "POST /chunks/{token}/{uploadId}/finalize": finalize,
  "POST /x402/upload/signed": { ...x402, ...badItem, Forbidden: [403] },
  "POST /x402/upload/unsigned": { ...x402, ...badTags },
  "POST /x402/data-item/signed": { ...x402, ...badItem, Forbidden: [403] },
  "POST /x402/data-item/unsigned": { ...x402, ...badTags },
  "POST /x402/data-item/signed/{network}": { ...x402, ...badItem, ...noNetwork, Forbidden: [403] },
  "POST /x402/data-item/unsigned/{network}": { ...x402, ...badTags, ...noNetwork },
  "GET /health": {},
};

const integer: Schema = { type: "integer", minimum: 0 };
const id: Schema = { type: "string", pattern: "^[0-9a-zA-Z_-]{43}$" };
const winc: Schema = { type: "string", pattern: "^[0-9]+$" };

const receipt = {
  id,
  timestamp: integer,
  winc,
  version: { type: "string", enum: ["0.2.0"] },
  deadlineHeight: integer,
  dataCaches: list(text),
  fastFinalityIndexes: list(text),
  public: text,
  signature: text,
  owner: id,
};
const offsets = {
  rawContentLength: integer,
  payloadContentType: text,
  payloadDataStart: integer,
  payloadContentLength: integer,
  "startOffsetInRootBundle?": integer,
};
const limits = { min: { type: "integer", enum: [5_242_880] }, max: { type: "integer", enum: [524_288_000] } };
const paid = { x402PaymentTxId: { type: "string", pattern: "^0x[0-9a-f]{64}$" }, mUSDCPaid: winc };

/** The records of part 2 and of docs/reference/upload.md. */
export const records: Readonly<Record<string, Schema>> = {
  Information: record({
    version: text,
    gateway: text,
    addresses: record({ native: text, ethereum: text, solana: text, matic: text }),
    freeUploadLimitBytes: integer,
    uploadLimitBytes: integer,
  }),
  Receipt: record(receipt),
  PaidReceipt: record({ ...receipt, ...paid }),
  PaidUnsigned: record({
    ...receipt,
    ...paid,
    payer: text,
    receipt: named("Receipt"),
    x402Payment: record({ paymentId: text, transactionHash: text, network: text, mode: text }),
  }),
  Status: record({
    status: { type: "string", enum: ["CONFIRMED", "FINALIZED", "FAILED"] },
    info: { type: "string", enum: ["new", "pending", "permanent", "failed"] },
    "bundleId?": id,
    winc,
    "reason?": text,
    ...offsets,
  }),
  Offsets: record({
    ...offsets,
    "rootBundleId?": id,
    "parentDataItemId?": id,
    "startOffsetInParentDataItemPayload?": integer,
  }),
  Begun: record({ id: text, ...limits, chunkSize: integer }),
  Parts: record({ id: text, ...limits, size: integer, chunks: list(list(integer)) }),
  PartStatus: record({
    status: {
      type: "string",
      enum: [
        "ASSEMBLING",
        "VALIDATING",
        "FINALIZING",
        "FINALIZED",
        "INVALID",
        "UNDERFUNDED",
        "APPROVAL_FAILED",
        "REVOKE_FAILED",
      ],
    },
    timestamp: integer,
    "receipt?": named("Receipt"),
    "reason?": text,
  }),
  Health: record({ status: text, uptime: { type: "number" }, date: text, reasons: list(text) }),
};

/** What success is, by endpoint: a record, or the pattern of a bare text. */
export const responses: Readonly<Record<Endpoint, Schema | RegExp>> = {
  "GET /price/{token}/{byteCount}": /^\d+$/,
  "GET /price/{token}": /^\d+$/,
  "GET /": named("Information"),
  "GET /info": named("Information"),
  "POST /tx": named("Receipt"),
  "POST /tx/{token}": named("Receipt"),
  "GET /tx/{id}/status": named("Status"),
  "GET /tx/{id}/offsets": named("Offsets"),
  "GET /tx/{id}/receipt": named("Receipt"),
  "GET /chunks/{token}/-1/-1": named("Begun"),
  "POST /chunks/{token}/{uploadId}/{offset}": /^OK$/,
  "GET /chunks/{token}/{uploadId}/-1": named("Parts"),
  "GET /chunks/{token}/{uploadId}/status": named("PartStatus"),
  "POST /chunks/{token}/{uploadId}/-1": named("Receipt"),
  "POST /chunks/{token}/{uploadId}/finalize": { oneOf: [named("Receipt")] },
  "POST /x402/upload/signed": named("PaidReceipt"),
  "POST /x402/upload/unsigned": named("PaidUnsigned"),
  "POST /x402/data-item/signed": named("PaidReceipt"),
  "POST /x402/data-item/unsigned": named("PaidUnsigned"),
  "POST /x402/data-item/signed/{network}": named("PaidReceipt"),
  "POST /x402/data-item/unsigned/{network}": named("PaidUnsigned"),
  "GET /health": named("Health"),
};
