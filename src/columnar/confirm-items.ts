/**
 * Compares items of the index with the columnar store, row by row. Only confirmed items may be pruned.
 *
 * A row is confirmed when the store has the same id at the same place, with as many tags and as many bytes of tags. All
 * tables of the partition must have as many rows as were written.
 * Source: docs/reference/columnar.md.
 * @module
 */
import type { ExportRow, ExportRows } from "../store/index/export-rows.ts";
import { packHeight, packPlace, placeHigh, placeLow } from "../store/index/place.ts";
import type { ColumnStore } from "./column-store.ts";
import { type ExportTable, exportTables } from "./export-tables.ts";
import type { LoadedPartition, PartitionHeights } from "./partition.ts";

/** Checks that each table of a partition has the rows that were written. @throws Error that names the table. */
export async function confirmPartition(
  store: ColumnStore,
  partition: LoadedPartition,
  signal: AbortSignal,
): Promise<void> {
  const range = rangeSql(partition);
  for (const table of exportTables) {
    const written = partition.files.reduce((sum, file) => sum + (file.table === table ? file.rows : 0), 0);
    const test = table === "blocks" ? `height BETWEEN ${partition.start} AND ${partition.end}` : range;
    const [[count] = []] = await store.select(
      `SELECT count(*) FROM ${store.from(table, [partition])} WHERE ${test}`,
      signal,
    );
    if (Number(count) !== written) throw new Error(mismatch(store, table, partition, `${count} rows of ${written}`));
  }
}

function mismatch({ kind }: ColumnStore, table: ExportTable, { start, end }: PartitionHeights, counts: string): string {
  return `${kind} has ${counts} in the table ${table} of heights ${start} to ${end}`;
}

export type ConfirmRequest = Readonly<{
  /** Within one partition; as many as fit into memory. */
  heights: PartitionHeights;
  /** Unix seconds; later items are left out. */
  ingestedBefore: number;
}>;

/** The places of the confirmed items of the index: upper and lower halves, alternating. */
export async function confirmItems(
  { store, index }: Readonly<{ store: ColumnStore; index: Pick<ExportRows, "rows"> }>,
  { heights, ingestedBefore }: ConfirmRequest,
  signal: AbortSignal,
): Promise<Uint32Array> {
  const range = rangeSql(heights);
  const transactions = store.from("transactions", [heights]);
  const tags = store.from("tags", [heights]);
  const tagSizes = `count(*), sum(length(hex(tag_name)) + length(hex(tag_value)))`;
  const [rows, tagged] = await Promise.all([
    store.select(`SELECT place, hex(id) FROM ${transactions} WHERE is_data_item AND ${range}`, signal),
    store.select(`SELECT place, ${tagSizes} FROM ${tags} WHERE is_data_item AND ${range} GROUP BY place`, signal),
  ]);
  const idAt = new Map(rows.map(([place, id]) => [place, id]));
  const tagsAt = new Map(tagged.map(([place, count, digits]) => [place, `${count} ${digits}`]));
  const confirmed: number[] = [];
  for (const row of index.rows(heights.start, heights.end)) {
    if (row.transaction !== null || row.ingestedAt >= ingestedBefore) continue;
    const place = packPlace(row).toString();
    const isSame = idAt.get(place) === Buffer.from(row.id).toString("hex").toUpperCase();
    if (isSame && (tagsAt.get(place) ?? "0 0") === tagSizesOf(row)) confirmed.push(placeHigh(row), placeLow(row));
  }
  return Uint32Array.from(confirmed);
}

/** Number of tags, and hexadecimal digits of their names and values, as the statement returns them. */
function tagSizesOf({ tags }: ExportRow): string {
  let bytes = 0;
  for (const { name, value } of tags) bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  return `${tags.length} ${bytes * 2}`;
}

function rangeSql({ start, end }: PartitionHeights): string {
  return `place BETWEEN ${packHeight(start)} AND ${packHeight(end + 1) - 1n}`;
}
