/**
 * The tables of the index. `n` is always a packed place (place.ts), so every table is in chain order and a
 * reorganization is a range.
 *
 * The columns are documented only here. New scripts are added at the end; released scripts never change.
 * Source: docs/reference/index-layout.md.
 * @module
 */

/** Columns of `items` and of `duplicates`. */
const rowColumns = `
  n INTEGER PRIMARY KEY,
  fine INTEGER NOT NULL,
  id BLOB NOT NULL,
  owner INTEGER NOT NULL,
  target BLOB,
  anchor ANY,
  head INTEGER NOT NULL,
  size INTEGER NOT NULL,
  sig INTEGER NOT NULL,
  parent INTEGER,
  tags BLOB NOT NULL,
  digest BLOB,
  ingested INTEGER NOT NULL,
  trusted INTEGER NOT NULL
`;

/**
 * items: one row for each id, transactions and data items alike, at the canonical place of the id.
 *   fine       an item's exact offset is ((n & 2^31−1) << 6) + fine
 *   anchor     the bytes of a text in canonical base64url, else the text
 *   head       bytes of the item's header; 0 for a transaction
 *   size       bytes of payload
 *   sig        signature type; negative for a transaction
 *   parent     offset of the parent item's header; NULL: directly in the transaction
 *   tags       tag-blob.ts
 *   digest     SHA-256 of an item's payload
 *   ingested   Unix seconds
 *   trusted    1: this process has not verified the signature (announced and imported rows)
 * duplicates: the same columns, for the places of an id that are not the lowest.
 * postings: (key, n); keys are those of filter-key.ts for id, owner, recipient and each tag.
 * transactions: fields that only transactions have, at each of their places, canonical or not. Amounts are text,
 *   because they exceed 2^63. weave_start and weave_end are absolute and half-open; NULL when unknown or without data.
 * blocks: stored_count: rows of `transactions` at that height; item_count: data items among the rows of `items`;
 *   last_item_at: the newest `ingested` of these; followed: 0 for a block that only holds single transactions.
 * bundles: the state of each bundle; due_at is Unix milliseconds, NULL when no work is due; next_…: progress of the
 *   present attempt, and the items that it has indexed.
 * invalid_items: the first entries of the bundle at n that are not valid items (bundle-table.ts has the limit);
 *   byte: the item's offset in the root's data.
 * counters: sums that are expensive to count (index-counters.ts).
 */
const tables = `
CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE blocks (
  height INTEGER PRIMARY KEY,
  hash BLOB NOT NULL,
  previous BLOB,
  timestamp INTEGER NOT NULL,
  tx_count INTEGER NOT NULL,
  stored_count INTEGER NOT NULL,
  item_count INTEGER NOT NULL DEFAULT 0,
  last_item_at INTEGER,
  followed INTEGER NOT NULL,
  weave_size TEXT NOT NULL,
  block_size TEXT NOT NULL,
  checked TEXT NOT NULL,
  unchecked TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX blocks_by_hash ON blocks (hash);
CREATE INDEX blocks_with_items ON blocks (height) WHERE item_count > 0;
CREATE INDEX blocks_by_item_time ON blocks (last_item_at, height) WHERE last_item_at IS NOT NULL;
CREATE TABLE block_texts (height INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;

CREATE TABLE owners (owner INTEGER PRIMARY KEY, address BLOB NOT NULL UNIQUE, key BLOB NOT NULL) STRICT;

CREATE TABLE items (${rowColumns}) STRICT;
CREATE TABLE duplicates (${rowColumns}) STRICT;
CREATE INDEX duplicates_by_id ON duplicates (id, n);
CREATE TABLE postings (key INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (key, n)) STRICT, WITHOUT ROWID;

CREATE TABLE transactions (
  n INTEGER PRIMARY KEY,
  format INTEGER NOT NULL,
  quantity TEXT NOT NULL,
  reward TEXT NOT NULL,
  data_root BLOB,
  weave_start INTEGER,
  weave_end INTEGER
) STRICT;
CREATE INDEX transactions_by_weave ON transactions (weave_end) WHERE weave_end IS NOT NULL;
CREATE TABLE transaction_texts (n INTEGER PRIMARY KEY, data_at INTEGER, body BLOB NOT NULL) STRICT;

CREATE TABLE missing (
  n INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  attempts INTEGER NOT NULL,
  due_at INTEGER NOT NULL
) STRICT;
CREATE INDEX missing_due ON missing (due_at, n);

CREATE TABLE filters (filter INTEGER PRIMARY KEY, canonical TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE bundles (
  n INTEGER PRIMARY KEY,
  fine INTEGER NOT NULL,
  id BLOB NOT NULL,
  parent INTEGER,
  head INTEGER NOT NULL,
  size INTEGER NOT NULL,
  depth INTEGER NOT NULL,
  bypass_filter INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'unbundling', 'skipped', 'indexed', 'failed')),
  due_at INTEGER,
  next_entry INTEGER NOT NULL DEFAULT 0,
  next_matched INTEGER NOT NULL DEFAULT 0,
  next_duplicated INTEGER NOT NULL DEFAULT 0,
  reason TEXT,
  format_id INTEGER,
  unbundle_filter_id INTEGER REFERENCES filters,
  index_filter_id INTEGER REFERENCES filters,
  previous_unbundle_filter_id INTEGER REFERENCES filters,
  previous_index_filter_id INTEGER REFERENCES filters,
  data_item_count INTEGER,
  matched_data_item_count INTEGER,
  duplicated_data_item_count INTEGER,
  import_attempt_count INTEGER NOT NULL DEFAULT 0,
  retry_attempt_count INTEGER NOT NULL DEFAULT 0,
  first_queued_at INTEGER,
  last_queued_at INTEGER,
  first_skipped_at INTEGER,
  last_skipped_at INTEGER,
  first_unbundled_at INTEGER,
  last_unbundled_at INTEGER,
  first_fully_indexed_at INTEGER,
  last_fully_indexed_at INTEGER,
  first_retried_at INTEGER,
  last_retried_at INTEGER
) STRICT;
CREATE TABLE invalid_items (
  n INTEGER NOT NULL,
  entry INTEGER NOT NULL,
  byte INTEGER NOT NULL,
  id BLOB NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (n, entry)
) STRICT, WITHOUT ROWID;
CREATE INDEX bundles_by_id ON bundles (id, n);
CREATE INDEX bundles_due ON bundles (due_at, n) WHERE due_at IS NOT NULL;
CREATE INDEX bundles_taken ON bundles (n) WHERE state = 'unbundling';
`;

/**
 * Parts of the posting index (part-image.ts), each immutable; n = part << 24 | number of the body.
 *   first, last   packed places of its first and last row
 *   starts        the first place of each block of places
 * unsealed: rows with all their postings in `postings`. Any other row is in at least one part, with its id, owner,
 *   recipient and tags. A part may also name a place whose row was removed or replaced, so its
 *   results are checked against the row.
 */
const parts = `
CREATE TABLE unsealed (n INTEGER PRIMARY KEY) STRICT;
INSERT INTO unsealed SELECT n FROM items;
CREATE TABLE parts (
  part INTEGER PRIMARY KEY AUTOINCREMENT,
  level INTEGER NOT NULL,
  count INTEGER NOT NULL,
  entries INTEGER NOT NULL,
  buckets INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  starts BLOB NOT NULL
) STRICT;
CREATE TABLE part_places (n INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE part_rare (n INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE part_lists (n INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE part_keys (
  part INTEGER NOT NULL,
  key INTEGER NOT NULL,
  chunk INTEGER NOT NULL,
  count INTEGER NOT NULL,
  list INTEGER NOT NULL,
  PRIMARY KEY (part, key, chunk)
) STRICT, WITHOUT ROWID;
`;

/** Duplicates of a bundle are counted on demand, because the lower of two places can change. */
const duplicatesOfBundles = `
CREATE INDEX duplicates_of_bundle ON duplicates (n >> 31, parent) WHERE sig > 0;
ALTER TABLE bundles DROP COLUMN duplicated_data_item_count;
ALTER TABLE bundles DROP COLUMN next_duplicated;
`;

/** Signatures of items in no block, whose bytes are in no data that the index could read. */
const pendingSignatures = `
CREATE TABLE pending_signatures (n INTEGER PRIMARY KEY, signature BLOB NOT NULL) STRICT;
`;

/**
 * Data items whose rows were pruned: their locations, for reads by id and for the block list. Columns as in `items`.
 *   type   number in `content_types`; NULL without Content-Type and Content-Encoding. `text`: JSON of these two values
 * The index by id has the first 8 bytes of the id.
 */
const prunedItems = `
CREATE TABLE content_types (type INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE pruned_items (
  n INTEGER PRIMARY KEY,
  fine INTEGER NOT NULL,
  id BLOB NOT NULL,
  owner INTEGER NOT NULL,
  head INTEGER NOT NULL,
  size INTEGER NOT NULL,
  sig INTEGER NOT NULL,
  parent INTEGER,
  digest BLOB,
  type INTEGER
) STRICT;
CREATE INDEX pruned_items_by_id ON pruned_items (substr(id, 1, 8));
`;

/** Passes over the bundles (bundle-passes.ts): places from `first` to `last`; the places above `next` are done. */
const bundlePasses = `
CREATE TABLE bundle_passes (
  pass INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL CHECK (kind IN ('filters', 'operator')),
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  next INTEGER NOT NULL,
  bypass INTEGER NOT NULL
) STRICT;
`;

/**
 * Ranges of heights whose data items are also in the columnar store (stored-partitions.ts), both inclusive.
 *   last         the last height that queries read there: lower than `written_last` after a rollback, even than `first`
 *   last_block   hash of the block at `last`; NULL when unknown
 *   items        data items of the range that have been only in the store since it was added
 * pruned_items.stored: 1 for a row that the columnar store had when it was pruned.
 */
const storedPartitions = `
CREATE TABLE stored_partitions (
  first INTEGER PRIMARY KEY,
  last INTEGER NOT NULL,
  written_last INTEGER NOT NULL,
  last_block BLOB,
  items INTEGER NOT NULL
) STRICT;
ALTER TABLE pruned_items ADD COLUMN stored INTEGER NOT NULL DEFAULT 0;
`;

/**
 * Ids in parts, and merges in a thread of their own.
 *   parts.level    −1: a merge is storing its bodies; −2: replaced, its bodies are being removed
 *   parts.keys     number of distinct keys; NULL for a part of an earlier release, which has no ids: these are in
 *                  `postings` until the part is merged
 *   parts.filter   name of the file of its filter (part-filter.ts); NULL: none
 * meta.parts_version: counts the changes of the parts that readers see.
 * meta.old_ids_from: while `postings` has ids of rows that are in parts: the lowest key that may be one.
 */
const idsInParts = `
ALTER TABLE parts ADD COLUMN keys INTEGER;
ALTER TABLE parts ADD COLUMN filter TEXT;
INSERT OR IGNORE INTO meta VALUES ('parts_version', 0);
INSERT OR IGNORE INTO meta SELECT 'old_ids_from', 0 WHERE EXISTS (SELECT 1 FROM parts);
`;

/**
 * The journal (journal.ts): records of successive changes, as `change-record.ts` writes them.
 *   last    number of the record's last change; changes are numbered from 1
 *   count   changes of the record
 *   body    empty: a reset, for changes without details
 * meta.journal: its name, which differs in each index.
 */
const changes = `
CREATE TABLE changes (last INTEGER PRIMARY KEY, count INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
INSERT OR IGNORE INTO meta VALUES ('journal', lower(hex(randomblob(6))));
`;

/** Records of the journal have places and bundles: those without are dropped, and readers begin anew. */
const placesOfChanges = `
DELETE FROM changes;
UPDATE meta SET value = lower(hex(randomblob(6))) WHERE name = 'journal';
`;

/**
 * All invalid entries of a bundle, also those that `invalid_items` does not list; NULL for a bundle that an earlier
 * release unbundled. A bundle that was in progress is read again from its first entry, so that its count is complete.
 */
const invalidCounts = `
ALTER TABLE bundles ADD COLUMN invalid_item_count INTEGER;
ALTER TABLE bundles ADD COLUMN next_invalid INTEGER NOT NULL DEFAULT 0;
UPDATE bundles SET next_entry = 0, next_matched = 0 WHERE next_entry > 0;
`;

/**
 * From here on, a list of `part_lists` may have the rows of all of a part (`wholePart` in part-codec.ts). Earlier
 * releases would find none of them; parts of earlier releases are read as they are.
 */
const wholeLists = "SELECT 1;";

/**
 * Ids apart from the other keys of a part, in buckets of their own (part-entries.ts); buckets have a form in their
 * first byte. `entries`, `buckets` and `keys` of such a part are without ids.
 *   parts.id_buckets   NULL for a part of an earlier release, whose buckets have no form: its ids are in `postings`
 *                      when `keys` is NULL, and else among its keys
 */
const idsApart = `
CREATE TABLE part_ids (n INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
ALTER TABLE parts ADD COLUMN id_buckets INTEGER;
`;

/**
 * From here on, a packed bucket may have steps between the rows of a key, and the name of a file of filters the bits of
 * an id. Earlier releases would fail at each such bucket; those of earlier releases are read as they are.
 */
const stepsInBuckets = "SELECT 1;";

/** The scripts from an empty file to the newest version. */
export const indexMigrations: readonly string[] = [
  tables,
  parts,
  duplicatesOfBundles,
  pendingSignatures,
  prunedItems,
  bundlePasses,
  storedPartitions,
  idsInParts,
  changes,
  placesOfChanges,
  invalidCounts,
  wholeLists,
  idsApart,
  stepsInBuckets,
];
