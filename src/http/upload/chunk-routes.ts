/**
 * Uploads in parts: made, written, listed, finalized, looked at.
 * Source: docs/reference/upload.md#uploads-in-parts.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { ignoreRejection } from "../../lib/stop.ts";
import type { Token } from "../../payment/addresses.ts";
import type { Taken } from "../../upload/intake/charge.ts";
import type { MultipartUpload } from "../../upload/multipart/multipart-rows.ts";
import {
  chunkSizeMax,
  chunkSizeMin,
  type Multipart,
  type MultipartStatus,
} from "../../upload/multipart/multipart-uploads.ts";
import { piecesOf } from "../body-pieces.ts";
import { addressBlock } from "../client-address.ts";
import { contextOf } from "../context.ts";
import { codeResponse, jsonResponse, textResponse } from "../responses.ts";
import { readCount } from "./byte-counts.ts";
import { pathParameters, queryParameters } from "./parameters.ts";
import { payersOf } from "./payers.ts";
import type { ReceiptWriter } from "./receipt-record.ts";
import { fromUpload } from "./refusals.ts";
import { type CreatePaidChunks, readPaidChunks } from "./x402-chunks.ts";

/** What the routes ask. */
export type ChunkRoutesOptions = Readonly<{
  /** Undefined: no wallet is set, and uploads are off. */
  multipart: Multipart | undefined;
  /** Makes uploads that are paid for when they are made; undefined: they are paid from credits, when they are whole. */
  createPaid?: CreatePaidChunks | undefined;
  writeReceipt: ReceiptWriter;
}>;

/** What is true of one moment. */
const noStore = { "Cache-Control": "no-store" } as const;

/** Stands in a path for "none": no upload yet, no part. */
const none = "-1";

/** A part may wait for the disk, the whole for being walked over: as long as a connection may be silent. */
const partSilenceSeconds = 120;
const wholeSilenceSeconds = 255;

/** Creates the routes. */
export function createChunkRoutes({ multipart, createPaid, writeReceipt }: ChunkRoutesOptions): AnyElysia {
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
    .get("/chunks/:token/:uploadId/:part", ({ request, params, query }) =>
      withMultipart(params.token, async (uploads) => {
        const { part } = params;
        const uploadId = readUploadId(params.uploadId);
        if (uploadId === none && part === none) return await create({ uploads, createPaid }, request, query);
        if (part === none) return await list(uploads, uploadId);
        if (part !== "status") throw new Failure("not_found", {});
        return await statusResponse(await uploads.status(uploadId), (taken) => writeReceipt(taken, request));
      }),
    )
    .post(
      "/chunks/:token/:uploadId/:part",
      ({ request, params }) =>
        withMultipart(params.token, async (uploads, token) => {
          const { part } = params;
          const uploadId = readUploadId(params.uploadId);
          if (part !== none && part !== "finalize") return await put(uploads, request, uploadId, part);
          contextOf(request).allowSilence(wholeSilenceSeconds);
          const payers = { ...payersOf(request), token };
          if (part === none)
            return await receiptResponse(await uploads.finalize(uploadId, payers, request.signal), request);
          const taken = await uploads.finalizeLater(uploadId, payers);
          return taken === undefined
            ? new Response(null, { status: 202, headers: noStore })
            : await receiptResponse(taken, request);
        }),
      { parse: "none" },
    );
}

type Makers = Readonly<{ uploads: Multipart; createPaid: CreatePaidChunks | undefined }>;

async function create(
  { uploads, createPaid }: Makers,
  request: Request,
  query: Readonly<Record<string, string | undefined>>,
): Promise<Response> {
  const { headOnly, clientAddress } = contextOf(request);
  // It makes something: whoever wants to know whether it would gets no upload for it.
  if (headOnly) return codeResponse("method_not_allowed", { Allow: "GET" });
  const limits = { min: chunkSizeMin, max: chunkSizeMax };
  const sizeText = query[queryParameters.chunkSize.name];
  const chunkSize = sizeText === undefined ? undefined : queryParameters.chunkSize.read(sizeText);
  if (sizeText !== undefined && chunkSize === undefined)
    return jsonResponse({ error: "Invalid chunk size", ...limits }, 400);
  const asked = { chunkSize, client: addressBlock(clientAddress()) };
  const write = (upload: MultipartUpload) =>
    jsonResponse({ id: upload.id, ...limits, chunkSize: upload.chunkSize }, 200, noStore);
  const paid = readPaidChunks(query);
  if (paid === undefined || createPaid === undefined || createPaid.isFree(paid.size))
    return write(await uploads.create(asked));
  contextOf(request).allowSilence(wholeSilenceSeconds);
  return await createPaid.create(request, { ...asked, ...paid }, write);
}

async function put(uploads: Multipart, request: Request, uploadId: string, part: string): Promise<Response> {
  const start = pathParameters.offset.read(part);
  if (start === undefined) throw refused("Invalid chunk. Its offset is not a whole number.");
  const size = readCount(request.headers.get("content-length")) ?? 0;
  if (size === 0) throw refused("Content-Length header is required a must be a positive integer.");
  contextOf(request).allowSilence(partSilenceSeconds);
  const pieces = piecesOf(request);
  try {
    await uploads.put(uploadId, { start, size, pieces }, request.signal);
  } finally {
    // A wait for more of it ends by itself; the answer does not wait for that.
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

function refused(reason: string): Failure {
  return new Failure("upload_rejected", { reason });
}
