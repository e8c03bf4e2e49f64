/**
 * Writes one partition of an export: the files of a range of heights, and a record that marks them as complete.
 *
 * A record is written last. Without it the partition's files are incomplete, and writing the partition again replaces
 * them. An export of the same heights replaces the files of an earlier one.
 * Source: docs/reference/columnar.md#files.
 * @module
 */
import { createReadStream, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { isJsonArray, isJsonObject, type JsonValue, readJson } from "../lib/json.ts";
import { removeFolder } from "../lib/remove-folder.ts";
import { replaceFile } from "../store/durable-file.ts";
import type { ExportBlock, ExportRow, ExportRows } from "../store/index/export-rows.ts";
import {
  columnEncodings,
  columnsWithoutStatistics,
  createBlockAdder,
  createPostingAdder,
  createTagAdder,
  createTransactionAdder,
  type ExportTable,
  exportColumns,
  exportTables,
  rowGroupRows,
} from "./export-tables.ts";
import type { ParquetFile } from "./parquet-file.ts";
import { createPostingList, type PostingList } from "./posting-list.ts";
import { createPostingRuns, type PostingRuns } from "./posting-runs.ts";
import type { ColumnBuilder } from "./record-batch.ts";

/** A range of heights, and how its files are written. */
export type PartitionRequest = Readonly<{
  /** Absolute. */
  folder: string;
  /** Heights, both inclusive. */
  start: number;
  end: number;
  /** Rows of one file; 0: no limit. */
  maxFileRows: number;
  skipL1Transactions: boolean;
  skipL1Tags: boolean;
  /** Names the run in the names of its files. */
  runId: string;
}>;

/** A file of a partition; its path is relative to the folder of the export. */
export type ExportedFile = Readonly<{ table: ExportTable; path: string; rows: number; bytes: number; sha256: string }>;

/** A complete partition in a folder of exports. */
export type LoadedPartition = PartitionHeights & Readonly<{ folder: string; files: readonly ExportedFile[] }>;

/** Rows of a batch that is passed to the writer. */
const batchRows = 10_000;

/** The version of tables and records. */
const schemaVersion = "2";

/**
 * Writes a partition, unless the run has written it before, and removes the files that it replaces.
 *
 * @returns Its files; undefined when the run had written it.
 * @throws Error also when the index has pruned items since files of the same heights were written.
 */
export async function exportPartition(
  request: PartitionRequest,
  index: Pick<ExportRows, "blocks" | "rows" | "prunedItems">,
): Promise<readonly ExportedFile[] | undefined> {
  if (!isWritten(request)) checkPruned(request, index);
  const source: PartitionSource = {
    blocks: async (start, end) => index.blocks(start, end),
    batches: (start, end) => [index.rows(start, end)],
    prunedItems: index.prunedItems(request.start, request.end),
    // Items may be pruned while their rows are read.
    check: () => checkPruned(request, index),
  };
  return await convertPartition(request, source);
}

/** Files that were written before a pruning may have the only copy of what was pruned: they are not replaced. */
function checkPruned({ folder, start, end }: PartitionRequest, { prunedItems }: Pick<ExportRows, "prunedItems">): void {
  for (const heights of writtenPartitions(folder)) {
    if (heights.start < start || heights.end > end) continue;
    const pruned = prunedItems(heights.start, heights.end) - prunedBefore(folder, heights);
    if (pruned <= 0) continue;
    throw new Error(
      `the index has pruned ${pruned} items since ${folder} got files of the heights ${heights.start} to ` +
        `${heights.end}: they stay as they are, export to another folder`,
    );
  }
}

/** Number of items that the index had pruned when a partition was written; 0 where its record does not say. */
function prunedBefore(folder: string, heights: PartitionHeights): number {
  const record = readRecord(recordPath({ folder, ...heights }));
  const pruned = isJsonObject(record) ? record["pruned"] : undefined;
  return typeof pruned === "number" ? pruned : 0;
}

/** The rows of a partition. */
export type PartitionSource = Readonly<{
  /** By height. */
  blocks: (start: number, end: number) => Promise<readonly ExportBlock[]>;
  /** In place order; batches are read as they are needed. */
  batches: (start: number, end: number) => Iterable<Iterable<ExportRow>> | AsyncIterable<Iterable<ExportRow>>;
  /** Number of items of these heights that were pruned before; 0 if omitted. */
  prunedItems?: number;
  /** Throws when the written files must not replace others. */
  check?: () => void;
}>;

/** Writes a partition from another source than the index; otherwise as `exportPartition`. */
export async function convertPartition(
  request: PartitionRequest,
  source: PartitionSource,
): Promise<readonly ExportedFile[] | undefined> {
  const files = isWritten(request) ? undefined : await writePartition(request, source);
  removeReplaced(request);
  return files;
}

async function writePartition(request: PartitionRequest, source: PartitionSource): Promise<readonly ExportedFile[]> {
  const { folder, start, end } = request;
  for (const table of exportTables) {
    const directory = join(folder, directoryOf(table, request));
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(directory)) {
      if (name.endsWith(".part")) rmSync(join(directory, name));
    }
  }
  const blocks = await source.blocks(start, end);
  const metadata = {
    "cairn.schema": schemaVersion,
    "cairn.heights": `${start}-${end}`,
    "cairn.first_block": blocks[0] === undefined ? "" : Buffer.from(blocks[0].hash).toString("base64url"),
  };
  const writers = await loadWriters();
  const sinks = exportTables.map((table) => createSink(table, request, metadata, writers));
  const [blockSink, transactions, tags, postings] = sinks as [Sink, Sink, Sink, Sink];
  try {
    const addBlock = createBlockAdder(blockSink.columns);
    for (const block of blocks) {
      addBlock(block);
      if (blockSink.endRow()) await blockSink.write();
    }
    await writeRows(request, source.batches(start, end), { transactions, tags, postings });
    const files = await finishAll(sinks);
    checkFiles(request, files, source);
    writeRecord(request, files, source.prunedItems ?? 0);
    return files;
  } catch (error) {
    await Promise.all(sinks.map((sink) => sink.discard()));
    throw error;
  }
}

/** Removes the files when they must not replace others. */
function checkFiles({ folder }: PartitionRequest, files: readonly ExportedFile[], { check }: PartitionSource): void {
  try {
    check?.();
  } catch (error) {
    for (const { path } of files) rmSync(join(folder, path));
    throw error;
  }
}

/** Ends all files. When one fails, the others have ended too before its error is thrown: none is begun afterwards. */
async function finishAll(sinks: readonly Sink[]): Promise<readonly ExportedFile[]> {
  const ends = await Promise.allSettled(sinks.map((sink) => sink.finish()));
  return ends.flatMap((end) => {
    if (end.status === "rejected") throw end.reason;
    return end.value;
  });
}

async function writeRows(
  request: PartitionRequest,
  batches: Iterable<Iterable<ExportRow>> | AsyncIterable<Iterable<ExportRow>>,
  { transactions, tags, postings }: Readonly<Record<"transactions" | "tags" | "postings", Sink>>,
): Promise<void> {
  const { folder, skipL1Transactions, skipL1Tags } = request;
  const list = createPostingList();
  const runs = createPostingRuns(join(folder, directoryOf("postings", request), "runs.part"));
  const addTransaction = createTransactionAdder(transactions.columns);
  const addTags = createTagWriter(tags);
  const addRow = async (row: ExportRow): Promise<void> => {
    addTransaction(row);
    if (transactions.endRow()) await transactions.write();
    if (list.isFull()) runs.add(list.take());
    list.add(row);
  };
  try {
    for await (const rows of batches) {
      for (const row of rows) {
        const isItem = row.transaction === null;
        if (isItem || !skipL1Transactions) await addRow(row);
        if (isItem || !skipL1Tags) await addTags(row);
      }
    }
    await writePostings(list, runs, postings);
  } finally {
    runs.close();
  }
}

/** @returns Adds the tags of a row; a promise only when a batch was full. */
function createTagWriter(tags: Sink): (row: ExportRow) => Promise<void> | undefined {
  const addTag = createTagAdder(tags.columns);
  const addFrom = async (row: ExportRow, first: number): Promise<void> => {
    await tags.write();
    await add(row, first);
  };
  const add = (row: ExportRow, first: number): Promise<void> | undefined => {
    for (let index = first; index < row.tags.length; index += 1) {
      const tag = row.tags[index];
      if (tag === undefined) return undefined;
      addTag(row, tag, index);
      if (tags.endRow()) return addFrom(row, index + 1);
    }
    return undefined;
  };
  return (row) => add(row, 0);
}

/** Writes the postings of the runs and of the list in one order. Few postings need no file of runs. */
async function writePostings(list: PostingList, runs: PostingRuns, postings: Sink): Promise<void> {
  const isOneRun = runs.isEmpty();
  if (!isOneRun) runs.add(list.take());
  const addPosting = createPostingAdder(postings.columns);
  for (const posting of isOneRun ? list.take() : runs.merged()) {
    addPosting(posting);
    if (postings.endRow()) await postings.write();
  }
}

/** Writes the rows of one table to its files. */
type Sink = Readonly<{
  /** The columns to which the values of a row are added. */
  columns: readonly ColumnBuilder[];
  /** Ends a row. @returns Whether the rows must be written before the next one is added. */
  endRow: () => boolean;
  write: () => Promise<void>;
  finish: () => Promise<readonly ExportedFile[]>;
  discard: () => Promise<void>;
}>;

type Writers = Awaited<ReturnType<typeof loadWriters>>;

/** Loads the writers, with apache-arrow and parquet-wasm. The start of the program only reads records. */
async function loadWriters() {
  const { createBatchBuilder } = await import("./record-batch.ts");
  const { openParquetFile } = await import("./parquet-file.ts");
  return { createBatchBuilder, openParquetFile };
}

function createSink(
  table: ExportTable,
  request: PartitionRequest,
  metadata: Readonly<Record<string, string>>,
  { createBatchBuilder, openParquetFile }: Writers,
): Sink {
  const { folder, maxFileRows } = request;
  const rowsMax = maxFileRows === 0 ? Number.POSITIVE_INFINITY : maxFileRows;
  const batch = createBatchBuilder(exportColumns[table], Math.min(batchRows, rowsMax));
  const files: ExportedFile[] = [];
  let open: Readonly<{ file: ParquetFile; path: string }> | undefined;
  let rows = 0;

  const flush = async (): Promise<void> => {
    const count = batch.count();
    if (count === 0) return;
    if (open === undefined) {
      const path = join(directoryOf(table, request), fileName(table, request, files.length));
      const options = {
        metadata,
        encodings: columnEncodings[table],
        withoutStatistics: columnsWithoutStatistics[table],
        rowGroupRows: rowGroupRows[table],
      };
      open = { path, file: await openParquetFile(join(folder, path), options) };
    }
    await open.file.append(batch.take());
    rows += count;
  };
  const endFile = async (): Promise<void> => {
    await flush();
    if (open === undefined) return;
    const { file, path } = open;
    const { bytes, sha256 } = await file.finish();
    files.push({ table, path, rows, bytes, sha256 });
    open = undefined;
    rows = 0;
  };
  const writeBatch = async (): Promise<void> => {
    await flush();
    if (rows >= rowsMax) await endFile();
  };
  return {
    columns: batch.columns,
    endRow: () => batch.endRow() || rows + batch.count() >= rowsMax,
    write: writeBatch,
    finish: async () => {
      await endFile();
      return files;
    },
    discard: async () => {
      await open?.file.discard();
    },
  };
}

function directoryOf(table: ExportTable, { start, end }: Pick<PartitionRequest, "start" | "end">): string {
  return join(table, "data", `height=${start}-${end}`);
}

function fileName(table: ExportTable, { start, end, runId }: PartitionRequest, number: number): string {
  const part = number === 0 ? "" : `_${number}`;
  return `${table}_${start}_${end}${part}_${runId}.parquet`;
}

function recordPath({ folder, start, end }: Pick<PartitionRequest, "folder" | "start" | "end">): string {
  return join(folder, "partitions", `height=${start}-${end}.json`);
}

function writeRecord(request: PartitionRequest, files: readonly ExportedFile[], pruned: number): void {
  const { folder, start, end, runId, maxFileRows, skipL1Transactions, skipL1Tags } = request;
  mkdirSync(join(folder, "partitions"), { recursive: true, mode: 0o700 });
  const options = { maxFileRows, skipL1Transactions, skipL1Tags };
  const record = { schema: schemaVersion, start, end, runId, ...options, pruned, files };
  replaceFile(recordPath(request), `${JSON.stringify(record, undefined, 1)}\n`);
}

/** Writes the record of a partition whose files were copied to another folder. */
export function writePartitionRecord(folder: string, partition: LoadedPartition): void {
  const { start, end, files } = partition;
  mkdirSync(join(folder, "partitions"), { recursive: true, mode: 0o700 });
  const record = { schema: schemaVersion, start, end, files };
  replaceFile(recordPath({ folder, start, end }), `${JSON.stringify(record, undefined, 1)}\n`);
}

/** Heights of a partition, both inclusive. */
export type PartitionHeights = Readonly<{ start: number; end: number }>;

/** The partitions of a folder that have a record, by height; of those that begin together, the largest first. */
export function writtenPartitions(folder: string): PartitionHeights[] {
  const records = join(folder, "partitions");
  if (!existsSync(records)) return [];
  return readdirSync(records)
    .flatMap((name) => {
      const heights = /^height=(\d+)-(\d+)\.json$/.exec(name);
      return heights === null ? [] : [{ start: Number(heights[1]), end: Number(heights[2]) }];
    })
    .sort((a, b) => a.start - b.start || b.end - a.end);
}

/**
 * The files of a partition, by its record.
 *
 * @returns Undefined without a record of this schema.
 */
export function readPartitionFiles(
  folder: string,
  heights: Pick<PartitionRequest, "start" | "end">,
): readonly ExportedFile[] | undefined {
  const record = readRecord(recordPath({ folder, ...heights }));
  if (!isJsonObject(record) || record["schema"] !== schemaVersion || !isJsonArray(record["files"])) return undefined;
  const files = record["files"].map((file) => readFileRecord(file, heights));
  const known = files.filter((file) => file !== undefined);
  return known.length === files.length ? known : undefined;
}

/** Reads the record of a complete partition. @throws Error when the folder has none, or it is damaged. */
export function readPartition(folder: string, { start, end }: PartitionHeights): LoadedPartition {
  const files = readPartitionFiles(folder, { start, end });
  if (files === undefined) throw new Error(`${folder} has no valid record of the heights ${start} to ${end}`);
  return { start, end, folder, files };
}

const filePath = /^(\w+)\/data\/height=(\d+-\d+)\/[\w.-]+\.parquet$/;

/**
 * Reads the record of one file of a partition; undefined when it is malformed. A record from elsewhere must not name
 * files of other partitions: an import would replace them.
 */
export function readFileRecord(file: JsonValue, { start, end }: PartitionHeights): ExportedFile | undefined {
  if (!isJsonObject(file)) return undefined;
  const { table: name, path, rows, bytes, sha256 } = file;
  const table = exportTables.find((known) => known === name);
  if (table === undefined || typeof path !== "string") return undefined;
  const [, tableInPath, heightsInPath] = filePath.exec(path) ?? [];
  if (tableInPath !== table || heightsInPath !== `${start}-${end}`) return undefined;
  if (typeof rows !== "number" || typeof bytes !== "number" || typeof sha256 !== "string") return undefined;
  return { table, path, rows, bytes, sha256 };
}

/** Compares a file with its record. @returns The difference; undefined when there is none. */
export async function compareFile(
  folder: string,
  { path, bytes, sha256 }: ExportedFile,
  signal: AbortSignal,
): Promise<string | undefined> {
  const hash = new Bun.CryptoHasher("sha256");
  let size = 0;
  for await (const part of createReadStream(join(folder, path), { highWaterMark: 2 ** 20, signal })) {
    hash.update(part);
    size += part.length;
  }
  if (size !== bytes) return `${path} has ${size} bytes, its record states ${bytes}`;
  return hash.digest("hex") === sha256 ? undefined : `${path} does not have the SHA-256 of its record`;
}

/**
 * Removes a partition, if other partitions of the folder have all of its heights.
 *
 * The record is removed first: files without a record are not read.
 */
export function removeCovered(folder: string, { start, end }: PartitionHeights): void {
  const others = writtenPartitions(folder).filter((other) => other.start !== start || other.end !== end);
  if (areCovered({ start, end }, others)) removePartition(folder, { start, end });
}

/** Whether the partitions of a folder have all of these heights, with files of the sizes that their records state. */
export function hasHeights(folder: string, heights: PartitionHeights): boolean {
  const complete = writtenPartitions(folder).filter((each) =>
    readPartitionFiles(folder, each)?.every(({ path, bytes }) => sizeOf(folder, path) === bytes),
  );
  return areCovered(heights, complete);
}

/** @param partitions - By height. */
function areCovered({ start, end }: PartitionHeights, partitions: readonly PartitionHeights[]): boolean {
  let next = start;
  for (const partition of partitions) if (partition.start <= next) next = Math.max(next, partition.end + 1);
  return next > end;
}

function sizeOf(folder: string, path: string): number | undefined {
  return statSync(join(folder, path), { throwIfNoEntry: false })?.size;
}

/** Removes a partition; its record first, without which its files are not read. */
export function removePartition(folder: string, heights: PartitionHeights): void {
  forgetPartition(folder, heights);
  for (const table of exportTables) removeFolder(join(folder, directoryOf(table, heights)));
}

/** Removes the record of a partition, without which its files are not read. */
export function forgetPartition(folder: string, heights: PartitionHeights): void {
  rmSync(recordPath({ folder, ...heights }), { force: true });
}

/** Removes the files of earlier runs: of this partition, and of smaller partitions within its heights. */
function removeReplaced(request: PartitionRequest): void {
  const { folder, start, end, runId } = request;
  for (const table of exportTables) {
    const directory = join(folder, directoryOf(table, request));
    for (const name of readdirSync(directory)) {
      if (name.startsWith(`${table}_${start}_${end}_`) && !name.endsWith(`_${runId}.parquet`))
        rmSync(join(directory, name));
    }
  }
  for (const heights of writtenPartitions(folder)) {
    const isSame = heights.start === start && heights.end === end;
    if (isSame || heights.start < start || heights.end > end) continue;
    removePartition(folder, heights);
  }
}

/** Whether a run has written this partition, and its files still have the sizes that its record states. */
function isWritten(request: PartitionRequest): boolean {
  const record = readRecord(recordPath(request));
  if (!isJsonObject(record) || record["runId"] !== request.runId || !isJsonArray(record["files"])) return false;
  return record["files"].every((file) => {
    if (!isJsonObject(file) || typeof file["path"] !== "string") return false;
    return sizeOf(request.folder, file["path"]) === file["bytes"];
  });
}

function readRecord(path: string): ReturnType<typeof readJson> {
  try {
    return readJson(readFileSync(path, "utf8"));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
