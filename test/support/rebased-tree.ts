/**
 * Trees whose subtrees count from zero, as some clients build them; Cairn itself only checks their proofs.
 *
 * A nested list is a subtree with offsets of its own. Source: docs/reference/formats.md#data-trees-and-chunks.
 * @module
 */
import { branchId, leafId, noteOf } from "../../src/arweave/merkle.ts";
import { sha256 } from "../../src/lib/hash.ts";

/** Chunks, or subtrees of such. */
export type Nested = Uint8Array | readonly Nested[];

/** A node; `isRebased` marks the root of a subtree that counts from zero. */
type Node = Readonly<{
  id: Uint8Array;
  note: number;
  max: number;
  isRebased: boolean;
  hash?: Uint8Array;
  left?: Node;
  right?: Node;
}>;

/** Builds a tree; `path` proves the chunk that holds a byte. */
export function buildRebasedTree(elements: readonly Nested[]): {
  root: Uint8Array;
  path(target: number): Uint8Array;
} {
  const root = nodeOf(elements);
  return { root: root.id, path: (target) => new Uint8Array(Buffer.concat(pathOf(root, target, 0))) };
}

function nodeOf(elements: readonly Nested[]): Node {
  let end = 0;
  let row = elements.map((element): Node => {
    if (!(element instanceof Uint8Array)) return { ...nodeOf(element), isRebased: true };
    end += element.length;
    const hash = sha256(element);
    return { id: leafId(hash, noteOf(end)), note: end, max: end, isRebased: false, hash };
  });
  while (row.length > 1) row = rowAbove(row);
  const [root] = row;
  if (root === undefined) throw new Error("a tree has leaves");
  return root;
}

function rowAbove(row: readonly Node[]): Node[] {
  const above: Node[] = [];
  let shift = 0;
  for (let index = 0; index < row.length; index += 2) {
    const [left, right] = [row[index], row[index + 1]];
    if (left === undefined) break;
    if (right === undefined) {
      above.push(left);
      break;
    }
    const note = left.isRebased ? shift + left.max : left.max;
    const max = right.isRebased ? note + right.max : right.max;
    above.push({ id: branchId(left.id, right.id, noteOf(note)), note, max, isRebased: false, left, right });
    shift = max;
  }
  return above;
}

function pathOf(node: Node, target: number, before: number): Uint8Array[] {
  const { left, right, note } = node;
  if (left === undefined || right === undefined) return [node.hash ?? new Uint8Array(0), noteOf(note)];
  const next = target < note ? left : right;
  const shift = next.isRebased ? (next === left ? before : note) : 0;
  const marker = next.isRebased ? [new Uint8Array(32)] : [];
  return [...marker, left.id, right.id, noteOf(note), ...pathOf(next, target - shift, note)];
}
