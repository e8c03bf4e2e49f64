/**
 * Numbers and times of the whole index, without counting it: kept sums, less what the newest blocks hold.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepareQuery } from "../sqlite.ts";
import { type CounterName, createCountsReader } from "./counts.ts";
import { stableDepth } from "./rows.ts";
import type { HeightCounts, IndexReader } from "./types.ts";

type Height = Readonly<{ height: number }>;

/** Opens these reads over a reader's connection. */
export function createSums(db: Database): Pick<IndexReader, "counts" | "times"> {
  const sums = createCountsReader(db);
  const recent = prepareQuery<HeightCounts>(
    db,
    `SELECT count(*) AS blocks, coalesce(sum(tx_count), 0) AS blockTransactions,
       coalesce(sum(stored_count), 0) AS transactions, coalesce(sum(item_count), 0) AS items,
       min(height) AS minHeight, max(height) AS maxHeight,
       min(height) FILTER (WHERE item_count > 0) AS minItemHeight,
       max(height) FILTER (WHERE item_count > 0) AS maxItemHeight
     FROM blocks WHERE followed = 1 AND height > ?`,
  );
  const block = (order: "ASC" | "DESC") =>
    prepareQuery<Height>(
      db,
      `SELECT height FROM blocks WHERE followed = 1 AND height <= ? ORDER BY height ${order} LIMIT 1`,
    );
  const blockWithItems = (order: "ASC" | "DESC") =>
    prepareQuery<Height>(
      db,
      `SELECT height FROM blocks WHERE item_count > 0 AND height <= ? ORDER BY height ${order} LIMIT 1`,
    );
  const lowest = block("ASC");
  const highest = block("DESC");
  const lowestWithItems = blockWithItems("ASC");
  const highestWithItems = blockWithItems("DESC");
  type ItemTime = Readonly<{ at: number | null }>;
  const newestItemAbove = prepareQuery<ItemTime>(db, "SELECT max(last_item_at) AS at FROM blocks WHERE height > ?");
  // From the newest time down: left to itself, SQLite reads every block up to the height.
  const newestItemUpTo = prepareQuery<ItemTime>(
    db,
    `SELECT last_item_at AS at FROM blocks INDEXED BY blocks_by_item_time
     WHERE last_item_at IS NOT NULL AND height <= ? ORDER BY last_item_at DESC LIMIT 1`,
  );
  /** The highest height that is stable. */
  const border = (): number => (highest.get(Number.MAX_SAFE_INTEGER)?.height ?? -1) - stableDepth;

  return {
    counts: () => {
      const all = sums();
      const last = border();
      const fresh = recent.get(last) ?? noHeights;
      const stable: HeightCounts = {
        blocks: all.blocks - fresh.blocks,
        blockTransactions: all.blockTransactions - fresh.blockTransactions,
        transactions: all.transactions - fresh.transactions,
        items: all.items - fresh.items,
        minHeight: lowest.get(last)?.height ?? null,
        maxHeight: highest.get(last)?.height ?? null,
        minItemHeight: lowestWithItems.get(last)?.height ?? null,
        maxItemHeight: highestWithItems.get(last)?.height ?? null,
      };
      return { ...all, stable, recent: fresh };
    },
    times: () => {
      const all = sums();
      const at = (name: CounterName): number | null => (all[name] === 0 ? null : all[name]);
      const last = border();
      return {
        bundleQueuedAt: at("bundleQueuedAt"),
        bundleSkippedAt: at("bundleSkippedAt"),
        bundleUnbundledAt: at("bundleUnbundledAt"),
        bundleFullyIndexedAt: at("bundleFullyIndexedAt"),
        recentItemIndexedAt: newestItemAbove.get(last)?.at ?? null,
        stableItemIndexedAt: newestItemUpTo.get(last)?.at ?? null,
      };
    },
  };
}

const noHeights: HeightCounts = {
  blocks: 0,
  blockTransactions: 0,
  transactions: 0,
  items: 0,
  minHeight: null,
  maxHeight: null,
  minItemHeight: null,
  maxItemHeight: null,
};
