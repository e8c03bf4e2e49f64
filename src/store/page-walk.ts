/**
 * Walking a plan: step by step through ranges of places, always from the source that is rarest just there.
 *
 * A step covers a window in which the source has a bounded number of candidates, so that a query can be ended
 * between steps; windows grow, so that a sparse result costs a handful of them.
 * Source: reference/index.md §2, §4 "Query".
 * @module
 */
import type { Database } from "bun:sqlite";
import { assert } from "../lib/assert.ts";
import type { PlaceRange, Walk } from "./page-plan.ts";
import { type PageStep, type Source, type StepRow, stepSql } from "./page-sql.ts";
import type { PageColumns, PagePlan } from "./rows.ts";
import { prepareQuery, type Query } from "./sqlite.ts";

/** Walks a plan and hands on each row, in order, until `take` answers that it has enough. */
export type Walker = (
  walk: Walk,
  plan: Pick<PagePlan, "order" | "checkpoint">,
  columns: PageColumns,
  wanted: number,
  take: (row: StepRow) => "more" | "enough",
) => void;

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

/** How dense a source is from one end of a span: candidates found, and where the last of so many lies. */
type Sample = Readonly<{
  source: Source;
  count: number;
  /** The place up to which `size` candidates lie; undefined: the span has fewer. */
  edge: bigint | undefined;
}>;

/** Opens the walker over a reader's connection. */
export function createWalker(db: Database, windows: WindowSizes): Walker {
  const prepared = new Map<string, Query<StepRow>>();
  const run = (step: PageStep): StepRow[] => {
    const { sql, parameters } = stepSql(step);
    const known = prepared.get(sql);
    if (known !== undefined) return known.all(...parameters);
    if (prepared.size >= preparedMax) {
      for (const query of prepared.values()) query.finalize();
      prepared.clear();
    }
    const query = prepareQuery<StepRow>(db, sql);
    prepared.set(sql, query);
    return query.all(...parameters);
  };
  const sample = createSampler(db);

  return (walk, plan, columns, wanted, take) => {
    for (const range of walk.ranges) {
      const outcome = walkRange({ walk, range, plan, columns, wanted, take, run, sample, windows });
      if (outcome === "enough") return;
    }
  };
}

type RangeWalk = Readonly<{
  walk: Walk;
  range: PlaceRange;
  plan: Pick<PagePlan, "order" | "checkpoint">;
  columns: PageColumns;
  wanted: number;
  take: (row: StepRow) => "more" | "enough";
  run: (step: PageStep) => StepRow[];
  sample: Sampler;
  windows: WindowSizes;
}>;

function walkRange(parts: RangeWalk): "more" | "enough" {
  const { walk, range, plan, wanted, take, sample, windows } = parts;
  const sources = sourcesOf(walk);
  const isSingle = isSingleList(walk, range, sources);
  let rest: Span = range;
  let size = Math.max(windows.min, Math.min(wanted * 2, windows.max));
  while (rest.first <= rest.last) {
    plan.checkpoint?.();
    const samples = isSingle ? [] : sources.map((source) => sample(source, rest, size, plan.order));
    const window = windowOf(rest, rarestOf(samples, plan.order)?.edge, plan.order);
    const rows = rowsOf(parts, sources, samples, window);
    for (const row of rows) if (take(row) === "enough") return "enough";
    const lastRow = rows.at(-1);
    // A full answer may have left candidates in its window: go on after its last row, not after the window.
    const end =
      rows.length === wanted && lastRow !== undefined ? placeOfRow(lastRow) : edgeOf(window, plan.order);
    rest = plan.order === "asc" ? { ...rest, first: end + 1n } : { ...rest, last: end - 1n };
    size = Math.min(size * windowGrowth, windows.max);
  }
  return "more";
}

/** The rows of one window in order, from its rarest source. */
function rowsOf(
  { walk, range, plan, columns, wanted, run }: RangeWalk,
  sources: readonly Source[],
  samples: readonly Sample[],
  window: Span,
): StepRow[] {
  const source = rarestOf(samples, plan.order)?.source ?? sources[0];
  assert(source !== undefined, "a walk has a source");
  const rows = run({
    ...window,
    order: plan.order,
    source,
    groups: sources.flatMap((other) => (other === source || other.kind !== "keys" ? [] : [other.keys])),
    excluded: walk.excluded,
    onlyTransactions: walk.onlyTransactions,
    parents: range.parents,
    ingested: walk.ingested,
    columns: { ...columns, tags: columns.tags || walk.checksTags },
    limit: wanted,
  });
  return rows.sort(plan.order === "asc" ? compareRows : (a, b) => compareRows(b, a));
}

/** Every list in which a row must be; the whole index where there is none. */
function sourcesOf(walk: Walk): Source[] {
  const sources: Source[] = walk.groups.map((keys) => ({ kind: "keys", keys }));
  if (walk.onlyTransactions) sources.push({ kind: "transactions" });
  return sources.length > 0 ? sources : [{ kind: "items" }];
}

/** Whether one list in place order is the answer itself, so that reading it stops with the page. */
function isSingleList(walk: Walk, range: PlaceRange, sources: readonly Source[]): boolean {
  const [source] = sources;
  const isOrdered = source?.kind !== "keys" || source.keys.length === 1;
  const isTested = walk.excluded.length > 0 || walk.ingested !== undefined || range.parents !== undefined;
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
  if (edge === undefined) return rest;
  return order === "asc" ? { ...rest, last: edge } : { ...rest, first: edge };
}

function edgeOf(window: Span, order: Order): bigint {
  return order === "asc" ? window.last : window.first;
}

function compareRows(a: StepRow, b: StepRow): number {
  return a.high - b.high || a.low - b.low;
}

function placeOfRow({ high, low }: StepRow): bigint {
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
  const read = (
    row: Row | undefined,
    size: number,
  ): Readonly<{ count: number; edge: bigint | undefined }> => {
    if (row === undefined || row.high === null || row.low === null) return { count: 0, edge: undefined };
    const edge = row.count < size ? undefined : (BigInt(row.high) << 31n) | BigInt(row.low);
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
