/**
 * Parquet exports: items a second from the index to files, and bytes an item takes in each table.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPartitionWriter, openExportThreads } from "../../src/app/threads.ts";
import { type PartitionWriter, runExport } from "../../src/columnar/export-run.ts";
import type { ExportedFile } from "../../src/columnar/partition.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { type Bench, perSecond } from "../harness.ts";
import { fillIndex } from "../index/index-fill.ts";
import { firstHeight } from "../index/index-items.ts";

const items = { small: 4_000, large: 1_000_000 } as const;

/** As `cairn export` has. */
const threads = 2;

/** Of 50,000 items each (bench/index/index.ts); a thousand heights of the main net have about a million rows. */
const heightPartitionSize = 5;

const bytesOf = (files: readonly ExportedFile[]): number => files.reduce((sum, file) => sum + file.bytes, 0);

/** Items a second, end to end, and bytes an item. */
export const parquetBench: Bench = {
  name: "parquet",
  measure: async (size) => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-parquet-"));
    const pool = openExportThreads(threads);
    try {
      const count = items[size];
      const indexPath = join(folder, "index.sqlite");
      await fillIndex(indexPath, count);
      const files: ExportedFile[] = [];
      const { signal } = new AbortController();
      const pooled = createPartitionWriter(pool, indexPath, signal);
      const writer: PartitionWriter = {
        ...pooled,
        write: async (request) => {
          const written = await pooled.write(request);
          files.push(...(written ?? []));
          return written;
        },
      };
      const started = Bun.nanoseconds();
      const cpu = process.cpuUsage();
      const run = {
        folder: join(folder, "export"),
        startHeight: firstHeight,
        endHeight: 2 ** 22 - 2,
        heightPartitionSize,
      };
      const { rows } = await runExport(
        { ...run, maxFileRows: 0, skipL1Transactions: false, skipL1Tags: false },
        { writer, clock: systemClock, signal, partitionsAtOnce: threads },
      );
      const seconds = (Bun.nanoseconds() - started) / 1e9;
      const { user, system } = process.cpuUsage(cpu);
      const bytes = bytesOf(files);
      const share = (table: string) =>
        `${table} ${Math.round(bytesOf(files.filter((file) => file.table === table)) / count)}`;
      return [
        {
          name: `index to Parquet, ${count.toLocaleString("en")} items of 8 tags, two threads`,
          metric: [
            perSecond(count / seconds, "items"),
            perSecond(rows / seconds, "rows"),
            `CPU ${((user + system) / count).toFixed(0)} µs an item`,
          ].join(", "),
          target: "≥ 150 k items/s",
        },
        {
          name: "bytes an item takes in Parquet",
          metric: `${(bytes / count).toFixed(0)} B (${["transactions", "tags", "postings"].map(share).join(", ")})`,
          target: "≤ 160 B",
        },
      ];
    } finally {
      await pool.close();
      removeFolder(folder);
    }
  },
};
