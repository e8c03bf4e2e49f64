/**
 * The tables of an export: columns, and the values of a row.
 *
 * Names and types of the first three are those of ar-io-node's exports, so that its importers read these files;
 * offsets are 64 bits wide. `place`, the last column, and the table `postings` are Cairn's own. `postings` has the
 * values that filters search for, sorted. A reader finds the rows of a tag without reading all tags, and a row by its
 * place without reading all rows.
 * Source: docs/reference/columnar.md.
 * @module
 */
import { signatureLayout } from "../arweave/signature.ts";
import type { Tag } from "../arweave/tags.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import type { ExportBlock, ExportRow } from "../store/index/export-rows.ts";
import { placeHigh, placeLow } from "../store/index/place.ts";
import type { ColumnEncoding } from "./parquet-file.ts";
import type { Posting } from "./posting-list.ts";
import type { Column, ColumnBuilder } from "./record-batch.ts";

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

/**
 * How columns without a dictionary are encoded. A dictionary suits values that repeat at random; integers, and ids that
 * repeat in a run, take half the time and space as differences (measured: bench/exports/parquet.ts).
 */
export const columnEncodings: Readonly<Record<ExportTable, Readonly<Record<string, ColumnEncoding>>>> = {
  blocks: { indep_hash: "plain", previous_block: "plain", nonce: "plain", hash: "plain" },
  transactions: {
    id: "delta length",
    indexed_at: "delta",
    block_transaction_index: "delta",
    anchor: "delta length",
    data_size: "delta",
    format: "delta",
    height: "delta",
    data_root: "plain",
    parent: "delta bytes",
    offset: "delta",
    size: "delta",
    data_offset: "delta",
    owner_offset: "delta",
    owner_size: "delta",
    signature_offset: "delta",
    signature_size: "delta",
    signature_type: "delta",
    root_transaction_id: "delta bytes",
    root_parent_offset: "delta",
    place: "delta",
  },
  tags: {
    height: "delta",
    id: "delta bytes",
    tag_index: "delta",
    indexed_at: "delta",
    tag_value: "delta length",
    place: "delta",
  },
  postings: { key: "delta", place: "delta" },
};

/** Columns of random bytes: their statistics exclude no row group, and every reader of the metadata would read them. */
export const columnsWithoutStatistics: Readonly<Record<ExportTable, readonly string[]>> = {
  blocks: ["indep_hash", "previous_block", "nonce", "hash"],
  transactions: ["id", "target", "anchor", "owner_address", "data_root", "owner"],
  tags: ["id", "tag_value"],
  postings: [],
};

/**
 * Rows of a row group. A reader of one key or one place reads one, and the statistics of all. With a fifth of the
 * rows, pages of scattered rows through DuckDB take a third of the time (bench/exports/columnar.ts).
 */
export const rowGroupRows: Readonly<Record<ExportTable, number>> = {
  blocks: 50_000,
  transactions: 10_000,
  tags: 20_000,
  postings: 30_000,
};

/** Adds the values of a row to the columns of its table, in their order. */
export type AddRow<Row> = (row: Row) => void;

/** @param columns - Of `blocks`. */
export function createBlockAdder([
  hash,
  height,
  previous,
  nonce,
  solution,
  timestamp,
  txCount,
  size,
]: readonly ColumnBuilder[]): AddRow<ExportBlock> {
  return (block) => {
    hash?.bytes(block.hash);
    height?.number(block.height);
    addBytes(previous, block.previous);
    addBytes(nonce, block.nonce);
    addBytes(solution, block.solution);
    timestamp?.number(block.timestamp);
    txCount?.number(block.transactionCount);
    size?.bigint(block.blockSize);
  };
}

/** @param columns - Of `transactions`. */
export function createTransactionAdder(columns: readonly ColumnBuilder[]): AddRow<ExportRow> {
  const [id, indexedAt, txIndex, isItem, target, quantity, reward, anchor, size, contentType, format, height] = columns;
  const [owner, dataRoot] = columns.slice(12);
  const addItem = createItemAdder(columns.slice(14, 26));
  const place = columns[26];
  return (row) => {
    const { transaction } = row;
    id?.bytes(row.id);
    indexedAt?.number(row.ingestedAt);
    txIndex?.number(row.txIndex);
    isItem?.boolean(transaction === null);
    addBytes(target, row.target);
    addBigint(quantity, transaction?.quantity);
    addBigint(reward, transaction?.reward);
    addBytes(anchor, typeof row.anchor === "string" ? (decodeBase64url(row.anchor) ?? null) : row.anchor);
    size?.number(row.payloadSize);
    const type = contentTypeOf(row.tags);
    if (type === undefined) contentType?.null();
    else contentType?.text(type);
    if (transaction === null) format?.null();
    else format?.number(transaction.format);
    height?.number(row.height);
    owner?.bytes(row.ownerAddress);
    addBytes(dataRoot, transaction?.dataRoot ?? null);
    addItem(row);
    addPlace(place, row);
  };
}

/** From `parent` to `root_parent_offset`. Offsets of an item count from the first byte of its parent's payload. */
function createItemAdder(columns: readonly ColumnBuilder[]): AddRow<ExportRow> {
  const [parentId, offset, size, dataOffset, ownerOffset, ownerSize, owner] = columns;
  const [signatureOffset, signatureSize, type, root, parentOffset] = columns.slice(7);
  return ({ parent, rootId, headerSize, payloadSize, signatureType, ownerKey, offset: at }) => {
    const layout = signatureLayout(signatureType);
    if (parent === null || layout === undefined) {
      for (const column of columns) column.null();
      return;
    }
    const start = at - parent.payloadStart;
    const signatureStart = start + 2;
    parentId?.bytes(parent.id);
    offset?.number(start);
    size?.number(headerSize + payloadSize);
    dataOffset?.number(start + headerSize);
    ownerOffset?.number(signatureStart + layout.signatureSize);
    ownerSize?.number(layout.ownerSize);
    addBytes(owner, ownerKey);
    signatureOffset?.number(signatureStart);
    signatureSize?.number(layout.signatureSize);
    type?.number(signatureType);
    addBytes(root, rootId);
    parentOffset?.number(parent.payloadStart);
  };
}

/** Adds one tag of a row. @param columns - Of `tags`. */
export function createTagAdder([
  height,
  id,
  tagIndex,
  indexedAt,
  tagName,
  tagValue,
  isItem,
  place,
]: readonly ColumnBuilder[]): (row: ExportRow, tag: Tag, index: number) => void {
  return (row, { name, value }, index) => {
    height?.number(row.height);
    id?.bytes(row.id);
    tagIndex?.number(index);
    indexedAt?.number(row.ingestedAt);
    tagName?.text(name);
    tagValue?.text(value);
    isItem?.boolean(row.transaction === null);
    addPlace(place, row);
  };
}

/** @param columns - Of `postings`. */
export function createPostingAdder([key, place]: readonly ColumnBuilder[]): AddRow<Posting> {
  return (posting) => {
    key?.number(posting.key);
    addPacked(place, posting.high, posting.low);
  };
}

function addBytes(column: ColumnBuilder | undefined, value: Uint8Array | null): void {
  if (value === null) column?.null();
  else column?.bytes(value);
}

function addBigint(column: ColumnBuilder | undefined, value: bigint | undefined): void {
  if (value === undefined) column?.null();
  else column?.bigint(value);
}

function addPlace(column: ColumnBuilder | undefined, row: ExportRow): void {
  addPacked(column, placeHigh(row), placeLow(row));
}

/** The lower half of a place has 31 bits, that of a column 32. */
function addPacked(column: ColumnBuilder | undefined, high: number, low: number): void {
  column?.halves(Math.floor(high / 2), (high % 2) * 2 ** 31 + low);
}

const contentTypeLength = "content-type".length;

function contentTypeOf(tags: readonly Tag[]): string | undefined {
  return tags.find(({ name }) => name.length === contentTypeLength && name.toLowerCase() === "content-type")?.value;
}
