/**
 * The SQL of one step of a page: candidates from one source in place order, tested against the other groups and
 * joined with their rows, all inside SQLite (a seek from JavaScript costs twenty times one inside: measured).
 *
 * The text depends on the shape of a step only, so that statements are prepared once a shape.
 * Source: reference/index.md §2 "ways to intersect", §7.2.
 * @module
 */
import type { SQLQueryBindings } from "bun:sqlite";
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
  columns: PageColumns;
  limit: number;
}>;

/** A row as a step answers it. Columns that were not asked for are null. */
export type StepRow = Readonly<{
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

/** Writes the SQL of a step. */
export function stepSql(step: PageStep): BoundSql {
  const source = sourceOf(step);
  const conditions = conditionsOf(step);
  const sql = `SELECT i.n >> 31 AS high, i.n & 0x7fffffff AS low, i.fine, i.id, o.address, i.target, i.anchor, i.head,
      i.size, i.sig, i.ingested, t.quantity, t.reward, t.format, ${selected(step.columns)}
    FROM ${source.sql} CROSS JOIN owners o ON o.owner = i.owner LEFT JOIN transactions t ON i.sig < 0 AND t.n = i.n
      ${step.columns.block ? "LEFT JOIN blocks b ON b.height = i.n >> 41" : ""}
    WHERE ${["true", ...conditions.map((piece) => piece.sql)].join(" AND ")}
    ORDER BY ${placeOf(step.source)} ${step.order === "asc" ? "ASC" : "DESC"} LIMIT ?`;
  const parameters = [...source.parameters, ...conditions.flatMap((piece) => piece.parameters), step.limit];
  return { sql, parameters };
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

/** The column of the place, as far out as possible: what is tested on it is tested before the row is read. */
function placeOf(source: Source): string {
  return source.kind === "items" ? "i.n" : "d.n";
}

function sourceOf({ source, first, last }: PageStep): Piece {
  const range = `BETWEEN ? AND ?`;
  const joined = "CROSS JOIN items i ON i.n = d.n";
  switch (source.kind) {
    case "items":
      return {
        sql: `(SELECT * FROM items WHERE n ${range}) i`,
        parameters: [first, last],
      };
    case "transactions":
      return {
        sql: `(SELECT n FROM transactions WHERE n ${range}) d ${joined}`,
        parameters: [first, last],
      };
    case "keys": {
      const keys = keyTest(source.keys);
      const distinct = source.keys.length > 1 ? "DISTINCT" : "";
      return {
        sql: `(SELECT ${distinct} n FROM postings WHERE key ${keys.sql} AND n ${range}) d ${joined}`,
        parameters: [...keys.parameters, first, last],
      };
    }
  }
}

function conditionsOf(step: PageStep): Piece[] {
  const place = placeOf(step.source);
  const pieces: Piece[] = [];
  if (step.onlyTransactions && step.source.kind !== "transactions")
    // The lower half tells before the row is read; only pending rows must be asked.
    pieces.push(plain(`(${place} & 0x7fffffff = 0 OR ${place} >= 0x7ffffe0000000000) AND i.sig < 0`));
  for (const keys of step.groups) pieces.push(exists("EXISTS", place, keys));
  for (const keys of step.excluded) pieces.push(exists("NOT EXISTS", place, keys));
  if (step.parents !== undefined)
    pieces.push({
      sql: "i.sig > 0 AND coalesce(i.parent, -1) IN (SELECT value FROM json_each(?))",
      parameters: [JSON.stringify(step.parents)],
    });
  if (step.ingested !== undefined)
    pieces.push({ sql: "i.ingested BETWEEN ? AND ?", parameters: [step.ingested.min, step.ingested.max] });
  return pieces;
}

function exists(word: "EXISTS" | "NOT EXISTS", place: string, keys: readonly number[]): Piece {
  const test = keyTest(keys);
  return {
    sql: `${word} (SELECT 1 FROM postings e WHERE e.key ${test.sql} AND e.n = ${place})`,
    parameters: test.parameters,
  };
}

function keyTest(keys: readonly number[]): Piece {
  const [only] = keys;
  if (keys.length === 1 && only !== undefined) return { sql: "= ?", parameters: [only] };
  return { sql: "IN (SELECT value FROM json_each(?))", parameters: [JSON.stringify(keys)] };
}

function plain(sql: string): Piece {
  return { sql, parameters: [] };
}
