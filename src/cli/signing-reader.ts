/**
 * Reads the signing id of an upload from its bytes: in the folder of uploads, or from a gateway once the upload is on
 * the chain.
 * @module
 */
import { createReadStream, existsSync } from "node:fs";
import { join } from "node:path";
import {
  createMessageHash,
  type ItemHeader,
  type PayloadHash,
  readItemHeader,
  verifyItem,
} from "../arweave/data-item.ts";
import type { Id } from "../arweave/id.ts";
import { isSignedByMessage, signingOfHeader, signingOfItem } from "../arweave/signing.ts";
import { Failure } from "../failures.ts";
import { concatBytes } from "../lib/bytes.ts";
import { type Http, openHttp } from "../lib/http-client.ts";
import type { ReadSigning } from "../upload/double-charges.ts";
import type { Upload } from "../upload/upload-rows.ts";

/** Reads signing ids; `close` aborts all requests. */
export type SigningReader = Readonly<{ read: ReadSigning; close: () => void }>;

const timeouts = { firstByteMs: 30_000, stallMs: 30_000, totalMs: 600_000 } as const;

/** @param folder - The folder of uploads. @param gateway - URL without a trailing slash. */
export function createSigningReader(folder: string, gateway: string): SigningReader {
  const http = openHttp(timeouts);
  return {
    read: async (upload, signal) => {
      try {
        const pieces = existsSync(join(folder, upload.bytes.file))
          ? piecesOfFile(folder, upload)
          : piecesOfGateway(http, gateway, upload, signal);
        return await signingOf(pieces, upload);
      } catch (error) {
        // The operator sees why the bytes are unavailable.
        const reason = error instanceof Failure ? error.context["reason"] : undefined;
        return { unread: String(reason ?? (error instanceof Error ? error.message : error)) };
      }
    },
    close: http.close,
  };
}

/** Bytes that are needed for the signing id: the whole item only when its content is part of the id. */
function sizeNeeded({ signatureType, headerSize, bytes }: Upload): number {
  return isSignedByMessage(signatureType) ? bytes.size : headerSize;
}

function piecesOfFile(folder: string, upload: Upload): AsyncIterable<Uint8Array> {
  const { file, offset } = upload.bytes;
  return createReadStream(join(folder, file), { start: offset, end: offset + sizeNeeded(upload) - 1 });
}

async function* piecesOfGateway(
  http: Http,
  gateway: string,
  upload: Upload,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const { transactionId, offset } = upload.place ?? {};
  if (transactionId === undefined || offset === undefined)
    throw new Error("its file is missing, and it is not on the chain");
  const range = `bytes=${offset}-${offset + sizeNeeded(upload) - 1}`;
  const url = `${gateway}/raw/${transactionId}`;
  const found = await http.stream({ method: "GET", url, headers: { range } }, signal);
  if (found.kind === "fault") throw new Error(`${url} cannot be read: ${found.detail}`);
  try {
    if (found.status !== 206) throw new Error(`${url} responded ${found.status} to ${range}`);
    yield* found.body;
  } finally {
    found.cancel();
  }
}

async function signingOf(pieces: AsyncIterable<Uint8Array>, upload: Upload): Promise<Id> {
  const { id, headerSize, bytes, signatureType } = upload;
  let begun: Uint8Array = new Uint8Array(0);
  let header: ItemHeader | undefined;
  let message: PayloadHash | undefined;
  for await (const piece of pieces) {
    if (header !== undefined) {
      message?.update(piece);
      continue;
    }
    begun = concatBytes([begun, piece]);
    if (begun.length < headerSize) continue;
    header = headerOf(begun, upload);
    if (isSignedByMessage(signatureType)) {
      message = createMessageHash(header, bytes.size - headerSize);
      message.update(begun.subarray(headerSize));
    }
  }
  if (header?.id !== id) throw new Error(otherBytes);
  if (message === undefined) return signingOfHeader(header).id;
  const signed = message.finish();
  if (!verifyItem(header, signed).valid) throw new Error(otherBytes);
  return signingOfItem(header, signed).id;
}

const otherBytes = "its bytes are not those that were uploaded";

function headerOf(begun: Uint8Array, { bytes }: Upload): ItemHeader {
  const read = readItemHeader(begun, "strict", bytes.size);
  if (read.kind !== "header") throw new Error(otherBytes);
  return read.header;
}
