/**
 * Pages of rows: the rows of a plan in place order, and whether more rows follow.
 *
 * The cursor is a place: a page begins after the last row of the previous page. So additions and removals between two
 * pages never skip or repeat an unchanged row.
 *
 * Candidates come from the posting index and are read as rows in batches. Without filters, rows are read from the
 * tables. Filters use the B-tree for rows that may still be forked away and parts for all other rows, merged by place.
 * Each row is checked against the filters, because keys are hashes and a part may name a removed row.
 * Source: docs/reference/index-layout.md#pages-of-results.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Id, idBytes } from "../../../arweave/id.ts";
import { assert } from "../../../lib/assert.ts";
import { inSnapshot } from "../../sqlite.ts";
import type { FilterKeys } from "../filter-key.ts";
import type { IdPlaces } from "../id-places.ts";
import { allColumns, type Page, type PageColumns, type PagePlan, type PageRow } from "../index-types.ts";
import { overlaps } from "../parts/part-list.ts";
import type { IdCandidate, PartReads } from "../parts/part-reads.ts";
import { compareHalves, halvesOfPacked, type PlaceHalves } from "../place.ts";
import { createRowReads, type ItemColumns, type RowReads } from "../rows/row-reads.ts";
import { createHiddenTest } from "../stored-partitions.ts";
import { pageRows } from "./encoded-row.ts";
import type { EncodedPage, EncodedRow } from "./encoded-types.ts";
import { createPlanner, type PlaceRange, type Walk } from "./page-plan.ts";
import { createWindowWalks, type Source, type WindowSizes, type WindowWalk } from "./page-sql.ts";

/** The reader's calls for pages. */
export type Pages = Readonly<{
  page: (plan: PagePlan) => Page;
  encodedPage: (plan: PagePlan) => EncodedPage;
  row: (id: Id) => PageRow | undefined;
  encodedRow: (id: Id, columns: PageColumns) => EncodedRow | undefined;
  count: (plan: PagePlan, max: number) => number | undefined;
}>;

/** Dependencies, all of one connection. */
type PageParts = Readonly<{ db: Database; keys: FilterKeys; parts: PartReads; ids: IdPlaces }>;

export function createPages(of: PageParts, windows: WindowSizes): Pages {
  const { db } = of;
  const reads = createRowReads(db);
  const planOf = createPlanner(db, of.keys, of.ids, reads.address);
  const walkRows = createWalker(of, reads, windows);
  const beginHiddenTest = createHiddenTest(db);

  const encodedPage = (plan: PagePlan): EncodedPage =>
    inSnapshot(db, () => {
      assert(Number.isSafeInteger(plan.limit) && plan.limit > 0, "a page has one row or more");
      const walk = planOf(plan);
      const rows: ItemColumns[] = [];
      const isHidden = beginHiddenTest();
      walkRows(walk, plan, plan.columns.tags, plan.limit + 1, (row, range) => {
        if (walk.matches(row, range) && !isHidden(row)) rows.push(row);
        return rows.length > plan.limit ? "enough" : "more";
      });
      const hasNextPage = rows.length > plan.limit;
      return { rows: reads.complete(hasNextPage ? rows.slice(0, plan.limit) : rows, plan.columns), hasNextPage };
    });
  const encodedRow = (id: Id, columns: PageColumns): EncodedRow | undefined =>
    inSnapshot(db, () => {
      const place = of.ids.find(idBytes(id));
      if (place === undefined) return undefined;
      const isHidden = beginHiddenTest();
      const rows = reads.at([place], columns.tags, "asc").filter((row) => !isHidden(row));
      return reads.complete(rows, columns)[0];
    });

  return {
    encodedPage,
    encodedRow,
    page: (plan) => {
      const { rows, hasNextPage } = encodedPage(plan);
      return { rows: pageRows(rows), hasNextPage };
    },
    row: (id) => {
      const row = encodedRow(id, allColumns);
      return row === undefined ? undefined : pageRows([row])[0];
    },
    count: (plan, max) =>
      inSnapshot(db, () => {
        const walk = planOf(plan);
        let count = 0;
        const isHidden = beginHiddenTest();
        walkRows(walk, plan, false, max + 1, (row, range) => {
          if (walk.matches(row, range) && !isHidden(row)) count += 1;
          return count > max ? "enough" : "more";
        });
        return count > max ? undefined : count;
      }),
  };
}

/** Reads the rows of a plan in order, until `take` returns "enough". */
type Walker = (
  walk: Walk,
  plan: Pick<PagePlan, "order" | "checkpoint">,
  wantsTags: boolean,
  wanted: number,
  take: (row: ItemColumns, range: PlaceRange) => "more" | "enough",
) => void;

/** Limit of rows in one read, when many candidates do not match the filters. */
const rowsPerReadMax = 1_024;

/** Tags of one read, after a first one has shown that rows have many. Bytes. */
const tagBytesPerRead = 8 * 2 ** 20;

/** Creates the walker over a reader's connection. */
function createWalker(of: PageParts, reads: RowReads, windows: WindowSizes): Walker {
  const candidatesOf = createCandidates(of, windows);
  return (walk, plan, wantsTags, wanted, take) => {
    for (const range of walk.ranges) {
      const candidates = candidatesOf(walk, range, plan, wanted);
      let size = wanted;
      for (let isLast = false; !isLast; ) {
        const places = takeSome(candidates, size);
        isLast = places.length < size;
        plan.checkpoint?.();
        const rows = reads.at(places, wantsTags || walk.checksTags, plan.order);
        if (rows.some((row) => take(row, range) === "enough")) return;
        size = nextSize(size, wanted, rows);
      }
    }
  };
}

/** Rows of the next read: more than of the last one, unless those had many tags. The first has `wanted` candidates. */
function nextSize(size: number, wanted: number, rows: readonly ItemColumns[]): number {
  const bytes = rows.reduce((sum, { tags }) => sum + (tags?.length ?? 0), 0);
  if (bytes > tagBytesPerRead) return Math.max(1, Math.floor((size * tagBytesPerRead) / bytes));
  return Math.min(size * 2, Math.max(rowsPerReadMax, wanted));
}

type Candidates = (
  walk: Walk,
  range: PlaceRange,
  plan: Pick<PagePlan, "order" | "checkpoint">,
  wanted: number,
) => Iterator<PlaceHalves>;

function createCandidates({ db, keys, parts }: PageParts, windows: WindowSizes): Candidates {
  const windowWalk = createWindowWalks(db, windows);
  return (walk, range, { order, checkpoint = () => undefined }, wanted) => {
    const { onlyTransactions, ingested, excluded, groups } = walk;
    const tests = { onlyTransactions, ingested, parents: range.parents, excluded: [] };
    const common = { first: range.first, last: range.last, order, wanted, checkpoint };
    if (walk.ids === undefined && groups.length === 0)
      return windowWalk({
        ...common,
        sources: [{ kind: onlyTransactions ? "transactions" : "items" }],
        tests,
      });

    const bounds = { first: halvesOfPacked(range.first), last: halvesOfPacked(range.last) };
    const withRecent = (recent: WindowWalk, streams: readonly PlaceStream[]): Generator<PlaceHalves> =>
      mergeStreams([{ bound: undefined, open: () => windowWalk(recent) }, ...streams], order);
    if (walk.ids !== undefined) {
      // Ids are so rare that each row is checked instead of further keys.
      const { ids } = walk;
      const open = () => placesWithin(parts.placesOfIds(ids, { ...bounds, checkpoint }), bounds, order).values();
      return withRecent({ ...common, sources: [{ kind: "keys", keys: ids }], tests }, [{ bound: undefined, open }]);
    }
    const sources: Source[] = groups.map((group) => ({ kind: "keys", keys: group }));
    if (onlyTransactions) sources.push({ kind: "transactions" });
    const query = {
      ...bounds,
      order,
      groups: onlyTransactions ? [...groups, [keys.transaction()]] : groups,
      checkpoint,
    };
    const streams = parts
      .list()
      .filter((part) => overlaps(part, bounds))
      .map((part) => ({
        bound: order === "asc" ? part.first : part.last,
        open: () => parts.find(part, query),
      }));
    return withRecent({ ...common, sources, tests: { ...tests, excluded } }, streams);
  };
}

type Bounds = Readonly<{ first: PlaceHalves; last: PlaceHalves }>;

/** The places of candidates that are in a range, in order. */
function placesWithin(candidates: readonly IdCandidate[], { first, last }: Bounds, order: "asc" | "desc") {
  const places = candidates
    .map(({ place }) => place)
    .filter((place) => compareHalves(place, first) >= 0 && compareHalves(place, last) <= 0)
    .sort(compareHalves);
  return order === "asc" ? places : places.reverse();
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

/** Places in order. Nothing is read before the stream is opened. */
type PlaceStream = Readonly<{
  /** The earliest possible first place, in the order of the walk; undefined: unknown. */
  bound: PlaceHalves | undefined;
  open: () => Iterator<PlaceHalves>;
}>;

type Head = { place: PlaceHalves; rest: Iterator<PlaceHalves> };
type Compare = (a: PlaceHalves, b: PlaceHalves) => number;

/** Merges streams of one order; yields each place once, and opens no stream before it is needed. */
export function* mergeStreams(streams: readonly PlaceStream[], order: "asc" | "desc"): Generator<PlaceHalves> {
  const compare: Compare = order === "asc" ? compareHalves : (a, b) => compareHalves(b, a);
  const waiting = streams.toSorted((a, b) => compareBounds(a, b, compare));
  let heads: Head[] = [];
  let last: PlaceHalves | undefined;
  for (;;) {
    const first = firstOf(openDue(waiting, heads, compare), compare);
    if (first === undefined) return;
    const { place } = first;
    if (last === undefined || compare(last, place) !== 0) yield place;
    last = place;
    const { value, done } = first.rest.next();
    if (done === true) heads = heads.filter((head) => head !== first);
    else first.place = value;
  }
}

/** Opens the streams that may have a place before the first place of the open ones. */
function openDue(waiting: PlaceStream[], heads: Head[], compare: Compare): readonly Head[] {
  for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
    const first = firstOf(heads, compare);
    const isDue = next.bound === undefined || first === undefined || compare(next.bound, first.place) <= 0;
    if (!isDue) break;
    waiting.shift();
    const rest = next.open();
    const { value, done } = rest.next();
    if (done !== true) heads.push({ place: value, rest });
  }
  return heads;
}

function firstOf(heads: readonly Head[], compare: Compare): Head | undefined {
  let first = heads[0];
  for (const head of heads) if (first !== undefined && compare(head.place, first.place) < 0) first = head;
  return first;
}

/** Streams with an unknown first place come first. */
function compareBounds(a: PlaceStream, b: PlaceStream, compare: Compare): number {
  if (a.bound === undefined || b.bound === undefined)
    return Number(a.bound !== undefined) - Number(b.bound !== undefined);
  return compare(a.bound, b.bound);
}
