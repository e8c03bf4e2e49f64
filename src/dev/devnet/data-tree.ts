/**
 * Data that came inside of a transaction: split into chunks, hashed, and proved, without holding up other requests.
 *
 * The chain splits such data at every 256 KiB, nothing else; data of an exact multiple ends with an empty leaf.
 * Source: ArweaveTeam/arweave, ar_tx (chunk_binary), ar_tx_validator.
 * @module
 */
import { buildTree, chunkSize } from "../../arweave/merkle.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { sha256 } from "../../lib/hash.ts";
import type { DataKey, StoredChunk } from "./chunk-store.ts";

/** Data with all its chunks. */
export type SplitData = Readonly<{ key: DataKey; chunks: readonly StoredChunk[] }>;

/** Three chunks are a whole number of characters, so that each piece of text decodes by itself. */
const pieceChunks = 3;
const pieceCharacters = (pieceChunks * chunkSize * 4) / 3;

/**
 * Splits base64url text. Works in pieces of 1 MiB and lets others run in between.
 *
 * @param data - Base64url, not empty.
 * @param take - Gets the bytes in order, in pieces.
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

/** The root of a data tree without data, which a format 1 transaction still has. */
export function emptyDataRoot(): Uint8Array {
  const nothing = new Uint8Array(0);
  return buildTree([{ hash: sha256(nothing), end: 0 }]).root;
}

/** Lets everything that waits run once. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
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
