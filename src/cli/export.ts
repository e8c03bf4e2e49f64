/**
 * `cairn export`: writes the final blocks of the index to Parquet files; may run beside the program that fills the
 * index. The same command continues an export that was stopped.
 * @module
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { exitCodes, misuse } from "../app/complaints.ts";
import { existingDataFolder } from "../app/data-folder.ts";
import { createPartitionWriter, openExportThreads, workerCount } from "../app/threads.ts";
import { type ExportResult, runExport } from "../columnar/export-run.ts";
import type { Config } from "../config/settings.ts";
import { systemClock } from "../lib/clock.ts";
import { invalidValue, jsonText } from "../lib/printable.ts";
import { countText } from "../lib/quantity-text.ts";
import { openIndexReader } from "../store/index/index-reader.ts";
import { stableDepth } from "../store/index/index-types.ts";
import { failureCodeOf, stopAtInterrupt } from "./interruption.ts";
import { print } from "./print.ts";
import { createBar, errorScreen } from "./terminal.ts";

export type ExportOptions = Readonly<{
  folder: string;
  /** Heights, as given; by default all that the index has. */
  from: string | undefined;
  to: string | undefined;
  /** Rows of one file, as given; by default no limit. */
  rows: string | undefined;
  /** Heights of one partition, as given. */
  partition: string | undefined;
  /** Whether transactions of the chain are left out. */
  itemsOnly: boolean;
  json: boolean;
}>;

/** Heights are below 2^22 (src/store/index/place.ts). */
const heightMax = 2 ** 22 - 2;
const partitionDefault = "1000";

/** A thread takes up to 300 MiB. */
const threadsMax = 2;

/** Runs the export and prints its result. @returns The exit code. */
export async function runExportCommand(config: Config, options: ExportOptions): Promise<number> {
  const { index } = existingDataFolder(config.DATA_DIR);
  if (!existsSync(index)) throw misuse(`${config.DATA_DIR} has no index; fill one with: cairn serve`);
  const reader = openIndexReader(index);
  const { minHeight, maxHeight } = reader.counts().stable;
  reader.close();
  if (minHeight === null || maxHeight === null)
    throw misuse(
      `the index in ${config.DATA_DIR} has no final block yet: those are ${stableDepth} below the newest one`,
    );
  const folder = resolve(options.folder);
  const run = {
    folder,
    startHeight: readCount("--from", options.from ?? String(minHeight), 0, heightMax),
    endHeight: readCount("--to", options.to ?? String(maxHeight), 0, heightMax),
    maxFileRows: readCount("--rows", options.rows ?? "0", 0, 2 ** 31),
    heightPartitionSize: readCount("--partition", options.partition ?? partitionDefault, 1, heightMax),
    skipL1Transactions: options.itemsOnly,
    skipL1Tags: options.itemsOnly,
  };
  if (run.endHeight < run.startHeight) throw misuse("--to must not be below --from");
  const threads = Math.min(threadsMax, workerCount(config));
  const pool = openExportThreads(threads);
  const stop = new AbortController();
  const bar = createBar(errorScreen(), systemClock);
  const unhook = stopAtInterrupt(stop);
  try {
    const result = await runExport(run, {
      writer: createPartitionWriter(pool, index, stop.signal),
      clock: systemClock,
      signal: stop.signal,
      partitionsAtOnce: threads,
      onProgress: ({ heights, heightsDone, rows }) =>
        bar.show(heightsDone / heights, `exporting ${heightsDone} of ${heights} heights, ${countText(rows, "row")}`),
    });
    bar.end();
    print(options.json ? `${jsonText({ folder, ...result })}\n` : reportText(folder, result));
    return exitCodes.done;
  } catch (error) {
    bar.end();
    if (!(error instanceof Error)) throw error;
    process.stderr.write(`cairn: ${error.message}\n`);
    return failureCodeOf(stop.signal);
  } finally {
    unhook();
    await pool.close();
  }
}

function reportText(folder: string, { startHeight, endHeight, files, rows }: ExportResult): string {
  const counts = `${countText(rows, "row")} in ${countText(files, "file")}`;
  return `exported heights ${startHeight} to ${endHeight}: ${counts} below ${folder}\n`;
}

function readCount(option: string, text: string, min: number, max: number): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) throw misuse(invalidValue(option, text, `${min}–${max}`));
  return value;
}
