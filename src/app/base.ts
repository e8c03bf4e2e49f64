/**
 * What every service stands on: threads, the index, content, figures.
 * @module
 */

import type { Config } from "../config/settings.ts";
import type { FindUploaded } from "../content/uploaded.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import type { Log } from "../lib/log.ts";
import { addProcessMetrics, createMetrics, type Metrics } from "../lib/metrics.ts";
import { secp256k1Implementation } from "../lib/secp256k1.ts";
import { openIndexReader } from "../store/index/reader.ts";
import type { IndexReader } from "../store/index/types.ts";
import { openIndexWriter } from "../store/index/writer.ts";
import type { Pool, Workers } from "../threads/pool.ts";
import type { DataFolder } from "./data-folder.ts";
import { readFilters, type SetFilters } from "./filters.ts";
import { openSources, type Sources } from "./sources.ts";
import { openThreads, type Threads } from "./threads.ts";

/** What the base is opened with. */
export type BaseParts = Readonly<{
  config: Config;
  /** Taken for this process. */
  folder: DataFolder;
  /** Chain nodes, in the order in which they are asked. */
  nodeUrls: readonly string[];
  log: Log;
  closers: Closers;
}>;

/** The base, open. */
export type Base = Readonly<{
  filters: SetFilters;
  metrics: Metrics;
  threads: Threads;
  reader: IndexReader;
  sources: Sources;
  /** Says who finds what was uploaded; until then nothing was. */
  findUploadedBy: (find: FindUploaded) => void;
}>;

/**
 * Opens it; everything is closed by `closers`.
 *
 * @throws Misuse when a filter is no filter.
 */
export function openBase({ config, folder, nodeUrls, log, closers }: BaseParts): Base {
  const filters = readFilters(config);
  log.info("signatures over secp256k1", { implementation: secp256k1Implementation() });
  const metrics = createMetrics();
  addProcessMetrics(metrics);
  const threads = openThreads(config, closers);
  const reader = openIndex(folder, threads.index, closers);
  const told: { find?: FindUploaded } = {};
  const sources = openSources({
    config,
    folder,
    nodeUrls,
    reader,
    verify: threads.verify,
    log,
    closers,
    metrics,
    findUploaded: async (id) => await told.find?.(id),
  });
  const findUploadedBy = (find: FindUploaded) => {
    told.find = find;
  };
  return { filters, metrics, threads, reader, sources, findUploadedBy };
}

/** The file is made here, so that answers need not wait for the thread that will write it. */
function openIndex(folder: DataFolder, pool: Pool<Workers["index"]>, closers: Closers): IndexReader {
  openIndexWriter(folder.index, { clock: systemClock }).close();
  closers.add("index", () => pool.run("close", { path: folder.index }));
  const reader = openIndexReader(folder.index);
  closers.add("index reader", reader.close);
  return reader;
}
