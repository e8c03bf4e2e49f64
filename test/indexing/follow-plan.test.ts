/**
 * What the follower does next: one row a case.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { type FollowStep, type FollowView, planFollow } from "../../src/indexing/follow-plan.ts";

const a = "a".repeat(64);
const b = "b".repeat(64);

const rows: readonly (readonly [string, Partial<FollowView>, FollowStep])[] = [
  [
    "an empty index begins at its start height",
    { ours: undefined, theirs: { height: 9, hash: b }, start: 3 },
    { kind: "follow", from: 3, to: 9 },
  ],
  [
    "a start above the node's tip waits",
    { ours: undefined, theirs: { height: 9, hash: b }, start: 10 },
    { kind: "wait" },
  ],
  [
    "a start at the tip follows one block",
    { ours: undefined, theirs: { height: 9, hash: b }, start: 9 },
    { kind: "follow", from: 9, to: 9 },
  ],
  [
    "latest begins 50 below the tip",
    { ours: undefined, theirs: { height: 1_000, hash: b }, start: "latest" },
    { kind: "follow", from: 950, to: 1_000 },
  ],
  [
    "latest on a short chain begins at 0",
    { ours: undefined, theirs: { height: 20, hash: b }, start: "latest" },
    { kind: "follow", from: 0, to: 20 },
  ],
  [
    "a stop height ends the range",
    { ours: { height: 3, hash: a }, theirs: { height: 9, hash: b }, stop: 5 },
    { kind: "follow", from: 4, to: 5 },
  ],
  [
    "at the stop height our tip is still compared",
    { ours: { height: 5, hash: a }, theirs: { height: 9, hash: b }, stop: 5 },
    { kind: "compare", height: 5 },
  ],
  [
    "a start below what is there is no reason to begin again",
    { ours: { height: 5, hash: a }, theirs: { height: 6, hash: b }, start: 0 },
    { kind: "follow", from: 6, to: 6 },
  ],
  ["the same tip waits", { ours: { height: 5, hash: a }, theirs: { height: 5, hash: a } }, { kind: "wait" }],
  [
    "another block at the same height is compared",
    { ours: { height: 5, hash: a }, theirs: { height: 5, hash: b } },
    { kind: "compare", height: 5 },
  ],
  [
    "a node that does not name its tip is compared",
    { ours: { height: 5, hash: a }, theirs: { height: 5, hash: undefined } },
    { kind: "compare", height: 5 },
  ],
  [
    "a node below us is compared at its own height",
    { ours: { height: 5, hash: a }, theirs: { height: 2, hash: b } },
    { kind: "compare", height: 2 },
  ],
];

describe("planFollow", () => {
  test.each(rows)("%s", (_name, state, step) => {
    expect(
      planFollow({ ours: undefined, theirs: { height: 0, hash: a }, start: 0, stop: undefined, ...state }),
    ).toEqual(step);
  });
});
