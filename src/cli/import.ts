/**
 * `cairn import`: loads the exported partitions of a folder into the columnar store. The same command continues an
 * import that was stopped.
 * @module
 */
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { exitCodes, isMisuse, misuse } from "../app/complaints.ts";
import { dataFolderAt, takeFolder } from "../app/data-folder.ts";
import { columnStoreOptions } from "../app/open-columnar.ts";
import { type ImportProgress, importFolder } from "../columnar/import-folder.ts";
import { openColumnStore } from "../columnar/open-store.ts";
import type { Config } from "../config/settings.ts";
import { explainError } from "../failures.ts";
import { systemClock } from "../lib/clock.ts";
import { createClosers } from "../lib/closers.ts";
import { jsonText, printableLines } from "../lib/printable.ts";
import { countText } from "../lib/quantity-text.ts";
import { openIndexReader } from "../store/index/index-reader.ts";
import { openIndexWriter } from "../store/index/index-writer.ts";
import { failureCodeOf, stopAtInterrupt } from "./interruption.ts";
import { print } from "./print.ts";
import { createBar, errorScreen } from "./terminal.ts";

export type ImportOptions = Readonly<{ folder: string; json: boolean }>;

/** Runs the import and prints its result. @returns The exit code. */
export async function runImport(config: Config, options: ImportOptions): Promise<number> {
  const closers = createClosers((name, error) =>
    process.stderr.write(`cairn: ${name} could not be closed: ${error}\n`),
  );
  const stop = new AbortController();
  const bar = createBar(errorScreen(), systemClock);
  const unhook = stopAtInterrupt(stop);
  try {
    const storeOptions = columnStoreOptions(config, dataFolderAt(config.DATA_DIR));
    if (storeOptions === undefined) throw misuse("cairn import requires COLUMNAR_STORE: duckdb or clickhouse");
    const data = takeFolder(config, closers);
    mkdirSync(data.columnar, { recursive: true, mode: 0o700 });
    const index = openIndexWriter(data.index, { clock: systemClock });
    closers.add("index", index.close);
    const reader = openIndexReader(data.index);
    closers.add("index reader", reader.close);
    const store = await openColumnStore(storeOptions);
    closers.add("columnar store", store.close);
    const result = await importFolder(resolve(options.folder), {
      store,
      storeFolder: data.columnar,
      libraryFolder: data.libraries,
      reader,
      index,
      signal: stop.signal,
      onProgress: ({ partitions, partitionsDone, rows }) =>
        bar.show(
          partitionsDone / partitions,
          `importing ${partitionsDone} of ${countText(partitions, "partition")}, ${countText(rows, "row")}`,
        ),
    });
    bar.end();
    print(options.json ? `${jsonText({ ...result })}\n` : reportText(result));
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

function reportText({ partitions, rows, items, leftOut }: ImportProgress): string {
  const counts = `${countText(partitions, "partition")}: ${countText(rows, "row")}, ${countText(items, "new item")}`;
  if (rows === 0 && leftOut === 0)
    return `nothing to import: the store has ${countText(partitions, "partition")} of this folder\n`;
  const reason = "the files do not state where it is in its transaction, or its type of signature is not known";
  return `imported ${counts}\n${leftOut === 0 ? "" : `left out ${countText(leftOut, "item")}: ${reason}\n`}`;
}
