/**
 * The index: added rows per second, bytes per item, and latencies of pages with each kind of filter.
 *
 * Items are as on the chain: 8 tags, of which 4 are common, a unique entity, a folder shared by 20 items, a time and a
 * hash; one in ten has a target; 10,000 owners. Reference: the schema of ar-io-node, 0.35 k items/s with one item per
 * transaction and 1.5 k/s with a thousand, 3,900 bytes per item, measured on such a machine.
 * @module
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addressOf, blockHashFromBytes, idFromBytes } from "../src/arweave/id.ts";
import type { Tag } from "../src/arweave/tags.ts";
import { openPartMerges } from "../src/indexing/part-merges.ts";
import { assert } from "../src/lib/assert.ts";
import { systemClock } from "../src/lib/clock.ts";
import { silentLog } from "../src/lib/log.ts";
import { createFilterKeys } from "../src/store/index/filter-key.ts";
import { openIdTester } from "../src/store/index/id-tester.ts";
import { openIndexReader } from "../src/store/index/index-reader.ts";
import {
  allColumns,
  type IndexReader,
  type ItemRow,
  type PagePlan,
  stableDepth,
} from "../src/store/index/index-types.ts";
import { type IndexWriter, openIndexWriter } from "../src/store/index/index-writer.ts";
import { filterFolderOf } from "../src/store/index/part-filter.ts";
import { encodeItems, serializeBatch, withTestedIds } from "../src/store/index/row-batch.ts";
import { createCollections } from "../src/threads/collect.ts";
import { openPool } from "../src/threads/pool.ts";
import { measureCold, type ReadPage } from "./cold-pages.ts";
import { type Bench, type BenchRow, type BenchSize, median, percentile, perSecond } from "./harness.ts";
import { blockRow, transactionRow } from "./sample-rows.ts";

const sizes: Readonly<Record<BenchSize, { items: number; batch: number; queries: number; cold: number }>> = {
  small: { items: 4_000, batch: 1_000, queries: 10, cold: 0 },
  large: { items: 1_000_000, batch: 2_000, queries: 500, cold: 100 },
};

const itemBytes = 1_024;
const itemsPerBlock = 50_000;
/** Of the first item. */
export const firstHeight = 1_000_000;

/** Measures rows per second, bytes per item, bytes written, and latencies of pages. */
export const indexBench: Bench = {
  name: "index",
  measure: async (size, given) => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-index-"));
    try {
      const path = join(folder, "index.sqlite");
      const { items: itemsDefault, batch, queries, cold } = sizes[size];
      const items = given?.items ?? itemsDefault;
      const readers = createReaders(path, items);
      const filled = await fillIndex(path, items, batch, readers.begin);
      const beside = await readers.end();
      const bytes = statSync(path).size + filterBytesOf(path);
      const bytesPerItem = bytes / (items * (1 + readersShare));
      const reader = openIndexReader(path);
      const rows = [
        {
          name: `index rows added, ${items.toLocaleString("en")} items, one writing thread`,
          metric: [
            rateOf(filled.all),
            `first tenth ${rateOf(filled.first)}, last ${rateOf(filled.last)}`,
            `longest call ${(filled.longest * 1_000).toFixed(0)} ms (${filled.longestName})`,
          ].join(", "),
          target: "≥ 60 k items/s, last ≥ 0.9 × first, call ≤ 100 ms",
        },
        {
          name: "the writer's time for a million items, first and last tenth",
          metric: [
            `adding them ${perMillion(filled.first.adding)} and ${perMillion(filled.last.adding)}`,
            `storing merged parts ${perMillion(filled.first.merging)} and ${perMillion(filled.last.merging)}`,
          ].join(", "),
        },
        {
          name: "items encoded for the writer, one verifying thread",
          metric:
            `${perSecond((items * (1 + readersShare)) / filled.encoding, "items")}, ` +
            `first tenth ${perSecond(1 / filled.first.encoding, "items")}, ` +
            `last ${perSecond(1 / filled.last.encoding, "items")}`,
        },
        {
          name: "bytes an item takes in the index, with filters",
          metric: `${bytesPerItem.toFixed(0)} B`,
          reference: "peer 3,900 B",
          ratio: bytesPerItem / 3_900,
          target: "≤ 280 B",
        },
        {
          name: "bytes written to disk (/proc/self/io)",
          metric: `${(filled.written / 2 ** 30).toFixed(2)} GiB`,
          reference: `${(bytes / 2 ** 30).toFixed(2)} GiB stored`,
          ratio: filled.written / bytes,
          target: "≤ 6 ×",
        },
        {
          name: "memory of the process",
          metric: `${(process.memoryUsage.rss() / 2 ** 20).toFixed(0)} MiB`,
          target: "≤ 800 MiB",
        },
        ...measurePages(path, items, { queries, cold, beside }),
        ...measureIds(reader, items, queries),
      ];
      reader.close();
      return rows;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** Seconds for an item: of the writer, and of the thread that encodes it. */
type ItemTime = Readonly<{ adding: number; merging: number; encoding: number }>;

/** Seconds so far when so many items were added. */
type Mark = ItemTime & Readonly<{ items: number }>;

function timeBetween(start: Mark | undefined, end: Mark | undefined): ItemTime {
  assert(start !== undefined && end !== undefined, "at least one tenth of the items was added");
  const of = (time: keyof ItemTime) => (end[time] - start[time]) / (end.items - start.items);
  return { adding: of("adding"), merging: of("merging"), encoding: of("encoding") };
}

function rateOf({ adding, merging }: ItemTime): string {
  return perSecond(1 / (adding + merging), "items");
}

function perMillion(seconds: number): string {
  return `${(seconds * 1e6).toFixed(2)} s`;
}

function filterBytesOf(path: string): number {
  const folder = filterFolderOf(path);
  if (!existsSync(folder)) return 0;
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

/** Bytes that this process sent to the disk; 0 where the system does not count them. */
function bytesWritten(): number {
  if (!existsSync("/proc/self/io")) return 0;
  return Number(/^write_bytes: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1] ?? 0);
}

/** Items that are added while pages are read, as a share of those whose rate is measured. */
const readersShare = 0.1;

/**
 * Fills a new index with items of bundles while a thread merges its parts. Returns the rates of its batches: the time
 * of the writer, merges included, without the time in which items are made. Where readers
 * are to begin, it then adds more items.
 */
export async function fillIndex(path: string, items: number, batch: number, beginReaders?: () => void) {
  const writtenBefore = bytesWritten();
  const writer = openIndexWriter(path, { clock: () => 1_700_000_000_000 });
  const calls = { adding: 0, merging: 0, longest: 0, longestName: "" };
  const timed = <Result>(name: string, work: () => Result): Result => {
    const start = Bun.nanoseconds();
    const result = work();
    const seconds = (Bun.nanoseconds() - start) / 1e9;
    calls[name === "addItems" ? "adding" : "merging"] += seconds;
    if (seconds > calls.longest) Object.assign(calls, { longest: seconds, longestName: name });
    return result;
  };
  // Items of bundles that are unbundled behind the tip, as when an index is built: their heights are stable.
  const more = beginReaders === undefined ? 0 : Math.ceil((items * readersShare) / batch) * batch;
  const all = items + more;
  const blocks = Math.ceil(all / itemsPerBlock) + stableDepth;
  for (let block = 0; block < blocks; block += 1) addBlock(writer, heightOf(block * itemsPerBlock));
  let isMerged = false;
  const merges = openPool({ entry: "index-merges", threads: 1, queueMax: 4, timeoutMs: 600_000, idleMs: 60_000 });
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
  const marks: Mark[] = [{ items: 0, adding: 0, merging: 0, encoding: 0 }];
  const tenth = Math.ceil(items / 10 / batch) * batch;
  const reader = openIndexReader(path);
  const keys = createFilterKeys(reader.filterSecret);
  const tester = openIdTester(path, reader.filterSecret);
  reader.close();
  let encoding = 0;
  // As these threads and that of the writer do.
  const countBytes = createCollections();
  for (let first = 0; first < all; first += batch) {
    if (first === items) beginReaders?.();
    const made = Array.from({ length: batch }, (_, index) => itemOf(first + index));
    const bundle = { height: heightOf(first), txIndex: 0, offset: -1 };
    // As the threads that verify items do.
    const start = Bun.nanoseconds();
    const rows = serializeBatch(withTestedIds(encodeItems(made, keys), tester.test));
    encoding += (Bun.nanoseconds() - start) / 1e9;
    timed("addItems", () => writer.addItems({ bundle, rows, nextEntry: first + batch, bundles: [] }));
    countBytes(rows.byteLength);
    const added = first + batch;
    if (added % tenth === 0 && added <= items) marks.push({ items: added, encoding, ...calls });
    await Bun.sleep(0);
  }
  isMerged = false;
  while (!isMerged) await Bun.sleep(20);
  await loop.close();
  await merges.close();
  tester.close();
  timed("close", writer.close);
  return {
    all: timeBetween(marks[0], marks.at(-1)),
    first: timeBetween(marks[0], marks[1]),
    last: timeBetween(marks.at(-2), marks.at(-1)),
    encoding,
    longest: calls.longest,
    longestName: calls.longestName,
    written: bytesWritten() - writtenBefore,
  };
}

function heightOf(number: number): number {
  return firstHeight + Math.floor(number / itemsPerBlock);
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

const ownersMax = 10_000;
const owners = new Map<number, Readonly<{ key: Uint8Array; address: ReturnType<typeof addressOf> }>>();

function ownerOf(number: number) {
  const known = owners.get(number);
  if (known !== undefined) return known;
  const key = new Uint8Array(512);
  new DataView(key.buffer).setUint32(0, number);
  const owner = { key, address: addressOf(key) };
  owners.set(number, owner);
  return owner;
}

function digestOf(text: string): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(text).digest();
}

/** A pseudorandom number that is the same in every run. */
export function scatter(number: number, salt: number): number {
  return Math.imul(number + salt * 7_919, 2_654_435_761) >>> 8;
}

const appNames = ["ArDrive-App", "Bench", "Other", "Rare"];

function tagsOf(number: number): Tag[] {
  const app = scatter(number, 1) % 100;
  return [
    { name: "App-Name", value: appNames[app < 60 ? 0 : app < 90 ? 1 : app < 99 ? 2 : 3] ?? "" },
    { name: "App-Version", value: `2.${scatter(number, 2) % 12}.0` },
    { name: "Content-Type", value: scatter(number, 3) % 10 < 6 ? "application/json" : "image/png" },
    { name: "Entity-Type", value: scatter(number, 4) % 13 === 0 ? "folder" : "file" },
    { name: "File-Id", value: Buffer.from(digestOf(`file ${number}`)).toString("base64url") },
    { name: "Folder-Id", value: folderOf(number) },
    { name: "Unix-Time", value: String(1_600_000_000 + Math.floor(number / 4)) },
    { name: "Data-Hash", value: Buffer.from(digestOf(`data ${number}`)).toString("hex") },
  ];
}

function folderOf(number: number): string {
  return Buffer.from(digestOf(`folder ${Math.floor(number / 20)}`)).toString("base64url");
}

function itemOf(number: number): ItemRow {
  const owner = ownerOf(scatter(number, 5) % ownersMax);
  const hasTarget = number % 10 === 0;
  return {
    place: { height: heightOf(number), txIndex: 0, offset: 64_000 + (number % itemsPerBlock) * itemBytes },
    id: idFromBytes(digestOf(`item ${number}`)),
    parentOffset: null,
    signatureType: 1,
    owner: owner.key,
    ownerAddress: owner.address,
    target: hasTarget ? ownerOf(scatter(number, 6) % ownersMax).address : "",
    anchor: "",
    tags: tagsOf(number),
    headerSize: 1_044 - 300,
    size: 200,
    digest: digestOf(`payload ${number}`),
  };
}

/** Filters by name; each call creates the filter of another query. */
export const pageQueries: Readonly<Record<string, (number: number) => Partial<PagePlan>>> = {
  "by id": (number) => ({ ids: [idFromBytes(digestOf(`item ${number}`))] }),
  "by an id that is absent": (number) => ({ ids: [idFromBytes(digestOf(`absent ${number}`))] }),
  "by owner": (number) => ({ owners: [ownerOf(number % ownersMax).address] }),
  "by a common tag": () => ({ tags: [equal("App-Name", "Bench")] }),
  "by a rare tag": (number) => ({ tags: [equal("Folder-Id", folderOf(number))] }),
  "by a common and a rare tag": (number) => ({
    tags: [equal("App-Name", "ArDrive-App"), equal("Folder-Id", folderOf(number))],
  }),
  "by two common tags": () => ({ tags: [equal("App-Name", "Bench"), equal("Content-Type", "image/png")] }),
  "by three tags": (number) => ({
    tags: [equal("App-Name", "Other"), equal("Entity-Type", "folder"), equal("App-Version", `2.${number % 12}.0`)],
  }),
  "by tag and owner": (number) => ({
    tags: [equal("Entity-Type", "folder")],
    owners: [ownerOf(number % ownersMax).address],
  }),
  "by one of two tags": () => ({
    tags: [{ name: "App-Name", values: ["Bench", "Rare"], op: "EQ" }, equal("Entity-Type", "folder")],
  }),
  "transactions only, by a tag": () => ({ tags: [equal("App-Name", "Bench")], bundledIn: null }),
};

function equal(name: string, value: string) {
  return { name, values: [value], op: "EQ" } as const;
}

/** Places of ids, as a request for content looks them up. */
function measureIds(reader: IndexReader, items: number, queries: number): BenchRow[] {
  return ["item", "absent"].map((kind) => {
    const ids = Array.from({ length: queries * 4 }, (_, index) =>
      idFromBytes(digestOf(`${kind} ${scatter(index, 11) % items}`)),
    );
    // Hot, as the pages are.
    for (const id of ids) reader.placeOf(id);
    const times = ids.map((id) => {
      const start = Bun.nanoseconds();
      const place = reader.placeOf(id);
      const elapsed = (Bun.nanoseconds() - start) / 1e6;
      assert((place !== undefined) === (kind === "item"), "an id has a place exactly when it was added");
      return elapsed;
    });
    return {
      name: `place of an id that is ${kind === "item" ? "present" : "absent"}`,
      metric: `p50 ${(median(times) * 1_000).toFixed(0)} µs, p99 ${(percentile(times, 0.99) * 1_000).toFixed(0)} µs`,
      target: kind === "item" ? "p50 ≤ 200 µs" : "p50 ≤ 20 µs",
    };
  });
}

const columns = { ...allColumns, ownerKey: false };

/** Reads one page of 100. */
export function readPage(reader: IndexReader, filters: Partial<PagePlan>) {
  const start = Bun.nanoseconds();
  const { rows } = reader.page({ ...filters, order: "desc", limit: 100, columns });
  return { rows: rows.length, milliseconds: (Bun.nanoseconds() - start) / 1e6 };
}

function latencies(times: readonly number[]): string {
  return `p50 ${median(times).toFixed(2)} ms, p99 ${percentile(times, 0.99).toFixed(2)} ms`;
}

/** A process that reads pages while the last tenth of the rows is added. @param items - Rows that are there by then. */
function createReaders(path: string, items: number) {
  let child: Bun.Subprocess<"pipe", "pipe", "inherit"> | undefined;
  return {
    begin: () => {
      const command = [process.execPath, join(import.meta.dir, "index-readers.ts"), path, String(items)];
      child = Bun.spawn(command, { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    },
    /** Latencies in milliseconds by the name of the query. */
    end: async (): Promise<Readonly<Record<string, readonly number[]>>> => {
      child?.stdin.end();
      return child === undefined ? {} : JSON.parse(await new Response(child.stdout).text());
    },
  };
}

type PageRuns = Readonly<{ queries: number; cold: number; beside: Readonly<Record<string, readonly number[]>> }>;

/**
 * Pages with each kind of filter: cold, where the system lets this process drop its cache; hot, of queries that were
 * made before; and beside the writer.
 */
function measurePages(path: string, items: number, { queries, cold, beside }: PageRuns): BenchRow[] {
  const measure = (
    reader: IndexReader,
    filtersOf: (number: number) => Partial<PagePlan>,
    count: number,
    salt: number,
  ) => {
    const pages = Array.from({ length: count }, (_, index) =>
      readPage(reader, filtersOf(scatter(index, salt) % items)),
    );
    return {
      found: pages.reduce((sum, { rows }) => sum + rows, 0),
      text: latencies(pages.map(({ milliseconds }) => milliseconds)),
    };
  };
  return Object.entries(pageQueries).map(([name, filtersOf]) => {
    const coldPages = Array.from({ length: cold }, (_, index): ReadPage => {
      const filters = filtersOf(scatter(index, 10) % items);
      return (opened) => readPage(opened, filters).milliseconds;
    });
    const coldTimes = measureCold(path, coldPages);
    const coldText = coldTimes === undefined ? "" : `; cold ${coldTimes}`;
    const reader = openIndexReader(path);
    // The first pass reads from the disk what the second one, which counts, finds in memory.
    measure(reader, filtersOf, queries, 9);
    const hot = measure(reader, filtersOf, queries, 9);
    reader.close();
    assert(hot.found > 0 || items < 10_000 || /absent|only/.test(name), "a query that must find rows does");
    const besideTimes = beside[name] ?? [];
    const besideText = besideTimes.length > 0 ? `; while the writer runs ${latencies(besideTimes)}` : "";
    return {
      name: `page of 100 ${name}`,
      metric: `${hot.text}, ${(hot.found / queries).toFixed(0)} rows${coldText}${besideText}`,
      target: "p99 ≤ 15 ms, also while the writer runs; cold 50 ms",
    };
  });
}
