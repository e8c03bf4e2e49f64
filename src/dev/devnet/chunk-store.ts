/**
 * Chunks of data with their proofs, stored by data root and size, not by transaction: the order of arrival does not
 * matter, and equal data is stored once.
 *
 * Data within a transaction is split into chunks, hashed and proved; the chain splits it at every 256 KiB, and adds an
 * empty leaf to an exact multiple. Long work yields to the event loop, so that other requests are served in between.
 * Source: ArweaveTeam/arweave, ar_tx (chunk_binary), ar_tx_validator.
 * @module
 */
import type { Database } from "bun:sqlite";
import { buildTree, chunkSize } from "../../arweave/merkle.ts";
import { Failure } from "../../failures.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { yieldToEventLoop } from "../../lib/event-loop.ts";
import { sha256 } from "../../lib/hash.ts";

/** Key of data: two transactions with the same root and size share their chunks. */
export type DataKey = Readonly<{
  root: string; // base64url of 32 bytes
  size: number; // bytes, above 0
}>;

/** A chunk, bytes `[start, end)` of its data. */
export type StoredChunk = Readonly<{ start: number; end: number; dataPath: Uint8Array; chunk: Uint8Array }>;

export type ChunkStore = Readonly<{
  /** Stores a verified chunk, unless it is stored already. */
  put: (key: DataKey, chunk: StoredChunk) => void;
  /** The chunk with a byte of the data; `undefined` when it is not stored. */
  at: (key: DataKey, byte: number) => StoredChunk | undefined;
  /** The spans of the stored chunks, in order. */
  spans: (key: DataKey) => readonly Readonly<{ start: number; end: number }>[];
  /** Removes all chunks of the data. */
  drop: (key: DataKey) => void;
  /** Removes all chunks except those of the data. */
  dropAllBut: (key: DataKey) => void;
}>;

type ChunkRow = { chunk_start: number; chunk_end: number; data_path: Uint8Array; chunk: Uint8Array };

export function createChunkStore(database: Database): ChunkStore {
  const insert = database.query<null, [string, number, number, number, Uint8Array, Uint8Array]>(
    "INSERT INTO chunks (data_root, data_size, chunk_start, chunk_end, data_path, chunk) VALUES (?, ?, ?, ?, ?, ?) " +
      "ON CONFLICT DO NOTHING",
  );
  const select = database.query<ChunkRow, [string, number, number]>(
    "SELECT chunk_start, chunk_end, data_path, chunk FROM chunks " +
      "WHERE data_root = ? AND data_size = ? AND chunk_end > ? ORDER BY chunk_end LIMIT 1",
  );
  const list = database.query<{ chunk_start: number; chunk_end: number }, [string, number]>(
    "SELECT chunk_start, chunk_end FROM chunks WHERE data_root = ? AND data_size = ? ORDER BY chunk_end",
  );
  const remove = database.query<null, [string, number]>("DELETE FROM chunks WHERE data_root = ? AND data_size = ?");
  const removeOthers = database.query<null, [string, number]>(
    "DELETE FROM chunks WHERE NOT (data_root = ? AND data_size = ?)",
  );
  return {
    put: ({ root, size }, { start, end, dataPath, chunk }) => {
      insert.run(root, size, start, end, dataPath, chunk);
    },
    at: ({ root, size }, byte) => {
      const row = select.get(root, size, byte);
      if (row === null || row.chunk_start > byte) return undefined;
      return { start: row.chunk_start, end: row.chunk_end, dataPath: row.data_path, chunk: row.chunk };
    },
    spans: ({ root, size }) => list.all(root, size).map((row) => ({ start: row.chunk_start, end: row.chunk_end })),
    drop: ({ root, size }) => void remove.run(root, size),
    dropAllBut: ({ root, size }) => void removeOthers.run(root, size),
  };
}

export type SplitData = Readonly<{ key: DataKey; chunks: readonly StoredChunk[] }>;

/** Three chunks have a whole number of base64url characters, so that each piece of text can be decoded alone. */
const pieceChunks = 3;
const pieceCharacters = (pieceChunks * chunkSize * 4) / 3;

/**
 * Splits base64url text into chunks. Yields to the event loop after each MiB.
 *
 * @param data - Base64url, not empty.
 * @param take - Receives the bytes in order, in pieces.
 * @returns `undefined` when the text is not canonical base64url.
 */
export async function splitData(
  data: string,
  take: (piece: Uint8Array) => void = () => undefined,
): Promise<SplitData | undefined> {
  const parts: Uint8Array[] = [];
  const hashes: Uint8Array[] = [];
  for (let at = 0; at < data.length; at += pieceCharacters) {
    if (at > 0) await yieldToEventLoop();
    const bytes = decodeBase64url(data.slice(at, at + pieceCharacters));
    if (bytes === undefined) return undefined;
    take(bytes);
    for (let start = 0; start < bytes.length; start += chunkSize) {
      const part = bytes.subarray(start, start + chunkSize);
      parts.push(part);
      hashes.push(sha256(part));
    }
  }
  return proveParts(parts, hashes);
}

/** The root of a data tree without data: format 1 transactions without data have it. */
export function emptyDataRoot(): Uint8Array {
  const nothing = new Uint8Array(0);
  return buildTree([{ hash: sha256(nothing), end: 0 }]).root;
}

function proveParts(parts: readonly Uint8Array[], hashes: readonly Uint8Array[]): SplitData {
  let end = 0;
  const leaves = parts.map((part, index) => {
    end += part.length;
    return { hash: hashes[index] ?? new Uint8Array(0), end };
  });
  if (end % chunkSize === 0) leaves.push({ hash: sha256(new Uint8Array(0)), end });
  const tree = buildTree(leaves);
  const chunks = parts.map((chunk, index) => {
    const chunkEnd = leaves[index]?.end ?? 0;
    return { start: chunkEnd - chunk.length, end: chunkEnd, dataPath: tree.path(index), chunk };
  });
  return { key: { root: encodeBase64url(tree.root), size: end }, chunks };
}

/** A multiple of three, so that the base64url of the pieces can be concatenated. */
const pieceSize = 768 * 1_024;

/**
 * The chunks of data in order, each read on demand.
 *
 * @returns `undefined` while chunks are missing.
 * @throws Failure `not_found` during the iteration, when the chain drops the data.
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
 * @param size - Total size, bytes.
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
