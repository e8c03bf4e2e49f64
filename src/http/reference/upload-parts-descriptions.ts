/**
 * What the API reference says of items that are uploaded in parts.
 * Source: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import { pathParameters, queryParameters } from "../upload/parameters.ts";
import { itemRefusals, payerHeaders } from "./upload-descriptions.ts";
import { paymentFault, paymentHeaders, paymentRequired } from "./upload-x402-descriptions.ts";
import {
  countSchema,
  type Description,
  empty,
  json,
  type Parameter,
  record,
  ref,
  refusals,
  type Schema,
  text,
  textSchema,
} from "./words.ts";

const limits = {
  min: { type: "integer", description: "Least that `chunkSize` may be; parts may be smaller. Bytes." },
  max: { type: "integer", description: "Largest part, bytes." },
};

/** Records that the descriptions below refer to. */
export const uploadPartsRecords: Readonly<Record<string, Schema>> = {
  PartUpload: record({
    id: textSchema,
    ...limits,
    chunkSize: { type: "integer", description: "Bytes a part, as asked for, or what is usual." },
  }),
  PartUploadState: record({
    id: textSchema,
    ...limits,
    "size?": { type: "integer", nullable: true, description: "Bytes a part." },
    chunks: {
      type: "array",
      items: { type: "array", items: countSchema },
      description: "What is there: offset and size, ascending.",
    },
    "failedReason?": textSchema,
    "expiresAt?": {
      type: "integer",
      description: "When it is forgotten unless finalized, Unix milliseconds.",
    },
  }),
  PartUploadStatus: record({
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
    timestamp: { type: "integer", description: "Of the last change, Unix milliseconds." },
    "reason?": textSchema,
    "receipt?": ref("Receipt"),
  }),
  ChunkSizeRefusal: record({ error: textSchema, ...limits }),
};

const tag = "Items in parts";
const { token, uploadId } = pathParameters;
const servedBy = "/chunks/:token/:uploadId/:part";
const common: readonly Parameter[] = [token, uploadId];
const unknown = refusals(
  "token_not_supported",
  "upload_rejected",
  "malformed_path",
  "multipart_not_found",
  "database_unavailable",
  "uploads_off",
);
const nothing = {
  type: "application/octet-stream",
  schema: { type: "string", format: "binary" },
  example: "",
  required: false,
} as const;

/** Every route of items in parts. */
export const uploadPartsDescriptions: readonly Description[] = [
  {
    method: "GET",
    path: "/chunks/:token/-1/-1",
    servedBy,
    tag,
    summary: "Begin an item in parts",
    description:
      "With the last three parameters it is paid for at once by x402, for so many bytes. What is left of it is " +
      "credited to the address; all of it where it never becomes an item.",
    parameters: [
      token,
      queryParameters.chunkSize,
      queryParameters.totalBytes,
      queryParameters.address,
      queryParameters.signatureType,
      ...paymentHeaders,
    ],
    responses: {
      ...unknown,
      ...paymentFault,
      ...refusals("too_many_requests", "item_too_large"),
      ...refusals("invalid_signature", "upload_forbidden"),
      402: paymentRequired,
      200: json("Its id, to be used within a day.", ref("PartUpload")),
      400: json("The size of parts is none, or the token.", { oneOf: [ref("ChunkSizeRefusal"), textSchema] }),
    },
  },
  {
    method: "POST",
    path: "/chunks/:token/:uploadId/:offset",
    servedBy,
    tag,
    summary: "Send a part",
    description: "In any order, several at once, of any size; what was sent before is written over.",
    parameters: [...common, pathParameters.offset],
    body: {
      type: "application/octet-stream",
      schema: { type: "string", format: "binary" },
      example: "a part's bytes",
    },
    responses: {
      ...refusals(
        "token_not_supported",
        "upload_rejected",
        "multipart_not_found",
        "body_timeout",
        "item_too_large",
        "busy",
        "no_space",
        "disk_failed",
        "database_unavailable",
        "uploads_off",
      ),
      200: text("It is kept."),
    },
  },
  {
    method: "GET",
    path: "/chunks/:token/:uploadId/-1",
    servedBy,
    tag,
    summary: "What of an item is there",
    parameters: common,
    responses: { ...unknown, 200: json("Its parts.", ref("PartUploadState")) },
  },
  {
    method: "POST",
    path: "/chunks/:token/:uploadId/-1",
    servedBy,
    tag,
    summary: "Finalize, and wait for it",
    parameters: [...common, ...payerHeaders],
    body: nothing,
    responses: { ...itemRefusals, ...unknown, 200: json("The receipt.", ref("Receipt")) },
  },
  {
    method: "POST",
    path: "/chunks/:token/:uploadId/finalize",
    servedBy,
    tag,
    summary: "Finalize",
    description: "The item is verified and charged for in the background, over restarts; `status` tells.",
    parameters: [...common, ...payerHeaders],
    body: nothing,
    responses: {
      ...unknown,
      200: json("It was taken before: its receipt.", ref("Receipt")),
      202: empty("It is under way."),
    },
  },
  {
    method: "GET",
    path: "/chunks/:token/:uploadId/status",
    servedBy,
    tag,
    summary: "How far finalizing is",
    parameters: common,
    responses: { ...unknown, 200: json("Its status, and in the end the receipt.", ref("PartUploadStatus")) },
  },
];
