/**
 * Blocks, transactions and data items of an ar-io-node's index, checked row by row as far as the rows allow.
 *
 * Sizes, types, addresses of public keys and places are checked. Signatures are not: the index of ar-io-node does not
 * have them.
 * Source: docs/reference/ar-io-node-folder.md.
 * @module
 */
import {
  type Address,
  addressFromBytes,
  type BlockHash,
  blockHashFromBytes,
  type Id,
  idFromBytes,
  idSize,
} from "../../arweave/id.ts";
import { signatureLayout } from "../../arweave/signature.ts";
import { decodeTags, type RawTag, type Tag, tagLimits } from "../../arweave/tags.ts";
import { transactionOwnerAddress } from "../../arweave/transaction.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { sha256 } from "../../lib/hash.ts";
import type { BlockRow, ImportedItemRow, TransactionRow } from "../index/index-types.ts";
import { isPlace, transactionsPerBlockMax } from "../index/place.ts";
import type { SourceDatabase } from "./source-database.ts";

/** A block with the ids of its transactions, in their order. */
export type SourceBlock = Readonly<{ block: BlockRow; ids: readonly Id[] }>;

/** Heights of the last blocks without a gap between them, both inclusive. */
export type SourceHeights = Readonly<{ first: number; last: number }>;

/** A data item as the table has it. */
export type StoredSourceItem = Readonly<Record<(typeof itemColumns)[number], unknown>>;

/** Reads final blocks. */
export type BlockSource = Readonly<{
  /** Undefined without blocks. */
  heights: () => SourceHeights | undefined;
  /** Blocks below a height. */
  countBelow: (height: number) => number;
  /** @throws Error when the block is absent or not valid. */
  block: (height: number) => SourceBlock;
  /** Undefined when the row is absent or not valid: the transaction is then fetched from nodes. */
  transaction: (id: Id, txIndex: number) => TransactionRow | undefined;
}>;

/** Reads data items. */
export type ItemSource = Readonly<{
  /** Items of a height, also those that ar-io-node has not moved to its final tables. */
  at: (height: number) => Iterable<StoredSourceItem>;
  /** A row of the index, or the reason against it. */
  read: (stored: StoredSourceItem, block: SourceBlock, rootSize: (id: Id) => number) => ImportedItemRow | InvalidItem;
}>;

/** Why a data item is left out. */
export type InvalidItem = keyof typeof invalidItems;

export const invalidItems = {
  values: "a column has a value that is not valid",
  place: "the place in its transaction is unknown or not valid",
  occupied: "another item is at its place",
  root: "its transaction is not in its block, or not complete in core.db",
  parent: "the bundle around it is not in bundles.db, or left out too",
  owner: "its public key is absent, or not that of its address",
  tags: "its tags are incomplete",
} as const;

/** Longer keys are not valid. Bytes. */
const ownerSizeMax = 1_024;

/** Keys of RSA are longer than those of other signatures. Bytes. */
const shortOwnerSizeMax = 65;

/** Bundles around an item: more than any known bundle has, and a parent may name itself. */
const levelsMax = 32;

/** Consecutive items mostly share a parent. */
const cachedParentsMax = 1_000;

const hashSize = 48;
const referenceSizeMax = 64;

export function createBlockSource(core: SourceDatabase): BlockSource {
  const id = core.column("stable_block_transactions", ["transaction_id"]);
  const index = core.column("stable_block_transactions", ["block_transaction_index", "index"]);
  const found = core.query<{ first: number | null; last: number | null }>(
    `SELECT (SELECT max(height) FROM stable_blocks) AS last, max(height) AS first
     FROM (SELECT height, lag(height) OVER (ORDER BY height) AS before FROM stable_blocks)
     WHERE before IS NULL OR before <> height - 1`,
  );
  const block = core.query<BlockColumns>(
    `SELECT indep_hash AS hash, previous_block AS previous, block_timestamp AS timestamp, tx_count AS txCount,
       weave_size AS weaveSize, block_size AS blockSize FROM stable_blocks WHERE height = ?`,
  );
  const below = core.query<{ n: number }>("SELECT count(*) AS n FROM stable_blocks WHERE height < ?");
  const ids = core.query<{ id: unknown }>(
    `SELECT ${id} AS id FROM stable_block_transactions WHERE block_indep_hash = ? ORDER BY "${index}"
     LIMIT ${transactionsPerBlockMax + 1}`,
  );
  return {
    heights: () => {
      const { first, last } = found.get() ?? { first: null, last: null };
      if (first === null || last === null) return undefined;
      if (!isCount(first) || !isPlace({ height: last, txIndex: 0, offset: -1 })) throw invalidBlock(last);
      return { first, last };
    },
    countBelow: (height) => below.get(height)?.n ?? 0,
    block: (height) => {
      const columns = block.get(height);
      const read = columns === undefined ? undefined : readBlock(height, columns);
      if (columns === undefined || read === undefined) throw invalidBlock(height);
      const listed = ids.all(columns.hash as Uint8Array).map((row) => idOf(row.id));
      const valid = listed.filter((each) => each !== undefined);
      if (valid.length !== read.txCount || new Set(valid).size !== read.txCount) throw invalidBlock(height);
      return { block: read, ids: valid };
    },
    transaction: createTransactions(core),
  };
}

type BlockColumns = Readonly<
  Record<"hash" | "previous" | "timestamp" | "txCount" | "weaveSize" | "blockSize", unknown>
>;

function invalidBlock(height: number): Error {
  return new Error(`core.db: the row of block ${height} is not valid, or does not name all its transactions`);
}

function readBlock(height: number, columns: BlockColumns): BlockRow | undefined {
  const { timestamp, txCount } = columns;
  const hash = blockHashOf(columns.hash);
  const previous = isEmpty(columns.previous) ? "" : blockHashOf(columns.previous);
  const [weaveSize, blockSize] = [amountOf(columns.weaveSize ?? 0), amountOf(columns.blockSize ?? 0)];
  if (hash === undefined || previous === undefined || weaveSize === undefined || blockSize === undefined)
    return undefined;
  if (!isCount(timestamp) || !isCount(txCount)) return undefined;
  const sizes = { weaveSize, blockSize };
  return { height, hash, previous, timestamp, txCount, ...sizes, text: "", checked: [], unchecked: [] };
}

type TransactionColumns = Readonly<
  Record<
    "format" | "lastTx" | "address" | "target" | "quantity" | "reward" | "dataSize" | "dataRoot" | "tagCount" | "end",
    unknown
  >
>;

function createTransactions(core: SourceDatabase): BlockSource["transaction"] {
  const end = core.columns("stable_transactions").has("offset") ? '"offset"' : "NULL";
  const row = core.query<TransactionColumns>(
    `SELECT format, last_tx AS lastTx, owner_address AS address, target, quantity, reward, data_size AS dataSize,
       data_root AS dataRoot, tag_count AS tagCount, ${end} AS "end" FROM stable_transactions WHERE id = ?`,
  );
  const ownerOf = createOwners(core, transactionOwnerAddress);
  const tagsOf = createTags(
    core,
    "stable_transaction_tags",
    ["transaction_id"],
    ["transaction_tag_index", "tag_index"],
  );
  return (id, txIndex) => {
    const key = Buffer.from(id, "base64url");
    const columns = row.get(key);
    if (columns === undefined) return undefined;
    const owner = ownerOf(columns.address);
    const tags = tagsOf(key, columns.tagCount);
    // The key of other signatures is recovered from the signature, which nodes have.
    if (owner === undefined || owner.key.length <= shortOwnerSizeMax || tags === undefined) return undefined;
    const fields = readTransaction(columns);
    if (fields === undefined) return undefined;
    const signer = { owner: encodeBase64url(owner.key), ownerAddress: owner.address, signatureType: "rsa" } as const;
    return { id, txIndex, ...signer, tags, ...fields, text: "" };
  };
}

function readTransaction(columns: TransactionColumns) {
  const { format, dataSize, end } = columns;
  const [quantity, reward] = [amountOf(columns.quantity), amountOf(columns.reward)];
  const [lastTx, target] = [referenceOf(columns.lastTx), referenceOf(columns.target)];
  const dataRoot = isEmpty(columns.dataRoot) ? "" : idOf(columns.dataRoot);
  if ((format !== 1 && format !== 2) || !isCount(dataSize)) return undefined;
  if (quantity === undefined || reward === undefined || lastTx === undefined || target === undefined) return undefined;
  if (dataRoot === undefined) return undefined;
  const isPlaced = isCount(end) && end >= dataSize && dataSize > 0;
  const weave = isPlaced ? { weaveStart: BigInt(end - dataSize), weaveEnd: BigInt(end) } : {};
  const version: 1 | 2 = format;
  return { format: version, quantity, reward, lastTx, target, dataSize, dataRoot, ...weave };
}

const itemColumns = [
  "id",
  "parent_id",
  "root_transaction_id",
  "anchor",
  "owner_address",
  "target",
  "offset",
  "data_offset",
  "data_size",
  "signature_type",
  "root_parent_offset",
  "tag_count",
] as const;

const itemTables = [
  { items: "stable_data_items", tags: "stable_data_item_tags" },
  { items: "new_data_items", tags: "new_data_item_tags" },
] as const;

export function createItemSource(bundles: SourceDatabase): ItemSource {
  const tables = itemTables.filter(({ items }) => bundles.columns(items).size > 0);
  for (const { items } of tables) for (const column of itemColumns) bundles.column(items, [column]);
  const columns = itemColumns.map((name) => `"${name}"`).join(", ");
  const readers = tables.map(({ items, tags }) => ({
    at: bundles.rows<StoredSourceItem>(`SELECT ${columns} FROM ${items} WHERE height = ?`),
    first: bundles.query<{ height: number | null }>(`SELECT min(height) AS height FROM ${items}`).get()?.height ?? null,
    parent: bundles.query<StoredSourceItem>(
      `SELECT ${columns} FROM ${items} WHERE id = ? AND root_transaction_id = ? AND height = ?`,
    ),
    tags: createTags(bundles, tags, ["data_item_id"], ["data_item_tag_index", "tag_index"]),
  }));
  const ownerOf = createOwners(bundles, (key) => addressFromBytes(sha256(key)));
  const tagsOf = (id: Uint8Array, count: unknown): readonly Tag[] | undefined => {
    for (const { tags } of readers) {
      const found = tags(id, count);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const parents = new Map<string, number>();
  /** The offset of a parent that is imported too; undefined when it is absent, left out, or nested too deep. */
  const parentAt = (names: SourceNames, root: SourceRoot, levels: number): number | undefined => {
    const { height } = root.block.block;
    const key = [height, ...[names.root, names.parent].map(encodeBase64url)].join();
    const known = parents.get(key);
    if (known !== undefined || levels === 0) return known;
    for (const { parent } of readers) {
      const stored = parent.get(names.parent, names.root, height);
      const row = stored === undefined ? "parent" : readItem(stored, root, levels - 1);
      if (typeof row === "string") continue;
      if (parents.size === cachedParentsMax) parents.clear();
      parents.set(key, row.place.offset);
      return row.place.offset;
    }
    return undefined;
  };
  const readItem = (stored: StoredSourceItem, root: SourceRoot, levels: number): ImportedItemRow | InvalidItem => {
    const names = readNames(stored);
    if (names === undefined) return "values";
    const placed = placeOf(stored, idFromBytes(names.root), root);
    if (typeof placed === "string") return placed;
    const owner = ownerOf(stored.owner_address);
    if (owner === undefined) return "owner";
    const tags = tagsOf(names.id, stored.tag_count);
    if (tags === undefined) return "tags";
    const isDirect = Buffer.compare(names.root, names.parent) === 0;
    const parentOffset = isDirect ? null : parentAt(names, root, levels);
    if (parentOffset === undefined) return "parent";
    const { signatureType, target, anchor } = names;
    const signer = { signatureType, owner: owner.key, ownerAddress: owner.address, target, anchor };
    return { id: idFromBytes(names.id), ...placed, parentOffset, ...signer, tags };
  };
  return {
    at: function* (height) {
      for (const { at, first } of readers) if (first !== null && first <= height) yield* at(height);
    },
    read: (stored, block, rootSize) => readItem(stored, { block, rootSize }, levelsMax),
  };
}

/** A block, and the sizes of its transactions: 0 for those that the index will not have. */
type SourceRoot = Readonly<{ block: SourceBlock; rootSize: (id: Id) => number }>;
type SourceNames = NonNullable<ReturnType<typeof readNames>>;

type Placed = Pick<ImportedItemRow, "place" | "headerSize" | "size">;

function placeOf(
  stored: StoredSourceItem,
  rootId: Id,
  { block: { block, ids }, rootSize }: SourceRoot,
): Placed | InvalidItem {
  const txIndex = ids.indexOf(rootId);
  const dataSize = rootSize(rootId);
  if (txIndex === -1 || dataSize === 0) return "root";
  const span = readSpan(stored, dataSize);
  if (span === undefined) return "place";
  const place = { height: block.height, txIndex, offset: span.start };
  return isPlace(place) ? { place, headerSize: span.headerSize, size: span.payloadSize } : "place";
}

function readNames(stored: StoredSourceItem) {
  const { id, parent_id: parent, root_transaction_id: root, signature_type: signatureType } = stored;
  const target = isEmpty(stored.target) ? "" : idOf(stored.target);
  const anchor = isEmpty(stored.anchor) ? "" : idOf(stored.anchor);
  if (!isBytes(id, idSize) || !isBytes(parent, idSize) || !isBytes(root, idSize)) return undefined;
  if (target === undefined || anchor === undefined || !isCount(signatureType)) return undefined;
  if (signatureLayout(signatureType) === undefined) return undefined;
  return { id, parent, root, signatureType, target, anchor };
}

/** The place of an item in its root, which has `rootSize` bytes. */
function readSpan(stored: StoredSourceItem, rootSize: number) {
  const { offset, data_offset: dataOffset, data_size: payloadSize, root_parent_offset: parentStart } = stored;
  if (!isCount(offset) || !isCount(dataOffset) || !isCount(payloadSize) || !isCount(parentStart)) return undefined;
  const start = parentStart + offset;
  const headerSize = dataOffset - offset;
  if (headerSize <= 0 || start + headerSize + payloadSize > rootSize) return undefined;
  return { start, headerSize, payloadSize };
}

type SourceOwner = Readonly<{ key: Uint8Array; address: Address }>;

/** Returns the owner of an address; undefined when the key is absent or has another address. */
function createOwners(
  source: SourceDatabase,
  addressOf: (key: Uint8Array) => string,
): (address: unknown) => SourceOwner | undefined {
  const find = source.query<{ key: unknown }>(
    `SELECT public_modulus AS key FROM wallets WHERE address = ? AND length(public_modulus) <= ${ownerSizeMax}`,
  );
  return (address) => {
    if (!isBytes(address, idSize)) return undefined;
    const key = find.get(address)?.key;
    const text = addressFromBytes(address);
    if (!(key instanceof Uint8Array) || key.length === 0 || addressOf(key) !== text) return undefined;
    return { key, address: text };
  };
}

/** Returns the tags of an id in their order; undefined when there are not as many as stated, or too large ones. */
function createTags(
  source: SourceDatabase,
  table: string,
  ids: readonly string[],
  indexes: readonly string[],
): (id: Uint8Array, count: unknown) => readonly Tag[] | undefined {
  if (source.columns(table).size === 0) return (_, count) => (count === 0 ? [] : undefined);
  const { tags, sectionSize } = tagLimits.lenient;
  const find = source.query<{ name: unknown; value: unknown }>(
    `SELECT n.name AS name, v.value AS value FROM ${table} t
       JOIN tag_names n ON n.hash = t.${source.column(table, ["tag_name_hash", "name_hash"])}
       JOIN tag_values v ON v.hash = t.${source.column(table, ["tag_value_hash", "value_hash"])}
     WHERE t.${source.column(table, ids)} = ? AND length(n.name) + length(v.value) <= ${sectionSize}
     GROUP BY t.${source.column(table, indexes)}
     ORDER BY t.${source.column(table, indexes)} LIMIT ${tags + 1}`,
  );
  return (id, count) => {
    if (count === 0) return [];
    const raw = find.all(id).map(({ name, value }) => ({ name: tagBytes(name), value: tagBytes(value) }));
    if (raw.length !== count) return undefined;
    const size = raw.reduce((sum, tag) => sum + tag.name.length + tag.value.length, 0);
    return size > sectionSize ? undefined : decodeTags(raw satisfies readonly RawTag[]);
  };
}

function tagBytes(value: unknown): Uint8Array {
  return value instanceof Uint8Array ? value : Buffer.from(typeof value === "string" ? value : "");
}

function isBytes(value: unknown, size: number): value is Uint8Array {
  return value instanceof Uint8Array && value.length === size;
}

function isEmpty(value: unknown): boolean {
  return value === null || value === "" || (value instanceof Uint8Array && value.length === 0);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function idOf(value: unknown): Id | undefined {
  return isBytes(value, idSize) ? idFromBytes(value) : undefined;
}

function blockHashOf(value: unknown): BlockHash | undefined {
  return isBytes(value, hashSize) ? blockHashFromBytes(value) : undefined;
}

function referenceOf(value: unknown): string | undefined {
  if (isEmpty(value)) return "";
  return value instanceof Uint8Array && value.length <= referenceSizeMax ? encodeBase64url(value) : undefined;
}

/** A whole number of 0 or more, which the tables have as text or as an integer. */
function amountOf(value: unknown): bigint | undefined {
  const text = isCount(value) ? String(value) : value;
  return typeof text === "string" && /^\d{1,30}$/.test(text) ? BigInt(text) : undefined;
}
