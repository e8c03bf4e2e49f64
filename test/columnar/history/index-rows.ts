/**
 * The rows that the files of an export must have, as the index has them: read row by row, with no code of the writer.
 * @module
 */
import { signatureLayout } from "../../../src/arweave/signature.ts";
import type { ExportTable } from "../../../src/columnar/export-tables.ts";
import type { PartitionHeights } from "../../../src/columnar/partition.ts";
import { createPostingKeys } from "../../../src/columnar/posting-list.ts";
import { type ExportRow, openExportRows } from "../../../src/store/index/export-rows.ts";
import { packPlace } from "../../../src/store/index/place.ts";

type Field = Uint8Array | string | number | bigint | boolean | null | undefined;

const keys = createPostingKeys();

/** The rows of some heights as text, sorted; bytes as upper-case hexadecimal. */
export function rowsOfIndex(path: string, { start, end }: PartitionHeights): Readonly<Record<ExportTable, string[]>> {
  const index = openExportRows(path);
  const rows: Record<ExportTable, string[]> = { blocks: [], transactions: [], tags: [], postings: [] };
  for (const block of index.blocks(start, end)) {
    const { hash, height, previous, nonce, solution, timestamp, transactionCount, blockSize } = block;
    rows.blocks.push(line([hash, height, previous, nonce, solution, timestamp, transactionCount, blockSize]));
  }
  for (const row of index.rows(start, end)) {
    rows.transactions.push(line(transactionOf(row)));
    const place = packPlace(row);
    for (const [number, { name, value }] of row.tags.entries())
      rows.tags.push(line([row.height, row.id, number, row.ingestedAt, utf8(name), utf8(value), isItem(row), place]));
    for (const key of new Set(keysOf(row))) rows.postings.push(line([key, place]));
  }
  index.close();
  for (const table of Object.values(rows)) table.sort();
  return rows;
}

function keysOf({ id, ownerAddress, target, parent, tags }: ExportRow): number[] {
  return [
    keys.id(id),
    keys.owner(ownerAddress),
    ...(target === null ? [] : [keys.recipient(target)]),
    ...(parent === null ? [] : [keys.parent(parent.id)]),
    ...tags.map(({ name, value }) => keys.tag(name, value)),
  ];
}

function transactionOf(row: ExportRow): readonly Field[] {
  const { transaction, anchor } = row;
  const type = row.tags.find(({ name }) => name.toLowerCase() === "content-type")?.value;
  return [
    ...[row.id, row.ingestedAt, row.txIndex, isItem(row), row.target, transaction?.quantity, transaction?.reward],
    ...[typeof anchor === "string" ? Buffer.from(anchor, "base64url") : anchor, row.payloadSize, type],
    ...[transaction?.format, row.height, row.ownerAddress, transaction?.dataRoot],
    ...itemOf(row),
    packPlace(row),
  ];
}

/** From `parent` to `root_parent_offset`. */
function itemOf({ parent, offset, headerSize, payloadSize, signatureType, ownerKey, rootId }: ExportRow): Field[] {
  const layout = signatureLayout(signatureType);
  if (parent === null || layout === undefined) return Array.from({ length: 12 }, () => null);
  const start = offset - parent.payloadStart;
  const owner = start + 2 + layout.signatureSize;
  return [
    ...[parent.id, start, headerSize + payloadSize, start + headerSize, owner, layout.ownerSize, ownerKey],
    ...[start + 2, layout.signatureSize, signatureType, rootId, parent.payloadStart],
  ];
}

function isItem({ transaction }: ExportRow): boolean {
  return transaction === null;
}

function utf8(text: string): Uint8Array {
  return Buffer.from(text);
}

function line(fields: readonly Field[]): string {
  return fields.map(textOf).join();
}

function textOf(field: Field): string {
  if (field === null || field === undefined) return "null";
  return field instanceof Uint8Array ? Buffer.from(field).toString("hex").toUpperCase() : `${field}`;
}
