/**
 * A Merkle-sum tree over balances: its root commits to every balance and to their sum, and a short proof shows an
 * account that its balance is in the sum.
 *
 * A leaf is SHA-256(0x00, salt, account, balance), a node SHA-256(0x01, left sum, left hash, right sum, right hash);
 * sums and balances have 32 bytes, big-endian, so that none is below zero. The last node of an odd level moves up
 * unchanged. The salt is known to the operator and the account, so that a proof shows no balance of others.
 * Source: docs/reference/payment.md#proof-of-solvency.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import { concatBytes, equalBytes } from "../../lib/bytes.ts";
import { sha256 } from "../../lib/hash.ts";

/** One balance. */
export type SolvencyLeaf = Readonly<{
  account: string;
  /** Above 0. */
  winc: bigint;
  /** 32 bytes. */
  salt: Uint8Array;
}>;

/** A node: a hash of 32 bytes, and the sum below it. */
export type SumNode = Readonly<{ hash: Uint8Array; winc: bigint }>;

/** The levels of a tree: leaves first, the root last. */
export type SolvencyTree = readonly (readonly SumNode[])[];

const sumSize = 32;
const [leafMark, nodeMark] = [Uint8Array.of(0), Uint8Array.of(1)];

/** Of no balances. */
const emptyRoot: SumNode = { hash: new Uint8Array(32), winc: 0n };

/** Longest proof: of 2^40 accounts. */
export const pathLengthMax = 40;

/** Builds a tree. */
export function buildTree(leaves: readonly SolvencyLeaf[]): SolvencyTree {
  let level: readonly SumNode[] = leaves.map(leafNode);
  const levels = [level];
  while (level.length > 1) {
    const below = level;
    const pairs = Array.from({ length: Math.ceil(below.length / 2) }, (_, index) => index * 2);
    level = pairs.map((at) => joined(below[at], below[at + 1]));
    levels.push(level);
  }
  return levels;
}

export function rootOf(tree: SolvencyTree): SumNode {
  return tree.at(-1)?.[0] ?? emptyRoot;
}

/** The siblings on the way from a leaf to the root. */
export function pathOf(tree: SolvencyTree, index: number): SumNode[] {
  return tree.flatMap((level, height) => level[(index >> height) ^ 1] ?? []);
}

/**
 * Computes the root from a leaf and its path; `undefined` for a path of another length than the tree has.
 *
 * @param index - Of the leaf, below `count`, the number of leaves.
 */
export function rootFrom(
  leaf: SolvencyLeaf,
  path: readonly SumNode[],
  place: Readonly<{ index: number; count: number }>,
): SumNode | undefined {
  let { index, count } = place;
  let node = leafNode(leaf);
  let used = 0;
  while (count > 1) {
    const isAlone = index % 2 === 0 && index === count - 1;
    if (!isAlone) {
      const sibling = path[used];
      used += 1;
      if (sibling === undefined) return undefined;
      node = index % 2 === 0 ? joined(node, sibling) : joined(sibling, node);
    }
    index = Math.floor(index / 2);
    count = Math.ceil(count / 2);
  }
  return used === path.length ? node : undefined;
}

export function isSameNode(one: SumNode, other: SumNode): boolean {
  return one.winc === other.winc && equalBytes(one.hash, other.hash);
}

function leafNode({ account, winc, salt }: SolvencyLeaf): SumNode {
  return { hash: sha256(concatBytes([leafMark, salt, new TextEncoder().encode(account), sumBytes(winc)])), winc };
}

function joined(left: SumNode | undefined, right: SumNode | undefined): SumNode {
  assert(left !== undefined, "a pair has a left node");
  if (right === undefined) return left;
  const parts = [nodeMark, sumBytes(left.winc), left.hash, sumBytes(right.winc), right.hash];
  return { hash: sha256(concatBytes(parts)), winc: left.winc + right.winc };
}

function sumBytes(winc: bigint): Uint8Array {
  assert(winc >= 0n && winc < 2n ** 255n, "a sum of balances is 0 or more");
  return Uint8Array.fromHex(winc.toString(16).padStart(2 * sumSize, "0"));
}
