/**
 * What the follower does next, decided from two tips alone: pure, so that every case is a row of a table.
 * @module
 */

/** The top of a chain. */
export type Tip = Readonly<{ height: number; hash: string }>;

/** Where to begin on an empty index: a height, or `latest` for some blocks below the tip. */
export type StartHeight = number | "latest";

/** `latest` begins this far below the tip, so that a restart soon after still has something to stand on. */
export const latestDepth = 50;

/** What is known when a step begins. */
export type FollowState = Readonly<{
  /** Highest block in our index; undefined when it is empty. */
  ours: Tip | undefined;
  /** Highest block of the node; `hash` undefined when the node does not say. */
  theirs: Readonly<{ height: number; hash: string | undefined }>;
  start: StartHeight;
  /** Last height to index, inclusive. */
  stop: number | undefined;
}>;

/** What to do. */
export type FollowStep =
  /** Nothing new. */
  | Readonly<{ kind: "wait" }>
  /** Fetch and write these heights, both inclusive. */
  | Readonly<{ kind: "follow"; from: number; to: number }>
  /** Ask whether the node's block at this height is ours; a difference is a reorganisation. */
  | Readonly<{ kind: "compare"; height: number }>;

/** Decides the next step. */
export function planFollow({ ours, theirs, start, stop }: FollowState): FollowStep {
  const top = stop === undefined ? theirs.height : Math.min(theirs.height, stop);
  if (ours === undefined) {
    const from = start === "latest" ? Math.max(0, theirs.height - latestDepth) : start;
    return from <= top ? { kind: "follow", from, to: top } : { kind: "wait" };
  }
  if (ours.height < top) return { kind: "follow", from: ours.height + 1, to: top };
  if (theirs.height < ours.height) return { kind: "compare", height: theirs.height };
  // The node stands above our last height: whether ours is still canonical shows only by asking for it.
  if (theirs.height > ours.height) return { kind: "compare", height: ours.height };
  return theirs.hash === ours.hash ? { kind: "wait" } : { kind: "compare", height: ours.height };
}
