/**
 * The way of uploaded items to the chain, put together: the pipeline, and what becomes of the files it leaves behind.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { systemClock } from "../lib/clock.ts";
import { refundReservation } from "../payment/refunds.ts";
import { createIndexWriterCalls, type WriteJob } from "../store/index-thread.ts";
import type { MakeId } from "../store/ledger/transfer-ids.ts";
import { openPipeline, type Pipeline } from "../upload/pipeline.ts";
import { bundleBytesMax, bundleItemsMax } from "../upload/plan.ts";
import { openBundleChain } from "./open-bundle-chain.ts";
import type { UploadThreads } from "./open-threads.ts";
import type { UploadParts } from "./open-upload.ts";
import type { UploadWallet } from "./upload-wallet.ts";

/** What it is opened with. */
export type PipelineSetup = UploadParts &
  Readonly<{
    wallet: UploadWallet;
    threads: UploadThreads;
    makeId: MakeId;
    /** Of the folder of uploads (store/store-name.ts). */
    storeName: string;
    /** Has a bundle indexed, whatever the gateway's filters say. */
    wantBundle: (id: Id) => Promise<void>;
  }>;

/** A bundle that so many looks did not see on the chain, or not whole, is sent again. */
const againLooks = 20;

/** Starts it; everything is closed by `closers`. */
export function startPipeline(parts: PipelineSetup): Pipeline {
  const { config, folder, base, payment, wallet, threads, makeId, storeName, log, closers } = parts;
  const index = createIndexWriterCalls(folder.index, (job: WriteJob) => base.threads.index.run("write", job));
  const chain = openBundleChain({
    ...{ nodes: base.sources.nodes, reader: base.reader, index },
    ...{ address: wallet.wallet.address, wantBundle: parts.wantBundle },
  });
  const pipeline = openPipeline({
    ...{ ledger: payment.ledger, threads: threads.bundles, chain },
    ...{ makeId, storeName, clock: systemClock, log },
    folder: folder.uploads,
    walletFile: wallet.file,
    refund: refundReservation,
    onLeft: () => undefined,
    onEnded: () => undefined,
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
