/**
 * Writes a data folder as an ar-io-node leaves it: the tables of its four databases, and its cached files.
 * Source: docs/reference/ar-io-node-folder.md.
 * @module
 */
import { Database } from "bun:sqlite";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sha256 } from "../../src/lib/hash.ts";

type Tag = Readonly<{ name: string; value: string }>;

/** A block of the chain. Bytes as the node has them. */
export type SourceBlock = Readonly<{
  hash: Uint8Array;
  previous: Uint8Array | null;
  height: number;
  timestamp: number;
  weaveSize: number;
  blockSize: number;
  /** Ids in the order of the block. */
  transactionIds: readonly Uint8Array[];
}>;

export type SourceTransaction = Readonly<{
  id: Uint8Array;
  height: number;
  index: number;
  signature: Uint8Array | null;
  format: number;
  lastTx: Uint8Array;
  owner: Uint8Array;
  target: Uint8Array;
  quantity: string;
  reward: string;
  dataSize: number;
  dataRoot: Uint8Array;
  /** End of the data in the weave; null: unknown. */
  offset: number | null;
  tags: readonly Tag[];
}>;

export type SourceItem = Readonly<{
  id: Uint8Array;
  parentId: Uint8Array;
  rootId: Uint8Array;
  height: number;
  index: number;
  signature: Uint8Array | null;
  signatureType: number;
  anchor: Uint8Array;
  owner: Uint8Array;
  target: Uint8Array;
  /** From the first byte of the parent's payload. */
  offset: number;
  size: number;
  dataOffset: number;
  dataSize: number;
  /** The parent's payload in the data of the root. */
  rootParentOffset: number;
  tags: readonly Tag[];
}>;

export type SourceFile = Readonly<{ id: Uint8Array; bytes: Uint8Array; verified?: boolean }>;

export type SourceBlocked = Readonly<{
  ids?: readonly Uint8Array[];
  hashes?: readonly Uint8Array[];
  names?: readonly string[];
  /** Name of their source. */
  source?: string;
}>;

export type SourceFolder = Readonly<{
  blocks?: readonly SourceBlock[];
  transactions?: readonly SourceTransaction[];
  items?: readonly SourceItem[];
  files?: readonly SourceFile[];
  blocked?: SourceBlocked;
  env?: string;
}>;

const blockColumns = `indep_hash BLOB PRIMARY KEY, height INTEGER NOT NULL, previous_block BLOB, nonce BLOB, hash BLOB,
  block_timestamp INTEGER NOT NULL, diff TEXT, cumulative_diff TEXT, last_retarget TEXT, reward_addr BLOB,
  reward_pool TEXT, block_size INTEGER, weave_size INTEGER, hash_list_merkle BLOB, wallet_list BLOB, tx_root BLOB,
  tx_count INTEGER NOT NULL, missing_tx_count INTEGER NOT NULL`;
const transactionColumns = `id BLOB PRIMARY KEY, height INTEGER, block_transaction_index INTEGER, signature BLOB,
  format INTEGER NOT NULL, last_tx BLOB NOT NULL, owner_address BLOB NOT NULL, target BLOB, quantity TEXT NOT NULL,
  reward TEXT NOT NULL, data_size INTEGER NOT NULL, data_root BLOB, content_type TEXT, tag_count INTEGER NOT NULL,
  "offset" INTEGER, content_encoding TEXT, indexed_at INTEGER`;
const itemColumns = `id BLOB NOT NULL, parent_id BLOB NOT NULL, root_transaction_id BLOB NOT NULL, height INTEGER,
  block_transaction_index INTEGER, signature BLOB, anchor BLOB NOT NULL, owner_address BLOB NOT NULL, target BLOB,
  data_offset INTEGER NOT NULL, data_size INTEGER NOT NULL, content_type TEXT, tag_count INTEGER NOT NULL,
  indexed_at INTEGER NOT NULL, "offset" INTEGER, size INTEGER, owner_offset INTEGER, owner_size INTEGER,
  signature_offset INTEGER, signature_size INTEGER, signature_type INTEGER, root_parent_offset INTEGER,
  content_encoding TEXT, PRIMARY KEY (id, parent_id)`;
const tagColumns = (subject: string) => `tag_name_hash BLOB NOT NULL, tag_value_hash BLOB NOT NULL,
  height INTEGER NOT NULL, block_transaction_index INTEGER NOT NULL, ${subject}_tag_index INTEGER NOT NULL,
  ${subject}_id BLOB NOT NULL,
  PRIMARY KEY (tag_name_hash, tag_value_hash, height, block_transaction_index, ${subject}_id, ${subject}_tag_index)`;
const names = `CREATE TABLE wallets (address BLOB PRIMARY KEY, public_modulus BLOB);
  CREATE TABLE tag_names (hash BLOB PRIMARY KEY, name BLOB NOT NULL);
  CREATE TABLE tag_values (hash BLOB PRIMARY KEY, value BLOB NOT NULL);`;

const schemas = {
  core: `${names}
    CREATE TABLE new_blocks (${blockColumns});
    CREATE TABLE stable_blocks (${blockColumns});
    CREATE INDEX stable_blocks_height ON stable_blocks (height);
    CREATE TABLE stable_block_transactions (block_indep_hash BLOB NOT NULL, transaction_id BLOB NOT NULL,
      block_transaction_index INTEGER NOT NULL, PRIMARY KEY (block_indep_hash, transaction_id));
    CREATE TABLE new_transactions (${transactionColumns});
    CREATE TABLE stable_transactions (${transactionColumns});
    CREATE INDEX stable_transactions_height ON stable_transactions (height, block_transaction_index);
    CREATE TABLE stable_transaction_tags (${tagColumns("transaction")});
    CREATE INDEX stable_transaction_tags_id ON stable_transaction_tags (transaction_id);
    CREATE TABLE missing_transactions (block_indep_hash BLOB, transaction_id BLOB, height INTEGER);`,
  bundles: `${names}
    CREATE TABLE new_data_items (${itemColumns});
    CREATE TABLE stable_data_items (${itemColumns});
    CREATE INDEX stable_data_items_height ON stable_data_items (height, block_transaction_index);
    CREATE TABLE new_data_item_tags (${tagColumns("data_item")});
    CREATE TABLE stable_data_item_tags (${tagColumns("data_item")});
    CREATE INDEX stable_data_item_tags_id ON stable_data_item_tags (data_item_id);`,
  data: `CREATE TABLE contiguous_data (hash BLOB PRIMARY KEY, data_size INTEGER NOT NULL,
      original_source_content_type TEXT, indexed_at INTEGER NOT NULL, cached_at INTEGER);
    CREATE TABLE contiguous_data_ids (id BLOB PRIMARY KEY, contiguous_data_hash BLOB NOT NULL,
      verified INTEGER NOT NULL DEFAULT 0, indexed_at INTEGER NOT NULL);`,
  moderation: `CREATE TABLE block_sources (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_at INTEGER);
    CREATE TABLE blocked_ids (id BLOB PRIMARY KEY, block_source_id INTEGER, notes TEXT, blocked_at INTEGER NOT NULL);
    CREATE TABLE blocked_hashes (hash BLOB PRIMARY KEY, block_source_id INTEGER, notes TEXT,
      blocked_at INTEGER NOT NULL);
    CREATE TABLE blocked_names (name TEXT PRIMARY KEY, block_source_id INTEGER, notes TEXT,
      blocked_at INTEGER NOT NULL);`,
} as const;

export const blockedAt = 1_700_000_000;

/** Writes a data folder; its `.env` is beside it. */
export function writeArIoNodeFolder(folder: string, source: SourceFolder): void {
  mkdirSync(join(folder, "sqlite"), { recursive: true });
  if (source.env !== undefined) writeFileSync(join(dirname(folder), ".env"), source.env);
  inDatabase(folder, "core", (db) => writeCore(db, source));
  inDatabase(folder, "bundles", (db) => writeBundles(db, source.items ?? []));
  inDatabase(folder, "data", (db) => writeFiles(db, folder, source.files ?? []));
  inDatabase(folder, "moderation", (db) => writeBlocked(db, source.blocked ?? {}));
}

/** Runs work on one database of a folder, in WAL mode, and closes it. */
export function inDatabase(folder: string, name: keyof typeof schemas, work: (db: Database) => void): void {
  const db = new Database(join(folder, "sqlite", `${name}.db`));
  db.run("PRAGMA journal_mode = WAL");
  db.run("BEGIN");
  if (db.query("SELECT 1 FROM sqlite_schema").get() === null) db.run(schemas[name]);
  work(db);
  db.run("COMMIT");
  db.close(true);
}

function writeCore(db: Database, { blocks = [], transactions = [] }: SourceFolder): void {
  for (const block of blocks) {
    db.run(
      `INSERT INTO stable_blocks (indep_hash, height, previous_block, nonce, hash, block_timestamp, block_size,
         weave_size, tx_count, missing_tx_count) VALUES (?, ?, ?, x'', x'', ?, ?, ?, ?, 0)`,
      [
        ...[block.hash, block.height, block.previous, block.timestamp, block.blockSize, block.weaveSize],
        block.transactionIds.length,
      ],
    );
    for (const [index, id] of block.transactionIds.entries())
      db.run("INSERT INTO stable_block_transactions VALUES (?, ?, ?)", [block.hash, id, index]);
  }
  for (const row of transactions) {
    db.run("INSERT INTO stable_transactions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [
      ...[row.id, row.height, row.index, row.signature, row.format, row.lastTx, sha256(row.owner), row.target],
      ...[row.quantity, row.reward, row.dataSize, row.dataRoot, null, row.tags.length, row.offset, null, blockedAt],
    ]);
    writeNames(db, "stable_transaction_tags", row);
  }
}

function writeBundles(db: Database, items: readonly SourceItem[]): void {
  for (const row of items) {
    db.run(`INSERT INTO stable_data_items VALUES (${Array(23).fill("?").join(", ")})`, [
      ...[row.id, row.parentId, row.rootId, row.height, row.index, row.signature, row.anchor, sha256(row.owner)],
      ...[row.target, row.dataOffset, row.dataSize, null, row.tags.length, blockedAt, row.offset, row.size],
      ...[null, row.owner.length, null, null, row.signatureType, row.rootParentOffset, null],
    ]);
    writeNames(db, "stable_data_item_tags", row);
  }
}

type Named = Readonly<{
  id: Uint8Array;
  owner: Uint8Array;
  height: number;
  index: number;
  tags: readonly Tag[];
}>;

function writeNames(db: Database, table: string, { id, owner, height, index, tags }: Named): void {
  db.run("INSERT OR IGNORE INTO wallets VALUES (?, ?)", [sha256(owner), owner]);
  for (const [at, tag] of tags.entries()) {
    const [name, value] = [Buffer.from(tag.name), Buffer.from(tag.value)];
    db.run("INSERT OR IGNORE INTO tag_names VALUES (?, ?)", [sha1(name), name]);
    db.run("INSERT OR IGNORE INTO tag_values VALUES (?, ?)", [sha1(value), value]);
    db.run(`INSERT INTO ${table} VALUES (?, ?, ?, ?, ?, ?)`, [sha1(name), sha1(value), height, index, at, id]);
  }
}

function sha1(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(new Bun.CryptoHasher("sha1").update(bytes).digest());
}

function writeFiles(db: Database, folder: string, files: readonly SourceFile[]): void {
  for (const { id, bytes, verified = true } of files) {
    const hash = sha256(bytes);
    db.run("INSERT OR IGNORE INTO contiguous_data VALUES (?, ?, NULL, ?, ?)", [
      ...[hash, bytes.length, blockedAt, blockedAt],
    ]);
    db.run("INSERT INTO contiguous_data_ids VALUES (?, ?, ?, ?)", [id, hash, verified ? 1 : 0, blockedAt]);
    const path = contiguousFile(folder, hash);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
  }
}

/** The path of a cached file. */
export function contiguousFile(folder: string, hash: Uint8Array): string {
  const name = Buffer.from(hash).toString("base64url");
  return join(folder, "contiguous", "data", name.slice(0, 2), name.slice(2, 4), name);
}

function writeBlocked(db: Database, { ids = [], hashes = [], names = [], source }: SourceBlocked): void {
  if (source !== undefined) db.run("INSERT INTO block_sources VALUES (1, ?, ?)", [source, blockedAt]);
  const values = [source === undefined ? null : 1, "a note", blockedAt];
  for (const id of ids) db.run("INSERT INTO blocked_ids VALUES (?, ?, ?, ?)", [id, ...values]);
  for (const hash of hashes) db.run("INSERT INTO blocked_hashes VALUES (?, ?, ?, ?)", [hash, ...values]);
  for (const name of names) db.run("INSERT INTO blocked_names VALUES (?, ?, ?, ?)", [name, ...values]);
}
