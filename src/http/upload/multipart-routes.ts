/**
 * Multipart uploads: create, write, list, finalize, status.
 * Source: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { ignoreRejection } from "../../lib/stop.ts";
import type { Token } from "../../payment/addresses.ts";
import type { Taken } from "../../upload/intake/charge-item.ts";
import type { MultipartUpload } from "../../upload/multipart/multipart-rows.ts";
import {
  chunkSizeMax,
  chunkSizeMin,
  type Multipart,
  type MultipartStatus,
} from "../../upload/multipart/multipart-uploads.ts";
import { addressBlock } from "../client-address.ts";
import type { Parameter } from "../parameter.ts";
import {
  countSchema,
  empty,
  failureResponses,
  json,
  record,
  ref,
  type Schema,
  text,
  textSchema,
} from "../reference/openapi-types.ts";
import { piecesOf } from "../request-body.ts";
import { contextOf } from "../request-context.ts";
import { codeResponse, jsonResponse, noStore, textResponse } from "../responses.ts";
import { describedAs, type PathDescription } from "../route-schema.ts";
import { payersOf, readCount } from "./upload-headers.ts";
import { fromUpload, type ReceiptWriter } from "./upload-responses.ts";
import {
  byteCountMax,
  itemRejections,
  pathParameters,
  payerHeaders,
  paymentFault,
  paymentHeaders,
  paymentRequired,
  queryParameters,
} from "./upload-schemas.ts";
import { type PaidUploadCreator, readPaidUpload } from "./x402-upload-payments.ts";

export type MultipartRoutesOptions = Readonly<{
  /** Undefined when uploads are off: no wallet is set. */
  multipart: Multipart | undefined;
  /** Creates uploads that are paid for in advance. Undefined: credits pay when the upload is finalized. */
  createPaid?: PaidUploadCreator | undefined;
  writeReceipt: ReceiptWriter;
}>;

/** Means "none" in a path: no upload yet, or no part. */
const none = "-1";

/** Idle timeouts: writing a part can wait for the disk, and finalizing reads the complete item. */
const partIdleSeconds = 120;
const finalizeIdleSeconds = 255;

const limitSchemas = {
  min: { type: "integer", description: "Smallest `chunkSize`; parts may be smaller. Bytes." },
  max: { type: "integer", description: "Largest part, bytes." },
};

/** The records of uploads in parts, as components of the API reference. */
export const multipartSchemas: Readonly<Record<string, Schema>> = {
  PartUpload: record({
    id: textSchema,
    ...limitSchemas,
    chunkSize: { type: "integer", description: "Bytes of a part." },
  }),
  PartUploadState: record({
    id: textSchema,
    ...limitSchemas,
    "size?": { type: "integer", nullable: true, description: "Bytes of a part." },
    chunks: {
      type: "array",
      items: { type: "array", items: countSchema },
      description: "The stored parts: offset and size, ascending.",
    },
    "failedReason?": textSchema,
    "expiresAt?": {
      type: "integer",
      description: "When it expires unless finalized, Unix milliseconds.",
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
  ChunkSizeError: record({ error: textSchema, ...limitSchemas }),
};

const tag = "Items in parts";
const uploadParameters: readonly Parameter[] = [pathParameters.token, pathParameters.uploadId];
const unknownUpload = failureResponses(
  "token_not_supported",
  "upload_rejected",
  "malformed_path",
  "multipart_not_found",
  "database_unavailable",
  "uploads_off",
);
const emptyBody = {
  type: "application/octet-stream",
  schema: { type: "string", format: "binary" },
  example: "",
  required: false,
} as const;

/** One route serves several operations, because `-1`, `status` and `finalize` take the place of an offset. */
const readOperations: readonly PathDescription[] = [
  {
    path: "/chunks/:token/-1/-1",
    tag,
    summary: "Begin an upload in parts",
    description:
      "With the last three parameters the upload is paid for at once by x402, for `totalBytes`. The unused part is " +
      "credited to the address; the whole payment is, if the upload expires.",
    parameters: [
      pathParameters.token,
      queryParameters.chunkSize,
      queryParameters.totalBytes,
      queryParameters.address,
      queryParameters.signatureType,
      ...paymentHeaders,
    ],
    responses: {
      ...unknownUpload,
      ...paymentFault,
      ...failureResponses("too_many_requests", "item_too_large"),
      ...failureResponses("invalid_signature", "upload_forbidden"),
      402: paymentRequired,
      200: json("The upload, which expires after a day.", ref("PartUpload")),
      400: json("The chunk size or the token is invalid.", { oneOf: [ref("ChunkSizeError"), textSchema] }),
    },
  },
  {
    path: "/chunks/:token/:uploadId/-1",
    tag,
    summary: "Stored parts of an upload",
    parameters: uploadParameters,
    responses: { ...unknownUpload, 200: json("The parts.", ref("PartUploadState")) },
  },
  {
    path: "/chunks/:token/:uploadId/status",
    tag,
    summary: "Status of finalizing",
    parameters: uploadParameters,
    responses: { ...unknownUpload, 200: json("The status, and the receipt once finalized.", ref("PartUploadStatus")) },
  },
];

const writeOperations: readonly PathDescription[] = [
  {
    path: "/chunks/:token/:uploadId/:offset",
    tag,
    summary: "Send a part",
    description: "In any order, concurrently, of any size; overlapping parts overwrite earlier ones.",
    parameters: [...uploadParameters, pathParameters.offset],
    body: {
      type: "application/octet-stream",
      schema: { type: "string", format: "binary" },
      example: "a part's bytes",
    },
    responses: {
      ...failureResponses(
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
      200: text("The part is stored."),
    },
  },
  {
    path: "/chunks/:token/:uploadId/-1",
    tag,
    summary: "Finalize, and wait for the result",
    parameters: [...uploadParameters, ...payerHeaders],
    body: emptyBody,
    responses: { ...itemRejections, ...unknownUpload, 200: json("The receipt.", ref("Receipt")) },
  },
  {
    path: "/chunks/:token/:uploadId/finalize",
    tag,
    summary: "Finalize",
    description:
      "The item is verified and charged for in the background, also after a restart; `status` shows the result.",
    parameters: [...uploadParameters, ...payerHeaders],
    body: emptyBody,
    responses: {
      ...unknownUpload,
      200: json("Finalized before: the receipt.", ref("Receipt")),
      202: empty("Finalizing has begun."),
    },
  },
];

export function createMultipartRoutes({ multipart, createPaid, writeReceipt }: MultipartRoutesOptions): AnyElysia {
  const withMultipart = (tokenText: string, work: (uploads: Multipart, token: Token) => Promise<Response>) =>
    fromUpload(async () => {
      if (multipart === undefined) throw new Failure("uploads_off", {});
      const token = pathParameters.token.read(tokenText);
      if (token === undefined) throw new Failure("token_not_supported", { token: tokenText.slice(0, 100) });
      return await work(multipart, token);
    });
  const receiptResponse = async (taken: Taken, request: Request) =>
    jsonResponse(await writeReceipt(taken, request), 200, noStore);

  return new Elysia({ strictPath: true })
    .get(
      "/chunks/:token/:uploadId/:part",
      ({ request, params, query }) =>
        withMultipart(params.token, async (uploads) => {
          const { part } = params;
          const uploadId = readUploadId(params.uploadId);
          if (uploadId === none && part === none) return await create({ uploads, createPaid }, request, query);
          if (part === none) return await list(uploads, uploadId);
          if (part !== "status") throw new Failure("not_found", {});
          return await statusResponse(await uploads.status(uploadId), (taken) => writeReceipt(taken, request));
        }),
      { detail: describedAs(...readOperations) },
    )
    .post(
      "/chunks/:token/:uploadId/:part",
      ({ request, params }) =>
        withMultipart(params.token, async (uploads, token) => {
          const { part } = params;
          const uploadId = readUploadId(params.uploadId);
          if (part !== none && part !== "finalize") return await writePart(uploads, request, uploadId, part);
          contextOf(request).extendIdleTimeout(finalizeIdleSeconds);
          const payers = { ...payersOf(request), token };
          if (part === none)
            return await receiptResponse(await uploads.finalize(uploadId, payers, request.signal), request);
          const taken = await uploads.finalizeLater(uploadId, payers);
          return taken === undefined
            ? new Response(null, { status: 202, headers: noStore })
            : await receiptResponse(taken, request);
        }),
      { parse: "none", detail: describedAs(...writeOperations) },
    );
}

type UploadCreators = Readonly<{ uploads: Multipart; createPaid: PaidUploadCreator | undefined }>;

async function create(
  { uploads, createPaid }: UploadCreators,
  request: Request,
  query: Readonly<Record<string, string | undefined>>,
): Promise<Response> {
  const { headOnly, clientAddress } = contextOf(request);
  // A HEAD request must not create an upload.
  if (headOnly) return codeResponse("method_not_allowed", { Allow: "GET" });
  const limits = { min: chunkSizeMin, max: chunkSizeMax };
  const sizeText = query[queryParameters.chunkSize.name];
  const chunkSize = sizeText === undefined ? undefined : queryParameters.chunkSize.read(sizeText);
  if (sizeText !== undefined && chunkSize === undefined)
    return jsonResponse({ error: "Invalid chunk size", ...limits }, 400);
  const asked = { chunkSize, client: addressBlock(clientAddress()) };
  const write = (upload: MultipartUpload) =>
    jsonResponse({ id: upload.id, ...limits, chunkSize: upload.chunkSize }, 200, noStore);
  const paid = readPaidUpload(query);
  if (paid === undefined || createPaid === undefined || createPaid.isFree(paid.size))
    return write(await uploads.create(asked));
  contextOf(request).extendIdleTimeout(finalizeIdleSeconds);
  return await createPaid.create(request, { ...asked, ...paid }, write);
}

async function writePart(uploads: Multipart, request: Request, uploadId: string, part: string): Promise<Response> {
  const start = pathParameters.offset.read(part);
  if (start === undefined) throw rejection(`Invalid chunk. Expected an offset from 0 to ${byteCountMax}`);
  const size = readCount(request.headers.get("content-length")) ?? 0;
  if (size === 0) throw rejection("Content-Length header is required a must be a positive integer.");
  contextOf(request).extendIdleTimeout(partIdleSeconds);
  const pieces = piecesOf(request);
  try {
    await uploads.put(uploadId, { start, size, pieces }, request.signal);
  } finally {
    // A pending read ends by itself; the response does not wait for it.
    ignoreRejection(pieces.return(undefined));
  }
  return textResponse("OK", 200, noStore);
}

async function list(uploads: Multipart, uploadId: string): Promise<Response> {
  const { upload, parts } = await uploads.list(uploadId);
  const record = {
    id: upload.id,
    min: chunkSizeMin,
    max: chunkSizeMax,
    size: upload.chunkSize,
    chunks: parts.map(({ start, size }) => [start, size]),
    ...(upload.failure === undefined ? {} : { failedReason: upload.failure.word }),
    ...(upload.state === "finalized" ? {} : { expiresAt: upload.expiresAt }),
  };
  return jsonResponse(record, 200, noStore);
}

async function statusResponse(
  status: MultipartStatus,
  receiptOf: (taken: Taken) => Promise<Readonly<Record<string, unknown>>>,
): Promise<Response> {
  const timestamp = status.upload.changedAt;
  switch (status.kind) {
    case "open":
      return jsonResponse({ status: "ASSEMBLING", timestamp }, 200, noStore);
    case "finalizing":
      return jsonResponse({ status: status.stage, timestamp }, 200, noStore);
    case "failed": {
      const { failure } = status.upload;
      return jsonResponse({ status: failure?.word, timestamp, reason: failure?.reason }, 200, noStore);
    }
    case "finalized":
      return jsonResponse({ status: "FINALIZED", timestamp, receipt: await receiptOf(status.taken) }, 200, noStore);
  }
}

function readUploadId(text: string): string {
  if (pathParameters.uploadId.is(text)) return text;
  throw new Failure("malformed_path", { part: "uploadId" });
}

function rejection(reason: string): Failure {
  return new Failure("upload_rejected", { reason });
}
