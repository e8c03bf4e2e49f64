/**
 * Fills an index with items for benches: a process makes and encodes them, this one writes them, and another one
 * merges parts meanwhile. In the program these are threads; as processes, each has memory of its own.
 * @module
 */
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { blockHashFromBytes, idFromBytes } from "../../src/arweave/id.ts";
import { openPartMerges } from "../../src/indexing/part-merges.ts";
import { bundleLimitsDefault } from "../../src/indexing/unbundle.ts";
import { assert } from "../../src/lib/assert.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../../src/lib/log.ts";
import { stableDepth } from "../../src/store/index/index-types.ts";
import { type IndexWriter, openIndexWriter } from "../../src/store/index/index-writer.ts";
import { createCollections } from "../../src/threads/collect.ts";
import type { Pool } from "../../src/threads/pool.ts";
import type * as indexMerges from "../../workers/index-merges.ts";
import { memoryOf, watchMemory } from "../support/memory.ts";
import { startModule } from "../support/module-process.ts";
import { blockRow, transactionRow } from "../support/sample-rows.ts";
import { type CallTimes, createCallTimes } from "./index-calls.ts";
import type * as indexEncoder from "./index-encoder.ts";
import { digestOf, heightOf, itemBytes, itemsPerBlock, ownerOf } from "./index-items.ts";

/** Seconds for an item: of the writer, and of the process that encodes it, look-ups of ids included and alone. */
export type ItemTime = Readonly<{ adding: number; merging: number; encoding: number; testing: number }>;

/** Seconds so far when so many items were added. */
type Mark = ItemTime & Readonly<{ items: number }>;

function timeBetween(start: Mark | undefined, end: Mark | undefined): ItemTime {
  assert(start !== undefined && end !== undefined, "at least one tenth of the items was added");
  const of = (time: keyof ItemTime) => (end[time] - start[time]) / (end.items - start.items);
  return { adding: of("adding"), merging: of("merging"), encoding: of("encoding"), testing: of("testing") };
}

/** Bytes that a process sent to the disk; 0 where the system does not count them. */
function bytesWritten(pid: number): number {
  if (!existsSync(`/proc/${pid}/io`)) return 0;
  return Number(/^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1] ?? 0);
}

/** Items that are added while pages are read, as a share of those whose rate is measured. */
export const readersShare = 0.1;

/** Items that are added at once, as of a bundle. */
const batch = bundleLimitsDefault.entriesPerBatch;

/** Limit of the memory of the process that writes, and of one that encodes, which has none of its own. MiB. */
const writerMemoryMax = 800;

/** Limit of the memory of the process that merges, beside what it takes when its modules are loaded. MiB. */
const mergesMemoryMax = 64;

/** What was measured. */
export type Filled = Readonly<{
  all: ItemTime;
  first: ItemTime;
  last: ItemTime;
  longest: ReturnType<CallTimes["longest"]>;
  /** Bytes sent to the disk. */
  written: number;
  memory: Readonly<{ writer: string; encoder: string; merges: string }>;
}>;

/**
 * Fills a new index with items of bundles while its parts are merged. Returns the rates of its batches: the time of the
 * writer, merges included, without the time in which items are made. Where readers are to begin, it then adds more
 * items.
 */
export async function fillIndex(path: string, items: number, beginReaders?: () => void): Promise<Filled> {
  const writtenBefore = bytesWritten(process.pid);
  const writer = openIndexWriter(path, { clock: () => 1_700_000_000_000 });
  const calls = createCallTimes();
  // Items of bundles that are unbundled behind the tip, as when an index is built: their heights are stable.
  const more = beginReaders === undefined ? 0 : Math.ceil((items * readersShare) / batch) * batch;
  const all = items + more;
  const blocks = Math.ceil(all / itemsPerBlock) + stableDepth;
  const merges = startModule<typeof indexMerges>(resolve(import.meta.dir, "../../workers/index-merges.ts"));
  const encoder = startModule<typeof indexEncoder>(resolve(import.meta.dir, "index-encoder.ts"));
  const merging = startMerges(path, writer, calls, merges);
  try {
    for (let block = 0; block < blocks; block += 1) addBlock(writer, heightOf(block * itemsPerBlock));
    await merges.run("ping", undefined);
    const loaded = residentOf(merges.pid);
    const memory = {
      writer: watchMemory(process.pid),
      encoder: watchMemory(encoder.pid),
      merges: watchMemory(merges.pid),
    };
    await encoder.run("open", { path });
    const marks: Mark[] = [{ items: 0, adding: 0, merging: 0, encoding: 0, testing: 0 }];
    const tenth = Math.ceil(items / 10 / batch) * batch;
    const countBytes = createCollections(); // as the thread of the writer does
    let encoding = 0;
    let testing = 0;
    for (let first = 0; first < all; first += batch) {
      if (first === items) beginReaders?.();
      const { rows, ...times } = await encoder.run("encode", { first, count: batch });
      encoding += times.seconds;
      testing += times.testing;
      const bundle = { height: heightOf(first), txIndex: 0, offset: -1 };
      const firstEntry = first % itemsPerBlock;
      const entries = { firstEntry, nextEntry: firstEntry + batch };
      calls.timed("addItems", () => writer.addItems({ bundle, rows, ...entries, bundles: [] }));
      countBytes(rows.byteLength);
      const added = first + batch;
      if (added % tenth === 0 && added <= items) marks.push({ items: added, encoding, testing, ...calls.seconds() });
      for (const watch of Object.values(memory)) watch.sample();
    }
    await merging.end();
    calls.timed("close", writer.close);
    return {
      all: timeBetween(marks[0], marks.at(-1)),
      first: timeBetween(marks[0], marks[1]),
      last: timeBetween(marks.at(-2), marks.at(-1)),
      longest: calls.longest(),
      written: bytesWritten(process.pid) - writtenBefore + bytesWritten(merges.pid),
      memory: {
        writer: memory.writer.text(writerMemoryMax),
        encoder: memory.encoder.text(writerMemoryMax),
        merges: `${memory.merges.text(Math.round(loaded) + mergesMemoryMax)}; ${loaded.toFixed(0)} when loaded`,
      },
    };
  } finally {
    // The step of a merge that is under way ends with its process.
    await Promise.all([merges.stop(), encoder.stop()]);
    await merging.close();
    writer.close(); // the second time unless there was an error
  }
}

/** Resident memory, MiB; 0 where the system does not tell it. */
function residentOf(pid: number): number {
  return process.platform === "linux" ? memoryOf(pid).resident : 0;
}

/** Starts the merges of a writer. `end` waits until none is due, and throws when one fails. */
function startMerges(
  path: string,
  writer: IndexWriter,
  { timed }: CallTimes,
  merges: Pick<Pool<typeof indexMerges>, "run">,
): Readonly<{ end: () => Promise<void>; close: () => Promise<void> }> {
  let isMerged = false;
  const loop = openPartMerges({
    path,
    index: {
      beginMerge: async (within) => {
        const merge = timed("beginMerge", () => writer.beginMerge(within));
        isMerged = merge === undefined && within === undefined;
        return merge;
      },
      addMerged: async (part, bodies) => timed("addMerged", () => writer.addMerged(part, bodies)),
      endMerge: async (...of) => timed("endMerge", () => writer.endMerge(...of)),
      setFilter: async (...of) => timed("setFilter", () => writer.setFilter(...of)),
      dropReplaced: async () => timed("dropReplaced", writer.dropReplaced),
      sweepPostings: async () => timed("sweepPostings", writer.sweepPostings),
    },
    merges,
    intervalMs: 10,
    clock: systemClock,
    random: () => 0.5,
    log: silentLog,
  });
  return {
    end: async () => {
      isMerged = false;
      while (!isMerged) {
        const { lastError } = loop.status();
        if (lastError !== undefined) throw new Error(`a merge failed: ${lastError}`);
        await Bun.sleep(20);
      }
      await loop.close();
    },
    close: loop.close,
  };
}

function addBlock(writer: IndexWriter, height: number): void {
  const id = idFromBytes(digestOf(`tx ${height}`));
  const owner = ownerOf(0);
  writer.addBlock({
    block: blockRow({
      height,
      hash: blockHashFromBytes(new Bun.CryptoHasher("sha384").update(String(height)).digest()),
      timestamp: height,
    }),
    transactions: [
      transactionRow({
        id,
        owner: Buffer.from(owner.key).toString("base64url"),
        ownerAddress: owner.address,
        dataSize: itemsPerBlock * itemBytes,
      }),
    ],
    missing: [],
    bundles: [
      {
        id,
        place: { height, txIndex: 0, offset: -1 },
        parentOffset: null,
        headerSize: 0,
        size: itemsPerBlock * itemBytes,
        depth: 0,
        bypassFilter: false,
      },
    ],
  });
}
