/**
 * Proofs of chunks made from what was followed: the path from a block's root to a transaction, and from a transaction's
 * data root to a chunk.
 * @module
 */
import { LRUCache } from "lru-cache";
import { readBlock } from "../arweave/block.ts";
import { type ChunkSpan, chunkSpans, createDataRoot, type TailRule } from "../arweave/data-root.ts";
import type { Id } from "../arweave/id.ts";
import type { MerkleTree } from "../arweave/merkle.ts";
import { buildTxTree, layoutTransactions, type TxTree } from "../arweave/tx-root.ts";
import type { OpenContent } from "../content/content.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import type { IndexReader, WeaveSpan } from "../store/index-reader.ts";

/** A chunk's proof under its data root. */
export type DataProof = Readonly<{ span: ChunkSpan; path: Uint8Array }>;

/** Makes proofs. */
export type ChunkProofs = Readonly<{
  /** The path to a transaction in its block's tree; `undefined` where the block's transactions are not all known. */
  txPath: (transaction: WeaveSpan) => Uint8Array | undefined;
  /**
   * The path to the chunk that holds a byte, from data that lies on this disk; `undefined` when it does not, or is split
   * in a way of its own.
   *
   * @param at - Byte of the data.
   */
  dataProof: (
    transaction: WeaveSpan,
    content: OpenContent,
    at: number,
    signal: AbortSignal,
  ) => Promise<DataProof | undefined>;
}>;

/** Trees of blocks that are kept; one of a thousand transactions takes 0.2 MiB. */
const blockTreesMax = 64;

/** Chunks under the data trees that are kept; each takes about 200 bytes. */
const leavesKeptMax = 100_000;

/** Data that is hashed for a proof nobody else has; more would keep a reader waiting. Bytes. */
const hashedBytesMax = 64 * 2 ** 20;

type DataTree = Readonly<{ spans: readonly ChunkSpan[]; tree: MerkleTree }>;

/** Creates the maker of proofs. */
export function createChunkProofs(
  reader: Pick<IndexReader, "blockText" | "transactionsOfBlock">,
): ChunkProofs {
  const blockTrees = new LRUCache<number, TxTree>({ max: blockTreesMax });
  const dataTrees = new LRUCache<Id, DataTree>({ maxSize: leavesKeptMax });

  const blockTree = (height: number): TxTree | undefined => {
    const known = blockTrees.get(height);
    if (known !== undefined) return known;
    const text = reader.blockText(height)?.text;
    if (text === undefined) return undefined;
    const transactions = reader.transactionsOfBlock(height);
    const layout = layoutTransactions(readBlock(text), transactions);
    if (layout.kind !== "placed" || !layout.isProven) return undefined;
    const tree = buildTxTree(transactions, layout.layout);
    blockTrees.set(height, tree);
    return tree;
  };

  const dataTree = async (transaction: WeaveSpan, content: OpenContent, signal: AbortSignal) => {
    const known = dataTrees.get(transaction.id);
    if (known !== undefined) return known;
    const whole = { start: 0, end: content.size };
    if (content.size > hashedBytesMax || !content.cached(whole)) return undefined;
    for (const rule of ["halved", "plain"] as const) {
      const made = await hashTree(content, rule, signal);
      if (encodeBase64url(made.tree.root) !== transaction.dataRoot) continue;
      dataTrees.set(transaction.id, made, { size: made.spans.length });
      return made;
    }
    return undefined;
  };

  return {
    txPath: ({ id, place }) =>
      blockTree(place.height)
        ?.places.find((found) => found.id === id)
        ?.path(),
    dataProof: async (transaction, content, at, signal) => {
      const found = await dataTree(transaction, content, signal);
      const index = found?.spans.findIndex(({ start, end }) => start <= at && at < end) ?? -1;
      const span = found?.spans[index];
      return found === undefined || span === undefined ? undefined : { span, path: found.tree.path(index) };
    },
  };
}

async function hashTree(content: OpenContent, rule: TailRule, signal: AbortSignal): Promise<DataTree> {
  const hash = createDataRoot(content.size, rule);
  for await (const piece of content.read({ start: 0, end: content.size }, signal)) hash.update(piece);
  return { spans: chunkSpans(content.size, rule), tree: hash.finish() };
}
