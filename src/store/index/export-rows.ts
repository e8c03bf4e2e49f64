/**
 * Rows of the index by height, for exports: blocks, transactions and data items.
 *
 * Rows are read in steps, one statement each. A long read transaction would prevent the writer from truncating its log.
 * @module
 */
import type { Database } from "bun:sqlite";
import type { Tag } from "../../arweave/tags.ts";
import { decodeBase64url } from "../../lib/base64url.ts";
import { isJsonObject, readJson } from "../../lib/json.ts";
import { closeDatabase, openForReading, prepareQuery } from "../sqlite.ts";
import { unpackText } from "./chain/header-texts.ts";
import { stableDepth } from "./index-types.ts";
import { packHalves, packHeight, parentLow, placeOfHalves, placeOfRow } from "./place.ts";
import { halvesSql, placeSql } from "./place-sql.ts";
import { decodeTagBlob } from "./rows/tag-blob.ts";

export type ExportBlock = Readonly<{
  hash: Uint8Array;
  height: number;
  previous: Uint8Array | null;
  /** Unix seconds. */
  timestamp: number;
  transactionCount: number;
  blockSize: bigint;
  nonce: Uint8Array | null;
  /** Hash of the proof-of-work solution. */
  solution: Uint8Array | null;
}>;

/** A transaction or a data item. */
export type ExportRow = Readonly<{
  height: number;
  txIndex: number;
  /** Offset of the item's header in the root transaction's data; −1 for a transaction. */
  offset: number;
  id: Uint8Array;
  target: Uint8Array | null;
  anchor: Uint8Array | string | null;
  headerSize: number;
  payloadSize: number;
  /** Negative for a transaction. */
  signatureType: number;
  tags: readonly Tag[];
  /** Unix seconds. */
  ingestedAt: number;
  ownerAddress: Uint8Array;
  /** Null above 64 bytes: a longer key is in the item or transaction that it signs. */
  ownerKey: Uint8Array | null;
  /** Only for a data item: the containing item or transaction, and the offset of its payload. */
  parent: Readonly<{ id: Uint8Array; payloadStart: number }> | null;
  /** Only for a data item. */
  rootId: Uint8Array | null;
  /** Only for a transaction. */
  transaction: Readonly<{ format: number; quantity: bigint; reward: bigint; dataRoot: Uint8Array | null }> | null;
}>;

/** The rows of one index file. */
export type ExportRows = Readonly<{
  /** The lowest followed height; 0 without a block. */
  firstHeight: () => number;
  /** The highest stable height; −1 when no block is stable. */
  stableHeight: () => number;
  /** Blocks of a range of heights, both inclusive. */
  blocks: (start: number, end: number) => ExportBlock[];
  /** Transactions and data items of a range of heights, both inclusive, in place order. */
  rows: (start: number, end: number) => Generator<ExportRow>;
  /** Number of pruned data items of a range of heights, both inclusive: `rows` does not have them. */
  prunedItems: (start: number, end: number) => number;
  close: () => void;
}>;

/** Rows of one statement. */
const rowsPerStep = 2_000;

const cacheBytes = 16 * 2 ** 20;

const keyBytesMax = 64;

/** Owners in memory, of about 200 bytes each. */
const cachedOwnersMax = 50_000;

/** @throws Error when the file does not exist, or is damaged in its first pages. */
export function openExportRows(path: string): ExportRows {
  const db = openForReading(path, cacheBytes);
  const edge = (which: "min" | "max") =>
    prepareQuery<{ height: number | null }>(db, `SELECT ${which}(height) AS height FROM blocks WHERE followed = 1`);
  const first = edge("min");
  const tip = edge("max");
  const blocks = prepareQuery<StoredBlock>(
    db,
    `SELECT hash, height, previous, timestamp, tx_count AS transactionCount, block_size AS blockSize, t.body
     FROM blocks b LEFT JOIN block_texts t USING (height) WHERE b.height BETWEEN ? AND ? ORDER BY b.height`,
  );
  const pruned = prepareQuery<{ count: number }>(
    db,
    "SELECT count(*) AS count FROM pruned_items WHERE n BETWEEN ? AND ?",
  );
  return {
    firstHeight: () => first.get()?.height ?? 0,
    stableHeight: () => Math.max(-1, (tip.get()?.height ?? -1) - stableDepth),
    blocks: (start, end) => blocks.all(start, end).map(exportBlock),
    rows: createRows(db),
    prunedItems: (start, end) => pruned.get(packHeight(start), packHeight(end + 1) - 1n)?.count ?? 0,
    close: () => closeDatabase(db),
  };
}

type StoredBlock = Omit<ExportBlock, "blockSize" | "nonce" | "solution"> &
  Readonly<{ blockSize: string; body: Uint8Array | null }>;

function exportBlock({ body, blockSize, ...block }: StoredBlock): ExportBlock {
  const fields = body === null ? undefined : readJson(unpackText(body));
  const bytesOf = (name: string): Uint8Array | null => {
    const text = isJsonObject(fields) ? fields[name] : undefined;
    return typeof text === "string" ? (decodeBase64url(text) ?? null) : null;
  };
  return { ...block, blockSize: BigInt(blockSize), nonce: bytesOf("nonce"), solution: bytesOf("hash") };
}

type StoredItem = Readonly<{
  high: number;
  low: number;
  fine: number;
  id: Uint8Array;
  target: Uint8Array | null;
  anchor: Uint8Array | string | null;
  head: number;
  size: number;
  sig: number;
  parent: number | null;
  tags: Uint8Array;
  ingested: number;
  owner: number;
}>;

function createRows(db: Database): ExportRows["rows"] {
  const step = prepareQuery<StoredItem>(
    db,
    `SELECT ${halvesSql("n")}, fine, id, target, anchor, head, size, sig, parent, tags, ingested, owner
     FROM items WHERE n > ? AND n < ? ORDER BY n LIMIT ?`,
  );
  const lookUps = { owner: createOwners(db), parent: createParents(db), transaction: createTransactions(db) };
  return function* (start, end) {
    // `after` is exclusive, so it begins below the smallest rowid of the first height.
    let after = packHeight(start) - 1n;
    const below = packHeight(end + 1);
    for (;;) {
      const found = step.all(after, below, rowsPerStep);
      for (const row of found) yield exportRow(row, lookUps);
      const last = found.at(-1);
      if (last === undefined || found.length < rowsPerStep) return;
      after = packHalves(last);
    }
  };
}

type LookUps = Readonly<{
  owner: (owner: number) => Owner;
  parent: (high: number, parent: number | null) => Parent;
  transaction: (high: number) => ExportRow["transaction"];
}>;

type Owner = Readonly<{ address: Uint8Array; key: Uint8Array | null }>;
type Parent = Readonly<{ id: Uint8Array; payloadStart: number }>;

function exportRow(row: StoredItem, { owner, parent, transaction }: LookUps): ExportRow {
  const isItem = row.sig > 0;
  const { id, target, anchor, tags, ingested } = row;
  const { address, key } = owner(row.owner);
  return {
    ...(isItem ? placeOfRow(row) : placeOfHalves(row.high, -1)),
    id,
    target,
    anchor,
    headerSize: row.head,
    payloadSize: row.size,
    signatureType: row.sig,
    tags: decodeTagBlob(tags),
    ingestedAt: ingested,
    ownerAddress: address,
    ownerKey: key,
    parent: isItem ? parent(row.high, row.parent) : null,
    rootId: isItem ? parent(row.high, null).id : null,
    transaction: isItem ? null : transaction(row.high),
  };
}

/** Looks up owners. They are never changed or removed, and most rows share them, so results are cached. */
function createOwners(db: Database): LookUps["owner"] {
  const find = prepareQuery<Owner>(
    db,
    `SELECT address, CASE WHEN length(key) <= ${keyBytesMax} THEN key END AS key FROM owners WHERE owner = ?`,
  );
  const cached = new Map<number, Owner>();
  return (owner) => {
    const known = cached.get(owner);
    if (known !== undefined) return known;
    const found = find.get(owner);
    if (found === undefined) throw new Error(`the index has no owner ${owner}`);
    if (cached.size === cachedOwnersMax) cached.clear();
    cached.set(owner, found);
    return found;
  };
}

function createTransactions(db: Database): LookUps["transaction"] {
  const find = prepareQuery<{ format: number; quantity: string; reward: string; dataRoot: Uint8Array | null }>(
    db,
    `SELECT format, quantity, reward, data_root AS dataRoot FROM transactions WHERE n = ${placeSql("?", "0")}`,
  );
  return (high) => {
    const found = find.get(high);
    return found === undefined ? null : { ...found, quantity: BigInt(found.quantity), reward: BigInt(found.reward) };
  };
}

/** Looks up the parents of items. Consecutive items mostly share a parent, so the last two results are cached. */
function createParents(db: Database): (high: number, parent: number | null) => Parent {
  // A bundle that the index filter excluded has only a row in `bundles`.
  const tables = ["items", "duplicates", "bundles", "pruned_items"];
  const at = placeSql("?1", "?2");
  const find = prepareQuery<{ id: Uint8Array; head: number }>(
    db,
    `${tables.map((table) => `SELECT id, head FROM ${table} WHERE n = ${at}`).join(" UNION ALL ")} LIMIT 1`,
  );
  const cached = new Map<boolean, Readonly<{ high: number; parent: number | null; found: Parent }>>();
  return (high, parent) => {
    const last = cached.get(parent === null);
    if (last !== undefined && last.high === high && last.parent === parent) return last.found;
    const row = find.get(high, parentLow(parent));
    if (row === undefined) throw new Error(`the index has no row for the parent of an item at ${high}, ${parent}`);
    const found = { id: row.id, payloadStart: parent === null ? 0 : parent + row.head };
    cached.set(parent === null, { high, parent, found });
    return found;
  };
}
