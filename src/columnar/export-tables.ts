/**
 * The tables of an export: columns, and the values of a row.
 *
 * Names and types of the first three are those of ar-io-node's exports, so that its importers read these files;
 * offsets are 64 bits wide. `place`, the last column, and the table `postings` are Cairn's own: what filters look for,
 * sorted, so that a reader finds the rows of a tag without reading all tags, and a row without reading all rows.
 * Source: docs/reference/columnar.md.
 * @module
 */
import { signatureLayout } from "../arweave/signature.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import type { ExportBlock, ExportRow } from "../store/index/export-rows.ts";
import { packPlace } from "../store/index/place.ts";
import type { Column, ColumnValue } from "./record-batch.ts";

/** A table of an export. */
export type ExportTable = "blocks" | "transactions" | "tags" | "postings";

/** The tables, in the order in which they are written. */
export const exportTables = ["blocks", "transactions", "tags", "postings"] as const satisfies readonly ExportTable[];

/** The columns of each table. */
export const exportColumns: Readonly<Record<ExportTable, readonly Column[]>> = {
  blocks: [
    { name: "indep_hash", type: "bytes" },
    { name: "height", type: "uint64" },
    { name: "previous_block", type: "bytes", nullable: true },
    { name: "nonce", type: "bytes", nullable: true },
    { name: "hash", type: "bytes", nullable: true },
    { name: "block_timestamp", type: "int64" },
    { name: "tx_count", type: "int64" },
    { name: "block_size", type: "uint64" },
  ],
  transactions: [
    { name: "id", type: "bytes" },
    { name: "indexed_at", type: "uint64" },
    { name: "block_transaction_index", type: "uint16" },
    { name: "is_data_item", type: "boolean" },
    { name: "target", type: "bytes", nullable: true },
    { name: "quantity", type: "decimal", nullable: true },
    { name: "reward", type: "decimal", nullable: true },
    { name: "anchor", type: "bytes", nullable: true },
    { name: "data_size", type: "uint64" },
    { name: "content_type", type: "text", nullable: true },
    { name: "format", type: "uint8", nullable: true },
    { name: "height", type: "uint64" },
    { name: "owner_address", type: "bytes" },
    { name: "data_root", type: "bytes", nullable: true },
    { name: "parent", type: "bytes", nullable: true },
    { name: "offset", type: "uint64", nullable: true },
    { name: "size", type: "uint64", nullable: true },
    { name: "data_offset", type: "uint64", nullable: true },
    { name: "owner_offset", type: "uint64", nullable: true },
    { name: "owner_size", type: "uint32", nullable: true },
    { name: "owner", type: "bytes", nullable: true },
    { name: "signature_offset", type: "uint64", nullable: true },
    { name: "signature_size", type: "uint32", nullable: true },
    { name: "signature_type", type: "uint32", nullable: true },
    { name: "root_transaction_id", type: "bytes", nullable: true },
    { name: "root_parent_offset", type: "uint64", nullable: true },
    { name: "place", type: "int64" },
  ],
  tags: [
    { name: "height", type: "uint64" },
    { name: "id", type: "bytes" },
    { name: "tag_index", type: "uint16" },
    { name: "indexed_at", type: "uint64" },
    { name: "tag_name", type: "bytes" },
    { name: "tag_value", type: "bytes" },
    { name: "is_data_item", type: "boolean" },
    { name: "place", type: "int64" },
  ],
  postings: [
    { name: "key", type: "uint64" },
    { name: "place", type: "int64" },
  ],
};

/** Columns whose values are different in nearly every row. */
export const plainColumns: Readonly<Record<ExportTable, readonly string[]>> = {
  blocks: ["indep_hash", "previous_block", "nonce", "hash"],
  transactions: ["id", "anchor", "data_root", "offset", "data_offset", "owner_offset", "signature_offset", "place"],
  tags: ["id"],
  postings: ["place"],
};

/** Rows of a row group. A reader of one key or one place reads one, and the statistics of all. */
export const rowGroupRows: Readonly<Record<ExportTable, number>> = {
  blocks: 50_000,
  transactions: 50_000,
  tags: 100_000,
  postings: 100_000,
};

/** Keys above this size are not exported: an RSA key is in the transaction that it signs. Bytes. */
const exportedKeyBytesMax = 64;

/** The values of a block. */
export function blockValues(block: ExportBlock): ColumnValue[] {
  const { hash, height, previous, nonce, solution, timestamp, transactionCount, blockSize } = block;
  return [hash, height, previous, nonce, solution, timestamp, transactionCount, blockSize];
}

/** The values of a transaction or a data item. */
export function transactionValues(row: ExportRow): ColumnValue[] {
  return [
    row.id,
    row.ingestedAt,
    row.txIndex,
    row.transaction === null,
    row.target,
    row.transaction?.quantity ?? null,
    row.transaction?.reward ?? null,
    typeof row.anchor === "string" ? (decodeBase64url(row.anchor) ?? null) : row.anchor,
    row.payloadSize,
    contentTypeOf(row),
    row.transaction?.format ?? null,
    row.height,
    row.ownerAddress,
    row.transaction?.dataRoot ?? null,
    ...itemValues(row),
    packPlace(row),
  ];
}

/** From `parent` on. Offsets of an item count from the first byte of its parent's payload. */
function itemValues(row: ExportRow): ColumnValue[] {
  const { parent, rootId, headerSize, payloadSize, signatureType, ownerKey } = row;
  const layout = signatureLayout(signatureType);
  if (parent === null || layout === undefined) return Array<null>(12).fill(null);
  const start = row.offset - parent.payloadStart;
  const signatureStart = start + 2;
  return [
    parent.id,
    start,
    headerSize + payloadSize,
    start + headerSize,
    signatureStart + layout.signatureSize,
    layout.ownerSize,
    ownerKey.length <= exportedKeyBytesMax ? ownerKey : null,
    signatureStart,
    layout.signatureSize,
    signatureType,
    rootId,
    parent.payloadStart,
  ];
}

function contentTypeOf({ tags }: ExportRow): string | null {
  const value = tags.find(({ name }) => name.toLowerCase() === "content-type")?.value;
  return value ?? null;
}

/** The values of each tag of a row. */
export function tagValues(row: ExportRow): ColumnValue[][] {
  const { tags, height, id, ingestedAt, transaction } = row;
  const place = packPlace(row);
  return tags.map(({ name, value }, index) => [
    height,
    id,
    index,
    ingestedAt,
    name,
    value,
    transaction === null,
    place,
  ]);
}
