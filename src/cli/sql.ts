/**
 * `cairn sql`: read-only SQL over a folder of exported files, as a table, JSON or CSV. Rows are printed as they arrive.
 * @module
 */
import { mkdtempSync, realpathSync, statSync } from "node:fs";
import { availableParallelism, tmpdir, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { exitCodes, misuse } from "../app/complaints.ts";
import { dataFolderAt } from "../app/data-folder.ts";
import type { DuckdbRows } from "../columnar/duckdb-engine.ts";
import { openSqlFolder, RejectedSql, type SqlFolder } from "../columnar/duckdb-sql.ts";
import type { Config } from "../config/settings.ts";
import { Failure } from "../failures.ts";
import { jsonText, printable, printableLines } from "../lib/printable.ts";
import { removeFolder } from "../lib/remove-folder.ts";
import { untilStopped } from "../lib/stop.ts";
import { isClosedPipe } from "./print.ts";

export type SqlCommandOptions = Readonly<{
  query: string;
  folder: string | undefined;
  json: boolean;
  csv: boolean;
  stateFolder: string;
}>;

/** DuckDB takes no more than half of the memory, and no more than this. Bytes. */
const memoryBytesMax = 8 * 2 ** 30;

/** Characters of a cell on a terminal. */
const cellMax = 64;

/** Runs the statement and prints its rows. @returns The exit code. */
export async function runSql(config: Config, options: SqlCommandOptions): Promise<number> {
  if (options.json && options.csv) throw misuse("--json and --csv exclude each other");
  const folder = folderOf(config, options.folder);
  const stop = new AbortController();
  const onInterrupt = () => stop.abort(new Error("interrupted"));
  process.once("SIGINT", onInterrupt);
  const spillFolder = mkdtempSync(join(tmpdir(), "cairn-sql-"));
  let opened: SqlFolder | undefined;
  try {
    opened = await openSqlFolder({
      folder,
      libraryFolder: options.stateFolder,
      spillFolder,
      memoryBytesMax: Math.min(memoryBytesMax, totalmem() / 2),
      threads: availableParallelism(),
    });
    if (opened === undefined) throw misuse(`no exported files in ${folder}; write some with: cairn export ${folder}`);
    await opened.query(options.query, stop.signal, (rows) => printRows(rows, formatOf(options), stop.signal));
    return exitCodes.done;
  } catch (error) {
    return report(error, stop.signal);
  } finally {
    process.off("SIGINT", onInterrupt);
    opened?.close();
    removeFolder(spillFolder);
  }
}

/** The given folder, else that of the columnar store, else that of exports. */
function folderOf(config: Config, given: string | undefined): string {
  const data = dataFolderAt(config.DATA_DIR);
  const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  const candidates = given === undefined ? [data.columnar, data.exports] : [resolve(given)];
  const folder = candidates.find(isFolder);
  if (folder !== undefined) return realpathSync(folder);
  if (given !== undefined) throw misuse(invalidFolder(given));
  throw misuse(`no exported files in ${data.root}; write some with: cairn export ${data.exports}`);
}

function invalidFolder(given: string): string {
  return `invalid value '${printable(given)}' for --folder: expected a folder of \`cairn export\``;
}

function report(error: unknown, signal: AbortSignal): number {
  if (signal.aborted) {
    process.stderr.write("cairn: interrupted\n");
    return exitCodes.interrupted;
  }
  if (isClosedPipe(error)) return exitCodes.done;
  if (error instanceof RejectedSql) throw misuse(error.message);
  if (!(error instanceof Failure)) throw error;
  const detail = String(error.context["detail"] ?? error.message);
  process.stderr.write(`cairn: ${printableLines(detail)}\n${hintFor(detail)}`);
  return exitCodes.failed;
}

function hintFor(detail: string): string {
  if (/Table with name|Referenced column|Binder Error/.test(detail)) {
    return 'tables: items, item_tags, blocks, transactions, tags, postings; columns: cairn sql "DESCRIBE items"\n';
  }
  if (/Permission Error|file system operations/.test(detail)) return "only files of the folder can be read\n";
  if (/Out of Memory/.test(detail)) return "select fewer rows or columns, or group by fewer values\n";
  if (/No files found|No such file/.test(detail)) return "an export has replaced files: run the command again\n";
  return "";
}

type Row = readonly unknown[];

/** How rows become text. */
type Format = Readonly<{
  /** @param rows - The first rows. */
  head: (columns: readonly string[], rows: readonly Row[]) => string;
  /** @param index - Of the first of these rows. */
  body: (columns: readonly string[], rows: readonly Row[], index: number) => string;
  end: (count: number) => string;
}>;

function formatOf({ json, csv }: SqlCommandOptions): Format {
  if (json) return jsonFormat;
  return csv ? csvFormat : tableFormat(process.stdout.isTTY === true ? cellMax : Number.POSITIVE_INFINITY);
}

const jsonFormat: Format = {
  head: () => "[",
  body: (columns, rows, index) =>
    rows
      .map((row, at) => {
        const object = Object.fromEntries(columns.map((name, column) => [name, valueJson(row[column])]));
        return `${index + at === 0 ? "\n" : ",\n"}${jsonText(object)}`;
      })
      .join(""),
  end: (count) => (count === 0 ? "]\n" : "\n]\n"),
};

/** Source: RFC 4180. */
const csvFormat: Format = {
  head: (columns) => `${columns.map(csvCell).join()}\n`,
  body: (_columns, rows) =>
    rows.map((row) => `${row.map((value) => csvCell(valueText(value) ?? "")).join()}\n`).join(""),
  end: () => "",
};

function csvCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Whether the columns are those of EXPLAIN, whose plan has lines of its own. */
function isPlan(columns: readonly string[]): boolean {
  return columns[0] === "explain_key";
}

/** @param widthMax - Characters of a cell; longer text is cut. */
function tableFormat(widthMax: number): Format {
  let widths: readonly number[] = [];
  const cell = (value: unknown): string => {
    const text = printable(valueText(value) ?? "");
    return text.length > widthMax ? `${text.slice(0, widthMax - 1)}…` : text;
  };
  const line = (cells: readonly string[], numeric: readonly boolean[] = []): string =>
    `${cells
      .map((text, column) => (numeric[column] ? text.padStart(widths[column] ?? 0) : text.padEnd(widths[column] ?? 0)))
      .join("  ")
      .trimEnd()}\n`;
  return {
    head: (columns, rows) => {
      if (isPlan(columns)) return "";
      // Later rows may be wider: they are printed as they arrive.
      const cells = [columns, ...rows.map((row) => row.map(cell))];
      widths = columns.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
      return `${line(columns)}${widths.map((width) => "-".repeat(width)).join("  ")}\n`;
    },
    body: (columns, rows) => {
      if (isPlan(columns)) return rows.map(([, plan]) => printableLines(String(plan))).join("");
      const numeric = (row: Row) => row.map((value) => /^(bigint|number)$/.test(typeof value));
      return rows.map((row) => line(row.map(cell), numeric(row))).join("");
    },
    end: (count) => (count === 1 ? "(1 row)\n" : `(${count} rows)\n`),
  };
}

/** A value as DuckDB prints it; null for NULL. */
function valueText(value: unknown): string | null {
  return value === null || value === undefined ? null : String(value);
}

/** A value as JSON: lists and structures become arrays and objects, unsafe integers become text. */
function valueJson(value: unknown): unknown {
  if (typeof value === "boolean" || typeof value === "string") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (typeof value !== "object" || value === null) return valueText(value);
  if ("items" in value && Array.isArray(value.items)) return value.items.map(valueJson);
  return "entries" in value ? entriesJson(value.entries) : valueText(value);
}

/** @param entries - Of a map: a list of keys and values; of a structure: an object. */
function entriesJson(entries: unknown): unknown {
  const pairs = Array.isArray(entries)
    ? entries.map(({ key, value }) => [key, value])
    : Object.entries(Object(entries));
  return Object.fromEntries(pairs.map(([name, value]) => [String(name), valueJson(value)]));
}

async function printRows({ columns, next }: DuckdbRows, format: Format, signal: AbortSignal): Promise<void> {
  const { stdout } = process;
  stdout.on("error", () => {
    // Each write rejects; the event follows it.
  });
  const write = (text: string): Promise<void> => untilStopped(written(stdout, text), signal);
  let rows = await next();
  await write(format.head(columns, rows));
  let count = 0;
  while (rows.length > 0) {
    await write(format.body(columns, rows, count));
    count += rows.length;
    rows = await next();
  }
  await write(format.end(count));
}

/** Resolves when the reader has taken the text, or the pipe to it. */
function written(output: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    output.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
