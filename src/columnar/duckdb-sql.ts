/**
 * Read-only SQL over a folder of exports, for an operator: the tables, and views with ids and times as text.
 *
 * A statement is executed only when DuckDB's own parser finds one statement that selects or explains a selection.
 * Source: docs/reference/columnar.md#sql.
 * @module
 */
import { type Duckdb, type DuckdbRows, openDuckdb, type QueryLimits } from "./duckdb-engine.ts";
import { openFolderPartitions, relationOf } from "./duckdb-files.ts";
import { exportTables } from "./export-tables.ts";

export type SqlOptions = Readonly<{
  /** The folder of exports. Absolute, without symbolic links. */
  folder: string;
  /** Where a binary writes the library that it embeds. */
  libraryFolder: string;
  spillFolder: string;
  memoryBytesMax: number;
  threads: number;
}>;

/** SQL over a folder. */
export type SqlFolder = Readonly<{
  /**
   * Runs a statement and passes its rows to `read`.
   *
   * @throws RejectedSql for a statement that is not a selection; Failure for an error of DuckDB.
   */
  query: (sql: string, signal: AbortSignal, read: (rows: DuckdbRows) => Promise<void>) => Promise<void>;
  close: () => void;
}>;

/** A statement that may not run. */
export class RejectedSql extends Error {
  override readonly name = "RejectedSql";
}

/** A query of an operator runs until it is interrupted. Milliseconds: the most that a timer takes. */
const queryMsMax = 2 ** 31 - 1;

/** Columns of `items`. Only the columns that a statement names are read from the files. */
const itemColumns = `t.place, base64url(t.id) AS id, t.is_data_item, t.height,
  make_timestamp(b.block_timestamp * 1000000) AS time, base64url(t.owner_address) AS owner,
  base64url(t.target) AS target, t.quantity, t.reward, base64url(t.anchor) AS anchor, t.data_size AS size,
  t.content_type, base64url(t.parent) AS parent, base64url(t.root_transaction_id) AS root`;

/** Tags are read only for statements that use them: a map in each row of `items` would read all tags. */
const definitions = [
  `CREATE MACRO base64url(bytes) AS translate(to_base64(bytes), '+/=', '-_')`,
  `CREATE MACRO text_of(bytes) AS coalesce(try(decode(bytes)), bytes::VARCHAR)`,
  `CREATE VIEW items AS SELECT ${itemColumns} FROM transactions t LEFT JOIN blocks b ON b.height = t.height`,
  `CREATE VIEW item_tags AS SELECT text_of(g.tag_name) AS name, text_of(g.tag_value) AS value, i.*
    FROM tags g JOIN items i ON i.place = g.place`,
  `CREATE MACRO tag(item, named) AS (SELECT min_by(text_of(g.tag_value), g.tag_index) FROM tags g
    WHERE g.place = item AND g.tag_name = named::BLOB)`,
  `CREATE MACRO tags_of(item) AS (SELECT list({'name': text_of(g.tag_name), 'value': text_of(g.tag_value)}
    ORDER BY g.tag_index) FROM tags g WHERE g.place = item)`,
];

/** Opens a folder. @returns Undefined when it has no complete partition. */
export async function openSqlFolder(options: SqlOptions): Promise<SqlFolder | undefined> {
  const { folder } = options;
  const partitions = openFolderPartitions(folder).list();
  if (partitions.length === 0) return undefined;
  const engine = await openDuckdb(options);
  const limits = { signal: new AbortController().signal, timeoutMs: queryMsMax };
  const views = exportTables.map(
    (table) => `CREATE VIEW ${table} AS SELECT * FROM ${relationOf(table, folder, partitions)}`,
  );
  for (const sql of [...views, ...definitions])
    await engine.query(sql, limits, async ({ next }) => void (await next()));
  return {
    query: async (sql, signal, read) => {
      await checkSelection(engine, sql, { signal, timeoutMs: queryMsMax });
      await engine.query(sql, { signal, timeoutMs: queryMsMax }, read);
    },
    close: engine.close,
  };
}

/** `EXPLAIN`, which may execute the statement that it explains, with its options. */
const explainPrefix = /^explain(?:\s+analyze)?(?:\s*\([\s,\w]*\))?\s+/i;

/** Spaces, comments and opening parentheses. */
const blankPrefix = /^(?:[\s(]|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)+/;

const selectionWord = /^(?:select|with|from|values|table|describe|desc|show|summarize|pivot|unpivot)\b/i;

async function checkSelection(engine: Duckdb, sql: string, limits: QueryLimits): Promise<void> {
  const statement = sql.replace(blankPrefix, "");
  const isExplained = explainPrefix.test(statement);
  const selection = isExplained ? statement.replace(explainPrefix, "").replace(blankPrefix, "") : statement;
  const isSelection =
    selectionWord.test(selection) && (await engine.kindOf(sql, limits)) === (isExplained ? "explain" : "select");
  // EXPLAIN hides the kind of the statement that it may execute.
  if (isSelection && (!isExplained || (await engine.kindOf(selection, limits)) === "select")) return;
  throw new RejectedSql("expected one SELECT, WITH, DESCRIBE or EXPLAIN statement: the files are read-only");
}
