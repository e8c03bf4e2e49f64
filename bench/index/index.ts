/**
 * The index: added rows per second, bytes per item, and latencies of pages with each kind of filter.
 *
 * Reference: the schema of ar-io-node, 0.35 k items/s with one item per transaction and 1.5 k/s with a thousand, 3,900
 * bytes per item, measured on such a machine.
 * @module
 */
import { existsSync, mkdtempSync, readdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { idFromBytes } from "../../src/arweave/id.ts";
import { assert } from "../../src/lib/assert.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { allColumns, type IndexReader, type PagePlan } from "../../src/store/index/index-types.ts";
import { filterFolderOf } from "../../src/store/index/parts/part-filter.ts";
import { type Bench, type BenchRow, type BenchSize, median, percentile, perSecond } from "../harness.ts";
import { measureCold, type ReadPage } from "./cold-pages.ts";
import { longestText } from "./index-calls.ts";
import { type Filled, fillIndex, type ItemTime, readersShare } from "./index-fill.ts";
import { digestOf, folderOf, ownerOf, ownersMax, scatterBelow } from "./index-items.ts";

const sizes: Readonly<Record<BenchSize, { items: number; queries: number; cold: number }>> = {
  small: { items: 4_000, queries: 10, cold: 0 },
  large: { items: 1_000_000, queries: 500, cold: 100 },
};

/** Measures rows per second, bytes per item, bytes written, and latencies of pages. */
export const indexBench: Bench = {
  name: "index",
  measure: async (size, given) => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-index-"));
    try {
      const path = join(folder, "index.sqlite");
      const { items: itemsDefault, queries, cold } = sizes[size];
      const items = given?.items ?? itemsDefault;
      const readers = createReaders(path, items);
      const filled = await fillIndex(path, items, readers.begin);
      const beside = await readers.end();
      const bytes = statSync(path).size + filterBytesOf(path);
      const reader = openIndexReader(path);
      const rows = [
        ...rowsOfFill(items, filled, bytes),
        ...measurePages(path, items, { queries, cold, beside }),
        ...measureIds(reader, items, queries),
      ];
      reader.close();
      return rows;
    } finally {
      removeFolder(folder);
    }
  },
};

/** What filling tells. @param bytes - Of the index and its filters. */
function rowsOfFill(items: number, filled: Filled, bytes: number): BenchRow[] {
  const bytesPerItem = bytes / (items * (1 + readersShare));
  return [
    {
      name: `index rows added, ${items.toLocaleString("en")} items, by the writer's own time`,
      metric: `${rateOf(filled.all)}, first tenth ${rateOf(filled.first)}, last ${rateOf(filled.last)}`,
      target: items < 100_000_000 ? "≥ 60 k items/s, last ≥ 0.9 × first" : "≥ 40 k items/s, last ≥ 0.8 × first",
    },
    {
      name: "the same, and to encode them and look for their ids, one after the other",
      metric: `${wholeRateOf(filled.all)}, first tenth ${wholeRateOf(filled.first)}, last ${wholeRateOf(filled.last)}`,
      target: items < 100_000_000 ? "≥ 60 k items/s, last ≥ 0.9 × first" : "≥ 40 k items/s, last ≥ 0.8 × first",
    },
    { name: "the longest call of the writer", metric: longestText(filled.longest), target: "≤ 100 ms" },
    {
      name: "the writer's time for a million items, first and last tenth",
      metric: [
        `adding them ${perMillion(filled.first.adding)} and ${perMillion(filled.last.adding)}`,
        `storing merged parts ${perMillion(filled.first.merging)} and ${perMillion(filled.last.merging)}`,
      ].join(", "),
    },
    {
      name: "items encoded for the writer, one process",
      metric: [
        perSecond(1 / filled.all.encoding, "items"),
        `first tenth ${perSecond(1 / filled.first.encoding, "items")}`,
        `last ${perSecond(1 / filled.last.encoding, "items")}`,
        `of a million ${perMillion(filled.first.testing)} and ${perMillion(filled.last.testing)} to look for their ids`,
      ].join(", "),
    },
    {
      name: "bytes an item takes in the index, with filters",
      metric: `${bytesPerItem.toFixed(0)} B`,
      reference: "peer 3,900 B",
      ratio: bytesPerItem / 3_900,
      target: "≤ 280 B",
    },
    {
      name: "bytes written to disk (/proc/…/io)",
      metric: `${(filled.written / 2 ** 30).toFixed(2)} GiB`,
      reference: `${(bytes / 2 ** 30).toFixed(2)} GiB stored`,
      ratio: filled.written / bytes,
      target: "≤ 6 ×",
    },
    { name: "memory of the process that writes", metric: filled.memory.writer, target: "≤ 800 MiB" },
    { name: "memory of the process that encodes", metric: filled.memory.encoder },
    { name: "memory of the process that merges", metric: filled.memory.merges, target: "≤ 64 MiB beside the runtime" },
  ];
}

function rateOf({ adding, merging }: ItemTime): string {
  return perSecond(1 / (adding + merging), "items");
}

function wholeRateOf({ adding, merging, encoding }: ItemTime): string {
  return perSecond(1 / (adding + merging + encoding), "items");
}

function perMillion(seconds: number): string {
  return `${(seconds * 1e6).toFixed(2)} s`;
}

function filterBytesOf(path: string): number {
  const folder = filterFolderOf(path);
  if (!existsSync(folder)) return 0;
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
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
      idFromBytes(digestOf(`${kind} ${scatterBelow(items, index, 11)}`)),
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
      readPage(reader, filtersOf(scatterBelow(items, index, salt))),
    );
    return {
      found: pages.reduce((sum, { rows }) => sum + rows, 0),
      text: latencies(pages.map(({ milliseconds }) => milliseconds)),
    };
  };
  return Object.entries(pageQueries).map(([name, filtersOf]) => {
    const coldPages = Array.from({ length: cold }, (_, index): ReadPage => {
      const filters = filtersOf(scatterBelow(items, index, 10));
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
