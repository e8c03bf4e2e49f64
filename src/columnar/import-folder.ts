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
import { type ForeignPartition, foreignPartitions, openForeignFiles } from "./ar-io-node-files.ts";
import type { ColumnStore } from "./column-store.ts";
import {
  type LoadedPartition,
  type PartitionHeights,
  readPartition,
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
 * Imports all partitions of a folder that the index has not recorded: of this program, or of an ar-io-node.
 *
 * @throws Error when the folder has none, a file differs from its record, heights overlap with recorded ones, or the
 *   chain has another block at the end of a partition; the signal's reason.
 */
export async function importFolder(folder: string, parts: ImportParts): Promise<ImportProgress> {
  const found = writtenPartitions(folder);
  if (found.length > 0) {
    const take = async (heights: PartitionHeights) => ({
      partition: takeFiles(readPartition(folder, heights), parts.storeFolder),
      leftOut: 0,
    });
    return importAll(found, take, parts);
  }
  const foreign = foreignPartitions(folder);
  if (foreign.length === 0) throw new Error(`${folder} has no exported partitions`);
  const files = await openForeignFiles(folder, parts);
  try {
    const take = async (partition: ForeignPartition) => {
      const leftOut = await files.convert(partition, parts.signal);
      return { partition: readPartition(parts.storeFolder, partition), leftOut };
    };
    return await importAll(foreign, take, parts);
  } finally {
    files.close();
  }
}

/** Puts a partition into the folder of the store. */
type TakePartition<Heights> = (heights: Heights) => Promise<Readonly<{ partition: LoadedPartition; leftOut: number }>>;

async function importAll<Heights extends PartitionHeights>(
  found: readonly Heights[],
  take: TakePartition<Heights>,
  parts: ImportParts,
): Promise<ImportProgress> {
  let progress: ImportProgress = { partitions: found.length, partitionsDone: 0, rows: 0, items: 0, leftOut: 0 };
  for (const heights of found) {
    parts.signal.throwIfAborted();
    const added = isRecorded(parts.reader, heights)
      ? { rows: 0, items: 0, leftOut: 0 }
      : await importPartition(heights, take, parts);
    progress = {
      ...progress,
      partitionsDone: progress.partitionsDone + 1,
      rows: progress.rows + added.rows,
      items: progress.items + added.items,
      leftOut: progress.leftOut + added.leftOut,
    };
    parts.onProgress?.(progress);
  }
  return progress;
}

function isRecorded({ storedPartitions }: ImportParts["reader"], { start, end }: PartitionHeights): boolean {
  return storedPartitions.heights().some(({ first, last }) => first === start && last === end);
}

async function importPartition<Heights extends PartitionHeights>(
  heights: Heights,
  take: TakePartition<Heights>,
  { store, reader, index, signal }: ImportParts,
): Promise<Readonly<{ rows: number; items: number; leftOut: number }>> {
  const { start, end } = heights;
  const overlap = reader.storedPartitions.heights().find(({ first, last }) => first <= end && last >= start);
  if (overlap !== undefined)
    throw new Error(
      `heights ${start} to ${end} overlap with ${overlap.first} to ${overlap.last}, which the store has; ` +
        `later heights can be imported from ${reader.storedPartitions.nextHeight()} on`,
    );
  const { partition, leftOut } = await take(heights);
  await store.load(partition, signal);
  const hash = await lastBlockOf(store, end, signal);
  const items = await countNewItems(heights, { store, reader, signal });
  const lastBlock = hash === undefined ? null : new Uint8Array(Buffer.from(hash, "hex"));
  if (!index.addStoredPartition({ first: start, last: end, lastBlock, foreignItems: items }))
    throw new Error(`heights ${start} to ${end} end with another block than the chain that this gateway follows`);
  return { rows: partition.files.reduce((sum, { rows }) => sum + rows, 0), items, leftOut };
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
