/**
 * Keeps the sums of the index, and the items of each block, in step with the rows that come and go.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepare } from "../sqlite.ts";
import type { Counts } from "./counts.ts";
import { pendingHeight, transactionsPerBlockMax } from "./place.ts";

/** What is counted of a row. `high`: upper half of its place; `ingested`: Unix seconds. */
export type CountedRow = Readonly<{ high: number; sig: number; parent: number | null; ingested: number }>;

/** The changes of one call; forgotten with it when it throws. */
export type RowTally = Readonly<{
  /** A canonical row came (1) or went (−1). */
  row: (row: CountedRow, change: 1 | -1) => void;
  duplicates: (change: number) => void;
  /** Hands the changes on; to be called once, when the rows are written. */
  flush: () => void;
}>;

/** Answers a function that begins a tally. */
export function createTallies(db: Database, counts: Counts): () => RowTally {
  const change = prepare(
    db,
    `UPDATE blocks SET item_count = item_count + ?1,
       last_item_at = nullif(max(coalesce(last_item_at, 0), ?2), 0)
     WHERE height = ?3`,
  );
  return () => {
    const byHeight = new Map<number, BlockItems>();
    let duplicates = 0;
    return {
      row: (row, by) => {
        const height = Math.floor(row.high / transactionsPerBlockMax);
        const isItem = row.sig > 0;
        if (height === pendingHeight) counts.add(isItem ? "pendingItems" : "pendingTransactions", by);
        else if (isItem) {
          counts.add("items", by);
          counts.add("nestedItems", row.parent === null ? 0 : by);
          byHeight.set(height, changedItems(byHeight.get(height), row, by));
        }
      },
      duplicates: (by) => {
        duplicates += by;
      },
      flush: () => {
        for (const [height, { items, latest }] of byHeight) change.run(items, latest, height);
        counts.add("duplicates", duplicates);
      },
    };
  };
}

/** Change of a block's item count, and the newest time among those that came. */
type BlockItems = Readonly<{ items: number; latest: number }>;

function changedItems(before: BlockItems | undefined, row: CountedRow, by: 1 | -1): BlockItems {
  const { items, latest } = before ?? { items: 0, latest: 0 };
  return { items: items + by, latest: by > 0 ? Math.max(latest, row.ingested) : latest };
}
