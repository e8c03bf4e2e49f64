/**
 * A transaction's data in one piece, put together a chunk at a time so that others are served in between.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { ChunkStore, DataKey, StoredChunk } from "./chunk-store.ts";
import { yieldToEventLoop } from "./data-tree.ts";

/** A multiple of three, so that pieces of base64url fit together. */
const pieceSize = 768 * 1_024;

/**
 * The chunks of data in order, each read when it is asked for.
 *
 * @returns `undefined` while some have not arrived.
 * @throws Failure `not_found`, while they are read, when the chain forgets them meanwhile.
 */
export function wholeData(store: ChunkStore, key: DataKey): Iterable<StoredChunk> | undefined {
  const spans = store.spans(key);
  const isWhole =
    spans.at(-1)?.end === key.size && spans.every(({ start }, index) => start === (spans[index - 1]?.end ?? 0));
  if (!isWhole) return undefined;
  return spans.values().map(({ start }) => {
    const chunk = store.at(key, start);
    if (chunk === undefined) throw new Failure("not_found", { reason: "the data was dropped meanwhile" });
    return chunk;
  });
}

/**
 * Joins chunks into the data.
 *
 * @param chunks - In order, without gaps.
 * @param size - Bytes of all of them.
 */
export async function joinData(chunks: Iterable<StoredChunk>, size: number): Promise<Uint8Array<ArrayBuffer>> {
  const data = new Uint8Array(size);
  for (const { start, chunk } of chunks) {
    data.set(chunk, start);
    await yieldToEventLoop();
  }
  return data;
}

/** Joins chunks into base64url. */
export async function writeData(chunks: Iterable<StoredChunk>, size: number): Promise<string> {
  const data = Buffer.from((await joinData(chunks, size)).buffer);
  const pieces: string[] = [];
  for (let at = 0; at < size; at += pieceSize) {
    pieces.push(data.toString("base64url", at, Math.min(at + pieceSize, size)));
    await yieldToEventLoop();
  }
  return pieces.join("");
}
