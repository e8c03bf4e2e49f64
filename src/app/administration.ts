/**
 * Opens the admin API: its database, the queue of requested transactions and bundles, exports, and the routes.
 * @module
 */
import { resolve } from "node:path";
import type { AnyElysia } from "elysia";
import type { Id } from "../arweave/id.ts";
import { runExport } from "../columnar/export-run.ts";
import { Failure } from "../failures.ts";
import { announcementsMax } from "../gateway/administration/announcements.ts";
import { createBlockListAdmin } from "../gateway/administration/block-list-admin.ts";
import { createDebug } from "../gateway/administration/debug.ts";
import { openExports } from "../gateway/administration/exports.ts";
import { createPrune, createStoredPrune, type StoreConfirmation } from "../gateway/administration/prune.ts";
import type { AdminEndpoint } from "../http/admin-endpoints.ts";
import { createAdminGuard } from "../http/admin-guard.ts";
import { type AdminQueue, createAdminRoutes, type Monitored } from "../http/gateway/admin-routes.ts";
import { createConsoleRoutes } from "../http/gateway/script-pages.ts";
import { createIndexingRequests } from "../indexing/pending-requests.ts";
import { openStagedSearch } from "../indexing/staged-transactions.ts";
import { systemClock } from "../lib/clock.ts";
import { isTimeout, sleep, withDeadline } from "../lib/stop.ts";
import { type Administration, openAdministration } from "../store/administration-database.ts";
import type { BlockedPlace } from "../store/block-list.ts";
import type { BundleStatus, PendingRow } from "../store/index/index-types.ts";
import type { AppContext, Base, Sources } from "./base.ts";
import { systemRandom } from "./random.ts";
import { createPartitionWriter, type Threads } from "./threads.ts";

/** Listeners of the admin API's changes; called in order, and must not throw. */
export type AdministrationListeners = Readonly<{
  /** The block list has changed. */
  onBlockListChange: () => void;
  /** Ids are in the index from now on. */
  onItems: (ids: readonly Id[]) => void;
  /** A requested transaction was found, verified and indexed. */
  onQueuedTransaction: (id: Id) => void;
  /** The queue of bundles has a new entry. */
  onBundle: () => void;
  /** Faults of indexing, in sentences. */
  concerns: () => readonly string[];
}>;

/** Most announced rows that wait for a block. */
const announcedMax = 100_000;

/** Timeout of the search for the place of an id that is being blocked. Milliseconds. */
const locateMsMax = 5_000;

/** Rows of one write to the index. */
const rowsPerWrite = 1_000;

export type OpenAdministration = Readonly<{
  routes: AnyElysia;
  /** Requests a bundle to be indexed regardless of the filters, also before a block contains it. */
  wantBundle: (id: Id) => Promise<void>;
}>;

/** Parameters of {@link openAdministrationRoutes}. */
export type AdministrationParts = Readonly<{
  /** The admin key. */
  key: string;
  listeners: AdministrationListeners;
  /** Of the columnar store; undefined without one. */
  confirm: StoreConfirmation | undefined;
  monitored: Monitored;
  /** Endpoints of the payment service. */
  credits: readonly AdminEndpoint[] | undefined;
}>;

/** Opens the admin API; `closers` close it. */
export function openAdministrationRoutes(
  app: AppContext,
  base: Base,
  { key, listeners, confirm, monitored, credits }: AdministrationParts,
): OpenAdministration {
  const { config, folder, log, closers } = app;
  const { reader, index, sources } = base;
  const { blockList } = sources;
  const administration = openAdministration(folder.administration, systemClock);
  closers.add("administration", administration.close);
  const exports = openExports({
    records: administration.exports,
    root: resolve(config.EXPORT_ROOT ?? folder.exports),
    write: async ({ outputDir: _outputDir, ...run }, signal) => {
      const writer = createPartitionWriter(base.threads.export, folder.index, signal);
      const { endHeight, files, rows } = await runExport(run, { writer, clock: systemClock, signal });
      log.info("export completed", { folder: run.folder, startHeight: run.startHeight, endHeight, files, rows });
    },
    log,
  });
  closers.add("exports", exports.close);
  const queue = queueOf(app, base, listeners, administration);
  const routes = createAdminRoutes({
    guard: createAdminGuard({ key, clock: systemClock, sleep }),
    debug: createDebug({
      reader,
      concerns: listeners.concerns,
      stagedCount: administration.staged.count,
      clock: systemClock,
    }),
    queue,
    bundleStatus: (id) => reader.bundleStatus(id) ?? stagedStatus(id, administration),
    blockList: createBlockListAdmin({
      blockList,
      locate: (id, signal) => locateBlocked(id, sources, signal),
      onChange: listeners.onBlockListChange,
    }),
    exports,
    monitored,
    credits,
    prune: confirm === undefined ? createPrune({ reader, index }) : createStoredPrune({ reader, index, confirm }),
  });
  // Without isolation, a script of content has the origin of the page, and could read the key that is typed there.
  if (config.ADMIN_LISTEN !== undefined || config.CONTENT_ISOLATION !== "off") routes.use(createConsoleRoutes());
  const wantBundle = async (id: Id) => {
    await queue.bundle(id, true);
  };
  return { routes, wantBundle };
}

function queueOf(
  { log, closers }: AppContext,
  { filters, threads, reader, index, sources }: Base,
  listeners: AdministrationListeners,
  { staged }: Administration,
): AdminQueue {
  const search = openStagedSearch({
    staged,
    nodes: sources.nodes,
    verify: threads.verify,
    index,
    reader,
    content: sources.content,
    onFound: (id, { hasBundle, isNew }) => {
      listeners.onItems([id]);
      if (isNew) listeners.onQueuedTransaction(id);
      if (hasBundle) listeners.onBundle();
    },
    clock: systemClock,
    random: systemRandom,
    log,
  });
  closers.add("search for staged transactions", search.close);
  const requests = createIndexingRequests({
    reader,
    index,
    staged,
    unbundleFilter: filters.unbundle.filter,
    indexFilter: filters.index.filter,
    onBundle: listeners.onBundle,
    onStaged: search.wake,
  });
  return {
    transaction: requests.queueTransaction,
    bundle: requests.queueBundle,
    bundleRange: async (range) => {
      if (!(await index.addBundleRange(range))) throw new Failure("too_many_requests", range);
      listeners.onBundle();
    },
    dataItems: async (body, signal) => {
      const rows = await readAnnounced(body, threads, signal);
      if (reader.counts().pendingItems + rows.length > announcedMax)
        throw new Failure("too_many_requests", { announced: rows.length, announcedMax });
      for (let at = 0; at < rows.length; at += rowsPerWrite) await index.addPending(rows.slice(at, at + rowsPerWrite));
      listeners.onItems(rows.map(({ id }) => id));
    },
  };
}

async function readAnnounced(
  body: Uint8Array<ArrayBuffer>,
  { verify }: Threads,
  signal: AbortSignal,
): Promise<readonly PendingRow[]> {
  const response = await verify.run("checkAnnouncements", { body }, { signal });
  switch (response.kind) {
    case "rows":
      return response.rows;
    case "no JSON":
      throw new Failure("malformed_json");
    case "too many":
      throw new Failure("too_large", { announcementsMax });
    case "malformed":
      throw new Failure("missing_item_headers", { reason: response.reason });
  }
}

/** Finds the place of an id in the index or a source; undefined if none is found in time. */
async function locateBlocked(id: Id, { content }: Sources, signal: AbortSignal): Promise<BlockedPlace | undefined> {
  try {
    const { root, dataOffset, size } = await withDeadline(signal, locateMsMax, (own) => content.open(id, own));
    if (root === undefined) return undefined;
    return { rootId: root.id, dataRoot: root.dataRoot, start: dataOffset, end: dataOffset + size };
  } catch (error) {
    signal.throwIfAborted();
    // The id is blocked also without a place. An earlier place is not removed.
    if (error instanceof Failure || isTimeout(error)) return undefined;
    throw error;
  }
}

/** The status of a requested bundle that is not found yet: it is queued. */
function stagedStatus(id: Id, { staged }: Administration): BundleStatus | undefined {
  const row = staged.find(id);
  if (row === undefined || !row.isBundle) return undefined;
  return {
    id,
    rootTransactionId: null,
    formatId: null,
    unbundleFilterId: null,
    indexFilterId: null,
    previousUnbundleFilterId: null,
    previousIndexFilterId: null,
    dataItemCount: null,
    matchedDataItemCount: null,
    duplicatedDataItemCount: null,
    importAttemptCount: 0,
    retryAttemptCount: 0,
    firstQueuedAt: row.firstStagedAt,
    lastQueuedAt: row.lastStagedAt,
    firstSkippedAt: null,
    lastSkippedAt: null,
    firstUnbundledAt: null,
    lastUnbundledAt: null,
    firstFullyIndexedAt: null,
    lastFullyIndexedAt: null,
    firstRetriedAt: null,
    lastRetriedAt: null,
  };
}
