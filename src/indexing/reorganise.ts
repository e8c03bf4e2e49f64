/**
 * Where two chains part: finds the highest block that our index and a node have in common.
 *
 * Agreement is monotone (a block's hash covers its parent's), so the search gallops back and then halves: a
 * fork of any depth costs about 2·log2(depth) questions. The answer only says what to follow again; every
 * block of the other branch is still verified and linked before it is written.
 * @module
 */

/** One search. */
export type ForkSearch = Readonly<{
  /** A height at which both chains have a block and the two differ. */
  differsAt: number;
  /** The lowest height that our index holds. */
  lowest: number;
  /** Whether the node's block at a height is ours; asked only for `[lowest, differsAt)`. */
  sameAt: (height: number) => Promise<boolean>;
}>;

/**
 * Finds the common ancestor.
 *
 * @returns The highest height at which both chains hold the same block; `lowest - 1` when there is none.
 */
export async function findCommonAncestor({ differsAt, lowest, sameAt }: ForkSearch): Promise<number> {
  let different = differsAt;
  let same = lowest - 1;
  for (let step = 1; different - 1 > same; step *= 2) {
    const probe = Math.max(lowest, different - step);
    if (await sameAt(probe)) {
      same = probe;
      break;
    }
    different = probe;
  }
  while (different - 1 > same) {
    const middle = same + Math.floor((different - same) / 2);
    if (await sameAt(middle)) same = middle;
    else different = middle;
  }
  return same;
}
