/**
 * Unfinished bundles for the operator: the state of each, what it waits for, and a retry without waiting.
 * @module
 */
import { type Row, readCount, readTime, type Tx } from "../../store/ledger/ledger-database.ts";

/** An unfinished bundle. Times are Unix milliseconds. */
export type BundleOverview = Readonly<{
  id: string;
  state: string;
  /** A sentence. */
  waitsFor: string;
  itemCount: number;
  itemsSize: number /* bytes */;
  transactionId: string | null;
  /** Height of the block that last contained it. */
  blockHeight: number | null;
  createdAt: number;
  changedAt: number;
  /** Time of the next step. */
  nextAt: number;
  /** Failed steps since the last successful one, and the last fault. */
  attempts: number;
  lastError: string | null;
}>;

/** Conditions of the last step. */
export type ConfirmationState = Readonly<{
  /** Blocks on top of a bundle's block until it is permanent. */
  confirmations: number;
  /** Height of the index; undefined before the first block. */
  height: number | undefined;
}>;

/** Unfinished bundles of a store, in the order of their next steps; at most `limit`. */
export async function listUnfinishedBundles(
  tx: Tx,
  store: string,
  limit: number,
  confirmation: ConfirmationState,
): Promise<readonly BundleOverview[]> {
  const rows = await tx.all<OverviewRow>(
    "SELECT id, state, item_count, items_size, transaction_id, seeded_chunks, block_height, created_at, changed_at, " +
      "next_at, attempts, last_error FROM bundles WHERE store = ? AND state NOT IN ('permanent', 'dropped') " +
      "ORDER BY next_at, id LIMIT ?",
    ...[store, BigInt(limit)],
  );
  return rows.map((row) => ({
    id: row.id,
    state: row.state,
    waitsFor: waitsFor(row, confirmation),
    itemCount: readCount(row.item_count),
    itemsSize: readCount(row.items_size),
    transactionId: row.transaction_id,
    blockHeight: row.block_height === null ? null : readCount(row.block_height),
    createdAt: readTime(row.created_at),
    changedAt: readTime(row.changed_at),
    nextAt: readTime(row.next_at),
    attempts: readCount(row.attempts),
    lastError: row.last_error,
  }));
}

/** Makes the next step of a bundle due now. @returns Whether the store has such an unfinished bundle. */
export async function retryBundle(tx: Tx, store: string, id: string, now: number): Promise<boolean> {
  const changed = await tx.run(
    "UPDATE bundles SET next_at = ? WHERE id = ? AND store = ? AND state NOT IN ('permanent', 'dropped')",
    ...[BigInt(now), id, store],
  );
  return changed === 1;
}

type OverviewRow = Row &
  Readonly<{
    id: string;
    state: string;
    item_count: bigint;
    items_size: bigint;
    transaction_id: string | null;
    seeded_chunks: bigint;
    block_height: bigint | null;
    created_at: bigint;
    changed_at: bigint;
    next_at: bigint;
    attempts: bigint;
    last_error: string | null;
  }>;

function waitsFor(row: OverviewRow, { confirmations, height }: ConfirmationState): string {
  switch (row.state) {
    case "filling":
      return "More items, or the end of UPLOAD_BUNDLE_WAIT_MS.";
    case "planned":
      return "Its transaction: data root and signature.";
    case "prepared":
      return "A node that accepts its transaction.";
    case "posted":
      return `Nodes that accept its chunks; ${row.seeded_chunks} are accepted.`;
    default:
      return row.block_height === null
        ? "A block that contains its transaction."
        : `Confirmations: ${depthOf(row.block_height, height)} of ${confirmations}; and being read back by the index.`;
  }
}

function depthOf(blockHeight: bigint, height: number | undefined): number {
  return Math.max(0, (height ?? 0) - readCount(blockHeight));
}
