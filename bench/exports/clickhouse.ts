/**
 * Loads into ClickHouse over HTTP, against the engine's own import of the same files. Needs test/stores/node_modules.
 * @module
 */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openClickhouseStore } from "../../src/columnar/clickhouse-store.ts";
import { createTables, insertFile } from "../../src/columnar/clickhouse-tables.ts";
import { exportPartition, type LoadedPartition, readPartition } from "../../src/columnar/partition.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openExportRows } from "../../src/store/index/export-rows.ts";
import { openClickhouseServer } from "../../test/support/clickhouse-server.ts";
import { clickhouseEngine } from "../../test/support/helpers.ts";
import { type Bench, inOrder, perSecond, type Work } from "../harness.ts";
import { fillIndex } from "../index/index-fill.ts";

const sizes = { small: { items: 4_000, rounds: 1 }, large: { items: 500_000, rounds: 3 } } as const;

const name = "load into ClickHouse over HTTP";
/** The name of a folder is not a column. */
const importSettings = "max_partitions_per_insert_block=0&use_hive_partitioning=0";

const target = "≥ 0.5";

/** Rows a second of all tables. */
export const clickhouseBench: Bench = {
  name: "clickhouse",
  measure: async (size) => {
    if (!clickhouseEngine.there) return [{ name, metric: `not measured: needs ${clickhouseEngine.what}`, target }];
    const { items, rounds } = sizes[size];
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-clickhouse-"));
    const server = await openClickhouseServer({ folder: join(folder, "data") });
    try {
      const partition = await exportItems(folder, items);
      const rows = partition.files.reduce((sum, file) => sum + file.rows, 0);
      // Every round fills tables that are empty.
      let round = 0;
      const load: Work = async () => {
        round += 1;
        const store = openClickhouseStore({ url: server.url, database: `load_${round}` });
        await store.load(partition, new AbortController().signal);
        await store.close();
        return { amount: rows, digest: String(rows) };
      };
      const own: Work = async () => {
        round += 1;
        await importFiles(server.url, `own_${round}`, partition);
        return { amount: rows, digest: String(rows) };
      };
      const { rate, against, ratio } = await inOrder(load, own, rounds);
      const reference = `the engine's INSERT … FROM file ${perSecond(against, "rows")}`;
      const metric = `${perSecond(rate, "rows")} (${perSecond((rate * items) / rows, "items")})`;
      return [{ name: `${name}, ${items.toLocaleString("en")} items of 8 tags`, metric, reference, ratio, target }];
    } finally {
      await server.close();
      removeFolder(folder);
    }
  },
};

async function exportItems(folder: string, items: number): Promise<LoadedPartition> {
  const indexPath = join(folder, "index.sqlite");
  await fillIndex(indexPath, items);
  const index = openExportRows(indexPath);
  const request = { folder: join(folder, "export"), start: 0, end: index.stableHeight(), maxFileRows: 0 };
  await exportPartition({ ...request, skipL1Transactions: false, skipL1Tags: false, runId: "bench" }, index);
  index.close();
  return readPartition(request.folder, request);
}

/** The same tables, filled by the engine from the files on its disk. */
async function importFiles(url: string, database: string, { folder, files }: LoadedPartition): Promise<void> {
  const place = { database, cluster: undefined };
  const inserts = files.map(({ table, path }) =>
    insertFile(table, place, 1).replace(
      /FROM input\('(.*)'\) FORMAT Parquet$/,
      (_all, structure: string) => `FROM file('${join(folder, path)}', 'Parquet', '${structure}')`,
    ),
  );
  for (const body of [...createTables(place), ...inserts]) {
    const response = await fetch(`${url}/?${importSettings}`, { method: "POST", body });
    if (!response.ok) throw new Error(await response.text());
  }
}
