/**
 * The SQL of pages: places from one source in order, tested against the other groups inside SQLite (a seek from
 * JavaScript costs twenty times one inside: measured), and the rows at given places.
 *
 * The text depends on the shape of a step only, so that statements are prepared once a shape.
 * Source: docs/reference/index-layout.md#pages-of-results.
 * @module
 */
import type { SQLQueryBindings } from "bun:sqlite";
import type { PlaceHalves } from "./parts/places.ts";
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

/** Tests that the place alone answers. */
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
