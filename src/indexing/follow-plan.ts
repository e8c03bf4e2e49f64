/**
 * Decisions of following: the next step, and where two chains part. Pure, so that tests reach every case.
 * @module
 */

/** The tip of a chain. */
export type Tip = Readonly<{ height: number; hash: string }>;

/** Where to begin on an empty index: a height, or `latest` for some blocks below the tip. */
export type StartHeight = number | "latest";

/** `latest` begins this many blocks below the tip, so that a small reorg soon after finds a common ancestor. */
export const latestDepth = 50;

/** The input of a decision. */
export type FollowView = Readonly<{
  /** Highest block in our index; undefined when it is empty. */
  ours: Tip | undefined;
  /** Highest block of the node; `hash` undefined when the node does not say. */
  theirs: Readonly<{ height: number; hash: string | undefined }>;
  start: StartHeight;
  /** Last height to index, inclusive. */
  stop: number | undefined;
}>;

export type FollowStep =
  /** Nothing new. */
  | Readonly<{ kind: "wait" }>
  /** Fetch and write these heights, both inclusive. */
  | Readonly<{ kind: "follow"; from: number; to: number }>
  /** Compare the node's block at this height with ours; a difference is a reorg. */
  | Readonly<{ kind: "compare"; height: number }>;

/** Decides the next step. */
export function planFollow({ ours, theirs, start, stop }: FollowView): FollowStep {
  const top = stop === undefined ? theirs.height : Math.min(theirs.height, stop);
  if (ours === undefined) {
    const from = start === "latest" ? Math.max(0, theirs.height - latestDepth) : start;
    return from <= top ? { kind: "follow", from, to: top } : { kind: "wait" };
  }
  if (ours.height < top) return { kind: "follow", from: ours.height + 1, to: top };
  if (theirs.height < ours.height) return { kind: "compare", height: theirs.height };
  // The node is above our last height: only a request for our block shows whether it is still canonical.
  if (theirs.height > ours.height) return { kind: "compare", height: ours.height };
  return theirs.hash === ours.hash ? { kind: "wait" } : { kind: "compare", height: ours.height };
}

/** The input of a search for the common ancestor. */
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
 * @returns The highest height at which both chains have the same block; `lowest - 1` without one.
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
