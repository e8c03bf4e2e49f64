/**
 * Thread entry: writes partitions of Parquet exports over a read-only connection, loads them into the columnar store,
 * and confirms what the store has.
 * @module
 */
import type { ColumnStore } from "../src/columnar/column-store.ts";
import {
  type ConfirmRequest,
  confirmPartition as confirmCounts,
  confirmItems as confirmItemsOf,
} from "../src/columnar/confirm-items.ts";
import { type ColumnStoreOptions, openColumnStore } from "../src/columnar/open-store.ts";
import {
  type ExportedFile,
  exportPartition as exportTo,
  type PartitionHeights,
  type PartitionRequest,
  readPartition,
  writtenPartitions,
} from "../src/columnar/partition.ts";
import { type ExportRows, openExportRows } from "../src/store/index/export-rows.ts";
import { giveWay } from "../src/threads/give-way.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

// An export takes minutes; the clients of all other requests wait for milliseconds.
giveWay();

/** Of one call of the store; the files of a partition take minutes on a busy server. Milliseconds. */
const storeMsMax = 30 * 60_000;

/** A partition to write. */
export type ExportJob = Readonly<{ indexPath: string; request: PartitionRequest }>;

const indexes = new Map<string, ExportRows>();

/** Writes a partition. @returns Its files; undefined when the run had written it before. */
export async function exportPartition({ indexPath, request }: ExportJob): Promise<readonly ExportedFile[] | undefined> {
  return await exportTo(request, indexOf(indexPath));
}

/** The lowest followed height; 0 without a block. */
export function firstHeight({ indexPath }: Pick<ExportJob, "indexPath">): number {
  return indexOf(indexPath).firstHeight();
}

/** The highest stable height; −1 when no block is stable. */
export function stableHeight({ indexPath }: Pick<ExportJob, "indexPath">): number {
  return indexOf(indexPath).stableHeight();
}

/** The store, and the folder with the files that it loads. */
export type StoreJob = Readonly<{ store: ColumnStoreOptions; folder: string }>;

const stores = new Map<string, Promise<ColumnStore>>();

/** Loads a complete partition of the folder into the store; loading it again replaces its rows. */
export async function loadPartition({
  store,
  folder,
  heights,
}: StoreJob & Readonly<{ heights: PartitionHeights }>): Promise<void> {
  await (await storeOf(store)).load(readPartition(folder, heights), timeLimit());
}

/** Checks that the store has all rows of the partition that begins at a height. */
export async function confirmPartition({
  store,
  folder,
  first,
}: StoreJob & Readonly<{ first: number }>): Promise<void> {
  const heights = writtenPartitions(folder).find(({ start }) => start === first);
  if (heights === undefined) throw new Error(`${folder} has no record of the partition from height ${first}`);
  await confirmCounts(await storeOf(store), readPartition(folder, heights), timeLimit());
}

/** The places of items that the store has: upper and lower halves, alternating. */
export async function confirmItems({
  store,
  indexPath,
  request,
}: Omit<StoreJob, "folder"> & Readonly<{ indexPath: string; request: ConfirmRequest }>): Promise<Uint32Array> {
  return await confirmItemsOf({ store: await storeOf(store), index: indexOf(indexPath) }, request, timeLimit());
}

/** A store that does not respond must not hold the thread. */
function timeLimit(): AbortSignal {
  return AbortSignal.timeout(storeMsMax);
}

function storeOf(options: ColumnStoreOptions): Promise<ColumnStore> {
  const name = JSON.stringify(options);
  const known = stores.get(name);
  if (known !== undefined) return known;
  const opened = openColumnStore(options);
  stores.set(name, opened);
  // The next job tries again.
  opened.catch(() => stores.delete(name));
  return opened;
}

function indexOf(path: string): ExportRows {
  const known = indexes.get(path);
  if (known !== undefined) return known;
  const opened = openExportRows(path);
  indexes.set(path, opened);
  return opened;
}
