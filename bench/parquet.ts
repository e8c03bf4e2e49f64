/**
 * Parquet exports: items a second from the index to files, and bytes an item takes in each table.
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runExport } from "../src/columnar/export-run.ts";
import type { ExportedFile } from "../src/columnar/partition.ts";
import { systemClock } from "../src/lib/clock.ts";
import { exportPartition, stableHeight } from "../workers/export.ts";
import { type Bench, perSecond } from "./harness.ts";
import { fillIndex } from "./index.ts";

const items = { small: 4_000, large: 200_000 } as const;

const bytesOf = (files: readonly ExportedFile[]): number => files.reduce((sum, file) => sum + file.bytes, 0);

/** Items a second, end to end, and bytes an item. */
export const parquetBench: Bench = {
  name: "parquet",
  measure: async (size) => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-parquet-"));
    try {
      const count = items[size];
      const indexPath = join(folder, "index.sqlite");
      fillIndex(indexPath, count, 1_000);
      const files: ExportedFile[] = [];
      const writer = {
        stableHeight: async () => stableHeight({ indexPath }),
        write: async (request: Parameters<typeof exportPartition>[0]["request"]) => {
          const written = await exportPartition({ indexPath, request });
          files.push(...(written ?? []));
          return written;
        },
      };
      const started = Bun.nanoseconds();
      const cpu = process.cpuUsage();
      const run = {
        folder: join(folder, "export"),
        startHeight: 0,
        endHeight: 2 ** 22 - 2,
        heightPartitionSize: 2 ** 22,
      };
      const { rows } = await runExport(
        { ...run, maxFileRows: 0, skipL1Transactions: false, skipL1Tags: false },
        { writer, clock: systemClock, signal: new AbortController().signal },
      );
      const seconds = (Bun.nanoseconds() - started) / 1e9;
      const { user, system } = process.cpuUsage(cpu);
      const bytes = bytesOf(files);
      const share = (table: string) =>
        `${table} ${Math.round(bytesOf(files.filter((file) => file.table === table)) / count)}`;
      return [
        {
          name: `index to Parquet, ${count.toLocaleString("en")} items of 8 tags`,
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
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
