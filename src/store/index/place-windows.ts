/**
 * Walking the posting B-tree and the tables themselves: window by window, always from the source that is rarest
 * just there.
 *
 * A window holds a bounded number of the source's candidates, so that a query can be ended between windows; they
 * grow, so that a sparse result costs a handful of them.
 * Source: docs/reference/index-layout.md#pages-of-results.
 * @module
 */
import type { Database } from "bun:sqlite";
import { assert } from "../../lib/assert.ts";
import { prepareQuery, type Query } from "../sqlite.ts";
import { type PageStep, placesSql, type Source } from "./page-sql.ts";
import type { PlaceHalves } from "./parts/places.ts";

/** How many candidates of its source a step looks at. */
export type WindowSizes = Readonly<{
  /** In the first step, unless two pages are more. */
  min: number;
  /** In any later one: a query can be ended between two steps only. */
  max: number;
}>;

/** About what a page of common filters needs; and a few milliseconds of work. */
export const windowSizesDefault: WindowSizes = { min: 256, max: 16_384 };
const windowGrowth = 4;
/** Shapes of steps that are kept prepared; beyond it all are forgotten, for they cost 50 µs each to make. */
const preparedMax = 256;

type Order = "asc" | "desc";
type Span = Readonly<{ first: bigint; last: bigint }>;

/** What is walked: places that are in all of the sources. */
export type WindowWalk = Span &
  Readonly<{
    order: Order;
    /** One at least. */
    sources: readonly Source[];
    tests: Pick<PageStep, "excluded" | "onlyTransactions" | "parents" | "ingested">;
    /** Places that will probably be taken. */
    wanted: number;
    /** Called between windows; throws to end the walk. */
    checkpoint: () => void;
  }>;

/** How dense a source is from one end of a span: candidates found, and where the last of so many lies. */
type Sample = Readonly<{
  source: Source;
  count: number;
  /** The place up to which `size` candidates lie; undefined: the span has fewer. */
  edge: bigint | undefined;
}>;

/** Opens walks over a reader's connection. */
export function createWindowWalks(db: Database, windows: WindowSizes): (walk: WindowWalk) => Generator<PlaceHalves> {
  const prepared = new Map<string, Query<PlaceHalves>>();
  const run = (step: PageStep): PlaceHalves[] => {
    const { sql, parameters } = placesSql(step);
    const known = prepared.get(sql);
    if (known !== undefined) return known.all(...parameters);
    if (prepared.size >= preparedMax) {
      for (const query of prepared.values()) query.finalize();
      prepared.clear();
    }
    const query = prepareQuery<PlaceHalves>(db, sql);
    prepared.set(sql, query);
    return query.all(...parameters);
  };
  const sample = createSampler(db);

  return function* (walk) {
    const { order, sources, wanted } = walk;
    const isSingle = isSingleList(walk);
    let rest: Span = walk;
    let size = Math.max(windows.min, Math.min(wanted * 2, windows.max));
    while (rest.first <= rest.last) {
      walk.checkpoint();
      const samples = isSingle ? [] : sources.map((source) => sample(source, rest, size, order));
      const rarest = rarestOf(samples, order);
      const window = windowOf(rest, rarest?.edge, order);
      const places = run(stepOf(walk, window, rarest?.source));
      yield* places;
      const last = places.at(-1);
      // A full answer may have left candidates in its window: go on after its last place, not after the window.
      const end = places.length === wanted && last !== undefined ? packed(last) : edgeOf(window, order);
      rest = order === "asc" ? { ...rest, first: end + 1n } : { ...rest, last: end - 1n };
      size = Math.min(size * windowGrowth, windows.max);
    }
  };
}

function stepOf(walk: WindowWalk, window: Span, rarest: Source | undefined): PageStep {
  const source = rarest ?? walk.sources[0];
  assert(source !== undefined, "a walk has a source");
  const groups = walk.sources.flatMap((other) => (other === source || other.kind !== "keys" ? [] : [other.keys]));
  return { ...window, ...walk.tests, order: walk.order, source, groups, limit: walk.wanted };
}

/** Whether one list in place order is the answer itself, so that reading it stops with the page. */
function isSingleList({ sources, tests }: WindowWalk): boolean {
  const [source] = sources;
  const isOrdered = source?.kind !== "keys" || source.keys.length === 1;
  const isTested = tests.excluded.length > 0 || tests.ingested !== undefined || tests.parents !== undefined;
  return sources.length === 1 && isOrdered && !isTested;
}

function rarestOf(samples: readonly Sample[], order: Order): Sample | undefined {
  if (samples.length === 0) return undefined;
  const ended = samples.filter(({ edge }) => edge === undefined);
  if (ended.length > 0) return ended.reduce((a, b) => (b.count < a.count ? b : a));
  // All have more than the window takes: the one that reaches furthest has the fewest in between.
  return samples.reduce((a, b) => (isNearer(a.edge ?? 0n, b.edge ?? 0n, order) ? b : a));
}

function windowOf(rest: Span, edge: bigint | undefined, order: Order): Span {
  const { first, last } = rest;
  if (edge === undefined) return { first, last };
  return order === "asc" ? { first, last: edge } : { first: edge, last };
}

function edgeOf(window: Span, order: Order): bigint {
  return order === "asc" ? window.last : window.first;
}

function packed({ high, low }: PlaceHalves): bigint {
  return (BigInt(high) << 31n) | BigInt(low);
}

type Sampler = (source: Source, span: Span, size: number, order: Order) => Sample;

function createSampler(db: Database): Sampler {
  type Row = Readonly<{ count: number; high: number | null; low: number | null }>;
  const prepare = (from: string) => {
    const ordered = (edge: "min" | "max", direction: "ASC" | "DESC") =>
      prepareQuery<Row>(
        db,
        `SELECT count(*) AS count, ${edge}(n) >> 31 AS high, ${edge}(n) & 0x7fffffff AS low
         FROM (SELECT n FROM ${from} n BETWEEN ? AND ? ORDER BY n ${direction} LIMIT ?)`,
      );
    return { asc: ordered("max", "ASC"), desc: ordered("min", "DESC") };
  };
  const postings = prepare("postings WHERE key = ? AND");
  const transactions = prepare("transactions WHERE");
  const items = prepare("items WHERE");
  const read = (row: Row | undefined, size: number): Readonly<{ count: number; edge: bigint | undefined }> => {
    if (row === undefined || row.high === null || row.low === null) return { count: 0, edge: undefined };
    const edge = row.count < size ? undefined : packed({ high: row.high, low: row.low });
    return { count: row.count, edge };
  };

  return (source, { first, last }, size, order) => {
    if (source.kind !== "keys") {
      const query = source.kind === "items" ? items : transactions;
      return { source, ...read(query[order].get(first, last, size), size) };
    }
    let count = 0;
    let nearest: bigint | undefined;
    for (const key of source.keys) {
      const found = read(postings[order].get(key, first, last, size), size);
      count += found.count;
      if (found.edge !== undefined && (nearest === undefined || isNearer(found.edge, nearest, order)))
        nearest = found.edge;
    }
    return { source, count, edge: nearest };
  };
}

function isNearer(a: bigint, b: bigint, order: Order): boolean {
  return order === "asc" ? a < b : a > b;
}
