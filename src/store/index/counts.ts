/**
 * Counters of the index, updated with each change, because counting rows would read the whole index.
 *
 * The writer gathers changes while a transaction runs and writes them at its end.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepare, prepareQuery } from "../sqlite.ts";

/** What is counted. All but the times (`…At`, Unix seconds, the latest) are sums. */
export const counterNames = [
  "owners",
  "blocks",
  /** Transactions that followed blocks name. */
  "blockTransactions",
  /** Rows of `transactions` in followed blocks. */
  "transactions",
  /** Canonical rows of data items in blocks. */
  "items",
  /** Of them, those within another item. */
  "nestedItems",
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

/** The name of one number. */
export type CounterName = (typeof counterNames)[number];

/** Changes of one transaction. */
export type Counts = Readonly<{
  add: (name: CounterName, change: number) => void;
  /** Sets a number to a value unless it is higher already. */
  raise: (name: CounterName, value: number) => void;
  /** Writes the changes; to be called last in the transaction. */
  flush: () => void;
  /** Forgets them: the transaction failed. */
  discard: () => void;
}>;

/** Keeps the numbers of one database, for its writer. */
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

/** Reads all numbers at once; those never written are 0. */
export function createCountsReader(db: Database): () => Readonly<Record<CounterName, number>> {
  const all = prepareQuery<{ name: string; value: number }>(db, "SELECT name, value FROM counters");
  return () => {
    const found = new Map(all.all().map(({ name, value }) => [name, value]));
    const entries = counterNames.map((name): [CounterName, number] => [name, found.get(name) ?? 0]);
    return Object.fromEntries(entries) as Record<CounterName, number>;
  };
}
