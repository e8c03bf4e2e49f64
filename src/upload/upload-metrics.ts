/**
 * Metrics of the upload service: accepted items, their progress, and the age of the oldest waiting item.
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics.ts";
import { type LedgerDatabase, readCount, readTime, type Tx } from "../store/ledger/ledger-database.ts";

/** Callbacks for the events that are counted. */
export type UploadMetrics = Readonly<{
  /** An item was accepted. @param size - Of the complete item. Bytes. */
  onTaken: (size: number) => void;
  /** Items became permanent with their bundle, or failed. */
  onEnded: (how: "permanent" | "failed", itemCount: number) => void;
}>;

export type UploadMetricsSources = Readonly<{
  ledger: LedgerDatabase;
  /** Name of the folder of uploads (store/uploads/item-files.ts). */
  storeName: string;
  clock: Clock;
}>;

/** States of unfinished bundles. */
const bundleStates = ["filling", "planned", "prepared", "posted", "seeded"] as const;

/** The metrics of one scrape share one read of the ledger. Milliseconds. */
const freshMs = 1_000;

export function createUploadMetrics(metrics: Metrics, parts: UploadMetricsSources): UploadMetrics {
  const { ledger, storeName, clock } = parts;
  const items = metrics.counter({ name: "upload_items_taken_total", help: "Items that were accepted." });
  const bytes = metrics.counter({
    name: "upload_bytes_taken_total",
    help: "Bytes of items that were accepted.",
  });
  const ended = metrics.counter({
    name: "upload_items_ended_total",
    help: "Items that became permanent, or failed.",
    labels: { state: ["permanent", "failed"] },
  });

  let counted: Promise<UploadCounts> | undefined;
  let countedAt = Number.NEGATIVE_INFINITY;
  const counts = (): Promise<UploadCounts> => {
    const now = clock();
    if (counted === undefined || now - countedAt >= freshMs || now < countedAt) {
      counted = ledger.read((tx) => countUploads(tx, storeName, now));
      countedAt = now;
    }
    return counted;
  };

  const stats = [
    ["upload_items", "Unfinished items, by the state of their bundle.", (each: UploadCounts) => each.items],
    ["upload_bytes", "Bytes of unfinished items, by the state of their bundle.", (each: UploadCounts) => each.bytes],
    ["upload_bundles", "Unfinished bundles, by state.", (each: UploadCounts) => each.bundles],
    [
      "upload_oldest_seconds",
      "Age of the oldest unfinished item, by the state of its bundle; 0 without items.",
      (each: UploadCounts) => each.oldest,
    ],
  ] as const;
  for (const [name, help, of] of stats) {
    const read = async () => of(await counts());
    metrics.gaugesOf({ name, help, label: "state", values: ["waiting", ...bundleStates], read });
  }

  return {
    onTaken: (size) => {
      items.inc();
      bytes.inc(size);
    },
    onEnded: (how, itemCount) => ended.inc({ state: how }, itemCount),
  };
}

type ByState = Record<string, number>;

/** Unfinished items and bundles of a store, by the state of their bundle. */
export type UploadCounts = Readonly<{ items: ByState; bytes: ByState; bundles: ByState; oldest: ByState }>;

type CountRow = {
  state: string;
  bundles: bigint;
  items: bigint;
  bytes: bigint;
  oldest: bigint | null;
};

/** @param now - Unix milliseconds, for the ages. */
export async function countUploads(tx: Tx, storeName: string, now: number): Promise<UploadCounts> {
  const rows = await tx.all<CountRow>(
    "SELECT 'waiting' AS state, CAST(0 AS BIGINT) AS bundles, COUNT(*) AS items, " +
      "CAST(COALESCE(SUM(size), 0) AS BIGINT) AS bytes, MIN(received_at) AS oldest FROM uploads " +
      "WHERE store = ? AND bundle_id IS NULL AND failed_reason IS NULL UNION ALL " +
      "SELECT b.state, COUNT(*), CAST(SUM(b.item_count) AS BIGINT), CAST(SUM(b.items_size) AS BIGINT), " +
      "MIN(u.received_at) FROM bundles b LEFT JOIN uploads u ON u.bundle_id = b.id AND u.position = 0 " +
      "WHERE b.store = ? AND b.state NOT IN ('permanent', 'dropped') GROUP BY b.state",
    ...[storeName, storeName],
  );
  const found = new Map(rows.map((row) => [row.state, row]));
  const each = (states: readonly string[], of: (row: CountRow | undefined) => number): ByState =>
    Object.fromEntries(states.map((state) => [state, of(found.get(state))]));
  const states = ["waiting", ...bundleStates];
  return {
    items: each(states, (row) => readCount(row?.items ?? 0n)),
    bytes: each(states, (row) => readCount(row?.bytes ?? 0n)),
    bundles: each(bundleStates, (row) => readCount(row?.bundles ?? 0n)),
    oldest: each(states, (row) => ageOf(row?.oldest ?? null, now)),
  };
}

function ageOf(time: bigint | null, now: number): number {
  return time === null ? 0 : Math.max(0, now - readTime(time)) / 1_000;
}
