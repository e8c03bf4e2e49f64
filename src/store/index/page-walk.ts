/**
 * Walking a plan: candidates from the posting index in place order, read as rows in batches.
 *
 * Ids are found in the posting B-tree, rows of no filter in the tables themselves; other filters in the B-tree for
 * rows that may still be forked away and in parts for all others, merged by place. Whoever takes the rows checks
 * each against the filters: keys are hashes, and a part may speak of a row that is gone.
 * Source: docs/reference/index-layout.md#pages-of-results.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepareQuery, type Query } from "../sqlite.ts";
import type { FilterKeys } from "./filter-key.ts";
import type { PlaceRange, Walk } from "./page-plan.ts";
import { placesJson, rowsSql, type Source, type StoredPageRow } from "./page-sql.ts";
import { compareHalves, type PartInfo, type PlaceHalves } from "./parts/places.ts";
import { createPartReads } from "./parts/read.ts";
import { mergeStreams } from "./place-streams.ts";
import { createWindowWalks, type WindowSizes, type WindowWalk } from "./place-windows.ts";
import type { PageColumns, PagePlan } from "./rows.ts";

/** Walks a plan and hands on each row, in order, until `take` answers that it has enough. */
export type Walker = (
  walk: Walk,
  plan: Pick<PagePlan, "order" | "checkpoint">,
  columns: PageColumns,
  wanted: number,
  take: (row: StoredPageRow, range: PlaceRange) => "more" | "enough",
) => void;

/** Rows read at once at most, when many candidates turn out not to meet the filters. */
const rowsPerReadMax = 1_024;

/** Opens the walker over a reader's connection. */
export function createWalker(db: Database, keys: FilterKeys, windows: WindowSizes): Walker {
  const candidatesOf = createCandidates(db, keys, windows);
  const rowsAt = createRowReads(db);
  return (walk, plan, columns, wanted, take) => {
    const read = { ...columns, tags: columns.tags || walk.checksTags };
    for (const range of walk.ranges) {
      const candidates = candidatesOf(walk, range, plan, wanted);
      for (const places of batchesOf(candidates, wanted)) {
        plan.checkpoint?.();
        const rows = rowsAt(places, read, plan.order);
        if (rows.some((row) => take(row, range) === "enough")) return;
      }
    }
  };
}

/** Candidates in batches, the first as large as what is wanted, larger ones when that was not enough. */
function* batchesOf(candidates: Iterator<PlaceHalves>, wanted: number): Generator<PlaceHalves[]> {
  let size = wanted;
  for (;;) {
    const places = takeSome(candidates, size);
    yield places;
    if (places.length < size) return;
    size = Math.min(size * 2, Math.max(rowsPerReadMax, wanted));
  }
}

type Candidates = (
  walk: Walk,
  range: PlaceRange,
  plan: Pick<PagePlan, "order" | "checkpoint">,
  wanted: number,
) => Iterator<PlaceHalves>;

function createCandidates(db: Database, keys: FilterKeys, windows: WindowSizes): Candidates {
  const windowWalk = createWindowWalks(db, windows);
  const parts = createPartReads(db);
  return (walk, range, { order, checkpoint = () => undefined }, wanted) => {
    const { onlyTransactions, ingested, excluded, groups } = walk;
    const tests = { onlyTransactions, ingested, parents: range.parents, excluded: [] };
    const common = { first: range.first, last: range.last, order, wanted, checkpoint };
    // Rows in parts have no postings but their ids: nothing else can be asked of the B-tree for all rows.
    if (walk.ids !== undefined) return windowWalk({ ...common, sources: [{ kind: "keys", keys: walk.ids }], tests });
    if (groups.length === 0)
      return windowWalk({
        ...common,
        sources: [{ kind: onlyTransactions ? "transactions" : "items" }],
        tests,
      });

    const sources: Source[] = groups.map((group) => ({ kind: "keys", keys: group }));
    if (onlyTransactions) sources.push({ kind: "transactions" });
    const recent: WindowWalk = { ...common, sources, tests: { ...tests, excluded } };
    const inParts = onlyTransactions ? [...groups, [keys.transaction()]] : groups;
    const bounds = { first: halvesOf(range.first), last: halvesOf(range.last) };
    const query = { ...bounds, order, groups: inParts, excluded, checkpoint };
    const streams = parts
      .list()
      .filter((part) => overlaps(part, bounds))
      .map((part) => ({
        bound: order === "asc" ? part.first : part.last,
        open: () => parts.find(part, query),
      }));
    return mergeStreams([{ bound: undefined, open: () => windowWalk(recent) }, ...streams], order);
  };
}

function overlaps(part: PartInfo, bounds: Readonly<{ first: PlaceHalves; last: PlaceHalves }>): boolean {
  return compareHalves(part.first, bounds.last) <= 0 && compareHalves(part.last, bounds.first) >= 0;
}

function halvesOf(packed: bigint): PlaceHalves {
  return { high: Number(packed >> 31n), low: Number(packed & 0x7fffffffn) };
}

function takeSome(candidates: Iterator<PlaceHalves>, count: number): PlaceHalves[] {
  const places: PlaceHalves[] = [];
  while (places.length < count) {
    const { value, done } = candidates.next();
    if (done === true) break;
    places.push(value);
  }
  return places;
}

type RowReads = (places: readonly PlaceHalves[], columns: PageColumns, order: "asc" | "desc") => StoredPageRow[];

function createRowReads(db: Database): RowReads {
  const prepared = new Map<string, Query<StoredPageRow>>();
  return (places, columns, order) => {
    if (places.length === 0) return [];
    const sql = rowsSql(columns);
    const query = prepared.get(sql) ?? prepareQuery<StoredPageRow>(db, sql);
    prepared.set(sql, query);
    const rows = query.all(placesJson(places));
    return rows.sort(order === "asc" ? compareHalves : (a, b) => compareHalves(b, a));
  };
}
