/**
 * Thread entry: checks fetched chunks whose paths are long, and hashes complete data piece by piece.
 * Source: docs/decisions/104-cold-content.md.
 * @module
 */
import { admitChunk, type ChunkVerdict, type PostedChunk } from "../src/arweave/chunk.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

/** Checks a chunk of a node against its data root. */
export function checkPostedChunk(claim: PostedChunk): ChunkVerdict {
  return admitChunk(claim);
}

/** The next bytes of data that is hashed. A piece at 0 begins it; only one is hashed at a time. */
export type HashPieceJob = Readonly<{ id: string; at: number; size: number; bytes: Uint8Array }>;

type Hashing = { readonly id: string; readonly hash: Bun.CryptoHasher; at: number };

let hashing: Hashing | undefined;

/**
 * Adds a piece.
 *
 * @returns SHA-256 of all of the data after the last piece; undefined before, and when the thread lacks earlier pieces.
 */
export function hashPiece({ id, at, size, bytes }: HashPieceJob): Uint8Array | undefined {
  if (at === 0) hashing = { id, hash: new Bun.CryptoHasher("sha256"), at };
  if (hashing?.id !== id || hashing.at !== at) return undefined;
  hashing.hash.update(bytes);
  hashing.at += bytes.length;
  if (hashing.at < size) return undefined;
  const digest = new Uint8Array(hashing.hash.digest());
  hashing = undefined;
  return digest;
}
