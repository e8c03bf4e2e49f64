/**
 * The layout of a block's data in the weave, and the root that commits to it.
 *
 * Data is in the order of (format, id), not of the block's list. Until 2.5 it is contiguous. Since then each
 * transaction starts on the 256 KiB grid, and a gap is a leaf with an empty root. The layout of a block is the one that
 * reproduces its `tx_root`.
 * Source: docs/reference/formats.md#transaction-tree.
 * @module
 */
import { decodeBase64url } from "../lib/base64url.ts";
import { compareBytes, equalBytes } from "../lib/bytes.ts";
import type { BlockShape } from "./block.ts";
import { type Id, idBytes } from "./id.ts";
import { buildTree, chunkSize, type MerkleLeaf, type MerkleTree } from "./merkle.ts";

/** The fields of a transaction that determine its place. */
export type PlacedTransaction = Readonly<{
  id: Id;
  format: 1 | 2;
  /** Bytes of data. */
  dataSize: number;
  /** As base64url: `treeRootOf` of the transaction. */
  dataRoot: string;
}>;

/** How transactions follow each other. */
export type Layout = "plain" | "padded";

/** A transaction's data in the weave: absolute offsets, half-open, padding not included. */
export type WeavePlace = Readonly<{ id: Id; start: bigint; end: bigint }>;

/** The result of laying out a block. */
export type BlockLayout = Readonly<
  /** `isProven` is false for blocks before 2.0, which have no root. */
  | { kind: "placed"; layout: Layout; isProven: boolean; places: readonly WeavePlace[] }
  /** A block before 2.0 whose size is not the sum of its data, such as the first: its data has no place. */
  | { kind: "unplaced" }
  | { kind: "rejected"; reason: string }
>;

/** A block's transaction tree. */
export type TxTree = Readonly<{
  /** 32 bytes; empty without transactions. */
  root: Uint8Array;
  /** Bytes that the block adds to the weave, padding included. */
  size: bigint;
  /** In the order of the weave. Offsets from the block's start; `path` proves the data root at this place. */
  places: readonly Readonly<{ id: Id; start: bigint; end: bigint; path(): Uint8Array }>[];
}>;

const grid = BigInt(chunkSize);
const noRoot = new Uint8Array(0);

/**
 * Builds the tree that commits to a block's data.
 *
 * @param transactions - In any order.
 */
export function buildTxTree(transactions: readonly PlacedTransaction[], layout: Layout): TxTree {
  const leaves: MerkleLeaf[] = [];
  const slots: { id: Id; start: bigint; end: bigint; leaf: number }[] = [];
  let at = 0n;
  for (const { id, dataSize, dataRoot } of inWeaveOrder(transactions)) {
    const end = at + BigInt(dataSize);
    slots.push({ id, start: at, end, leaf: leaves.length });
    leaves.push({ hash: decodeBase64url(dataRoot) ?? noRoot, end });
    at = layout === "padded" ? ceilToGrid(end) : end;
    if (at > end) leaves.push({ hash: noRoot, end: at });
  }
  const tree = buildTree(leaves);
  return { root: tree.root, size: at, places: slots.map((slot) => withPath(slot, tree)) };
}

/**
 * Finds the places of a block's transactions.
 *
 * @param block.txRoot - "" where the block has none.
 * @param transactions - All of the block's, in any order.
 * @returns Rejected when no layout reproduces `txRoot`, or its size is not `blockSize`.
 */
export function layoutTransactions(
  block: { txRoot: string; weaveSize: bigint; blockSize: bigint; shape: BlockShape },
  transactions: readonly PlacedTransaction[],
): BlockLayout {
  const start = block.weaveSize - block.blockSize;
  if (start < 0n) return { kind: "rejected", reason: "block_size is above weave_size" };
  const isProven = block.shape !== "1.0";
  const root = decodeBase64url(block.txRoot) ?? noRoot;
  for (const layout of ["plain", "padded"] as const) {
    const tree = buildTxTree(transactions, layout);
    if (isProven && !equalBytes(tree.root, root)) continue;
    if (tree.size !== block.blockSize) return mismatchOf(block.shape);
    const places = tree.places.map((place) => ({
      id: place.id,
      start: start + place.start,
      end: start + place.end,
    }));
    return { kind: "placed", layout, isProven, places };
  }
  return { kind: "rejected", reason: "tx_root is not that of the block's transactions" };
}

/** Rounds an offset up to the 256 KiB grid. */
export function ceilToGrid(offset: bigint): bigint {
  return ((offset + grid - 1n) / grid) * grid;
}

function mismatchOf(shape: BlockShape): BlockLayout {
  if (shape === "1.0") return { kind: "unplaced" };
  return { kind: "rejected", reason: "block_size is not the size of the block's transactions" };
}

function inWeaveOrder(transactions: readonly PlacedTransaction[]): PlacedTransaction[] {
  const keyed = transactions.map((transaction) => ({ transaction, id: idBytes(transaction.id) }));
  keyed.sort((one, other) => one.transaction.format - other.transaction.format || compareBytes(one.id, other.id));
  return keyed.map(({ transaction }) => transaction);
}

function withPath(slot: { id: Id; start: bigint; end: bigint; leaf: number }, tree: MerkleTree) {
  return { id: slot.id, start: slot.start, end: slot.end, path: () => tree.path(slot.leaf) };
}
