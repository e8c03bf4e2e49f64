/**
 * The way of uploaded items to the chain, put together: the pipeline, and what becomes of the files it leaves behind.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import { refundReservation } from "../payment/credits/refunds.ts";
import { pendingHeight } from "../store/index/place.ts";
import { createIndexWriterCalls, type WriteJob } from "../store/index/thread.ts";
import type { MakeId } from "../store/ledger/transfers.ts";
import { type TellParts, tellAll, tellBundle } from "../upload/intake/tell-index.ts";
import { openPipeline, type Pipeline } from "../upload/pipeline/pipeline.ts";
import { bundleBytesMax, bundleItemsMax } from "../upload/pipeline/plan.ts";
import { openRemoval, type Removal } from "../upload/pipeline/removal.ts";
import type { UploadMetrics } from "../upload/upload-metrics.ts";
import { openBundleChain } from "./bundle-chain.ts";
import type { UploadThreads } from "./threads.ts";
import type { UploadParts } from "./upload-setup.ts";
import type { UploadWallet } from "./upload-wallet.ts";

/** What it is opened with. */
export type PipelineSetup = UploadParts &
  Readonly<{
    wallet: UploadWallet;
    threads: UploadThreads;
    makeId: MakeId;
    /** Of the folder of uploads (store/uploads/store-name.ts). */
    storeName: string;
    removal: Removal;
    stats: UploadMetrics;
    /** Has a bundle indexed, whatever the gateway's filters say. */
    wantBundle: (id: Id) => Promise<void>;
  }>;

/** A bundle that so many looks did not see on the chain, or not whole, is sent again. */
const againLooks = 20;

/** A file stays for so long after it is not needed any more: who found it before has opened it by then. */
const removalGraceMs = 60_000;

/** Starts to remove files that nobody needs; to be opened before anything is taken in. Closed by `closers`. */
export async function openItemRemoval({ folder, payment, log, closers }: UploadParts): Promise<Removal> {
  const removal = await openRemoval({
    ledger: payment.ledger,
    folder: folder.uploads,
    graceMs: removalGraceMs,
    clock: systemClock,
    log,
  });
  closers.add("removal of uploads' files", removal.close);
  return removal;
}

/** Starts it; everything is closed by `closers`. */
export function startPipeline(parts: PipelineSetup): Pipeline {
  const { config, folder, base, payment, wallet, threads, makeId, storeName, log, closers } = parts;
  const { ledger } = payment;
  const index = createIndexWriterCalls(folder.index, (job: WriteJob) => base.threads.index.run("write", job));
  const chain = openBundleChain({
    nodes: base.sources.nodes,
    reader: base.reader,
    index,
    address: wallet.wallet.address,
    wantBundle: parts.wantBundle,
  });
  const tell = startTelling(
    {
      ledger,
      threads: threads.bundles,
      folder: folder.uploads,
      storeName,
      log,
      addPending: index.addPending,
      forgetPending: chain.forgetPending,
      standing: (id) => {
        const place = base.reader.placeOf(id);
        if (place === undefined) return undefined;
        return place.height === pendingHeight ? "pending" : "mined";
      },
    },
    closers,
  );
  const pipeline = openPipeline({
    ledger,
    threads: threads.bundles,
    chain,
    makeId,
    storeName,
    clock: systemClock,
    log,
    folder: folder.uploads,
    walletFile: wallet.file,
    refund: refundReservation,
    blockList: base.sources.blockList,
    onLeft: parts.removal.note,
    onEnded: parts.stats.onEnded,
    onLeftBlock: tell,
    rules: {
      plan: { itemsMax: bundleItemsMax, bytesMax: bundleBytesMax, waitMs: config.UPLOAD_BUNDLE_WAIT_MS },
      confirmations: config.UPLOAD_CONFIRMATIONS,
      lookMs: config.UPLOAD_LOOK_MS,
      againMs: againLooks * config.UPLOAD_LOOK_MS,
    },
  });
  closers.add("bundles", pipeline.close);
  return pipeline;
}

/** Tells the index of what it missed while nobody ran. @returns Tells it of the items of one bundle. */
function startTelling(parts: TellParts, closers: Closers): (bundleId: string) => void {
  const life = new AbortController();
  const { log } = parts;
  let last: Promise<void> = Promise.resolve();
  const queue = (work: () => Promise<void>) => {
    last = last.then(work).catch((error: unknown) => {
      if (!life.signal.aborted) log.error("the index was not told of uploads", { error });
    });
  };
  queue(() => tellAll(parts, life.signal));
  closers.add("telling of uploads", async () => {
    life.abort(new DOMException("uploads were closed", "AbortError"));
    await last;
  });
  return (bundleId) => queue(() => tellBundle(parts, bundleId, life.signal));
}
