/**
 * Chunks of data with their proofs, stored by data root and size, not by transaction.
 *
 * So the order of arrival does not matter, the same data posted twice is stored once, and a chunk that occurs twice
 * in one data has two places.
 * @module
 */
import type { Database } from "bun:sqlite";

/** Which data: two transactions with the same root and size share their chunks. */
export type DataKey = Readonly<{
  root: string; // base64url of 32 bytes
  size: number; // bytes of data, above 0
}>;

/** A chunk in its data: bytes `[start, end)`. */
export type StoredChunk = Readonly<{ start: number; end: number; dataPath: Uint8Array; chunk: Uint8Array }>;

/** Chunks on disk. */
export type ChunkStore = Readonly<{
  /** Keeps a checked chunk; one that is there already stays. */
  put: (key: DataKey, chunk: StoredChunk) => void;
  /** The chunk that holds a byte of the data, or `undefined` when it never arrived. */
  at: (key: DataKey, byte: number) => StoredChunk | undefined;
  /** Where the chunks that are there begin and end, in order. */
  spans: (key: DataKey) => readonly Readonly<{ start: number; end: number }>[];
  /** Forgets all chunks of a data. */
  drop: (key: DataKey) => void;
  /** Forgets all chunks but those of one data. */
  dropAllBut: (key: DataKey) => void;
}>;

type ChunkRow = { chunk_start: number; chunk_end: number; data_path: Uint8Array; chunk: Uint8Array };

/** Makes the store over an open database. */
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
