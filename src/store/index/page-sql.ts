/**
 * The SQL of pages: places from one source in order, tested against the other groups inside SQLite (a seek from
 * JavaScript costs twenty times one inside: measured), and the rows at given places.
 *
 * The text depends on the shape of a step only, so that statements are prepared once a shape.
 *
 * Walking the posting B-tree and the tables themselves: window by window, always from the source that is rarest
 * just there.
 *
 * A window holds a bounded number of the source's candidates, so that a query can be ended between windows; they
 * grow, so that a sparse result costs a handful of them.
 * Source: docs/reference/index-layout.md#pages-of-results.
 * @module
 */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import { assert } from "../../lib/assert.ts";
import { prepareQuery, type Query } from "../sqlite.ts";
import type { PlaceHalves } from "./parts/part-read.ts";
import type { PageColumns } from "./rows.ts";

/** Where candidates come from. */
export type Source =
  | Readonly<{ kind: "keys"; keys: readonly number[] }>
  | Readonly<{ kind: "transactions" }>
  | Readonly<{ kind: "items" }>;

/** One step: which candidates, and what they must meet. */
export type PageStep = Readonly<{
  order: "asc" | "desc";
  source: Source;
  /** Packed places, both inclusive. */
  first: bigint;
  last: bigint;
  /** Groups besides the source. */
  groups: readonly (readonly number[])[];
  excluded: readonly (readonly number[])[];
  onlyTransactions: boolean;
  parents: readonly number[] | undefined;
  ingested: Readonly<{ min: number; max: number }> | undefined;
  limit: number;
}>;

/** A row as it is read. Columns that were not asked for are null. */
export type StoredPageRow = Readonly<{
  high: number;
  low: number;
  fine: number;
  id: Uint8Array;
  address: Uint8Array;
  ownerKey: Uint8Array | null;
  target: Uint8Array | null;
  anchor: string | Uint8Array | null;
  head: number;
  size: number;
  sig: number;
  parent: number | null;
  tags: Uint8Array | null;
  ingested: number;
  quantity: string | null;
  reward: string | null;
  format: number | null;
  height: number | null;
  hash: Uint8Array | null;
  previous: Uint8Array | null;
  timestamp: number | null;
  parentId: Uint8Array | null;
}>;

/** A statement's text, and what is bound to it. */
export type BoundSql = Readonly<{ sql: string; parameters: SQLQueryBindings[] }>;

/** Pieces of SQL, and the parameters in the order of their question marks. */
type Piece = Readonly<{ sql: string; parameters: readonly SQLQueryBindings[] }>;

/** The parent's row, or its place in the queue where the index filter left it out. */
const parentId = `CASE WHEN i.sig < 0 OR i.n >= 0x7ffffe0000000000 THEN NULL ELSE coalesce(
    (SELECT id FROM items p WHERE p.n = ((i.n >> 31) << 31) | coalesce(i.parent >> 6, 0)),
    (SELECT id FROM duplicates p WHERE p.n = ((i.n >> 31) << 31) | coalesce(i.parent >> 6, 0)),
    (SELECT id FROM bundles p WHERE p.n = ((i.n >> 31) << 31) | coalesce(i.parent >> 6, 0))) END`;

/** Writes the SQL that reads the rows at places given as a JSON list (`placesJson`), in no order of its own. */
export function rowsSql(columns: PageColumns): string {
  return `SELECT i.n >> 31 AS high, i.n & 0x7fffffff AS low, i.fine, i.id, o.address, i.target, i.anchor, i.head,
      i.size, i.sig, i.parent, i.ingested, t.quantity, t.reward, t.format, ${selected(columns)}
    FROM json_each(?) j CROSS JOIN items i ON i.n = j.value CROSS JOIN owners o ON o.owner = i.owner
      LEFT JOIN transactions t ON i.sig < 0 AND t.n = i.n
      ${columns.block ? "LEFT JOIN blocks b ON b.height = i.n >> 41" : ""}`;
}

/** Places as `rowsSql` takes them. */
export function placesJson(places: readonly PlaceHalves[]): string {
  return `[${places.map(({ high, low }) => (BigInt(high) << 31n) | BigInt(low)).join(",")}]`;
}

function selected({ tags, ownerKey, parent, block }: PageColumns): string {
  return [
    tags ? "i.tags" : "NULL AS tags",
    ownerKey ? "o.key AS ownerKey" : "NULL AS ownerKey",
    parent ? `${parentId} AS parentId` : "NULL AS parentId",
    block
      ? "b.height, b.hash, b.previous, b.timestamp"
      : "NULL AS height, NULL AS hash, NULL AS previous, NULL AS timestamp",
  ].join(", ");
}

/** Writes the SQL that finds places, at most `limit`, in order, in halves. */
export function placesSql(step: PageStep): BoundSql {
  const source = sourceOf(step.source);
  const rowTests = rowTestsOf(step);
  // What is asked of the row is asked last: the row is read only when every posting is there.
  const row = rowTests.length === 0 ? "" : "CROSS JOIN items r ON r.n = d.n";
  const tests = [source.test, range(step), ...placeTestsOf(step), ...rowTests];
  return {
    sql: `SELECT ${source.distinct} d.n >> 31 AS high, d.n & 0x7fffffff AS low FROM ${source.table} d ${row}
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
    // The lower half tells a transaction of a block; a pending row is asked itself.
    ...(onlyTransactions && source.kind !== "transactions"
      ? [plain("(d.n & 0x7fffffff = 0 OR d.n >= 0x7ffffe0000000000)")]
      : []),
    ...groups.map((keys) => posting(keys, "IS NOT NULL")),
    ...excluded.map((keys) => posting(keys, "IS NULL")),
  ];
}

/** Tests that need the row. */
function rowTestsOf({ source, onlyTransactions, parents, ingested }: PageStep): Piece[] {
  const tests: Piece[] = [];
  // A transaction at a place that is not its canonical one has no row.
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

/** As a scalar, not as EXISTS: SQLite would join that one last, after the row was read (seen in its plan). */
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
/** Prepared statements in the cache; beyond the limit all are dropped, because each costs only 50 µs. */
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

/** How dense a source is from one end of a span: candidates found, and the place of the last of so many. */
type Sample = Readonly<{
  source: Source;
  count: number;
  /** The place of the last of `size` candidates; undefined: the span has fewer. */
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
      // A full result may have left candidates in its window: go on after its last place, not after the window.
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

/** Whether one list in place order is the result itself, so that reading stops with the page. */
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
