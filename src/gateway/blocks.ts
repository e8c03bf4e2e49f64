/**
 * Blocks by height and hash, from the index or else from nodes.
 * @module
 */
import type { BlockHash } from "../arweave/id.ts";
import { type IndexReader, stableDepth } from "../store/index/index-types.ts";
import { type ChainResponse, jsonOf, relayed } from "./chain-response.ts";
import type { Network } from "./network.ts";
import type { Relay } from "./relay.ts";
import type { CheckRelayed } from "./relayed-check.ts";

/** Blocks as the node's own JSON, lossless. */
export type Blocks = Readonly<{
  byHeight: (height: number, signal: AbortSignal) => Promise<ChainResponse>;
  byHash: (hash: BlockHash, signal: AbortSignal) => Promise<ChainResponse>;
  current: (signal: AbortSignal) => Promise<ChainResponse>;
}>;

/** Time to live of a current block, or of a block that a fork may replace. Milliseconds. */
const retentionMs = 1_000;

export function createBlocks(
  reader: Pick<IndexReader, "blockText" | "tip">,
  network: Network,
  relay: Relay,
  checkRelayed: CheckRelayed,
): Blocks {
  const isFinal = (height: number) => height <= (reader.tip()?.height ?? 0) - stableDepth;

  /** A node's block whose fields match its hash. Whether the block is on the chain is not known. */
  const ask = async (path: string, asked: Readonly<{ hash?: string; height?: number }>, signal: AbortSignal) =>
    relayed(
      await relay.get(path, retentionMs, signal, (body, own) => checkRelayed({ kind: "block", ...asked, body }, own)),
    );

  const current = async (signal: AbortSignal): Promise<ChainResponse> => {
    const tip = reader.tip();
    const indexed = tip === undefined ? undefined : reader.blockText(tip.height);
    // Without responses of nodes, the index is the furthest.
    if (indexed !== undefined && tip !== undefined && (await network.height(signal)) <= tip.height)
      return jsonOf(indexed.text);
    return await ask("/block/current", {}, signal);
  };

  return {
    byHeight: async (height, signal) => {
      const indexed = reader.blockText(height);
      if (indexed !== undefined) return jsonOf(indexed.text, 200, isFinal(height));
      return await ask(`/block/height/${height}`, { height }, signal);
    },
    byHash: async (hash, signal) => {
      const indexed = reader.blockText(hash);
      if (indexed !== undefined) return jsonOf(indexed.text, 200, true);
      return await ask(`/block/hash/${hash}`, { hash }, signal);
    },
    current,
  };
}
