/**
 * Partitions that an ar-io-node has exported: the same three tables, without places, postings and records. Their rows
 * are sorted by id within a height, so they are sorted by place and written again.
 *
 * Rows are as that node verified them; only what a file must have to be read is checked.
 * Source: docs/reference/columnar.md#exports-of-ar-io-node.
 * @module
 */
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { signatureLayout } from "../arweave/signature.ts";
import type { Tag } from "../arweave/tags.ts";
import { Failure } from "../failures.ts";
import type { ExportBlock, ExportRow } from "../store/index/export-rows.ts";
import { transactionSignatureTypes } from "../store/index/index-types.ts";
import { isPlace, packPlace } from "../store/index/place.ts";
import { type DuckdbRows, literalPath, openDuckdb, quoted } from "./duckdb-engine.ts";
import { convertPartition, type PartitionHeights } from "./partition.ts";

/** A partition of an ar-io-node; paths are relative to the folder. */
export type ForeignPartition = PartitionHeights &
  Readonly<{ paths: Readonly<Record<ForeignTable, readonly string[]>> }>;

const foreignTables = ["blocks", "transactions", "tags"] as const;

type ForeignTable = (typeof foreignTables)[number];

/** Converts the partitions of one folder. */
export type ForeignFiles = Readonly<{
  /**
   * Writes a partition to the folder of the store, unless that was done before.
   *
   * @returns Items that were left out: their place in the transaction or their type of signature is not known.
   * @throws Error when the files do not have the tables of ar-io-node; the signal's reason.
   */
  convert: (partition: ForeignPartition, signal: AbortSignal) => Promise<number>;
  close: () => void;
}>;

/** Rows that are in memory together, and the most that one transaction may have. */
const stepRows = 20_000;
const stepRowsMax = 1_000_000;

/** Sorting a partition of millions of rows takes minutes on a slow disk. */
const queryMs = 60 * 60_000;

const memoryBytesMax = 2 ** 30;
const threads = 2;

/** The partitions of a folder, by height; none when it has another layout. */
export function foreignPartitions(folder: string): ForeignPartition[] {
  const ranges = new Map(foreignTables.flatMap((table) => directoriesOf(folder, table)));
  return [...ranges.values()]
    .map(({ start, end }) => {
      const of = (table: ForeignTable) => filesOf(folder, join(table, "data", `height=${start}-${end}`));
      return { start, end, paths: { blocks: of("blocks"), transactions: of("transactions"), tags: of("tags") } };
    })
    .filter(({ paths }) => paths.blocks.length + paths.transactions.length > 0)
    .sort((a, b) => a.start - b.start);
}

function directoriesOf(folder: string, table: ForeignTable): (readonly [string, PartitionHeights])[] {
  return namesIn(join(folder, table, "data")).flatMap((name) => {
    const [, start, end] = /^height=(\d{1,7})-(\d{1,7})$/.exec(name) ?? [];
    return start === undefined || end === undefined
      ? []
      : [[name, { start: Number(start), end: Number(end) }] as const];
  });
}

function filesOf(folder: string, directory: string): string[] {
  return namesIn(join(folder, directory))
    .filter((name) => name.endsWith(".parquet"))
    .sort()
    .map((name) => join(directory, name));
}

function namesIn(directory: string): string[] {
  const isDirectory = statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true;
  return isDirectory ? readdirSync(directory) : [];
}

/** @param libraryFolder - Where a binary writes the library of DuckDB. */
export async function openForeignFiles(
  source: string,
  { storeFolder, libraryFolder }: Readonly<{ storeFolder: string; libraryFolder: string }>,
): Promise<ForeignFiles> {
  const folder = realpathSync(source);
  const spillFolder = mkdtempSync(join(storeFolder, "import-"));
  const removeSpills = () => rmSync(spillFolder, { recursive: true, force: true });
  try {
    const engine = await openDuckdb({ folder, libraryFolder, spillFolder, memoryBytesMax, threads });
    return {
      convert: async (partition, signal) => {
        const { start, end } = partition;
        const query: Query = (sql, read) => engine.query(sql, { signal, timeoutMs: queryMs }, read);
        const reading = createReading(folder, partition, query);
        const request = { start, end, maxFileRows: 0, skipL1Transactions: false, skipL1Tags: false };
        const runId = `imported_${stampOf(folder, partition)}`;
        try {
          await convertPartition({ ...request, folder: storeFolder, runId }, reading);
        } catch (error) {
          signal.throwIfAborted();
          if (isOfSystem(error)) throw error;
          throw new Error(`heights ${start} to ${end} cannot be read as an export of ar-io-node: ${detailOf(error)}`);
        }
        return reading.leftOut();
      },
      close: () => {
        engine.close();
        removeSpills();
      },
    };
  } catch (error) {
    removeSpills();
    throw error;
  }
}

/** Whether the disk or the system failed, and not the files. */
function isOfSystem(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}

function detailOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const text = error instanceof Failure ? String(error.context["detail"] ?? message) : message;
  // The other lines of DuckDB's messages are parts of the statement.
  return text.split("\n", 1)[0] ?? text;
}

/** Changes when a file of the partition changes. */
function stampOf(folder: string, { paths }: ForeignPartition): string {
  const hash = createHash("sha256");
  for (const path of foreignTables.flatMap((table) => paths[table])) {
    const { size, mtimeMs } = statSync(join(folder, path));
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest("hex").slice(0, 16);
}

type Query = <Result>(sql: string, read: (rows: DuckdbRows) => Promise<Result>) => Promise<Result>;

type Values = readonly (string | null)[];

/** The rows of one partition. */
type Reading = Readonly<{
  blocks: () => Promise<ExportBlock[]>;
  batches: () => AsyncGenerator<ExportRow[]>;
  leftOut: () => number;
}>;

function createReading(folder: string, partition: ForeignPartition, query: Query): Reading {
  const { paths } = partition;
  const from = (table: ForeignTable) =>
    `read_parquet([${paths[table].map((path) => quoted(literalPath(join(folder, path)))).join(", ")}],
      hive_partitioning = false)`;
  const select = async (sql: string): Promise<Values[]> =>
    query(sql, async ({ next }) => {
      const all: Values[] = [];
      for (let rows = await next(); rows.length > 0; rows = await next())
        for (const row of rows) all.push(row.map((value) => (value === null ? null : String(value))));
      return all;
    });
  let leftOut = 0;

  let lastPlace = -1n;

  /** Whether the row can be imported, and no row has its place: an id that the files have twice is one row. */
  const isTaken = (row: ExportRow | undefined): row is ExportRow => {
    const place = row === undefined ? -1n : packPlace(row);
    if (place <= lastPlace) leftOut += 1;
    else lastPlace = place;
    return place === lastPlace;
  };

  async function* batches(): AsyncGenerator<ExportRow[]> {
    if (paths.transactions.length === 0) return;
    checkHeights(await select(`SELECT min(height), max(height) FROM ${from("transactions")}`), partition);
    for (const step of await stepsOf(select, from("transactions"))) {
      const tagsOf = paths.tags.length === 0 ? new Map() : await readTags(select, from, step);
      const rows = await select(rowsSql(from("transactions"), step));
      yield rows.map((values) => readRow(values, tagsOf)).filter(isTaken);
    }
  }

  return {
    blocks: async () => {
      if (paths.blocks.length === 0) return [];
      checkHeights(await select(`SELECT min(height), max(height) FROM ${from("blocks")}`), partition);
      const blocks = (await select(blocksSql(from("blocks")))).map(readBlock);
      const repeated = blocks.find(({ height }, index) => height === blocks[index - 1]?.height);
      if (repeated !== undefined) throw new Error(`there are two blocks of height ${repeated.height}`);
      return blocks;
    },
    batches,
    leftOut: () => leftOut,
  };
}

function checkHeights(bounds: readonly Values[], { start, end }: PartitionHeights): void {
  const [lowest, highest] = bounds[0] ?? [];
  if (lowest == null || highest == null) return;
  if (Number(lowest) >= start && Number(highest) <= end) return;
  throw new Error(`the files have heights ${lowest} to ${highest}`);
}

/** Transactions of a block, both inclusive: the number of the first and of the last. */
type Step = Readonly<{ first: number; last: number }>;

/** Numbers the transactions of all blocks in their order. */
const transactionNumber = "(height::BIGINT * 65536 + block_transaction_index::BIGINT)";

const perHeight = 65_536;

/** Splits the transactions of a partition so that each step has some `stepRows` rows. */
async function stepsOf(select: (sql: string) => Promise<Values[]>, from: string): Promise<Step[]> {
  const counts = await select(
    `SELECT ${transactionNumber} AS number, count(*) FROM ${from} WHERE number IS NOT NULL GROUP BY number
     ORDER BY number`,
  );
  const steps: { first: number; last: number; rows: number }[] = [];
  for (const [text, count] of counts) {
    const number = Number(text);
    const rows = Number(count);
    if (rows > stepRowsMax) throw new Error(`one transaction has ${rows} rows; the limit is ${stepRowsMax}`);
    const step = steps.at(-1);
    if (step === undefined || step.rows + rows > stepRows) steps.push({ first: number, last: number, rows });
    else Object.assign(step, { last: number, rows: step.rows + rows });
  }
  return steps;
}

function within({ first, last }: Step): string {
  const heights = `height BETWEEN ${Math.floor(first / perHeight)} AND ${Math.floor(last / perHeight)}`;
  return `${heights} AND ${transactionNumber} BETWEEN ${first} AND ${last}`;
}

/** Tags by the id of their row, in their order. */
async function readTags(
  select: (sql: string) => Promise<Values[]>,
  from: (table: ForeignTable) => string,
  step: Step,
): Promise<ReadonlyMap<string, readonly Tag[]>> {
  const { first, last } = step;
  const tags = await select(
    `SELECT hex(id), hex(tag_name), hex(tag_value) FROM ${from("tags")}
     WHERE height BETWEEN ${Math.floor(first / perHeight)} AND ${Math.floor(last / perHeight)}
       AND id IN (SELECT id FROM ${from("transactions")} WHERE ${within(step)})
     ORDER BY id, tag_index`,
  );
  const tagsOf = new Map<string, Tag[]>();
  for (const [id, name, value] of tags) {
    const tag = { name: bytesOf(name).toString(), value: bytesOf(value).toString() };
    const known = tagsOf.get(id ?? "");
    if (known === undefined) tagsOf.set(id ?? "", [tag]);
    else known.push(tag);
  }
  return tagsOf;
}

function blocksSql(from: string): string {
  return `SELECT hex(indep_hash), height::BIGINT, hex(previous_block), block_timestamp::BIGINT, tx_count::BIGINT,
      block_size::DECIMAL(20, 0), hex(nonce), hex(hash) FROM ${from} ORDER BY height`;
}

function readBlock([hash, height, previous, timestamp, count, size, nonce, solution]: Values): ExportBlock {
  if (bytesOf(hash).length !== 48 && bytesOf(hash).length !== 32)
    throw new Error(`the hash of block ${height} has ${bytesOf(hash).length} bytes`);
  return {
    hash: bytesOf(hash),
    height: Number(height),
    previous: bytesOrNull(previous),
    timestamp: Number(timestamp),
    transactionCount: Number(count),
    blockSize: BigInt(size ?? 0),
    nonce: bytesOrNull(nonce),
    solution: bytesOrNull(solution),
  };
}

function rowsSql(from: string, step: Step): string {
  return `SELECT is_data_item::BOOLEAN, height::BIGINT, block_transaction_index::BIGINT, hex(id), hex(target),
      hex(anchor), data_size::BIGINT, indexed_at::BIGINT, hex(owner_address), hex(owner), hex(parent),
      hex(root_transaction_id), root_parent_offset::BIGINT, "offset"::BIGINT, data_offset::BIGINT,
      signature_type::BIGINT, format::BIGINT, quantity::DECIMAL(20, 0), reward::DECIMAL(20, 0), hex(data_root)
    FROM ${from} WHERE ${within(step)}
    ORDER BY height, block_transaction_index, is_data_item, root_parent_offset + "offset", id`;
}

/** @returns Undefined for an item whose place or whose type of signature is not known. */
function readRow(values: Values, tagsOf: ReadonlyMap<string, readonly Tag[]>): ExportRow | undefined {
  const [isItem, height, txIndex, id, target, anchor, size, ingestedAt, owner, ownerKey, ...rest] = values;
  const shared = {
    height: Number(height),
    txIndex: Number(txIndex),
    id: bytes32(id, "id"),
    target: bytesOrNull(target),
    anchor: bytesOrNull(anchor),
    payloadSize: Number(size),
    tags: tagsOf.get(id ?? "") ?? [],
    ingestedAt: Number(ingestedAt),
    ownerAddress: bytes32(owner, "owner_address"),
    ownerKey: bytesOrNull(ownerKey),
  };
  const row = isItem === "true" ? readItem(shared, rest) : readTransaction(shared, rest);
  return row !== undefined && isPlace(row) ? row : undefined;
}

type Shared = Omit<ExportRow, "offset" | "headerSize" | "signatureType" | "parent" | "rootId" | "transaction">;

function readItem(
  shared: Shared,
  [parent, root, parentOffset, offset, dataOffset, type]: Values,
): ExportRow | undefined {
  if (parentOffset == null || offset == null || dataOffset == null || type == null) return undefined;
  if (signatureLayout(Number(type)) === undefined) return undefined;
  const payloadStart = Number(parentOffset);
  return {
    ...shared,
    offset: payloadStart + Number(offset),
    headerSize: Number(dataOffset) - Number(offset),
    signatureType: Number(type),
    parent: { id: bytes32(parent, "parent"), payloadStart },
    rootId: bytes32(root, "root_transaction_id"),
    transaction: null,
  };
}

function readTransaction(shared: Shared, values: Values): ExportRow {
  const [format, quantity, reward, dataRoot] = values.slice(6);
  return {
    ...shared,
    offset: -1,
    headerSize: 0,
    signatureType: transactionSignatureTypes.rsa,
    parent: null,
    rootId: null,
    transaction: {
      format: Number(format ?? 2),
      quantity: BigInt(quantity ?? 0),
      reward: BigInt(reward ?? 0),
      dataRoot: bytesOrNull(dataRoot),
    },
  };
}

function bytesOf(hex: string | null | undefined): Buffer {
  return Buffer.from(hex ?? "", "hex");
}

function bytesOrNull(hex: string | null | undefined): Uint8Array | null {
  return hex == null ? null : bytesOf(hex);
}

function bytes32(hex: string | null | undefined, column: string): Uint8Array {
  const bytes = bytesOf(hex);
  if (bytes.length !== 32) throw new Error(`${column} has a value of ${bytes.length} bytes; it must have 32`);
  return bytes;
}
