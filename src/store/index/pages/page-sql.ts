/**
 * The SQL of pages. SQLite reads candidates from one source in order and tests them against the other groups. A seek
 * from JavaScript costs twenty times as much as a seek inside SQLite (measured).
 *
 * The text depends only on the shape of a step, so that each shape is prepared once.
 *
 * The B-tree and the tables are read window by window, each from the source that is rarest there. A window has a
 * bounded number of candidates, so that a query can be ended between windows. Windows grow, so that a sparse result
 * needs only a few of them.
 * Source: docs/reference/index-layout.md#pages-of-results.
 * @module
 */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import { assert } from "../../../lib/assert.ts";
import { prepareQuery, type Query } from "../../sqlite.ts";
import { type PlaceHalves, packHalves } from "../place.ts";
import { halvesSql, lowSql } from "../place-sql.ts";

/** Source of candidates. */
export type Source =
  | Readonly<{ kind: "keys"; keys: readonly number[] }>
  | Readonly<{ kind: "transactions" }>
  | Readonly<{ kind: "items" }>;

/** One step: the candidates and their tests. */
type PageStep = Readonly<{
  order: "asc" | "desc";
  source: Source;
  /** Packed places, both inclusive. */
  first: bigint;
  last: bigint;
  /** The groups other than the source. */
  groups: readonly (readonly number[])[];
  excluded: readonly (readonly number[])[];
  onlyTransactions: boolean;
  parents: readonly number[] | undefined;
  ingested: Readonly<{ min: number; max: number }> | undefined;
  limit: number;
}>;

/** The text of a statement, and its parameters. */
type BoundSql = Readonly<{ sql: string; parameters: SQLQueryBindings[] }>;

/** A piece of SQL, and its parameters in order. */
type Piece = Readonly<{ sql: string; parameters: readonly SQLQueryBindings[] }>;

/** The SQL of at most `limit` places in order, each in two halves. */
function placesSql(step: PageStep): BoundSql {
  const source = sourceOf(step.source);
  const rowTests = rowTestsOf(step);
  // Tests of the row come last: the row is read only when every posting exists.
  const row = rowTests.length === 0 ? "" : "CROSS JOIN items r ON r.n = d.n";
  const tests = [source.test, range(step), ...placeTestsOf(step), ...rowTests];
  return {
    sql: `SELECT ${source.distinct} ${halvesSql("d.n")} FROM ${source.table} d ${row}
      WHERE ${tests.map(({ sql }) => sql).join(" AND ")}
      ORDER BY d.n ${step.order === "asc" ? "ASC" : "DESC"} LIMIT ?`,
    parameters: [...tests.flatMap(({ parameters }) => parameters), step.limit],
  };
}

function range({ first, last }: PageStep): Piece {
  return { sql: "d.n BETWEEN ? AND ?", parameters: [first, last] };
}

function sourceOf(source: Source): Readonly<{ table: string; distinct: string; test: Piece }> {
  if (source.kind !== "keys") return { table: source.kind, distinct: "", test: plain("true") };
  const { sql, parameters } = keyTest(source.keys);
  return {
    table: "postings",
    // A row may have several of the keys.
    distinct: source.keys.length === 1 ? "" : "DISTINCT",
    test: { sql: `d.key ${sql}`, parameters },
  };
}

/** Conditions that depend on the place alone. */
function placeTestsOf({ source, groups, excluded, onlyTransactions }: PageStep): Piece[] {
  return [
    // The lower half identifies a transaction of a block; a pending row must be read.
    ...(onlyTransactions && source.kind !== "transactions"
      ? [plain(`(${lowSql("d.n")} = 0 OR d.n >= 0x7ffffe0000000000)`)]
      : []),
    ...groups.map((keys) => posting(keys, "IS NOT NULL")),
    ...excluded.map((keys) => posting(keys, "IS NULL")),
  ];
}

/** Tests that need the row. */
function rowTestsOf({ source, onlyTransactions, parents, ingested }: PageStep): Piece[] {
  const tests: Piece[] = [];
  // A transaction has no row in `items` at a place that is not canonical.
  if (onlyTransactions || source.kind === "transactions") tests.push(plain("r.sig < 0"));
  if (parents !== undefined)
    tests.push({
      sql: "r.sig > 0 AND coalesce(r.parent, -1) IN (SELECT value FROM json_each(?))",
      parameters: [JSON.stringify(parents)],
    });
  if (ingested !== undefined)
    tests.push({ sql: "r.ingested BETWEEN ? AND ?", parameters: [ingested.min, ingested.max] });
  return tests;
}

/** A scalar query instead of EXISTS, which SQLite would test last, after reading the row (seen in its plan). */
function posting(keys: readonly number[], verdict: "IS NOT NULL" | "IS NULL"): Piece {
  const { sql, parameters } = keyTest(keys);
  return { sql: `(SELECT 1 FROM postings e WHERE e.key ${sql} AND e.n = d.n) ${verdict}`, parameters };
}

function keyTest(keys: readonly number[]): Piece {
  const [only] = keys;
  if (keys.length === 1 && only !== undefined) return { sql: "= ?", parameters: [only] };
  return { sql: "IN (SELECT value FROM json_each(?))", parameters: [JSON.stringify(keys)] };
}

function plain(sql: string): Piece {
  return { sql, parameters: [] };
}

/** Candidates of the source in one step. */
export type WindowSizes = Readonly<{
  /** In the first step, unless two pages are more. */
  min: number;
  /** In later steps: a query can be ended only between two steps. */
  max: number;
}>;

/** Roughly enough for a page of common filters; a few milliseconds of work. */
export const windowSizesDefault: WindowSizes = { min: 256, max: 16_384 };
const windowGrowth = 4;
/** Limit of cached statements; beyond it all are dropped, because preparing one costs only 50 µs. */
const preparedMax = 256;

type Order = "asc" | "desc";
type Span = Readonly<{ first: bigint; last: bigint }>;

/** A walk over the places that are in all sources. */
export type WindowWalk = Span &
  Readonly<{
    order: Order;
    /** At least one. */
    sources: readonly Source[];
    tests: Pick<PageStep, "excluded" | "onlyTransactions" | "parents" | "ingested">;
    /** Places that the page needs. */
    wanted: number;
    /** Called between windows; throws to end the walk. */
    checkpoint: () => void;
  }>;

/** Density of a source at one end of a span. */
type Sample = Readonly<{
  source: Source;
  count: number;
  /** The place of the last of `size` candidates; undefined: the span has fewer candidates. */
  edge: bigint | undefined;
}>;

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
      // A full result may leave candidates in its window, so the next window begins after its last place.
      const end = places.length === wanted && last !== undefined ? packHalves(last) : edgeOf(window, order);
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

/** Whether one list in place order is the result itself, so that reading ends with the page. */
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
  // All sources exceed the window: the one whose window reaches furthest is the rarest.
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

type Sampler = (source: Source, span: Span, size: number, order: Order) => Sample;

function createSampler(db: Database): Sampler {
  type Row = Readonly<{ count: number; high: number | null; low: number | null }>;
  const prepare = (from: string) => {
    const ordered = (edge: "min" | "max", direction: "ASC" | "DESC") =>
      prepareQuery<Row>(
        db,
        `SELECT count(*) AS count, ${halvesSql(`${edge}(n)`)}
         FROM (SELECT n FROM ${from} n BETWEEN ? AND ? ORDER BY n ${direction} LIMIT ?)`,
      );
    return { asc: ordered("max", "ASC"), desc: ordered("min", "DESC") };
  };
  const postings = prepare("postings WHERE key = ? AND");
  const transactions = prepare("transactions WHERE");
  const items = prepare("items WHERE");
  const read = (row: Row | undefined, size: number): Readonly<{ count: number; edge: bigint | undefined }> => {
    if (row === undefined || row.high === null || row.low === null) return { count: 0, edge: undefined };
    const edge = row.count < size ? undefined : packHalves({ high: row.high, low: row.low });
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
