/**
 * Pages of an index and a store with their rows as texts, to compare with.
 * @module
 */
import { createMergedPages } from "../../src/columnar/merged-pages.ts";
import type { PagePlan } from "../../src/store/index/index-types.ts";
import { pageRows } from "../../src/store/index/pages/encoded-row.ts";

/** As `createMergedPages`. */
export function createTextPages(...parts: Parameters<typeof createMergedPages>) {
  const { encodedPage, count } = createMergedPages(...parts);
  const page = async (plan: PagePlan) => {
    const { rows, hasNextPage } = await encodedPage(plan);
    return { rows: pageRows(rows), hasNextPage };
  };
  return { page, count };
}
