/**
 * Counters of the index, updated with each change, because counting rows would read the complete index.
 *
 * The writer collects the changes of a transaction and writes them at its end.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepare, prepareQuery } from "../sqlite.ts";

/** Names of the counters. All are sums, except for the times (`…At`: the latest, Unix seconds). */
const counterNames = [
  "owners",
  "blocks",
  /** Ids in the `txs` of followed blocks. */
  "blockTransactions",
  /** Rows of `transactions` in followed blocks. */
  "transactions",
  /** Canonical rows of data items in blocks. */
  "items",
  /** Items among them that are within another item. */
  "nestedItems",
  /** Data items that only the columnar store has. */
  "storedItems",
  "pendingTransactions",
  "pendingItems",
  "duplicates",
  "missingTransactions",
  "bundles",
  "bundlesQueued",
  "bundlesFailed",
  "bundleItems",
  "matchedItems",
  "bundleQueuedAt",
  "bundleSkippedAt",
  "bundleUnbundledAt",
  "bundleFullyIndexedAt",
] as const;

export type CounterName = (typeof counterNames)[number];

/** Changes of one transaction. */
export type Counts = Readonly<{
  add: (name: CounterName, change: number) => void;
  /** Sets a time to a value unless it is later already. */
  raise: (name: CounterName, value: number) => void;
  /** Writes the changes. Must be the last call of the transaction. */
  flush: () => void;
  /** Drops the changes of a failed transaction. */
  discard: () => void;
}>;

/** Creates the counters of one database, for its writer. */
export function createCounts(db: Database): Counts {
  const change = prepare(
    db,
    "INSERT INTO counters VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value",
  );
  const raise = prepare(
    db,
    "INSERT INTO counters VALUES (?, ?) ON CONFLICT DO UPDATE SET value = max(value, excluded.value)",
  );
  const changes = new Map<CounterName, number>();
  const raised = new Map<CounterName, number>();
  const discard = (): void => {
    changes.clear();
    raised.clear();
  };
  return {
    add: (name, by) => {
      changes.set(name, (changes.get(name) ?? 0) + by);
    },
    raise: (name, value) => {
      raised.set(name, Math.max(raised.get(name) ?? 0, value));
    },
    flush: () => {
      for (const [name, by] of changes) if (by !== 0) change.run(name, by);
      for (const [name, value] of raised) raise.run(name, value);
      discard();
    },
    discard,
  };
}

/** Returns a function that reads all counters at once; a counter without a row is 0. */
export function createCountsReader(db: Database): () => Readonly<Record<CounterName, number>> {
  const all = prepareQuery<{ name: string; value: number }>(db, "SELECT name, value FROM counters");
  return () => {
    const found = new Map(all.all().map(({ name, value }) => [name, value]));
    const entries = counterNames.map((name): [CounterName, number] => [name, found.get(name) ?? 0]);
    return Object.fromEntries(entries) as Record<CounterName, number>;
  };
}
