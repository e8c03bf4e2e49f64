/**
 * A writer killed at any moment of the migration of an index of an earlier release leaves an index with every row, which
 * another writer migrates to the end. KILLS sets how many, for each of the two releases.
 * @module
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { openIndexReader } from "../../../src/store/index/index-reader.ts";
import { allColumns } from "../../../src/store/index/index-types.ts";
import { openIndexWriter } from "../../../src/store/index/index-writer.ts";
import { inspectIndex } from "../../support/inspect-index.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { temporaryFolder } from "../folder.ts";
import { copyOldIndex } from "./old-index.ts";
import { createMergeSteps } from "./parts/merge-steps.ts";

const rounds = Number(process.env["KILLS"] ?? 5);

/** Of so many kills some are within each of the stages. */
const roundsWithAll = 50;

/** From "opening" on: the schema is migrated within 30 ms on a busy machine, and the first step ends soon after. */
const openingMsMax = 30;

/** Between a line and the kill. */
const stepMsMax = 4;
const stepsMax = 40;
const child = new URL("./migrate-child.ts", import.meta.url).pathname;

describe("N2: kill -9 of a writer that migrates an index of an earlier release", () => {
  test.each(["postings", "among-keys"] as const)(
    `${rounds} times, each on a new copy of a file with ids in or among: %s`,
    async (kind) => {
      const seed = newSeed();
      const random = createRandom(seed);
      const killed = { opening: 0, rewriting: 0 };
      for (let round = 0; round < rounds; round += 1) {
        using folder = temporaryFolder();
        const path = copyOldIndex(folder.path, kind);
        const lines = await runUntilKilled(path, seed + round, random);
        if (!lines.includes("opened")) killed.opening += 1;
        else if (!lines.includes("done")) killed.rewriting += 1;
        expect({ seed, round, faults: migratedFaults(path, seed + round) }).toEqual({ seed, round, faults: [] });
      }
      if (rounds < roundsWithAll) return;
      expect(killed.opening).toBeGreaterThan(0);
      expect(killed.rewriting).toBeGreaterThan(0);
    },
    20_000 + rounds * 10_000,
  );
});

/** Kills a writer while it opens the file, or after some of its steps. @returns Its lines. */
async function runUntilKilled(path: string, seed: number, random: Random): Promise<string[]> {
  const isOpening = random.chance(0.5);
  const steps = isOpening ? 0 : random.below(stepsMax);
  const afterMs = random.below(10 * (isOpening ? openingMsMax : stepMsMax)) / 10;
  const writer = Bun.spawn(["bun", child, path, String(seed)], { stdout: "pipe", stderr: "inherit" });
  const decoder = new TextDecoder();
  let text = "";
  let isKilled = false;
  for await (const piece of writer.stdout) {
    text += decoder.decode(piece, { stream: true });
    if (isKilled || (text.match(/step/g)?.length ?? 0) < steps) continue;
    await Bun.sleep(afterMs);
    writer.kill("SIGKILL");
    isKilled = true;
  }
  const exitCode = await writer.exited;
  const lines = text.split("\n").slice(0, -1);
  const isDone = exitCode === 0 && lines.includes("done");
  expect({ seed, ended: writer.signalCode === "SIGKILL" || isDone }).toEqual({ seed, ended: true });
  return lines;
}

/** Opens the index as the next start does, and migrates it to the end. @returns What is wrong at any point. */
function migratedFaults(path: string, seed: number): readonly string[] {
  const writer = openIndexWriter(path, { clock: Date.now });
  const faults = [...lostRows(path), ...inspectIndex(path).faults];
  const merges = createMergeSteps(writer, path, createRandom(seed));
  merges.finish();
  merges.close();
  writer.close();
  const db = new Database(path);
  const old = db.query<{ parts: number }, []>("SELECT count(*) AS parts FROM parts WHERE id_buckets IS NULL").get();
  db.close();
  if (old?.parts !== 0) faults.push(`${old?.parts} parts of an earlier release are left`);
  return [...faults, ...lostRows(path), ...inspectIndex(path).faults];
}

/** The rows that are not found by their id at their place. */
function lostRows(path: string): string[] {
  const reader = openIndexReader(path);
  const { rows } = reader.page({ order: "asc", limit: 1_000, columns: allColumns });
  const lost = rows
    .filter(({ id, place }) => !Bun.deepEquals(reader.placeOf(id), place))
    .map(({ id }) => `lost: ${id}`);
  reader.close();
  return rows.length === 179 ? lost : [...lost, `${rows.length} rows`];
}
