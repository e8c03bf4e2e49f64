/**
 * A transaction's data in one piece, put together a chunk at a time so that others are served in between.
 * @module
 */
import type { StoredChunk } from "../../devnet/chunk-store.ts";
import { nextTurn } from "../../devnet/data-tree.ts";

/**
 * Joins chunks into the data.
 *
 * @param chunks - In order, without gaps.
 * @param size - Bytes of all of them.
 */
export async function joinData(
  chunks: Iterable<StoredChunk>,
  size: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const data = new Uint8Array(size);
  for (const { start, chunk } of chunks) {
    data.set(chunk, start);
    await nextTurn();
  }
  return data;
}

/** Joins chunks into base64url. */
export async function writeData(chunks: Iterable<StoredChunk>, size: number): Promise<string> {
  const data = Buffer.from((await joinData(chunks, size)).buffer);
  const pieces: string[] = [];
  for (let at = 0; at < size; at += pieceSize) {
    pieces.push(data.toString("base64url", at, Math.min(at + pieceSize, size)));
    await nextTurn();
  }
  return pieces.join("");
}

/** A multiple of three, so that pieces of base64url fit together. */
const pieceSize = 768 * 1_024;
