/**
 * Opens the columnar store of the settings: its options, the loop that fills it, and the confirmation of pruning.
 * @module
 */
import { mkdirSync } from "node:fs";
import type { ColumnStoreOptions } from "../columnar/open-store.ts";
import { writtenPartitions } from "../columnar/partition.ts";
import { createStoreLoader } from "../columnar/store-loader.ts";
import type { Config } from "../config/settings.ts";
import type { StoreConfirmation } from "../gateway/administration/prune.ts";
import type { HealthCheck } from "../gateway/health.ts";
import { systemClock } from "../lib/clock.ts";
import { openLoop } from "../lib/loop.ts";
import type { AppContext, Base } from "./base.ts";
import { badSettings } from "./complaints.ts";
import type { DataFolder } from "./data-folder.ts";
import { systemRandom } from "./random.ts";
import { createPartitionWriter } from "./threads.ts";

/** Heights become final much more slowly than the chain is polled. */
const pollsPerStep = 15;

/** A busy server may take minutes for a file, and a partition has several. */
const stepTimeoutMs = 2 * 60 * 60_000;

/** A store's query ends before the GraphQL query that waits for it, so that the error names the store. */
const queryShare = 0.8;

/** The options of the store for GraphQL queries; undefined without one. @throws Misuse as `columnStoreOptions`. */
export function queriedStoreOptions(config: Config, folder: DataFolder): ColumnStoreOptions | undefined {
  const options = columnStoreOptions(config, folder);
  return options && { ...options, queryMs: config.QUERY_TIMEOUT_MS * queryShare };
}

/** The options of the store; undefined without one. @throws Misuse when a setting of the store is missing. */
export function columnStoreOptions(config: Config, folder: DataFolder): ColumnStoreOptions | undefined {
  if (config.COLUMNAR_STORE === "none") return undefined;
  if (config.COLUMNAR_STORE === "duckdb")
    return { kind: "duckdb", folder: folder.columnar, libraryFolder: folder.libraries };
  if (config.CLICKHOUSE_URL === undefined) throw badSettings(["COLUMNAR_STORE=clickhouse requires CLICKHOUSE_URL"]);
  return {
    kind: "clickhouse",
    url: config.CLICKHOUSE_URL,
    user: config.CLICKHOUSE_USER,
    password: config.CLICKHOUSE_PASSWORD,
    database: config.CLICKHOUSE_DATABASE,
    cluster: config.CLICKHOUSE_CLUSTER,
  };
}

export type OpenColumnar = Readonly<{
  /** Undefined without a store. */
  confirm: StoreConfirmation | undefined;
  /** Reasons why the store is not filled. */
  check: HealthCheck;
}>;

/**
 * Starts the loop that fills the store; `closers` stop it. While a server is unavailable, the loop tries again.
 *
 * @throws Misuse when a setting of the store is missing, or no store is set and items are only in one.
 */
export function openColumnar({ config, folder, log, closers }: AppContext, base: Base): OpenColumnar {
  const { reader, index, threads } = base;
  const store = columnStoreOptions(config, folder);
  if (store === undefined) {
    const { storedItems } = reader.counts();
    // Queries would leave them out without an error.
    if (storedItems > 0)
      throw badSettings([`COLUMNAR_STORE=none leaves out ${storedItems} items that are only in the columnar store`]);
    return { confirm: undefined, check: () => [] };
  }
  mkdirSync(folder.columnar, { recursive: true, mode: 0o700 });
  const job = { store, folder: folder.columnar };
  const loop = openLoop({
    name: "columnar store",
    step: async (signal) => {
      const loadNext = createStoreLoader({
        reader,
        index,
        writer: createPartitionWriter(threads.export, folder.index, signal),
        load: (heights) => threads.export.run("loadPartition", { ...job, heights }, { signal }),
        folder: folder.columnar,
        partitionHeights: config.COLUMNAR_PARTITION_HEIGHTS,
      });
      const loaded = await loadNext();
      if (loaded === undefined) return "rest";
      log.info("heights loaded into the columnar store", { store: store.kind, ...loaded });
      return "again";
    },
    intervalMs: config.FOLLOW_INTERVAL_MS * pollsPerStep,
    backoff: { firstMs: 1_000, longestMs: 5 * 60_000 },
    stepTimeoutMs,
    clock: systemClock,
    random: systemRandom,
    log,
  });
  closers.add("columnar store", loop.close);
  const confirm: StoreConfirmation = {
    partition: (first, signal) => threads.export.run("confirmPartition", { ...job, first }, { signal }),
    items: (request, signal) =>
      threads.export.run("confirmItems", { store, indexPath: folder.index, request }, { signal }),
  };
  const absent = store.kind === "duckdb" ? absentHeights(reader, folder.columnar) : [];
  if (absent.length > 0) log.error("files of the columnar store are missing", { folder: folder.columnar, absent });
  const check = () => {
    const { lastError } = loop.status();
    return [
      ...absent.map((heights) => `the columnar store has no files of heights ${heights}: restore ${folder.columnar}`),
      ...(lastError === undefined ? [] : [`the columnar store is not filled: ${lastError}`]),
    ];
  };
  return { confirm, check };
}

/** The recorded heights whose files are not in the folder: pages leave them out. */
function absentHeights({ storedPartitions }: Base["reader"], folder: string): string[] {
  const written = writtenPartitions(folder);
  return storedPartitions
    .heights()
    .filter(({ first, last }) => !written.some(({ start, end }) => start <= last && end >= first))
    .map(({ first, last }) => `${first} to ${last}`);
}
