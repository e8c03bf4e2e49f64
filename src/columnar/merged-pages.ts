/**
 * Pages over the index and a columnar store, as if both were one table in place order.
 *
 * The index has the newest rows, all transactions, and items that were found after their heights were exported; the
 * store has the items of the partitions that the index records. A row that both have is taken from the index. A page
 * is therefore correct before, during and after the export, the load and the pruning of its rows.
 * Source: docs/reference/columnar.md.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { explainError, Failure } from "../failures.ts";
import {
  type IndexReader,
  noColumns,
  type PageColumns,
  type PagePlan,
  type PageRow,
} from "../store/index/index-types.ts";
import { encodedRow } from "../store/index/pages/encoded-row.ts";
import type { EncodedPage, EncodedRow } from "../store/index/pages/encoded-types.ts";
import { isEmptyBounds, placeBounds } from "../store/index/pages/page-plan.ts";
import { compareHalves, packPlace, placeOfRow } from "../store/index/place.ts";
import type { ColumnStore } from "./column-store.ts";
import { createFindRows } from "./store-rows.ts";

export type MergedIndex = Pick<IndexReader, "encodedPage" | "count" | "block" | "ownerKey" | "storedPartitions">;

/** Pages over index and store. Calls reject with Failure `columnar_store_unavailable`. */
export type MergedPages = Readonly<{
  encodedPage: (plan: PagePlan) => Promise<EncodedPage>;
  encodedRow: (id: Id, columns: PageColumns) => Promise<EncodedRow | undefined>;
  /** Undefined above `max` rows. */
  count: (plan: PagePlan, max: number) => Promise<number | undefined>;
}>;

/** @param signal - Returns the signal of the present request. */
export function createMergedPages(index: MergedIndex, store: ColumnStore, signal: () => AbortSignal): MergedPages {
  const findRows = createFindRows(store, {
    isListed: ({ id, place }) => index.storedPartitions.isListed(id, place),
    block: index.block,
    ownerKey: index.ownerKey,
  });
  const find = async (plan: PagePlan, bounds = placeBounds(plan), limit = plan.limit): Promise<PageRow[]> => {
    const heights = index.storedPartitions.heights().map(({ first, last }) => ({ start: first, end: last }));
    if (heights.length === 0 || isEmptyBounds(bounds)) return [];
    try {
      return await findRows({ plan, bounds, heights, limit }, signal());
    } catch (error) {
      // A passed deadline has its own message.
      plan.checkpoint?.();
      if (!(error instanceof Error) || isEnd(error)) throw error;
      throw new Failure("columnar_store_unavailable", { reason: explainError(error) }, error);
    }
  };

  const findEncoded = async (...query: Parameters<typeof find>): Promise<EncodedRow[]> =>
    (await find(...query)).map(encodedRow);
  const encodedPage = async (plan: PagePlan): Promise<EncodedPage> => {
    const { limit, order } = plan;
    const indexed = index.encodedPage(plan);
    const last = indexed.rows.at(-1);
    if (!indexed.hasNextPage || last === undefined) {
      const stored = await findEncoded(plan, placeBounds(plan), limit + 1);
      const rows = merge(indexed.rows, stored, order);
      return { rows: rows.slice(0, limit), hasNextPage: rows.length > limit };
    }
    // Rows of the store after the last row of the index are of later pages.
    const edge = packPlace(placeOfRow(last.stored));
    const bounds = placeBounds(plan);
    const stored = await findEncoded(plan, order === "asc" ? { ...bounds, last: edge } : { ...bounds, first: edge });
    return { rows: merge(indexed.rows, stored, order).slice(0, limit), hasNextPage: true };
  };

  return {
    encodedPage,
    encodedRow: async (id, columns) => (await encodedPage({ ids: [id], order: "asc", limit: 1, columns })).rows[0],
    count: async (plan, max) => {
      const indexed = index.count(plan, max);
      if (indexed === undefined) return undefined;
      const stored = await find({ ...plan, columns: noColumns }, placeBounds(plan), max + 1 - indexed);
      const count = indexed + stored.length;
      return count > max ? undefined : count;
    },
  };
}

/** Whether an error ends the request rather than the store: the deadline, or the client's disconnection. */
function isEnd(error: Error): boolean {
  return error.name === "AbortError" || error.name === "TimeoutError" || error.name === "GraphQLError";
}

/** Merges rows of one order; no row is in both lists. */
function merge(left: readonly EncodedRow[], right: readonly EncodedRow[], order: PagePlan["order"]): EncodedRow[] {
  if (right.length === 0) return [...left];
  return [...left, ...right].sort((a, b) => compareHalves(a.stored, b.stored) * (order === "asc" ? 1 : -1));
}
