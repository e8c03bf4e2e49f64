/**
 * The merges of an index beside its writer, in their thread: rows that arrive all the time are in few parts, every page
 * has all of them, and nothing of the replaced parts is left.
 * @module
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { openPartMerges } from "../../src/indexing/part-merges.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { type IndexWriter, openIndexWriter } from "../../src/store/index/index-writer.ts";
import { partSizesDefault } from "../../src/store/index/parts/parts.ts";
import { openPool } from "../../src/threads/pool.ts";
import { temporaryFolder } from "../store/folder.ts";
import { growingChain } from "../store/index/growing-chain.ts";
import { bundleOf, itemOf, ownerOf, tagOf } from "../store/index/rows-of.ts";
import { inspectIndex } from "../support/inspect-index.ts";
import { createRandom } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";
import { eventually } from "../support/until.ts";

/** Parts of few rows, of which none is merged by the writer. */
const partSizes = { ...partSizesDefault, rowsMin: 1_000, sealRows: 50, levelRows: 16, fanIn: 4, inlineRowsMax: 0 };

/** Starts the merges of a writer in this thread, as calls between its others. */
function startMerges(path: string, writer: IndexWriter) {
  const lines: string[] = [];
  /** Merges within which another one could begin since their last step was stored, and those that ended then. */
  const asked = new Set<number>();
  const ended: number[] = [];
  const pool = openPool({ entry: "index-merges", threads: 1, queueMax: 4, timeoutMs: 60_000, idleMs: 60_000 });
  const loop = openPartMerges({
    path,
    index: {
      beginMerge: async (within) => {
        if (within !== undefined) asked.add(within.part);
        return writer.beginMerge(within);
      },
      addMerged: async (part, bodies) => {
        asked.delete(part);
        writer.addMerged(part, bodies);
      },
      endMerge: async (merge, ...of) => {
        if (asked.has(merge.part)) ended.push(merge.part);
        writer.endMerge(merge, ...of);
      },
      setFilter: async (...of) => writer.setFilter(...of),
      dropReplaced: async () => writer.dropReplaced(),
      sweepPostings: async () => writer.sweepPostings(),
    },
    merges: pool,
    intervalMs: 1,
    clock: systemClock,
    random: () => 0.5,
    log: createLog({ level: "warn", format: "json", clock: systemClock, write: (line) => lines.push(line) }),
  });
  return {
    /** Lines of failures. */
    lines,
    /** Merges within which another one might have begun when they had no step left: it would abandon the outer ones. */
    ended,
    threads: () => pool.load().threads,
    close: async () => {
      await loop.close();
      await pool.close();
    },
  };
}

const itemsPerBlock = 100;

/** Adds a block with one bundle, whose items it adds too. */
function createAdding(writer: IndexWriter, seed: number): () => void {
  const random = createRandom(seed);
  const owner = ownerOf(random);
  const chain = growingChain(writer, random, owner);
  return () => {
    const { block } = chain.add({
      transactions: [{ dataSize: 10 ** 6 }],
      bundles: (height, rows) => rows.map(({ id }) => bundleOf({ height, txIndex: 0, offset: -1 }, id, 10 ** 6)),
    });
    const place = { height: block.height, txIndex: 0, offset: -1 };
    const rows = Array.from({ length: itemsPerBlock }, (_, index) =>
      itemOf(random, owner, {
        place: { ...place, offset: 64_000 + index * 256 },
        tags: [tagOf("n", String(random.below(9))), tagOf("unique", String(random.below(10 ** 9)))],
      }),
    );
    writer.addItems({ bundle: place, rows, firstEntry: 0, nextEntry: itemsPerBlock, bundles: [] });
  };
}

/** Parts of each level; the negative ones are of merges that are under way or were replaced. */
function levelsOf(path: string): Readonly<Record<string, number>> {
  const db = new Database(path, { readonly: true });
  const rows = db.query<{ level: number; parts: number }, []>("SELECT level, count(*) AS parts FROM parts GROUP BY 1");
  const levels = Object.fromEntries(rows.all().map(({ level, parts }) => [level, parts]));
  db.close();
  return levels;
}

test("merges follow the writer, and leave every row in one of few parts", async () => {
  using folder = temporaryFolder();
  const path = `${folder.path}/index.sqlite`;
  const writer = openIndexWriter(path, { clock: () => 1_700_000_000_000, partSizes });
  const add = createAdding(writer, newSeed());
  const merges = startMerges(path, writer);
  for (let block = 0; block < 120; block += 1) {
    add();
    await Bun.sleep(0);
  }
  const levels = await eventually(
    () => levelsOf(path),
    (found) => Object.entries(found).every(([level, parts]) => Number(level) >= 0 && parts < partSizes.fanIn),
    60_000,
  );
  // Parts of 50 rows are of the first level; each merge by four leads to the next.
  expect(Math.max(...Object.keys(levels).map(Number))).toBeGreaterThan(3);
  await merges.close();
  writer.close();
  expect([merges.lines, merges.ended]).toEqual([[], []]);
  expect(inspectIndex(path).faults).toEqual([]);
}, 120_000);

test("no thread is started for a small index without a merge", async () => {
  using folder = temporaryFolder();
  const path = `${folder.path}/index.sqlite`;
  const writer = openIndexWriter(path, { clock: () => 1_700_000_000_000 });
  createAdding(writer, newSeed())();
  let rounds = 0;
  const counted: IndexWriter = {
    ...writer,
    sweepPostings: () => {
      rounds += 1;
      return writer.sweepPostings();
    },
  };
  const merges = startMerges(path, counted);
  await eventually(
    () => rounds,
    (count) => count > 3,
  );
  expect(merges.threads()).toBe(0);
  await merges.close();
  writer.close();
});
