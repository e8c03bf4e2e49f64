/**
 * Looking through a whole index for what cannot be: damage of the file, rows without postings, sums that are off.
 *
 * Reads everything; for `cairn doctor` and for tests, not for a service that answers.
 * @module
 */
import type { Database } from "bun:sqlite";
import { checkIntegrity, closeDatabase, inSnapshot, openForReading, prepareQuery } from "../sqlite.ts";
import { type CounterName, createCountsReader } from "./counts.ts";
import { checkFindable } from "./inspect-postings.ts";
import { packHeight, pendingHeight } from "./place.ts";

/** What was found. */
export type Inspection = Readonly<{
  /** One line a fault, at most `faultsMax`; empty when all is well. */
  faults: readonly string[];
  /** Rows of items and transactions that were looked at. */
  rows: number;
}>;

/** More lines than this help nobody. */
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

/** Each kept number, and how it is counted. */
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
    return found === stored[name] ? [] : [`the number of ${name} is kept as ${stored[name]}, counted ${found}`];
  });
}

/** Rows that must not exist; each query answers what to name of them. */
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
    "a row stands in no block",
    `SELECT n >> 31 AS what FROM items
     WHERE n >> 41 <> ${pendingHeight} AND n >> 41 NOT IN (SELECT height FROM blocks)`,
  ],
  [
    "a transaction lacks what only transactions have",
    `SELECT n >> 31 AS what FROM (SELECT n, sig FROM items UNION ALL SELECT n, sig FROM duplicates)
     WHERE sig < 0 AND (n NOT IN (SELECT n FROM transactions) OR n NOT IN (SELECT n FROM transaction_texts))`,
  ],
  [
    "what only transactions have stands without its row",
    `SELECT n >> 31 AS what FROM (SELECT n FROM transactions UNION SELECT n FROM transaction_texts)
     WHERE n NOT IN (SELECT n FROM items UNION ALL SELECT n FROM duplicates)`,
  ],
  ["a missing transaction is there", "SELECT n >> 31 AS what FROM missing WHERE n IN (SELECT n FROM transactions)"],
  [
    "a row that is no row waits to be sealed",
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
