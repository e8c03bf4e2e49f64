/**
 * Sorted runs of postings on disk: their merge is the sorted list of all of them.
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Posting } from "../../src/columnar/posting-list.ts";
import { createPostingRuns } from "../../src/columnar/posting-runs.ts";
import { temporaryFolder } from "../store/folder.ts";
import { createRandom } from "../support/random.ts";
import { seedsOr } from "../support/seed.ts";

const copyOf = ({ key, high, low }: Posting): Posting => ({ key, high, low });
const inOrder = (a: Posting, b: Posting) => a.key - b.key || a.high - b.high || a.low - b.low;

test.each(seedsOr([1, 2, 3]))("runs of any length are merged in order, by key, then by place (seed %d)", (seed) => {
  using folder = temporaryFolder();
  const path = join(folder.path, "runs.part");
  const random = createRandom(seed);
  const runs = createPostingRuns(path);
  const all: Posting[] = [];
  expect([runs.isEmpty(), [...runs.merged()]]).toEqual([true, []]);
  let high = 0;
  // A key of thousands, keys of one, no posting, and the largest values.
  for (const length of [1, 9_000, 0, 4_096, 4_097, 70_000, 1]) {
    const run = Array.from({ length }, () => {
      high += random.below(2);
      const key = random.below(3) === 0 ? 7 : random.below(2 ** 36);
      return { key, high, low: random.below(2 ** 31) };
    });
    high += 1;
    runs.add(run.sort(inOrder));
    all.push(...run);
  }
  const last = { key: 2 ** 36 - 1, high: 2 ** 32 - 1, low: 2 ** 31 - 1 };
  runs.add([last]);
  expect(Array.from(runs.merged(), copyOf)).toEqual([...all, last].sort(inOrder));
  runs.close();
  expect(existsSync(path)).toBe(false);
});

test("a file that exists already is not overwritten, and closing without runs makes none", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "runs.part");
  createPostingRuns(path).close();
  expect(existsSync(path)).toBe(false);
  const runs = createPostingRuns(path);
  runs.add([{ key: 1, high: 1, low: 1 }]);
  expect(() => createPostingRuns(path).add([])).toThrow("EEXIST");
  runs.close();
});
