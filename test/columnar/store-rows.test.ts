/**
 * How many statements the search in a columnar store takes; which rows it finds is tested on the stores themselves
 * (merged-pages.test.ts).
 * @module
 */
import { expect, test } from "bun:test";
import type { ColumnStore } from "../../src/columnar/column-store.ts";
import { createFindRows } from "../../src/columnar/store-rows.ts";
import { noColumns, type PagePlan } from "../../src/store/index/index-types.ts";
import { packPlace } from "../../src/store/index/place.ts";
import { ownerOf } from "../store/index/rows-of.ts";
import { createRandom } from "../support/random.ts";

const heights = 1_000_000;
const never = new AbortController().signal;

/** A store whose newest height has places that match; it has no rows of them. */
function storeWith(matches: number) {
  let statements = 0;
  const store: ColumnStore = {
    kind: "duckdb",
    load: async () => undefined,
    from: (table) => table,
    select: async (sql) => {
      statements += 1;
      if (!sql.startsWith("SELECT place") || statements > 1) return [];
      const places = Array.from({ length: matches }, (_, index) =>
        packPlace({ height: heights - 1, txIndex: 0, offset: 64 * (matches - index) }),
      );
      return places.map((place) => [String(place)]);
    },
    close: async () => undefined,
  };
  return { store, statements: () => statements };
}

test.each([0, 1, 50, 99, 100])(
  "a page that %d of 101 rows match takes few statements over a million heights",
  async (matches) => {
    const { store, statements } = storeWith(matches);
    const find = createFindRows(store, { isListed: () => true, block: () => undefined, ownerKey: () => undefined });
    const plan: PagePlan = {
      order: "desc",
      limit: 101,
      owners: [ownerOf(createRandom(1)).address],
      columns: noColumns,
    };
    const bounds = { first: 0n, last: 2n ** 62n };
    await find({ plan, bounds, heights: [{ start: 0, end: heights - 1 }], limit: 101 }, never);
    expect(statements()).toBeLessThan(30);
  },
);
