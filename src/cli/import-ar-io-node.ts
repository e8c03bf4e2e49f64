/**
 * `cairn import --from ar-io-node`: takes over the data folder of an ar-io-node, and reports what its settings mean
 * here. The folder is only read.
 * @module
 */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { exitCodes, isMisuse, misuse } from "../app/complaints.ts";
import { type DataFolder, takeFolder } from "../app/data-folder.ts";
import { type ExplainedName, explainEnvironment, readConfig } from "../config/config.ts";
import type { Config } from "../config/settings.ts";
import { explainError } from "../failures.ts";
import { systemClock } from "../lib/clock.ts";
import { type Closers, createClosers } from "../lib/closers.ts";
import { jsonText, printableLines } from "../lib/printable.ts";
import { bytesText, countText } from "../lib/quantity-text.ts";
import { type BlockListImport, importBlockList } from "../store/ar-io-node/import-block-list.ts";
import { type ContentImport, importContent } from "../store/ar-io-node/import-content.ts";
import { importRows, type RowsImport } from "../store/ar-io-node/import-rows.ts";
import { openSourceDatabase, type SourceDatabase } from "../store/ar-io-node/source-database.ts";
import { openAdoptedFiles } from "../store/extents/adopted-files.ts";
import { openIndexReader } from "../store/index/index-reader.ts";
import { openIndexWriter } from "../store/index/index-writer.ts";
import { mergeAllParts, openMergeConnection } from "../store/index/parts/merge-connection.ts";
import { settingsFaults } from "./check-settings.ts";
import { explainReport, readEnvFile } from "./environment.ts";
import { failureCodeOf, stopAtInterrupt } from "./interruption.ts";
import { print } from "./print.ts";
import { createBar, errorScreen } from "./terminal.ts";

export type ArIoNodeOptions = Readonly<{
  /** The data folder of ar-io-node, or the folder that contains it as `data`. */
  folder: string;
  /** Its `.env`; by default the one in the folder or beside it. */
  env: string | undefined;
  json: boolean;
}>;

type Report = Readonly<{
  index: RowsImport | undefined;
  blockList: BlockListImport | undefined;
  content: ContentImport | undefined;
  settings: SettingsReport;
}>;

/** Imports the folder and prints a report. @returns The exit code. @throws Misuse for another folder. */
export async function runArIoNodeImport(config: Config, options: ArIoNodeOptions): Promise<number> {
  const source = dataFolderOf(resolve(options.folder));
  const settings = readSettings(source, options.env);
  const closers = createClosers((name, error) =>
    process.stderr.write(`cairn: ${name} could not be closed: ${error}\n`),
  );
  const stop = new AbortController();
  const bar = createBar(errorScreen(), systemClock);
  const unhook = stopAtInterrupt(stop);
  try {
    const folder = takeFolder(config, closers);
    const parts: ImportParts = { source, folder, config, closers, signal: stop.signal, show: bar.show };
    const report = { ...(await importAll(parts)), settings };
    bar.end();
    print(options.json ? `${jsonText(report)}\n` : reportText(report));
    return exitCodes.done;
  } catch (error) {
    bar.end();
    if (!(error instanceof Error) || isMisuse(error)) throw error;
    process.stderr.write(`cairn: ${printableLines(explainError(error))}\n`);
    return failureCodeOf(stop.signal);
  } finally {
    unhook();
    await closers.closeAll();
  }
}

type ImportParts = Readonly<{
  /** The data folder of ar-io-node. */
  source: string;
  folder: DataFolder;
  config: Config;
  closers: Closers;
  signal: AbortSignal;
  show: (fraction: number, text: string) => void;
}>;

async function importAll(parts: ImportParts): Promise<Omit<Report, "settings">> {
  const { source, folder, closers } = parts;
  const opened = ["core", "bundles", "data", "moderation"].map((name) => {
    const scratch = join(folder.root, `import-${name}`);
    const db = openSourceDatabase(join(source, "sqlite", `${name}.db`), scratch);
    if (db !== undefined) closers.add(`${name}.db`, db.close);
    return db;
  });
  const [core, bundles, data, moderation] = opened;
  const blockList = moderation === undefined ? undefined : importBlockList(moderation, folder.moderation);
  const content = core === undefined || data === undefined ? undefined : await importFiles(parts, core, data);
  const index = core === undefined ? undefined : await importIndex(parts, core, bundles);
  for (const db of opened) db?.checkUnchanged();
  return { blockList, content, index };
}

async function importIndex(
  { folder, closers, signal, show }: ImportParts,
  core: SourceDatabase,
  bundles: SourceDatabase | undefined,
): Promise<RowsImport> {
  const index = openIndexWriter(folder.index, { clock: systemClock });
  closers.add("index", index.close);
  const reader = openIndexReader(folder.index);
  closers.add("index reader", reader.close);
  const connection = openMergeConnection(folder.index);
  closers.add("merges of the index", connection.close);
  return await importRows({
    core,
    bundles,
    index: {
      addImported: (blocks, items) => {
        const outcome = index.addImported(blocks, items);
        mergeAllParts(index, connection);
        return outcome;
      },
    },
    reader,
    signal,
    onProgress: ({ first, last }, height) =>
      show((height - first + 1) / (last - first + 1), `index: height ${height} of ${last}`),
  });
}

async function importFiles(
  { source, folder, config, closers, signal, show }: ImportParts,
  core: SourceDatabase,
  data: SourceDatabase,
): Promise<ContentImport> {
  const files = openAdoptedFiles({
    folder: folder.content,
    mapPath: folder.contentMap,
    bytesMax: config.CACHE_BYTES_MAX,
    freeBytesMin: config.CACHE_FREE_BYTES_MIN,
    onReset: (reason) =>
      process.stderr.write(`cairn: the content map was damaged and has been recreated: ${printableLines(reason)}\n`),
  });
  closers.add("content map", files.close);
  return await importContent({
    core,
    data,
    folder: join(source, "contiguous", "data"),
    files,
    signal,
    onProgress: (done, total) => show(done / total, `cached files: ${done} of ${total}`),
  });
}

function reportText({ blockList, content, index, settings }: Report): string {
  return [
    index === undefined ? "" : indexText(index),
    blockList === undefined ? "" : blockListText(blockList),
    content === undefined ? "" : contentText(content),
    settingsText(settings),
  ].join("");
}

function indexText(imported: RowsImport): string {
  const { heights, blocksBelow, blocks, transactions, missing, items, duplicates, skipped } = imported;
  if (heights === null) return section("index", ["core.db has no final block"]);
  return section("index", [
    `heights ${heights.first} to ${heights.last}: ${countText(blocks, "new block")}`,
    `${countText(transactions, "transaction")}, ${countText(items, "data item")}`,
    ...(blocksBelow > 0 ? [`${countText(blocksBelow, "block")} left out: a block above them is absent`] : []),
    ...(duplicates > 0 ? [`${countText(duplicates, "data item")} also at another place`] : []),
    ...(missing > 0 ? [`${countText(missing, "transaction")} incomplete in core.db: fetched from nodes`] : []),
    ...Object.entries(skipped).map(([reason, count]) => `${countText(count, "data item")} left out: ${reason}`),
  ]);
}

function blockListText({ ids, hashes, names, present, invalid }: BlockListImport): string {
  return section("block list", [
    [countText(ids, "id"), countText(hashes, "hash", "hashes"), countText(names, "name")].join(", "),
    ...(present > 0 ? [`${countText(present, "entry", "entries")} blocked here already`] : []),
    ...(invalid > 0 ? [`${countText(invalid, "entry", "entries")} not valid, left out`] : []),
  ]);
}

function contentText({ linked, copied, bytes, present, skipped }: ContentImport): string {
  return section("cached files", [
    `${linked} linked, ${copied} copied, ${bytesText(bytes)}`,
    ...(present > 0 ? [`${present} cached here already`] : []),
    ...Object.entries(skipped).map(([reason, count]) => `${count} left out: ${reason}`),
  ]);
}

function section(title: string, lines: readonly string[]): string {
  return `${title}:\n${lines.map((line) => `  ${line}\n`).join("")}\n`;
}

function dataFolderOf(folder: string): string {
  const found = [folder, join(folder, "data")].find((each) => existsSync(join(each, "sqlite", "core.db")));
  if (found === undefined) throw misuse(`${folder} is not a data folder of ar-io-node: sqlite/core.db does not exist`);
  return found;
}

/** The settings of the other gateway, each explained for this program. */
type SettingsReport = Readonly<{
  /** The `.env` that was read; null: none was found. */
  path: string | null;
  names: readonly ExplainedName[];
  /** Complaints about values that are not valid here. */
  invalid: readonly string[];
}>;

function readSettings(folder: string, given: string | undefined): SettingsReport {
  const path = given ?? [folder, dirname(folder)].map((each) => join(each, ".env")).find((each) => existsSync(each));
  if (path === undefined) return { path: null, names: [], invalid: [] };
  const environment = readEnvFile(path, "--env");
  const { filled, complaints } = readConfig(environment, "serve");
  const invalid = [...new Set([...complaints, ...settingsFaults(filled)])];
  return { path, names: explainEnvironment(environment), invalid };
}

function settingsText({ path, names, invalid }: SettingsReport): string {
  if (path === null) return "settings: no .env was found; --env names it\n";
  return `settings of ${path}\n\n${explainReport(names, invalid)}\n`;
}
