/**
 * Telling the index of items once more: of those that it missed because the program ended before it heard of them, or
 * because it was made anew. Until a block has them, queries find them by these rows alone.
 * @module
 */

import type { BundleItem, ReadItemsJob } from "../../../workers/bundles.ts";
import { type Id, isId } from "../../arweave/id.ts";
import type { Log } from "../../lib/log.ts";
import type { PendingRow } from "../../store/index/rows.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import type { Pool, Workers } from "../../threads/pool.ts";
import { unfinishedBundles } from "../pipeline/bundle-rows.ts";
import { failedItems, itemsOfBundle, type WaitingItem, waitingItems } from "../upload-rows.ts";

/** What it needs. */
export type MissedItemsParts = Readonly<{
  ledger: LedgerDatabase;
  /** Of entry `bundles`. */
  threads: Pool<Workers["bundles"]>;
  /** That of uploads, as an absolute path, and its name. */
  folder: string;
  storeName: string;
  /** Where the index has an item: in a block, or among those that wait for one. */
  statusOf: (id: Id) => "mined" | "pending" | undefined;
  addPending: (rows: readonly PendingRow[]) => Promise<unknown>;
  forgetPending: (ids: readonly Id[]) => Promise<void>;
  log: Log;
}>;

/** Items that are looked up at once: the event loop serves others in between. */
const pageItems = 500;

/** Small items that one job reads; each is verified. A large one is a job of its own. */
const itemsPerJob = 100;
const bytesPerJob = 16 * 2 ** 20;

/** Announces all items that are not on the chain yet, and withdraws those that have failed since. */
export async function announceMissedItems(parts: MissedItemsParts, signal: AbortSignal): Promise<void> {
  const { ledger, storeName } = parts;
  // Those that wait first: what is put into a bundle meanwhile is met there.
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

/** Tells of the items of one bundle: it has left the block that it was in. */
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
    for (const job of jobsOf(missed)) await tell(parts, job, signal);
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

async function tell(parts: MissedItemsParts, items: readonly BundleItem[], signal: AbortSignal): Promise<void> {
  const job: ReadItemsJob = { folder: parts.folder, items };
  const { rows } = await parts.threads.run("readItems", job, { signal });
  await parts.addPending(rows);
  parts.log.info("uploads were announced to the index again", { count: rows.length, of: items.length });
}
