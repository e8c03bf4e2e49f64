/**
 * A writer killed at any moment leaves an intact index with everything that was acknowledged, and pages of all queries
 * are those of a full scan. Filters are damaged between the kills, so that writers are killed while they make them again.
 * KILLS sets how many, for each of the two files.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { openIndexReader } from "../../../src/store/index/index-reader.ts";
import { noColumns } from "../../../src/store/index/index-types.ts";
import { openIndexWriter } from "../../../src/store/index/index-writer.ts";
import { inspectIndex } from "../../support/inspect-index.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { temporaryFolder } from "../folder.ts";
import { planOf } from "./index-fixture.ts";
import { fullScan, type ModelRow } from "./model.ts";
import { copyOldIndex } from "./old-index.ts";
import { walkPages } from "./pages/walk-pages.ts";
import { damageFilters, faultsOfFilters, unnamedFilters, unsoundParts } from "./parts/filter-files.ts";
import { createMergeSteps } from "./parts/merge-steps.ts";
import { isPendingPlace } from "./rows-of.ts";
import { storedRows } from "./stored-rows.ts";

const rounds = Number(process.env["KILLS"] ?? 5);
/** A file grows with each round, and so does the time of its inspection. */
const roundsOfFile = 25;
/** Of the files of filters, after a kill. */
const damagedShares = [0, 0, 0.3, 0.6, 1] as const;
/** Queries of which all pages are read after each kill, and the pages of a query. */
const plansPerRound = 6;
const pagesPerPlan = 5;
/** Of so many kills some are within the making of a filter, and leave its file. */
const roundsWithRepairs = 200;
/**
 * Lines of output before a kill: of any kind, which are often those of filters that are made again, or only those that
 * state progress.
 */
const killedAfter = { any: { line: /\n/g, max: 8 }, progress: { line: /\d\n/g, max: 25 } } as const;
/** Between a line and some of the kills, so that kills happen anywhere in the step after it. */
const killAfterMsMax = 8;
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
      let killedInRepair = 0;
      for (let first = 0; first < rounds; first += roundsOfFile) {
        using folder = temporaryFolder();
        const path = `${folder.path}/index.sqlite`;
        prepareFile(folder.path);
        let tip: number | undefined;
        for (let round = first; round < Math.min(rounds, first + roundsOfFile); round += 1) {
          const said = await runUntilKilled(path, seed + round, { isFirst: tip === undefined, random });
          const { faults, rows } = inspectIndex(path);
          expect({ seed, round, faults }).toEqual({ seed, round, faults: [] });
          expect(rows).toBeGreaterThan(0);
          const killed = faultsOfFilters(path);
          if (unnamedFilters(path).ofRepairs.length > 0) killedInRepair += 1;
          tip = checkSaid(path, said, tip);
          damageFilters(path, random, random.pick(damagedShares));
          const damaged = faultsOfFilters(path);
          expect({ seed, round, killed, damaged }).toEqual({ seed, round, killed: [], damaged: [] });
          await checkPages(path, random);
        }
        checkRepaired(path, random);
      }
      if (rounds >= roundsWithRepairs) expect(killedInRepair).toBeGreaterThan(0);
    },
    20_000 + rounds * 15_000,
  );
});

type Run = Readonly<{ isFirst: boolean; random: Random }>;

/** Kills a writer after some lines of output. @returns All lines; the writer may be further. */
async function runUntilKilled(path: string, seed: number, { isFirst, random }: Run): Promise<string[]> {
  // The first writer of a file adds a block.
  const { line, max } = killedAfter[!isFirst && random.chance(0.4) ? "any" : "progress"];
  const lines = 1 + random.below(max);
  // Drawn once, however many pieces the output comes in: the seed repeats the run.
  const killAfterMs = random.chance(0.5) ? random.below(killAfterMsMax) : undefined;
  const writer = Bun.spawn(["bun", child, path, String(seed), "prunes"], { stdout: "pipe", stderr: "inherit" });
  const decoder = new TextDecoder();
  let text = "";
  let isKilled = false;
  for await (const piece of writer.stdout) {
    text += decoder.decode(piece, { stream: true });
    if (isKilled || (text.match(line)?.length ?? 0) < lines) continue;
    if (killAfterMs !== undefined) await Bun.sleep(killAfterMs);
    writer.kill("SIGKILL");
    isKilled = true;
  }
  await writer.exited;
  return text.split("\n").slice(0, -1);
}

/**
 * The last acknowledged step must be present, and the bundle in progress is queued again at its next entry. The files
 * of filters that a killed writer left are removed.
 *
 * @param before - Height of the tip before the writer was started.
 * @returns Height of the tip.
 */
function checkSaid(path: string, said: readonly string[], before: number | undefined): number {
  const step = said.findLast((line) => /\d/.test(line)) ?? `${before} 0`;
  const [height = 0, items = 0] = step.split(" ").map(Number);
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
  expect(unnamedFilters(path).all).toEqual([]);
  writer.takeBundles(10_000);
  expect(reader.counts().bundlesQueued).toBe(reader.counts().bundles);
  reader.close();
  writer.close();
  return tip;
}

/** Reads all pages of some queries, and compares them with a scan of the rows without the posting index. */
async function checkPages(path: string, random: Random): Promise<void> {
  const rows = storedRows(path);
  const reader = openIndexReader(path, random.chance(0.5) ? {} : { windows: { min: 2, max: 40 } });
  for (let count = 0; count < plansPerRound; count += 1) {
    const plan = planOfRows(random, rows);
    const limit = Math.max(plan.limit, Math.ceil(fullScan(rows, plan).length / pagesPerPlan));
    await walkPages({ rows: () => rows }, reader.page, { ...plan, limit }, () => undefined);
  }
  reader.close();
}

function planOfRows(random: Random, rows: readonly ModelRow[]) {
  const some = Array.from({ length: 8 }, () => random.pick(rows));
  // The first tags of rows are those that many rows share.
  const tags = some.flatMap((row, index) => (index === 0 ? row.tags : row.tags.slice(0, 1)));
  const inBlocks = rows.filter(({ place }) => !isPendingPlace(place));
  return planOf(random, {
    rows,
    owners: some.map(({ ownerAddress }) => ownerAddress),
    tagNames: ["absent", ...tags.map(({ name }) => name)],
    tagValues: tags.map(({ value }) => value),
    height: () => random.pick(inBlocks).place.height + random.below(3) - 1,
    seconds: () => random.pick(rows).ingestedAt - random.below(900),
  });
}

/** When all filters are damaged, those of all large parts are made again, and nothing else is in their folder. */
function checkRepaired(path: string, random: Random): void {
  damageFilters(path, random, 1);
  expect(faultsOfFilters(path)).toEqual([]);
  const writer = openIndexWriter(path, { clock: Date.now });
  const merges = createMergeSteps(writer, path, random);
  while (merges.repair());
  expect(unsoundParts(path)).toEqual([]);
  expect(unnamedFilters(path).all).toEqual([]);
  expect(faultsOfFilters(path)).toEqual([]);
  for (const opened of [merges, writer]) opened.close();
  expect(inspectIndex(path).faults).toEqual([]);
}
