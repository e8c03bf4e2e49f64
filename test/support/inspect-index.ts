/**
 * Looking through a whole index for what cannot be: damage of the file, rows without postings, sums that are off.
 *
 * Reads everything; for `cairn doctor` and for tests, not for a running service.
 *
 * Looking through the posting index: every row is found by each of its keys, in the B-tree or in a part.
 * @module
 */
import type { Database } from "bun:sqlite";
import { createFilterKeys, type FilterKeys } from "../../src/store/index/filter-key.ts";
import { type CounterName, createCountsReader } from "../../src/store/index/index-counters.ts";
import type { PartInfo } from "../../src/store/index/parts/part-list.ts";
import { createPartReads, type IdCandidate, type PartReads } from "../../src/store/index/parts/part-reads.ts";
import { createPartLoader } from "../../src/store/index/parts/parts.ts";
import { packHeight, pendingHeight } from "../../src/store/index/place.ts";
import type { FindableRow } from "../../src/store/index/postings.ts";
import { findableRow, type TableRow } from "../../src/store/index/rows/row-table.ts";
import { filterKeysOfRow } from "../../src/store/index/rows/stored-row.ts";
import { checkIntegrity, closeDatabase, inSnapshot, openForReading, prepareQuery } from "../../src/store/sqlite.ts";

/** What was found. */
export type Inspection = Readonly<{
  /** One line a fault, at most `faultsMax`; empty when all is well. */
  faults: readonly string[];
  /** Rows of items and transactions that were looked at. */
  rows: number;
}>;

/** Maximum number of reported lines. */
const faultsMax = 50;
const cacheBytes = 64 * 2 ** 20;

/**
 * Inspects an index file.
 *
 * @param checkpoint - Called every thousand rows; throws to end the inspection.
 * @throws Error when the file cannot be opened at all.
 */
export function inspectIndex(path: string, checkpoint: () => void = () => undefined): Inspection {
  const db = openForReading(path, cacheBytes);
  try {
    const damage = checkIntegrity(db, faultsMax);
    // Damaged pages make every further reading meaningless.
    if (damage.length > 0) return { faults: damage, rows: 0 };
    return inSnapshot(db, () => {
      const faults = [...checkSums(db), ...checkStructure(db)];
      const postings = checkFindable(db, checkpoint);
      return { faults: [...faults, ...postings.faults].slice(0, faultsMax), rows: postings.rows };
    });
  } finally {
    closeDatabase(db);
  }
}

/** Each stored number, and how it is counted. */
const counted: readonly (readonly [CounterName, string])[] = [
  ["owners", "SELECT count(*) AS n FROM owners"],
  ["blocks", "SELECT coalesce(sum(followed), 0) AS n FROM blocks"],
  ["blockTransactions", "SELECT coalesce(sum(tx_count * followed), 0) AS n FROM blocks"],
  ["transactions", "SELECT coalesce(sum(stored_count * followed), 0) AS n FROM blocks"],
  ["items", "SELECT count(*) AS n FROM items WHERE sig > 0 AND n < $pending"],
  ["nestedItems", "SELECT count(*) AS n FROM items WHERE sig > 0 AND n < $pending AND parent IS NOT NULL"],
  ["pendingItems", "SELECT count(*) AS n FROM items WHERE sig > 0 AND n >= $pending"],
  ["pendingTransactions", "SELECT count(*) AS n FROM items WHERE sig < 0 AND n >= $pending"],
  ["duplicates", "SELECT count(*) AS n FROM duplicates"],
  ["missingTransactions", "SELECT count(*) AS n FROM missing"],
  ["bundles", "SELECT count(*) AS n FROM bundles"],
  ["bundlesQueued", "SELECT count(*) AS n FROM bundles WHERE state IN ('queued', 'unbundling')"],
  ["bundlesFailed", "SELECT count(*) AS n FROM bundles WHERE state = 'failed'"],
  ["bundleItems", "SELECT coalesce(sum(data_item_count), 0) AS n FROM bundles"],
  ["matchedItems", "SELECT coalesce(sum(matched_data_item_count), 0) AS n FROM bundles"],
];

function checkSums(db: Database): string[] {
  const stored = createCountsReader(db)();
  const pending = packHeight(pendingHeight).toString();
  return counted.flatMap(([name, sql]) => {
    const found = prepareQuery<{ n: number }>(db, sql.replaceAll("$pending", pending)).get()?.n;
    return found === stored[name] ? [] : [`the number of ${name} is stored as ${stored[name]}, counted ${found}`];
  });
}

/** Rows that must not exist; each query returns their names. */
const impossible: readonly (readonly [string, string])[] = [
  [
    "a block's item count is off",
    `SELECT height AS what FROM blocks b WHERE item_count <>
       (SELECT count(*) FROM items WHERE sig > 0 AND n BETWEEN height << 41 AND (height << 41) | 0x1ffffffffff)`,
  ],
  [
    "a block's transaction count is off",
    `SELECT height AS what FROM blocks b WHERE stored_count <>
       (SELECT count(*) FROM transactions WHERE n BETWEEN height << 41 AND (height << 41) | 0x1ffffffffff)`,
  ],
  [
    "a followed block does not follow the one below it",
    `SELECT a.height AS what FROM blocks a JOIN blocks b ON b.height = a.height - 1
     WHERE a.followed = 1 AND b.followed = 1 AND a.previous IS NOT b.hash AND length(a.previous) > 0`,
  ],
  ["a block has no text", "SELECT height AS what FROM blocks WHERE height NOT IN (SELECT height FROM block_texts)"],
  [
    "a row is in no block",
    `SELECT n >> 31 AS what FROM items
     WHERE n >> 41 <> ${pendingHeight} AND n >> 41 NOT IN (SELECT height FROM blocks)`,
  ],
  [
    "a transaction lacks what only transactions have",
    `SELECT n >> 31 AS what FROM (SELECT n, sig FROM items UNION ALL SELECT n, sig FROM duplicates)
     WHERE sig < 0 AND (n NOT IN (SELECT n FROM transactions) OR n NOT IN (SELECT n FROM transaction_texts))`,
  ],
  [
    "fields of a transaction are without its row",
    `SELECT n >> 31 AS what FROM (SELECT n FROM transactions UNION SELECT n FROM transaction_texts)
     WHERE n NOT IN (SELECT n FROM items UNION ALL SELECT n FROM duplicates)`,
  ],
  ["a missing transaction is there", "SELECT n >> 31 AS what FROM missing WHERE n IN (SELECT n FROM transactions)"],
  [
    "a missing row is waiting to be sealed",
    "SELECT n >> 31 AS what FROM unsealed WHERE n NOT IN (SELECT n FROM items)",
  ],
  ["one place has two rows", "SELECT n >> 31 AS what FROM duplicates WHERE n IN (SELECT n FROM items)"],
  [
    "an indexed item has a compact place too",
    `SELECT n >> 31 AS what FROM pruned_items
     WHERE n IN (SELECT n FROM items UNION ALL SELECT n FROM duplicates)`,
  ],
  [
    "a compact place is in no transaction",
    "SELECT n >> 31 AS what FROM pruned_items WHERE (n >> 31) << 31 NOT IN (SELECT n FROM transactions)",
  ],
  ["two rows have one id", "SELECT hex(id) AS what FROM items GROUP BY id HAVING count(*) > 1"],
  [
    "a duplicate's id has no lower place",
    `SELECT d.n >> 31 AS what FROM duplicates d
     WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.id = d.id AND i.n < d.n)`,
  ],
  [
    "an invalid entry belongs to no bundle",
    "SELECT n >> 31 AS what FROM invalid_items WHERE n NOT IN (SELECT n FROM bundles)",
  ],
];

function checkStructure(db: Database): string[] {
  // Ids have no index of their own but postings, which are what is being checked.
  db.run("PRAGMA automatic_index = ON");
  return impossible.flatMap(([fault, sql]) =>
    prepareQuery<{ what: number | string }>(db, `${sql} LIMIT 5`)
      .all()
      .map(({ what }) => `${fault}: ${what}`),
  );
}

/** What was found: one line a fault, and the rows that were looked at. */
export type PostingFaults = Readonly<{ faults: readonly string[]; rows: number }>;

const rowsPerRead = 1_000;
/** Sealed rows of which every key is looked for in the parts: each costs a few reads a key and part. */
const sealedRowsChecked = 20_000;

/**
 * Checks that each row has its postings and that the B-tree has no others. Of sealed rows a sample is checked,
 * spread over all of them.
 *
 * @param checkpoint - Called every thousand rows; throws to end the check.
 */
export function checkFindable(db: Database, checkpoint: () => void): PostingFaults {
  const keys = keysOf(db);
  const parts = createPartReads(db);
  const infos = parts.list();
  const faults: string[] = checkParts(db);
  const counts = prepareQuery<{ rows: number; unsealed: number }>(
    db,
    "SELECT (SELECT count(*) FROM items) AS rows, (SELECT count(*) FROM unsealed) AS unsealed",
  ).get() ?? { rows: 0, unsealed: 0 };
  const every = Math.max(1, Math.floor((counts.rows - counts.unsealed) / sealedRowsChecked));
  const has = prepareQuery<{ found: number }>(
    db,
    "SELECT count(*) AS found FROM postings WHERE key IN (SELECT value FROM json_each(?)) AND n = (? << 31) | ?",
  );
  // While an index of an earlier release is migrated, ids of sealed rows are in the B-tree, in a part, or in both.
  const isMigrated = prepareQuery(db, "SELECT 1 FROM meta WHERE name = 'old_ids_from'").get() === undefined;
  const isPosted = ({ high, low, id }: FindableRow): boolean =>
    has.get(JSON.stringify([keys.id(id)]), high, low)?.found === 1;
  let rows = 0;
  let expected = 0;
  for (const { row, isUnsealed } of eachRow(db, checkpoint)) {
    rows += 1;
    const filters = [...new Set(filterKeysOfRow(keys, row))];
    const wanted = isUnsealed ? [keys.id(row.id), ...filters] : [];
    expected += wanted.length;
    const found = has.get(JSON.stringify(wanted), row.high, row.low)?.found;
    if (found !== wanted.length) faults.push(`a row has ${found} of ${wanted.length} postings: ${row.high}`);
    if (isUnsealed || rows % every !== 0) continue;
    const isIdFound = hasPlace(parts.placesOfIds([keys.id(row.id)]), row) || (!isMigrated && isPosted(row));
    if (!isIdFound || !isInParts(parts, infos, filters, row) || !isInParts(parts, infos, marksOf(keys, row), row))
      faults.push(`a row is found by no part: ${row.high}`);
  }
  const all = prepareQuery<{ n: number }>(db, "SELECT count(*) AS n FROM postings").get()?.n;
  if (isMigrated ? all !== expected : (all ?? 0) < expected)
    faults.push(`there are ${all} postings, the rows have ${expected}`);
  return { faults, rows };
}

/** Bodies that belong to no part, and parts whose rows do not state their content. */
function checkParts(db: Database): string[] {
  const bodies = ["part_places", "part_ids", "part_rare", "part_lists"].map(
    (table) => `SELECT n >> 24 AS part FROM ${table}`,
  );
  const orphans = prepareQuery<{ part: number }>(
    db,
    `SELECT DISTINCT part FROM (${bodies.join(" UNION ALL ")} UNION ALL SELECT part FROM part_keys)
     WHERE part NOT IN (SELECT part FROM parts)`,
  );
  const load = createPartLoader(db);
  const parts = prepareQuery<{ part: number }>(db, "SELECT part FROM parts WHERE level >= 0").all();
  return [
    ...orphans.all().map(({ part }) => `bodies belong to no part: ${part}`),
    ...parts.flatMap(({ part }) => {
      try {
        load(part);
        return [];
      } catch (error) {
        return [`the part ${part} is not as its row states: ${String(error)}`];
      }
    }),
  ];
}

function* eachRow(
  db: Database,
  checkpoint: () => void,
): Generator<Readonly<{ row: FindableRow; isUnsealed: boolean }>> {
  const query = prepareQuery<TableRow & Readonly<{ unsealed: number }>>(
    db,
    `SELECT r.n >> 31 AS high, r.n & 0x7fffffff AS low, r.id, r.target, r.sig, r.parent, r.tags, r.ingested,
       coalesce(o.address, zeroblob(32)) AS address, r.n IN (SELECT n FROM unsealed) AS unsealed
     FROM items r LEFT JOIN owners o USING (owner) WHERE r.n > (? << 31) | ? ORDER BY r.n LIMIT ${rowsPerRead}`,
  );
  let last = { high: -1, low: 0 };
  for (;;) {
    checkpoint();
    const rows = query.all(last.high, last.low);
    for (const row of rows) yield { row: findableRow(row), isUnsealed: row.unsealed === 1 };
    const end = rows.at(-1);
    if (end === undefined) return;
    last = end;
  }
}

function hasPlace(candidates: readonly IdCandidate[], { high, low }: FindableRow): boolean {
  return candidates.some(({ place }) => place.high === high && place.low === low);
}

/** The key that only transactions have. */
function marksOf(keys: FilterKeys, { sig }: FindableRow): number[] {
  return sig < 0 ? [keys.transaction()] : [];
}

/** Whether some part has the row under all keys. */
function isInParts(
  parts: PartReads,
  infos: readonly PartInfo[],
  keys: readonly number[],
  { high, low }: FindableRow,
): boolean {
  if (keys.length === 0) return true;
  const place = { high, low };
  const groups = keys.map((key) => [key]);
  const query = { order: "asc", first: place, last: place, groups, excluded: [] } as const;
  return infos.some((info) => parts.find(info, { ...query, checkpoint: () => undefined }).next().done === false);
}

function keysOf(db: Database): FilterKeys {
  const found = prepareQuery<{ value: Uint8Array }>(db, "SELECT value FROM meta WHERE name = 'filter_secret'").get();
  if (found === undefined) throw new Error("the index has no secret: its writer never opened it");
  return createFilterKeys(found.value);
}
