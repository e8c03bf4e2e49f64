/**
 * Announces uploads to the index, so that queries find them before a block contains them.
 *
 * A receipt does not depend on the index: the row of the upload is authoritative. Items that the index lacks, after a
 * crash or in a rebuilt index, are announced again at the start.
 * @module
 */
import type { BundleItem, ReadItemsJob } from "../../../workers/bundles.ts";
import { type Id, isId } from "../../arweave/id.ts";
import { createBatcher } from "../../lib/batcher.ts";
import type { Log } from "../../lib/log.ts";
import type { PendingRow } from "../../store/index/index-types.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import type { Pool, Workers } from "../../threads/pool.ts";
import { unfinishedBundles } from "../pipeline/bundle-rows.ts";
import { failedItems, itemsOfBundle, type WaitingItem, waitingItems } from "../upload-rows.ts";

export type Announcer = Readonly<{
  /** Resolves when the index has the row, when the write has failed, or after a timeout. Never rejects. */
  announce: (row: PendingRow) => Promise<void>;
}>;

export type AnnouncerOptions = Readonly<{
  addPending: (rows: readonly PendingRow[]) => Promise<unknown>;
  log: Log;
}>;

/** Rows of one write. */
const rowsPerWrite = 1_000;

/**
 * Limit of the queue while the index is busy: 2 KB a row usually, 14 KB with 128 tags. Rows beyond it are announced at
 * the next start.
 */
const waitingMax = 20_000;

/** Longest delay of a receipt by the index. Milliseconds. */
const patienceMs = 1_000;

export function createAnnouncer({ addPending, log }: AnnouncerOptions): Announcer {
  const batcher = createBatcher<PendingRow, void, undefined>({
    name: "upload.announcement",
    workers: [undefined],
    waitingMax,
    batchSize: (waiting) => Math.min(rowsPerWrite, waiting.length),
    run: async (batch) => {
      try {
        await addPending(batch.map(({ input }) => input));
      } catch (error) {
        log.error("uploads could not be announced to the index", { count: batch.length, error });
      }
      for (const { resolve } of batch) resolve();
    },
    defer: (start) => start(),
  });
  return {
    announce: async (row) => {
      const announced = batcher.add(row);
      if (announced === undefined) return;
      const patience = Promise.withResolvers<void>();
      const timer = setTimeout(patience.resolve, patienceMs);
      await Promise.race([announced, patience.promise]);
      clearTimeout(timer);
    },
  };
}

export type MissedItemsParts = Readonly<{
  ledger: LedgerDatabase;
  /** Pool of entry `bundles`. */
  threads: Pool<Workers["bundles"]>;
  /** The folder of uploads, as an absolute path. */
  folder: string;
  /** Name of the folder of uploads. */
  storeName: string;
  /** The status of an item in the index; undefined if the index does not have it. */
  statusOf: (id: Id) => "mined" | "pending" | undefined;
  addPending: (rows: readonly PendingRow[]) => Promise<unknown>;
  forgetPending: (ids: readonly Id[]) => Promise<void>;
  log: Log;
}>;

/** Items that are looked up at once. The event loop serves requests in between. */
const pageItems = 500;

/** Limits of a job, which reads and verifies its items. A larger item is a separate job. */
const itemsPerJob = 100;
const bytesPerJob = 16 * 2 ** 20;

/** Announces the items that the index missed before this start, in the background. */
export function startAnnouncements(parts: MissedItemsParts): Readonly<{
  /** Announces the items of one bundle after the running announcements. */
  announceBundle: (bundleId: string) => void;
  close: () => Promise<void>;
}> {
  const life = new AbortController();
  let last: Promise<void> = Promise.resolve();
  const queue = (work: () => Promise<void>) => {
    last = last.then(work).catch((error: unknown) => {
      if (!life.signal.aborted) parts.log.error("uploads were not announced to the index", { error });
    });
  };
  queue(() => announceMissedItems(parts, life.signal));
  return {
    announceBundle: (bundleId) => queue(() => announceItemsOfBundle(parts, bundleId, life.signal)),
    close: async () => {
      life.abort(new DOMException("uploads were closed", "AbortError"));
      await last;
    },
  };
}

/** Announces all items that are not permanent yet, and removes failed items from the index. */
export async function announceMissedItems(parts: MissedItemsParts, signal: AbortSignal): Promise<void> {
  const { ledger, storeName } = parts;
  // Waiting items first: an item that is put into a bundle meanwhile is found in the bundle.
  for (let last: WaitingItem | undefined; ; ) {
    const page = await ledger.read((tx) => waitingItems(tx, storeName, last, pageItems));
    await announceItems(parts, page, signal);
    if (page.length < pageItems) break;
    last = page.at(-1);
  }
  for (const bundleId of await ledger.read((tx) => unfinishedBundles(tx, storeName)))
    await announceItemsOfBundle(parts, bundleId, signal);
  for (let last = ""; ; ) {
    const ids = await ledger.read((tx) => failedItems(tx, storeName, last, pageItems));
    const announced = ids.filter((id) => parts.statusOf(id) === "pending");
    if (announced.length > 0) await parts.forgetPending(announced);
    if (ids.length < pageItems) return;
    last = ids.at(-1) ?? last;
  }
}

/** Announces the items of a bundle that has left its block. */
export async function announceItemsOfBundle(
  parts: MissedItemsParts,
  bundleId: string,
  signal: AbortSignal,
): Promise<void> {
  await announceItems(parts, await itemsOfBundle(parts.ledger, bundleId), signal);
}

async function announceItems(
  parts: MissedItemsParts,
  items: readonly BundleItem[],
  signal: AbortSignal,
): Promise<void> {
  for (let at = 0; at < items.length; at += pageItems) {
    signal.throwIfAborted();
    await new Promise<void>((resolve) => setImmediate(resolve));
    const missed = items.slice(at, at + pageItems).filter(({ id }) => isId(id) && parts.statusOf(id) === undefined);
    for (const job of jobsOf(missed)) await announce(parts, job, signal);
  }
}

function jobsOf(items: readonly BundleItem[]): BundleItem[][] {
  const jobs: BundleItem[][] = [];
  let bytes = 0;
  for (const item of items) {
    const last = jobs.at(-1);
    bytes += item.size;
    if (last !== undefined && last.length < itemsPerJob && bytes <= bytesPerJob) last.push(item);
    else {
      jobs.push([item]);
      bytes = item.size;
    }
  }
  return jobs;
}

async function announce(parts: MissedItemsParts, items: readonly BundleItem[], signal: AbortSignal): Promise<void> {
  const job: ReadItemsJob = { folder: parts.folder, items };
  const { rows } = await parts.threads.run("readItems", job, { signal });
  await parts.addPending(rows);
  parts.log.info("uploads were announced to the index again", { count: rows.length, of: items.length });
}
