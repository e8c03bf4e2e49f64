/**
 * Pages of 100 data items from exported files, through DuckDB and ClickHouse: the time of a page with its rows and
 * tags, and of a count by tag. Rows are generated from a seed straight into Parquet; `ITEMS` sets their number.
 * `FILES` names a folder whose files are used again. ClickHouse needs test/stores/node_modules.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openClickhouseStore } from "../../src/columnar/clickhouse-store.ts";
import type { ColumnStore } from "../../src/columnar/column-store.ts";
import { openDuckdbStore } from "../../src/columnar/duckdb-store.ts";
import {
  exportPartition,
  type PartitionHeights,
  readPartition,
  writtenPartitions,
} from "../../src/columnar/partition.ts";
import { createPostingKeys } from "../../src/columnar/posting-list.ts";
import { createFindRows } from "../../src/columnar/store-rows.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import type { ExportBlock, ExportRow, ExportRows } from "../../src/store/index/export-rows.ts";
import { noColumns, type PagePlan } from "../../src/store/index/index-types.ts";
import { placeBounds } from "../../src/store/index/pages/page-plan.ts";
import { addressFromBytes } from "../../src/store/index/rows/stored-row.ts";
import { openClickhouseServer } from "../../test/support/clickhouse-server.ts";
import { clickhouseEngine } from "../../test/support/helpers.ts";
import { type Bench, type BenchRow, median, percentile } from "../harness.ts";

const sizes = {
  small: { items: 4_000, pages: 3 },
  large: { items: Number(process.env["ITEMS"] ?? 10_000_000), pages: 30 },
} as const;

const itemsPerHeight = 1_000;
const partitionsMax = 10;

/** A value of each of these tags has one in so many items. */
const tagShares = { Half: 2, Quarter: 4, Hundredth: 100, Topic: 10_000, Rare: 1_000_000 } as const;
const ownerShare = 100_000;

type TagName = keyof typeof tagShares;

/** A number below `end` that depends on item and salt. */
function chance(item: number, salt: number, end: number): number {
  let mixed = Math.imul(item ^ Math.imul(salt, 0x9e37_79b1), 0x85eb_ca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0xc2b2_ae35);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0x27d4_eb2f);
  return ((mixed ^ (mixed >>> 16)) >>> 0) % end;
}

/** 32 bytes that differ for each number and salt. */
function bytesOf(number: number, salt: number): Uint8Array {
  const bytes = Buffer.alloc(32);
  for (let at = 0; at < 28; at += 4) bytes.writeUInt32LE(chance(number, salt * 8 + at, 2 ** 32), at);
  bytes.writeUInt32LE(number, 28);
  return bytes;
}

const tagValueOf = (name: TagName, item: number): string =>
  `${name}-${chance(item, name.length * 31 + name.charCodeAt(0), tagShares[name])}`;

const tagNames = Object.keys(tagShares) as TagName[];
const ownerOf = (item: number): Uint8Array => bytesOf(chance(item, 5, ownerShare), 11);

function exportedRow(item: number): ExportRow {
  const bundle = Math.floor(item / 500);
  return {
    height: Math.floor(item / itemsPerHeight),
    txIndex: 1,
    offset: 128 + (item % itemsPerHeight) * 4_096,
    id: bytesOf(item, 1),
    target: null,
    anchor: bytesOf(item, 2),
    headerSize: 600,
    payloadSize: chance(item, 3, 100_000),
    signatureType: 2,
    tags: [
      ...tagNames.map((name) => ({ name, value: tagValueOf(name, item) })),
      { name: "App-Name", value: "bench" },
      { name: "Unix-Time", value: String(1_700_000_000 + item) },
      { name: "Nonce", value: String(chance(item, 4, 2 ** 32)) },
    ],
    ingestedAt: 1_700_000_000 + Math.floor(item / 100),
    ownerAddress: ownerOf(item),
    ownerKey: bytesOf(chance(item, 5, ownerShare), 12),
    parent: { id: bytesOf(bundle, 6), payloadStart: 0 },
    rootId: bytesOf(bundle, 6),
    transaction: null,
  };
}

function exportedBlock(height: number): ExportBlock {
  const hash = Buffer.concat([bytesOf(height, 7), Buffer.alloc(16)]);
  const counts = { transactionCount: 1, blockSize: 1_000n };
  return {
    hash,
    height,
    previous: null,
    timestamp: 1_600_000_000 + height * 120,
    ...counts,
    nonce: null,
    solution: null,
  };
}

function generatedRows(items: number): ExportRows {
  return {
    firstHeight: () => 0,
    stableHeight: () => Math.ceil(items / itemsPerHeight) - 1,
    blocks: (start, end) => Array.from({ length: end - start + 1 }, (_, index) => exportedBlock(start + index)),
    rows: function* (start, end) {
      const last = Math.min(items, (end + 1) * itemsPerHeight);
      for (let item = start * itemsPerHeight; item < last; item += 1) yield exportedRow(item);
    },
    prunedItems: () => 0,
    close: () => undefined,
  };
}

/** Writes partitions of generated items to a folder. */
export async function writeGenerated(folder: string, items: number): Promise<PartitionHeights[]> {
  const index = generatedRows(items);
  const end = index.stableHeight();
  const heights: PartitionHeights[] = [];
  const perPartition = Math.ceil((end + 1) / partitionsMax);
  for (let start = 0; start <= end; start += perPartition)
    heights.push({ start, end: Math.min(end, start + perPartition - 1) });
  const options = { folder, maxFileRows: 0, skipL1Transactions: false, skipL1Tags: false, runId: "bench" };
  for (const range of heights) await exportPartition({ ...options, ...range }, index);
  return heights;
}

const signal = new AbortController().signal;
/** What clients ask for most: id, owner, tags, recipient, size and block. */
const columns = { ...noColumns, tags: true, block: true, target: true, size: true };

export const columnarBench: Bench = {
  name: "columnar",
  measure: async (size) => {
    const { items, pages } = sizes[size];
    const cached = size === "large" ? process.env["FILES"] : undefined;
    const scratch = mkdtempSync(join(tmpdir(), "cairn-bench-columnar-"));
    const folder = cached ?? join(scratch, "files");
    try {
      const heights = filledHeights(folder, items) ?? (await writeGenerated(folder, items));
      const measured = { folder, heights, items, pages };
      const duckdb = await measureStore(await openDuckdbStore({ folder, libraryFolder: scratch }), "DuckDB", measured);
      return [...duckdb, ...(await measureClickhouse(join(scratch, "clickhouse"), measured))];
    } finally {
      removeFolder(scratch);
    }
  },
};

/** The partitions that an earlier run wrote; undefined unless they are complete. */
function filledHeights(folder: string, items: number): PartitionHeights[] | undefined {
  const heights = writtenPartitions(folder);
  return heights.at(-1)?.end === Math.ceil(items / itemsPerHeight) - 1 ? heights : undefined;
}

type Measured = Readonly<{ folder: string; heights: readonly PartitionHeights[]; items: number; pages: number }>;

async function measureClickhouse(data: string, measured: Measured): Promise<readonly BenchRow[]> {
  if (!clickhouseEngine.there) {
    const name = "page of 100 through ClickHouse";
    return [{ name, metric: `not measured: needs ${clickhouseEngine.what}`, target: "p99 ≤ 50 ms" }];
  }
  const server = await openClickhouseServer({ folder: data });
  try {
    return await measureStore(openClickhouseStore({ url: server.url }), "ClickHouse", measured);
  } finally {
    await server.close();
  }
}

/** Loads the partitions into a store, measures it and closes it. */
async function measureStore(store: ColumnStore, name: string, measured: Measured): Promise<readonly BenchRow[]> {
  const { folder, heights, items } = measured;
  try {
    for (const range of heights) await store.load(readPartition(folder, range), signal);
    const rows = [...(await measurePages(store, measured)), await measureCount(store, heights, items)];
    const suffix = `through ${name}, ${items.toLocaleString("en")} items`;
    return rows.map((row) => ({ ...row, name: row.name.replace("through the store", suffix) }));
  } finally {
    await store.close();
  }
}

async function measurePages(store: ColumnStore, { heights, items, pages }: Measured): Promise<BenchRow[]> {
  const findRows = createFindRows(store, { isListed: () => true, block: () => undefined, ownerKey: () => undefined });
  const tag = (name: TagName, item: number) => ({ name, values: [tagValueOf(name, item)], op: "EQ" as const });
  const shapes: readonly (readonly [string, (item: number) => Pick<PagePlan, "tags" | "owners">, string])[] = [
    ["rare (10 found in 10 M)", (item) => ({ tags: [tag("Rare", item)] }), "p99 ≤ 50 ms"],
    ["rare (1,000 found)", (item) => ({ tags: [tag("Topic", item)] }), "p99 ≤ 50 ms"],
    ["common (1/2)", (item) => ({ tags: [tag("Half", item)] }), "p99 ≤ 50 ms"],
    [
      "common (1/2) and rare (1,000 found)",
      (item) => ({ tags: [tag("Half", item), tag("Topic", item)] }),
      "p99 ≤ 50 ms",
    ],
    [
      "owner (100 items) and tag (1/4)",
      (item) => ({ owners: [addressFromBytes(ownerOf(item))], tags: [tag("Quarter", item)] }),
      "p99 ≤ 50 ms",
    ],
    ["common (1/2) and common (1/4)", (item) => ({ tags: [tag("Half", item), tag("Quarter", item)] }), "p99 ≤ 300 ms"],
  ];
  const rows: BenchRow[] = [];
  for (const [name, filtersOf, target] of shapes) {
    const times: number[] = [];
    for (let page = 0; page < pages; page += 1) {
      const plan: PagePlan = { ...filtersOf(chance(page, 9, items)), order: "desc", limit: 100, columns };
      const started = performance.now();
      const found = await findRows({ plan, bounds: placeBounds(plan), heights, limit: 100 }, signal);
      times.push(performance.now() - started);
      if (found.length === 0) throw new Error(`${name}: the generated item was not found`);
    }
    rows.push({
      name: `page of 100 through the store: ${name}`,
      metric: spread(times),
      target,
    });
  }
  return rows;
}

async function measureCount(
  store: ColumnStore,
  heights: readonly PartitionHeights[],
  items: number,
): Promise<BenchRow> {
  const times: number[] = [];
  const key = createPostingKeys().tag("Half", "Half-0");
  for (let round = 0; round < 5; round += 1) {
    const started = performance.now();
    const [[count] = []] = await store.select(
      `SELECT count(*) FROM ${store.from("postings", heights)} WHERE key = ${key}`,
      signal,
    );
    times.push(performance.now() - started);
    if (Math.abs(Number(count) / items - 0.5) > 0.1)
      throw new Error(`half of the items have a tag, the store counts ${count}`);
  }
  return {
    name: "count by tag through the store",
    metric: spread(times),
    target: "≤ 1 s",
  };
}

function spread(times: readonly number[]): string {
  return `p50 ${median(times).toFixed(1)} ms, p99 ${percentile(times, 0.99).toFixed(1)} ms`;
}
