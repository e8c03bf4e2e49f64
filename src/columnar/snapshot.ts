/**
 * Descriptions of snapshots: the exported partitions that one published folder has, with the size and SHA-256 of each
 * file. A path manifest maps the paths of the folder to the ids of its files.
 * Source: docs/reference/columnar.md#snapshots.
 * @module
 */
import { type Address, type Id, idFromBytes } from "../arweave/id.ts";
import { isJsonArray, isJsonObject, readJson } from "../lib/json.ts";
import { addressFromBytes } from "../store/index/rows/stored-row.ts";
import type { ColumnStore } from "./column-store.ts";
import { type LoadedPartition, type PartitionHeights, readFileRecord } from "./partition.ts";

/** Name of the description in the folder. */
export const snapshotName = "snapshot.json";

const schema = "cairn-snapshot-1";

/** A snapshot. */
export type Snapshot = Readonly<{
  /** All heights, both inclusive. */
  heights: PartitionHeights;
  /** Hash of the block at the end, hexadecimal. */
  lastBlock: string;
  partitions: readonly Omit<LoadedPartition, "folder">[];
}>;

/** Writes a description. Partitions must be adjacent and in order. @throws Error when they are not. */
export function writeSnapshot(partitions: readonly LoadedPartition[], lastBlock: string): string {
  const snapshot = {
    schema,
    heights: heightsOf(partitions),
    lastBlock,
    partitions: partitions.map(({ start, end, files }) => ({ start, end, files })),
  };
  return `${JSON.stringify(snapshot, undefined, 1)}\n`;
}

/** Reads a description. @throws Error for a text that is not one, or whose partitions are not adjacent. */
export function readSnapshot(text: string): Snapshot {
  const value = readJson(text);
  if (!isJsonObject(value) || value["schema"] !== schema) throw new Error(`${snapshotName} is not a ${schema}`);
  const { lastBlock, partitions: given } = value;
  const partitions = isJsonArray(given)
    ? given.flatMap((partition) => {
        if (!isJsonObject(partition) || !isJsonArray(partition["files"])) return [];
        const { start, end } = partition;
        if (!isHeight(start) || !isHeight(end)) return [];
        const files = partition["files"].map((file) => readFileRecord(file, { start, end }));
        const known = files.filter((file) => file !== undefined);
        return known.length === files.length ? [{ start, end, files: known }] : [];
      })
    : [];
  const isComplete = isJsonArray(given) && partitions.length === given.length;
  if (!isComplete || typeof lastBlock !== "string" || !/^[0-9A-F]{96}$/.test(lastBlock))
    throw new Error(`${snapshotName} has malformed partitions`);
  return { heights: heightsOf(partitions), lastBlock, partitions };
}

function isHeight(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function heightsOf(partitions: readonly PartitionHeights[]): PartitionHeights {
  const [first] = partitions;
  const last = partitions.at(-1);
  if (first === undefined || last === undefined) throw new Error("a snapshot has one partition or more");
  for (const [index, { start, end }] of partitions.entries()) {
    const before = partitions[index - 1];
    if (end < start || (before !== undefined && start !== before.end + 1))
      throw new Error(`the heights ${start} to ${end} do not continue the partition before them`);
  }
  return { start: first.start, end: last.end };
}

/** The hash of the block at a height, hexadecimal; undefined when the store does not have the block. */
export async function lastBlockOf(
  store: ColumnStore,
  height: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const blocks = store.from("blocks", [{ start: height, end: height }]);
  const rows = await store.select(`SELECT hex(indep_hash) FROM ${blocks} WHERE height = ${height}`, signal);
  return rows[0]?.[0] ?? undefined;
}

/** A row whose id and owner can be compared with a proof. */
export type SampledItem = Readonly<{ id: Id; owner: Address }>;

/** Random data items with content, at most `count`; from DuckDB. */
export async function sampleItems(
  store: ColumnStore,
  heights: readonly PartitionHeights[],
  count: number,
  signal: AbortSignal,
): Promise<SampledItem[]> {
  const rows = await store.select(
    `SELECT hex(id), hex(owner_address) FROM ${store.from("transactions", heights)}
     WHERE is_data_item AND data_size > 0 ORDER BY random() LIMIT ${count}`,
    signal,
  );
  const bytes = (text: string | null | undefined) => Buffer.from(text ?? "", "hex");
  return rows.map(([id, owner]) => ({ id: idFromBytes(bytes(id)), owner: addressFromBytes(bytes(owner)) }));
}
