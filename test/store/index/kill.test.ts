/**
 * A writer killed at any moment leaves an intact index with everything that was acknowledged.
 * KILLS sets how many, for each of the two files.
 * @module
 */

import { describe, expect, test } from "bun:test";
import { openIndexReader } from "../../../src/store/index/index-reader.ts";
import { noColumns } from "../../../src/store/index/index-types.ts";
import { openIndexWriter } from "../../../src/store/index/index-writer.ts";
import { inspectIndex } from "../../support/inspect-index.ts";
import { createRandom } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { temporaryFolder } from "../folder.ts";
import { copyOldIndex } from "./old-index.ts";

const rounds = Number(process.env["KILLS"] ?? 5);
/** A file grows with each round, and so does the time of its inspection. */
const roundsOfFile = 25;
const child = new URL("./kill-child.ts", import.meta.url).pathname;

describe("N2: kill -9 of the index's writer", () => {
  test.each([
    ["a new file", () => undefined],
    ["a file of an earlier release, whose ids are moved into its parts", copyOldIndex],
  ])(
    `${rounds} times in a row on %s`,
    async (_what, prepareFile) => {
      const seed = newSeed();
      const random = createRandom(seed);
      for (let first = 0; first < rounds; first += roundsOfFile) {
        using folder = temporaryFolder();
        const path = `${folder.path}/index.sqlite`;
        prepareFile(folder.path);
        for (let round = first; round < Math.min(rounds, first + roundsOfFile); round += 1) {
          const said = await runUntilKilled(path, seed + round, 3 + random.below(25));
          const { faults, rows } = inspectIndex(path);
          expect({ seed, round, faults }).toEqual({ seed, round, faults: [] });
          expect(rows).toBeGreaterThan(0);
          checkSaid(path, said);
        }
      }
    },
    20_000 + rounds * 15_000,
  );
});

/** Kills a writer after some lines of output. @returns The last line; the writer may be further. */
async function runUntilKilled(path: string, seed: number, lines: number): Promise<string[]> {
  const writer = Bun.spawn(["bun", child, path, String(seed)], { stdout: "pipe", stderr: "inherit" });
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of writer.stdout) {
    text += decoder.decode(piece, { stream: true });
    if (text.split("\n").length > lines) writer.kill("SIGKILL");
  }
  await writer.exited;
  return text.split("\n").slice(0, -1);
}

/** The last acknowledged step must be present, and the bundle in progress is queued again at its next entry. */
function checkSaid(path: string, said: readonly string[]): void {
  const [height = 0, items = 0] = (said.at(-1) ?? "").split(" ").map(Number);
  const reader = openIndexReader(path);
  const tip = reader.tip()?.height ?? -1;
  // After the last line at most one more step was done: a block, or a step of a rollback.
  expect(tip).toBeGreaterThanOrEqual(height);
  expect(tip).toBeLessThanOrEqual(items === -1 ? height + 3 : height + 1);
  if (items > 0 && tip === height) {
    const columns = noColumns;
    const plan = { block: { min: height, max: height }, order: "asc", limit: 1, columns } as const;
    expect(reader.count(plan, 10_000)).toBeGreaterThanOrEqual(20 + items);
  }
  const writer = openIndexWriter(path, { clock: () => Date.now() + 1_000 });
  writer.takeBundles(10_000);
  expect(reader.counts().bundlesQueued).toBe(reader.counts().bundles);
  reader.close();
  writer.close();
}
