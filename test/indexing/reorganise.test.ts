/**
 * The search for a common ancestor: right for every depth, cheap for deep ones, never below what we hold.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { findCommonAncestor } from "../../src/indexing/follow-plan.ts";

async function search(lowest: number, ancestor: number, differsAt: number) {
  const asked: number[] = [];
  const found = await findCommonAncestor({
    differsAt,
    lowest,
    sameAt: async (height) => {
      asked.push(height);
      return height <= ancestor;
    },
  });
  return { found, asked };
}

describe("findCommonAncestor", () => {
  test("finds every ancestor below every height, and asks only for heights that both may hold", async () => {
    for (const lowest of [0, 1, 7])
      for (let differsAt = lowest; differsAt < lowest + 70; differsAt += 1)
        for (let ancestor = lowest - 1; ancestor < differsAt; ancestor += 1) {
          const { found, asked } = await search(lowest, ancestor, differsAt);
          expect(found).toBe(ancestor);
          expect(asked.every((height) => height >= lowest && height < differsAt)).toBe(true);
          expect(new Set(asked).size).toBe(asked.length);
        }
  });

  test("costs one question for a fork of one block and about forty for one of a million", async () => {
    expect((await search(0, 999_999, 1_000_000)).asked.length).toBe(1);
    expect((await search(0, 0, 1_000_000)).asked.length).toBeLessThanOrEqual(42);
    expect((await search(0, -1, 1_000_000)).asked.length).toBeLessThanOrEqual(42);
  });
});
