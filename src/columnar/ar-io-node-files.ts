/**
 * Partitions that must be written again before they are imported: those of an ar-io-node, and heights out of a
 * partition of this program. An ar-io-node exports the same three tables, without places, postings and records, sorted
 * by id within a height.
 *
 * Rows are as that node verified them; only the properties that reading requires are checked.
 * Source: docs/reference/columnar.md#exports-of-ar-io-node.
 * @module
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Tag } from "../arweave/tags.ts";
import { Failure } from "../failures.ts";
import { removeFolder } from "../lib/remove-folder.ts";
import type { ExportBlock, ExportRow } from "../store/index/export-rows.ts";
import { packPlace } from "../store/index/place.ts";
import {
  checkTypes,
  type ForeignTable,
  foreignTables,
  readBlock,
  readRow,
  readTags,
  selections,
  type Values,
} from "./ar-io-node-rows.ts";
import { type DuckdbRows, literalPath, openDuckdb, quoted } from "./duckdb-engine.ts";
import { convertPartition, type LoadedPartition, type PartitionHeights } from "./partition.ts";

/** A partition of another gateway; paths are relative to the folder. */
export type ForeignPartition = PartitionHeights &
  Readonly<{ paths: Readonly<Record<ForeignTable, readonly string[]>> }>;

/** Converts the partitions of one folder. */
export type ForeignFiles = Readonly<{
  /**
   * Writes heights of a partition to the folder of the store, unless that was done before.
   *
   * @param heights - Within the partition.
   * @returns Items that were left out: their place in the transaction or their type of signature is not known.
   * @throws Error when the files do not have the tables of ar-io-node; the signal's reason.
   */
  convert: (partition: ForeignPartition, heights: PartitionHeights, signal: AbortSignal) => Promise<number>;
  close: () => void;
}>;

/** Rows that are in memory together. */
const stepRows = 40_000;

/** Characters of one result: the largest tags that ANS-104 permits, for `stepRows` rows. */
const resultCharactersMax = 2 ** 29;

/** Sorting a partition of millions of rows takes minutes on a slow disk. */
const queryMs = 60 * 60_000;

const memoryBytesMax = 2 ** 30;
const threads = 2;

/** The partitions of a folder, by height; none when it has another layout. */
export function foreignPartitions(folder: string): ForeignPartition[] {
  const ranges = new Map(foreignTables.flatMap((table) => directoriesOf(folder, table)));
  return [...ranges.values()]
    .map(({ start, end }) => {
      const of = (table: ForeignTable) => filesOf(folder, join(table, "data", `height=${start}-${end}`));
      return { start, end, paths: { blocks: of("blocks"), transactions: of("transactions"), tags: of("tags") } };
    })
    .filter(({ paths }) => paths.blocks.length + paths.transactions.length > 0)
    .sort((a, b) => a.start - b.start);
}

/** A partition of this program, as its record lists it. */
export function recordedPaths({ start, end, files }: Omit<LoadedPartition, "folder">): ForeignPartition {
  const of = (table: ForeignTable) => files.filter((file) => file.table === table).map(({ path }) => path);
  return { start, end, paths: { blocks: of("blocks"), transactions: of("transactions"), tags: of("tags") } };
}

function directoriesOf(folder: string, table: ForeignTable): (readonly [string, PartitionHeights])[] {
  return namesIn(join(folder, table, "data")).flatMap((name) => {
    const [, start, end] = /^height=(\d{1,7})-(\d{1,7})$/.exec(name) ?? [];
    return start === undefined || end === undefined || Number(start) > Number(end)
      ? []
      : [[name, { start: Number(start), end: Number(end) }] as const];
  });
}

function filesOf(folder: string, directory: string): string[] {
  return namesIn(join(folder, directory))
    .filter((name) => name.endsWith(".parquet"))
    .sort()
    .map((name) => join(directory, name));
}

function namesIn(directory: string): string[] {
  const isDirectory = statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true;
  return isDirectory ? readdirSync(directory) : [];
}

/**
 * @param libraryFolder - Where a binary writes the library of DuckDB.
 * @param origin - The program that wrote the files, as errors name it.
 */
export async function openForeignFiles(
  source: string,
  { storeFolder, libraryFolder, origin }: Readonly<{ storeFolder: string; libraryFolder: string; origin: string }>,
): Promise<ForeignFiles> {
  const folder = realpathSync(source);
  const spillFolder = join(storeFolder, "import.part");
  const removeSpills = () => removeFolder(spillFolder);
  // An import that was killed has left its files.
  removeSpills();
  mkdirSync(spillFolder, { mode: 0o700 });
  try {
    const engine = await openDuckdb({ folder, libraryFolder, spillFolder, memoryBytesMax, threads });
    return {
      convert: async (partition, { start, end }, signal) => {
        const query: Query = (sql, read) => engine.query(sql, { signal, timeoutMs: queryMs }, read);
        const reading = createReading(folder, partition, { start, end }, query);
        const request = { start, end, maxFileRows: 0, skipL1Transactions: false, skipL1Tags: false };
        const runId = `imported_${stampOf(folder, partition)}`;
        try {
          await convertPartition({ ...request, folder: storeFolder, runId }, reading);
        } catch (error) {
          signal.throwIfAborted();
          if (isOfSystem(error)) throw error;
          throw new Error(`heights ${start} to ${end} cannot be read as an export of ${origin}: ${detailOf(error)}`);
        }
        return reading.leftOut();
      },
      close: () => {
        engine.close();
        removeSpills();
      },
    };
  } catch (error) {
    removeSpills();
    throw error;
  }
}

/** Whether the disk or the system failed, and not the files. */
function isOfSystem(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}

function detailOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const text = error instanceof Failure ? String(error.context["detail"] ?? message) : message;
  // The other lines of DuckDB's messages are parts of the statement.
  return text.split("\n", 1)[0] ?? text;
}

/** Changes when a file of the partition changes. */
function stampOf(folder: string, { paths }: ForeignPartition): string {
  const hash = createHash("sha256");
  for (const path of foreignTables.flatMap((table) => paths[table])) {
    const { size, mtimeMs } = statSync(join(folder, path));
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest("hex").slice(0, 16);
}

type Query = <Result>(sql: string, read: (rows: DuckdbRows) => Promise<Result>) => Promise<Result>;

/** The rows of one partition. */
type Reading = Readonly<{
  blocks: () => Promise<ExportBlock[]>;
  batches: () => AsyncGenerator<ExportRow[]>;
  leftOut: () => number;
}>;

function createReading(folder: string, partition: ForeignPartition, heights: PartitionHeights, query: Query): Reading {
  const { paths } = partition;
  const source = (files: readonly string[]) =>
    `read_parquet([${files.map((path) => quoted(literalPath(join(folder, path)))).join(", ")}],
      hive_partitioning = false)`;
  const isWhole = heights.start === partition.start && heights.end === partition.end;
  const from = (table: ForeignTable) =>
    isWhole
      ? source(paths[table])
      : `(SELECT * FROM ${source(paths[table])} WHERE height BETWEEN ${heights.start} AND ${heights.end})`;
  const select = createSelect(query);
  const checkColumns = async (table: ForeignTable): Promise<void> => {
    for (const path of paths[table]) checkTypes(table, await select(`DESCRIBE SELECT * FROM ${source([path])}`));
  };
  let leftOut = 0;

  async function* batches(): AsyncGenerator<ExportRow[]> {
    if (paths.transactions.length === 0) return;
    await checkColumns("transactions");
    await checkColumns("tags");
    checkHeights(await select(`SELECT min(height), max(height) FROM ${source(paths.transactions)}`), partition);
    const [[unplaced] = []] = await select(
      `SELECT count(DISTINCT id) FROM ${from("transactions")} WHERE (${placed}) IS NOT TRUE`,
    );
    leftOut = Number(unplaced);
    const takeRows = createRowFilter(await repeatedIds(select, from("transactions")));
    for (const step of await stepsOf(select, from("transactions"))) {
      const tagsOf = paths.tags.length === 0 ? new Map() : await tagsIn(select, from, step);
      const rows = (await select(rowsSql(from("transactions"), step))).map((values) => readRow(values, tagsOf));
      const { taken, invalid } = takeRows(rows);
      leftOut += invalid;
      yield taken;
    }
  }

  return {
    blocks: async () => {
      await checkColumns("blocks");
      const blocks = paths.blocks.length === 0 ? [] : (await select(blocksSql(from("blocks")))).map(readBlock);
      checkBlocks(blocks, heights);
      return blocks;
    },
    batches,
    leftOut: () => leftOut,
  };
}

type Select = (sql: string) => Promise<Values[]>;

function createSelect(query: Query): Select {
  return (sql) =>
    query(sql, async ({ next }) => {
      const all: Values[] = [];
      let characters = 0;
      for (let rows = await next(); rows.length > 0; rows = await next()) {
        const texts = rows.map((row) => row.map((value) => (value === null ? null : String(value))));
        characters += texts.reduce((sum, row) => sum + row.join("").length, 0);
        if (characters > resultCharactersMax) throw new Error(`${stepRows} rows have more than 256 MiB`);
        all.push(...texts);
      }
      return all;
    });
}

/** Every height has one block, which names the block before: otherwise heights would be recorded without their rows. */
function checkBlocks(blocks: readonly ExportBlock[], { start, end }: PartitionHeights): void {
  for (const [index, { height, previous }] of blocks.entries()) {
    const before = blocks[index - 1];
    if (height === before?.height) throw new Error(`there are two blocks of height ${height}`);
    if (height < start || height > end) throw new Error(`there is a block of height ${height}`);
    if (height !== start + index) throw new Error(`the block of height ${start + index} is missing`);
    if (before !== undefined && previous !== null && !Buffer.from(previous).equals(before.hash))
      throw new Error(`the block of height ${height} does not name the block before`);
  }
  if (blocks.length <= end - start) throw new Error(`the block of height ${start + blocks.length} is missing`);
}

function checkHeights(bounds: readonly Values[], { start, end }: PartitionHeights): void {
  const [lowest, highest] = bounds[0] ?? [];
  if (lowest == null || highest == null) return;
  if (Number(lowest) >= start && Number(highest) <= end) return;
  throw new Error(`the files have heights ${lowest} to ${highest}`);
}

/** Ids that have rows at several places. Each is imported at its lowest place. */
async function repeatedIds(select: Select, from: string): Promise<ReadonlySet<string>> {
  const found = await select(
    `SELECT hex(id) FROM ${from} WHERE ${placed} GROUP BY id
     HAVING min(${transactionNumber}) <> max(${transactionNumber}) OR min(${position}) <> max(${position})`,
  );
  return new Set(found.map(([id]) => id ?? ""));
}

type TakenRows = Readonly<{ taken: ExportRow[]; invalid: number }>;

/**
 * Takes the rows to import. Rows are passed in place order. A row that repeats an id is dropped; one at the place of
 * another id is invalid.
 */
function createRowFilter(repeated: ReadonlySet<string>): (rows: readonly (ExportRow | undefined)[]) => TakenRows {
  const met = new Set<string>();
  let lastPlace = -1n;
  let lastId = "";
  const stateOf = (row: ExportRow | undefined): "taken" | "repeated" | "invalid" => {
    if (row === undefined) return "invalid";
    const place = packPlace(row);
    const id = Buffer.from(row.id).toString("hex").toUpperCase();
    if (met.has(id) || (place === lastPlace && id === lastId)) return "repeated";
    if (place <= lastPlace) return "invalid";
    if (repeated.has(id)) met.add(id);
    lastPlace = place;
    lastId = id;
    return "taken";
  };
  return (rows) => {
    const states = rows.map(stateOf);
    return {
      taken: rows.flatMap((row, index) => (row !== undefined && states[index] === "taken" ? [row] : [])),
      invalid: states.filter((state) => state === "invalid").length,
    };
  };
}

/** Rows whose place is known. */
const placed = `height IS NOT NULL AND block_transaction_index IS NOT NULL
  AND is_data_item IS NOT NULL AND (NOT is_data_item
  OR (root_parent_offset IS NOT NULL AND "offset" IS NOT NULL AND data_offset IS NOT NULL
    AND signature_type IS NOT NULL))`;

/** Numbers the transactions of all blocks in their order. */
const transactionNumber = "(height::BIGINT * 65536 + block_transaction_index::BIGINT)";

/** Where a row is in its transaction. The `offset` of a transaction is that of its data in the weave. */
const position = `(CASE WHEN is_data_item THEN root_parent_offset::HUGEINT + "offset"::HUGEINT ELSE -1 END)`;

const perHeight = 65_536;

/** Transactions of a block, or positions of one transaction; all inclusive. */
type Step = Readonly<{ first: number; last: number; positions: string }>;

/** Splits the placed rows of a partition in place order, so that each step has at most `stepRows` rows. */
async function stepsOf(select: Select, from: string): Promise<Step[]> {
  const counts = await select(
    `SELECT ${transactionNumber} AS number, count(*) FROM ${from} WHERE ${placed} GROUP BY number ORDER BY number`,
  );
  const steps: Step[] = [];
  let rows = stepRows;
  for (const [text, count] of counts) {
    const number = Number(text);
    const step = steps.at(-1);
    if (Number(count) > stepRows) {
      steps.push(...(await stepsWithin(select, from, number)));
      rows = stepRows;
    } else if (step === undefined || rows + Number(count) > stepRows) {
      steps.push({ first: number, last: number, positions: "" });
      rows = Number(count);
    } else {
      steps[steps.length - 1] = { ...step, last: number };
      rows += Number(count);
    }
  }
  return steps;
}

/** Splits the rows of one transaction. */
async function stepsWithin(select: Select, from: string, number: number): Promise<Step[]> {
  const ends = await select(
    `SELECT position FROM (SELECT ${position} AS position, row_number() OVER (ORDER BY ${position}) AS rank FROM ${from}
       WHERE ${within({ first: number, last: number, positions: "" })})
     WHERE rank % ${stepRows} = 0 ORDER BY position`,
  );
  const range = { first: number, last: number };
  const steps = ends.map(([end], index) => {
    const after = ends[index - 1]?.[0] ?? "-2";
    if (after === end) throw new Error(`more than ${stepRows} rows have one place`);
    return { ...range, positions: `AND ${position} > ${after} AND ${position} <= ${end}` };
  });
  return [...steps, { ...range, positions: `AND ${position} > ${ends.at(-1)?.[0] ?? "-2"}` }];
}

function within({ first, last, positions }: Step): string {
  const heights = `height BETWEEN ${Math.floor(first / perHeight)} AND ${Math.floor(last / perHeight)}`;
  return `${heights} AND ${placed} AND ${transactionNumber} BETWEEN ${first} AND ${last} ${positions}`;
}

/** Tags by the id of their row, in their order. */
async function tagsIn(
  select: Select,
  from: (table: ForeignTable) => string,
  step: Step,
): Promise<ReadonlyMap<string, readonly Tag[]>> {
  const heights = `height BETWEEN ${Math.floor(step.first / perHeight)} AND ${Math.floor(step.last / perHeight)}`;
  const tags = await select(
    `SELECT DISTINCT ${selections.tags.sql} FROM ${from("tags")}
     WHERE ${heights} AND id IN (SELECT id FROM ${from("transactions")} WHERE ${within(step)})
     ORDER BY ALL`,
  );
  return readTags(tags);
}

function blocksSql(from: string): string {
  return `SELECT DISTINCT ${selections.blocks.sql} FROM ${from} ORDER BY height`;
}

function rowsSql(from: string, step: Step): string {
  return `SELECT ${selections.transactions.sql} FROM ${from} WHERE ${within(step)}
    ORDER BY ${transactionNumber}, ${position}, id, indexed_at`;
}
