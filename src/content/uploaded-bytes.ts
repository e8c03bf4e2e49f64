/**
 * The bytes of uploaded items in their files.
 * @module
 */
import { type FileHandle, open } from "node:fs/promises";
import type { Id } from "../arweave/id.ts";
import { Failure } from "../failures.ts";
import type { ByteSpan } from "../lib/range.ts";

/** An item's payload on this disk. */
export type UploadedPayload = Readonly<{
  id: Id;
  path: string;
  /** Of the payload, in the file. */
  start: number;
  /** Of the item's header, which ends where the payload begins. Bytes. */
  headerSize: number;
  size: number;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  /** SHA-256 of the payload. */
  digest: Uint8Array;
  /** A moment after this process verified and wrote the item, Unix milliseconds; `undefined`: another one did. */
  verifiedAt: number | undefined;
}>;

/** A file, and the byte in it from which spans count. */
type FilePlace = Pick<UploadedPayload, "path" | "start">;

const pieceBytes = 256 * 2 ** 10;

/** Gives a span whole; the caller bounds it. @throws Failure `busy`, `source_failed`. */
export async function bytesOf(place: FilePlace, span: ByteSpan): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafeSlow(span.end - span.start); // wholly written below, or thrown away
  await withFile(place, async (file) => {
    for (let at = 0; at < bytes.length; ) at += await readSome(file, place, bytes.subarray(at), span.start + at);
  });
  return bytes;
}

/** Gives a span in pieces of 256 KiB, made as they are taken. @throws Failure `busy`, `source_failed`. */
export async function* piecesOf(place: FilePlace, span: ByteSpan): AsyncGenerator<Uint8Array> {
  const file = await openPlace(place);
  try {
    for (let at = span.start; at < span.end; ) {
      const piece = new Uint8Array(Math.min(pieceBytes, span.end - at));
      const bytesRead = await readSome(file, place, piece, at);
      yield piece.subarray(0, bytesRead);
      at += bytesRead;
    }
  } finally {
    await file.close();
  }
}

/** A file that has gone went because its item is on the chain: it is found elsewhere next time. */
export async function missingIsBusy<Result>(path: string, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw new Failure("busy", { path }, error);
  }
}

function openPlace({ path }: FilePlace): Promise<FileHandle> {
  return missingIsBusy(path, open(path, "r"));
}

async function withFile(place: FilePlace, work: (file: FileHandle) => Promise<void>): Promise<void> {
  const file = await openPlace(place);
  try {
    await work(file);
  } finally {
    await file.close();
  }
}

/** @returns How many bytes came, 1 or more. */
async function readSome(file: FileHandle, { path, start }: FilePlace, into: Uint8Array, at: number): Promise<number> {
  const { bytesRead } = await file.read(into, 0, into.length, start + at);
  if (bytesRead === 0) throw new Failure("source_failed", { path, reason: "the file of an upload was cut short" });
  return bytesRead;
}
