/**
 * The rows of an export of an ar-io-node: which columns of its tables are read, and what their values mean.
 * Source: docs/reference/columnar.md#exports-of-ar-io-node.
 * @module
 */
import { signatureLayout } from "../arweave/signature.ts";
import type { Tag } from "../arweave/tags.ts";
import type { ExportBlock, ExportRow } from "../store/index/export-rows.ts";
import { transactionSignatureTypes } from "../store/index/index-types.ts";
import { isPlace } from "../store/index/place.ts";

/** The tables of an export. */
export const foreignTables = ["blocks", "transactions", "tags"] as const;

export type ForeignTable = (typeof foreignTables)[number];

/** Values of a row as text; bytes in upper-case hex. */
export type Values = readonly (string | null)[];

/** Kinds of columns: DuckDB's types that are accepted, and the expression of a value that becomes text. */
const kinds = {
  bytes: { type: /^BLOB$/, sql: (name: string) => `hex(${name})` },
  integer: { type: /^U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)$/, sql: (name: string) => name },
  amount: { type: /^(DECIMAL\(\d+,0\)|U?(INTEGER|BIGINT|HUGEINT))$/, sql: (name: string) => `${name}::DECIMAL(38, 0)` },
  boolean: { type: /^BOOLEAN$/, sql: (name: string) => name },
} as const;

/** The columns that are read. */
const columns = {
  blocks: {
    indep_hash: "bytes",
    height: "integer",
    previous_block: "bytes",
    nonce: "bytes",
    hash: "bytes",
    block_timestamp: "integer",
    tx_count: "integer",
    block_size: "integer",
  },
  transactions: {
    id: "bytes",
    indexed_at: "integer",
    block_transaction_index: "integer",
    is_data_item: "boolean",
    target: "bytes",
    quantity: "amount",
    reward: "amount",
    anchor: "bytes",
    data_size: "integer",
    format: "integer",
    height: "integer",
    owner_address: "bytes",
    data_root: "bytes",
    parent: "bytes",
    offset: "integer",
    data_offset: "integer",
    owner: "bytes",
    signature_type: "integer",
    root_transaction_id: "bytes",
    root_parent_offset: "integer",
  },
  tags: { height: "integer", id: "bytes", tag_index: "integer", tag_name: "bytes", tag_value: "bytes" },
} as const satisfies Readonly<Record<ForeignTable, Readonly<Record<string, keyof typeof kinds>>>>;

type ColumnOf<Table extends ForeignTable> = keyof (typeof columns)[Table] & string;

/** A row by the names of its columns. */
type Named<Table extends ForeignTable, Name extends ColumnOf<Table> = ColumnOf<Table>> = Readonly<
  Record<Name, string | null>
>;

/** Columns that one statement reads. */
type Selection<Row> = Readonly<{
  /** The list of the statement's expressions. */
  sql: string;
  read: (values: Values) => Row;
}>;

function selectionOf<Table extends ForeignTable, Name extends ColumnOf<Table>>(
  table: Table,
  names: readonly Name[],
): Selection<Named<Table, Name>> {
  const kindOf = new Map<string, keyof typeof kinds>(Object.entries(columns[table]));
  return {
    sql: names.map((name) => kinds[kindOf.get(name) ?? "bytes"].sql(`"${name}"`)).join(", "),
    read: (values) => Object.fromEntries(names.map((name, at) => [name, values[at] ?? null])) as Named<Table, Name>,
  };
}

/** `SELECT` lists of the tables; that of the tags is without the height, so that equal tags are one. */
export const selections = {
  blocks: selectionOf("blocks", namesOf("blocks")),
  transactions: selectionOf("transactions", namesOf("transactions")),
  tags: selectionOf("tags", ["id", "tag_index", "tag_name", "tag_value"]),
} as const;

function namesOf<Table extends ForeignTable>(table: Table): ColumnOf<Table>[] {
  return Object.keys(columns[table]) as ColumnOf<Table>[];
}

/** @param described - The rows of DESCRIBE. @throws Error when a column is absent or has another type. */
export function checkTypes(table: ForeignTable, described: readonly Values[]): void {
  const types = new Map(described.map(([name, type]) => [name, type ?? ""]));
  for (const [name, kind] of Object.entries(columns[table])) {
    const type = types.get(name);
    if (type === undefined) throw new Error(`the table ${table} has no column ${name}`);
    if (!kinds[kind].type.test(type)) throw new Error(`the column ${name} of the table ${table} has the type ${type}`);
  }
}

/** @throws Error for a value that no block has; so do `readRow` and `readTags` for rows and tags. */
export function readBlock(values: Values): ExportBlock {
  const block = selections.blocks.read(values);
  const hash = bytesOf(block.indep_hash);
  if (hash.length !== 48 && hash.length !== 32)
    throw new Error(`the hash of block ${block.height} has ${hash.length} bytes`);
  return {
    hash,
    height: numberOf(block.height, "height"),
    previous: bytesOrNull(block.previous_block),
    timestamp: numberOf(block.block_timestamp, "block_timestamp"),
    transactionCount: numberOf(block.tx_count, "tx_count"),
    blockSize: BigInt(numberOf(block.block_size, "block_size")),
    nonce: bytesOrNull(block.nonce),
    solution: bytesOrNull(block.hash),
  };
}

/** Groups tags by the id of their row, in hex. @param rows - By id, then index. */
export function readTags(rows: readonly Values[]): ReadonlyMap<string, readonly Tag[]> {
  const tagsOf = new Map<string, Tag[]>();
  let [lastId, lastIndex]: (string | null)[] = [null, null];
  for (const row of rows) {
    const { id, tag_index: index, tag_name: name, tag_value: value } = selections.tags.read(row);
    if (id === lastId && index === lastIndex) throw new Error(`an item has two tags of tag_index ${index}`);
    [lastId, lastIndex] = [id, index];
    const tag = { name: bytesOf(name).toString(), value: bytesOf(value).toString() };
    tagsOf.getOrInsertComputed(id ?? "", () => []).push(tag);
  }
  return tagsOf;
}

/** @returns Undefined for an item whose place or whose type of signature is not known. */
export function readRow(values: Values, tagsOf: ReadonlyMap<string, readonly Tag[]>): ExportRow | undefined {
  const row = selections.transactions.read(values);
  const shared = {
    height: numberOf(row.height, "height"),
    txIndex: numberOf(row.block_transaction_index, "block_transaction_index"),
    id: bytes32(row.id, "id"),
    target: bytesOrNull(row.target),
    anchor: bytesOrNull(row.anchor),
    payloadSize: numberOf(row.data_size, "data_size"),
    tags: tagsOf.get(row.id ?? "") ?? [],
    ingestedAt: numberOf(row.indexed_at, "indexed_at"),
    ownerAddress: bytes32(row.owner_address, "owner_address"),
    ownerKey: bytesOrNull(row.owner),
  };
  const read = row.is_data_item === "true" ? readItem(shared, row) : readTransaction(shared, row);
  return read !== undefined && isPlace(read) ? read : undefined;
}

type Shared = Omit<ExportRow, "offset" | "headerSize" | "signatureType" | "parent" | "rootId" | "transaction">;

/** The shortest header, that of an Ed25519 key. Source: ANS-104 §2. */
const headerSizeMin = 116;

function readItem(shared: Shared, row: Named<"transactions">): ExportRow | undefined {
  const layout = signatureLayout(numberOf(row.signature_type, "signature_type"));
  if (layout === undefined) return undefined;
  const payloadStart = numberOf(row.root_parent_offset, "root_parent_offset");
  const start = numberOf(row.offset, "offset");
  const headerSize = numberOf(row.data_offset, "data_offset") - start;
  if (headerSize < headerSizeMin)
    throw new Error(`data_offset ${row.data_offset} is less than ${headerSizeMin} bytes after offset ${row.offset}`);
  return {
    ...shared,
    offset: payloadStart + start,
    headerSize,
    signatureType: layout.type,
    parent: { id: bytes32(row.parent, "parent"), payloadStart },
    rootId: bytes32(row.root_transaction_id, "root_transaction_id"),
    transaction: null,
  };
}

function readTransaction(shared: Shared, row: Named<"transactions">): ExportRow {
  return {
    ...shared,
    offset: -1,
    headerSize: 0,
    signatureType: transactionSignatureTypes.rsa,
    parent: null,
    rootId: null,
    transaction: {
      format: numberOf(row.format ?? "2", "format", formatMax),
      quantity: amountOf(row.quantity, "quantity"),
      reward: amountOf(row.reward, "reward"),
      dataRoot: bytesOrNull(row.data_root),
    },
  };
}

const formatMax = 255;
const amountEnd = 10n ** 20n;

/** @returns 0 for null. */
function numberOf(text: string | null, column: string, max = Number.MAX_SAFE_INTEGER): number {
  const value = Number(text ?? 0);
  if (value >= 0 && value <= max) return value;
  throw new Error(`${column} has the value ${text}; expected 0 to ${max}`);
}

/** @returns 0 for null. */
function amountOf(text: string | null, column: string): bigint {
  const value = BigInt(text ?? 0);
  if (value >= 0n && value < amountEnd) return value;
  throw new Error(`${column} has the value ${text}; expected 0 to ${amountEnd - 1n}`);
}

function bytesOf(hex: string | null): Buffer {
  return Buffer.from(hex ?? "", "hex");
}

function bytesOrNull(hex: string | null): Uint8Array | null {
  return hex === null ? null : bytesOf(hex);
}

function bytes32(hex: string | null, column: string): Uint8Array {
  const bytes = bytesOf(hex);
  if (bytes.length !== 32) throw new Error(`${column} has a value of ${bytes.length} bytes; it must have 32`);
  return bytes;
}
