/**
 * Imports exported partitions into the columnar store: the history of another gateway, without following its blocks.
 *
 * The files of a partition are linked or copied into the folder of the store, loaded, counted and recorded, in this
 * order. Each step may be repeated, so an import that was stopped is continued by the same call.
 * Source: docs/reference/columnar.md#imports.
 * @module
 */
import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { idFromBytes } from "../arweave/id.ts";
import { linkOrCopyFile, syncFolder } from "../store/durable-file.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { IndexWriter } from "../store/index/index-writer.ts";
import { packHeight } from "../store/index/place.ts";
import {
  type ForeignFiles,
  type ForeignPartition,
  foreignPartitions,
  openForeignFiles,
  recordedPaths,
} from "./ar-io-node-files.ts";
import type { ColumnStore } from "./column-store.ts";
import {
  compareFile,
  type LoadedPartition,
  type PartitionHeights,
  readPartition,
  removeCovered,
  removePartition,
  writePartitionRecord,
  writtenPartitions,
} from "./partition.ts";
import { lastBlockOf } from "./snapshot.ts";

export type ImportParts = Readonly<{
  store: ColumnStore;
  /** The folder of the store. */
  storeFolder: string;
  /** Where a binary writes the library of DuckDB, which reads exports of ar-io-node. */
  libraryFolder: string;
  reader: Pick<IndexReader, "storedPartitions" | "heightsWithItems" | "placeOf">;
  index: Pick<IndexWriter, "addStoredPartition">;
  signal: AbortSignal;
  /** Called after each partition. */
  onProgress?: (progress: ImportProgress) => void;
}>;

export type ImportProgress = Readonly<{
  partitions: number;
  partitionsDone: number;
  /** Rows of all tables. */
  rows: number;
  /** Data items that are listed from now on, and were not before. */
  items: number;
  /** Data items of an ar-io-node without a place or with an unknown type of signature: they are not imported. */
  leftOut: number;
}>;

/**
 * Imports all heights of a folder that the index has not recorded: of this program, or of an ar-io-node.
 *
 * Of a partition with recorded heights, such as the last one of a grown export, only the other heights are imported.
 *
 * @throws Error when the folder has none, a file differs from its record, the chain has another block at the end of a
 *   partition, or a partition does not continue the recorded one before it; the signal's reason.
 */
export async function importFolder(folder: string, parts: ImportParts): Promise<ImportProgress> {
  const found = writtenPartitions(folder);
  if (found.length > 0) return importRecorded(folder, found, parts);
  const foreign = foreignPartitions(folder);
  if (foreign.length === 0) throw new Error(`${folder} has no exported partitions`);
  const files = await openForeignFiles(folder, { ...parts, origin: "ar-io-node" });
  try {
    const take = async (partition: ForeignPartition, heights: PartitionHeights) => {
      const leftOut = await files.convert(partition, heights, parts.signal);
      return { partition: readPartition(parts.storeFolder, heights), leftOut, isAdded: true };
    };
    return await importAll(foreign, take, parts);
  } finally {
    files.close();
  }
}

/** Imports the partitions of a folder of this program. */
async function importRecorded(
  folder: string,
  found: readonly PartitionHeights[],
  parts: ImportParts,
): Promise<ImportProgress> {
  const { storeFolder, signal } = parts;
  const isOwnFolder = realpathSync(folder) === realpathSync(storeFolder);
  let files: ForeignFiles | undefined;
  const take = async (source: PartitionHeights, heights: PartitionHeights) => {
    const partition = readPartition(folder, source);
    if (isSame(source, heights))
      return { partition: takeFiles(partition, storeFolder), leftOut: 0, isAdded: !isOwnFolder };
    // The other heights are in the store: the rest is written again as a partition of its own.
    await checkRecord(partition, signal);
    files ??= await openForeignFiles(folder, { ...parts, origin: "Cairn" });
    const leftOut = await files.convert(recordedPaths(partition), heights, signal);
    return { partition: readPartition(storeFolder, heights), leftOut, isAdded: true };
  };
  try {
    const progress = await importAll(found, take, parts);
    // In the folder of the store, such as after a fetch: a partition whose rest was written again is there twice.
    if (isOwnFolder) {
      const loaded = parts.reader.storedPartitions.loadedHeights();
      for (const heights of found)
        if (!loaded.some(({ first, last }) => isSame(heights, { start: first, end: last })))
          removeCovered(storeFolder, heights);
    }
    return progress;
  } finally {
    files?.close();
  }
}

function isSame(one: PartitionHeights, other: PartitionHeights): boolean {
  return one.start === other.start && one.end === other.end;
}

async function checkRecord({ folder, files }: LoadedPartition, signal: AbortSignal): Promise<void> {
  for (const file of files) {
    const difference = await compareFile(folder, file, signal);
    if (difference !== undefined) throw new Error(difference);
  }
}

/** Puts heights of a partition into the folder of the store. */
type TakeHeights<Source> = (
  source: Source,
  heights: PartitionHeights,
) => Promise<
  Readonly<{
    partition: LoadedPartition;
    leftOut: number;
    /** Whether the folder has the partition only because of this import. */
    isAdded: boolean;
  }>
>;

async function importAll<Source extends PartitionHeights>(
  found: readonly Source[],
  take: TakeHeights<Source>,
  parts: ImportParts,
): Promise<ImportProgress> {
  let progress: ImportProgress = { partitions: found.length, partitionsDone: 0, rows: 0, items: 0, leftOut: 0 };
  for (const source of found) {
    for (const heights of unrecorded(parts.reader, source)) {
      parts.signal.throwIfAborted();
      const added = await importHeights(source, heights, take, parts);
      progress = {
        ...progress,
        rows: progress.rows + added.rows,
        items: progress.items + added.items,
        leftOut: progress.leftOut + added.leftOut,
      };
    }
    parts.signal.throwIfAborted();
    progress = { ...progress, partitionsDone: progress.partitionsDone + 1 };
    parts.onProgress?.(progress);
  }
  return progress;
}

/** The heights of a partition that no recorded partition has, in order. */
function unrecorded({ storedPartitions }: ImportParts["reader"], { start, end }: PartitionHeights): PartitionHeights[] {
  const free: PartitionHeights[] = [];
  let next = start;
  for (const { first, last } of storedPartitions.loadedHeights()) {
    if (last < next || first > end) continue;
    if (first > next) free.push({ start: next, end: first - 1 });
    next = last + 1;
  }
  if (next <= end) free.push({ start: next, end });
  return free;
}

async function importHeights<Source extends PartitionHeights>(
  source: Source,
  heights: PartitionHeights,
  take: TakeHeights<Source>,
  parts: ImportParts,
): Promise<Readonly<{ rows: number; items: number; leftOut: number }>> {
  const { partition, leftOut, isAdded } = await take(source, heights);
  try {
    const items = await loadAndRecord(partition, parts);
    return { rows: partition.files.reduce((sum, { rows }) => sum + rows, 0), items, leftOut };
  } catch (error) {
    // It would hide smaller partitions of these heights (duckdb-files.ts). One that was only stopped is continued.
    if (isAdded && !parts.signal.aborted) removePartition(parts.storeFolder, heights);
    throw error;
  }
}

/** Loads a partition of the folder of the store, checks and records it. @returns Items that were not listed before. */
async function loadAndRecord(
  partition: LoadedPartition,
  { store, reader, index, signal }: ImportParts,
): Promise<number> {
  const { start, end } = partition;
  const heights = { start, end };
  await store.load(partition, signal);
  await checkBlocks(heights, store, signal);
  await checkContinues(heights, { store, reader, signal });
  const hash = await lastBlockOf(store, end, signal);
  const items = await countNewItems(heights, { store, reader, signal });
  const lastBlock = hash === undefined ? null : new Uint8Array(Buffer.from(hash, "hex"));
  if (!index.addStoredPartition({ first: start, last: end, lastBlock, foreignItems: items }))
    throw new Error(`heights ${start} to ${end} end with another block than the chain that this gateway follows`);
  return items;
}

/** Checks that each height has a block: otherwise heights would be recorded without their rows. @throws Error. */
async function checkBlocks({ start, end }: PartitionHeights, store: ColumnStore, signal: AbortSignal): Promise<void> {
  const from = store.from("blocks", [{ start, end }]);
  const where = `height BETWEEN ${start} AND ${end}`;
  const [[found] = []] = await store.select(`SELECT count(DISTINCT height) FROM ${from} WHERE ${where}`, signal);
  const wanted = end - start + 1;
  if (Number(found) === wanted) return;
  throw new Error(
    `heights ${start} to ${end} have ${found} of ${wanted} blocks: export them from where that index begins`,
  );
}

/** Checks that the first block names the last one of a recorded partition before it. @throws Error when it does not. */
async function checkContinues(
  { start, end }: PartitionHeights,
  { store, reader, signal }: Pick<ImportParts, "store" | "reader" | "signal">,
): Promise<void> {
  if (!reader.storedPartitions.heights().some(({ last }) => last === start - 1)) return;
  const before = await lastBlockOf(store, start - 1, signal);
  const from = store.from("blocks", [{ start, end: start }]);
  const [[previous] = []] = await store.select(
    `SELECT hex(previous_block) FROM ${from} WHERE height = ${start}`,
    signal,
  );
  if (before === undefined || previous === undefined || previous === null || previous === "") return;
  if (previous === before) return;
  throw new Error(`heights ${start} to ${end} do not continue the block ${start - 1} that the store has`);
}

/** Puts the files of a partition into the folder of the store, and its record last. */
function takeFiles(partition: LoadedPartition, storeFolder: string): LoadedPartition {
  // The folder of the store itself: a new index takes over its files.
  if (realpathSync(partition.folder) === realpathSync(storeFolder)) return partition;
  for (const { path } of partition.files) {
    const target = join(storeFolder, path);
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    const source = join(partition.folder, path);
    if (!existsSync(source)) throw new Error(`${source} does not exist, although its record names it`);
    // A file of an earlier attempt may be incomplete: it is replaced.
    linkOrCopyFile(source, target);
    syncFolder(dirname(target));
  }
  writePartitionRecord(storeFolder, partition);
  return { ...partition, folder: storeFolder };
}

/** Rows of one look-up. */
const itemsPerStep = 10_000;

/** The items of a partition that the index does not have. */
async function countNewItems(
  heights: PartitionHeights,
  { store, reader, signal }: Pick<ImportParts, "store" | "reader" | "signal">,
): Promise<number> {
  const { start, end } = heights;
  const from = store.from("transactions", [heights]);
  const range = `place BETWEEN ${packHeight(start)} AND ${packHeight(end + 1) - 1n}`;
  if (reader.heightsWithItems(start, end, 1).length === 0) {
    const [[count] = []] = await store.select(`SELECT count(*) FROM ${from} WHERE is_data_item AND ${range}`, signal);
    return Number(count ?? 0);
  }
  let items = 0;
  for (let after = packHeight(start) - 1n; ; ) {
    const rows = await store.select(
      `SELECT place, hex(id) FROM ${from} WHERE is_data_item AND ${range} AND place > ${after}
       ORDER BY place LIMIT ${itemsPerStep}`,
      signal,
    );
    for (const [, id] of rows) if (reader.placeOf(idFromBytes(Buffer.from(id ?? "", "hex"))) === undefined) items += 1;
    const last = rows.at(-1)?.[0];
    if (rows.length < itemsPerStep || last === undefined || last === null) return items;
    after = BigInt(last);
  }
}
