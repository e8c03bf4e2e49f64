/**
 * Pruning, for the writer: removes item rows in steps, each a transaction of its own; compact places stay.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepareQuery } from "../sqlite.ts";
import { packHeight, pendingHeight } from "./place.ts";
import type { RowTable } from "./row-table.ts";

/** Which item rows go. Heights are inclusive. */
export type PruneBounds = Readonly<{
  ingestedBeforeSeconds: number;
  startHeight: number;
  endHeight: number;
}>;

const itemsPerStep = 5_000;

const prunedSql = "n BETWEEN ? AND ? AND sig > 0 AND ingested < ?";

/**
 * Creates the pruning of one database; it answers how many rows went.
 *
 * @param step - Runs work in a transaction.
 */
export function createPruning(
  db: Database,
  step: (work: () => number) => number,
  rows: Pick<RowTable, "prune" | "pruneDuplicates">,
): (bounds: PruneBounds) => number {
  const heightsWithItems = prepareQuery<{ height: number }>(
    db,
    "SELECT height FROM blocks WHERE item_count > 0 AND height BETWEEN ? AND ?",
  );
  return ({ ingestedBeforeSeconds, startHeight, endHeight }) => {
    const lastHeight = Math.min(endHeight, pendingHeight - 1);
    if (startHeight > lastHeight) return 0;
    const inSteps = (prune: RowTable["prune"], first: number, last: number): number => {
      const bounds = [packHeight(first), packHeight(last + 1) - 1n, ingestedBeforeSeconds];
      let removed = 0;
      let count: number;
      do {
        count = step(() => prune(prunedSql, bounds, itemsPerStep));
        removed += count;
      } while (count === itemsPerStep);
      return removed;
    };
    inSteps(rows.pruneDuplicates, startHeight, lastHeight);
    return heightsWithItems
      .all(startHeight, lastHeight)
      .reduce((sum, { height }) => sum + inSteps(rows.prune, height, height), 0);
  };
}
