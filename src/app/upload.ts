/**
 * The upload service put together: what takes items in, what brings them to the chain, and the routes.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { createHealth } from "../gateway/health.ts";
import { uploadReference } from "../http/reference/upload-reference.ts";
import type { Service } from "../http/service.ts";
import { createChunkRoutes } from "../http/upload/chunk-routes.ts";
import { createUploadInformationRoutes } from "../http/upload/information-routes.ts";
import { createItemRoutes } from "../http/upload/item-routes.ts";
import { createUploadPriceRoutes } from "../http/upload/price-routes.ts";
import { createReceiptRoutes, receiptSemaphore } from "../http/upload/receipt-routes.ts";
import { createStatusRoutes } from "../http/upload/status-routes.ts";
import { createPaidChunks } from "../http/upload/x402-chunks.ts";
import { createX402UploadRoutes } from "../http/upload/x402-upload-routes.ts";
import { systemClock } from "../lib/clock.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import { createTransferIds } from "../store/ledger/transfers.ts";
import { storedStoreName } from "../store/uploads/store-name.ts";
import { createUploadHealth } from "../upload/health.ts";
import { readTakenById } from "../upload/intake/charge.ts";
import { findNested, type NestedItem } from "../upload/nested-offsets.ts";
import type { Pipeline } from "../upload/pipeline/pipeline.ts";
import { createUnbundledSearch } from "../upload/unbundled-uploads.ts";
import { createUploadMetrics } from "../upload/upload-metrics.ts";
import { findStanding, type UploadStanding } from "../upload/upload-status.ts";
import { version } from "../version.ts";
import { openIntake } from "./intake.ts";
import { type OpenMultipart, openMultipart } from "./multipart.ts";
import { openItemRemoval, startPipeline } from "./pipeline.ts";
import { systemRandom } from "./random.ts";
import { openUploadThreads } from "./threads.ts";
import type { UploadParts } from "./upload-setup.ts";
import { openX402Uploads } from "./x402-uploads.ts";

/** Has a bundle indexed, whatever the gateway's filters say. */
export type WantBundle = (id: Id) => Promise<void>;

/** The upload service, open. */
export type OpenUpload = Readonly<{
  service: Service;
  /** Begins to bring items to the chain; the gateway's index, which reads them back, must be at work. */
  start: (wantBundle: WantBundle) => void;
}>;

/** Opens it; everything is closed by `closers`. Rejects when the ledger cannot be read. */
export async function openUpload(parts: UploadParts): Promise<OpenUpload> {
  const { config, base, payment, wallet, gatewayUrl, closers } = parts;
  const { ledger, prices } = payment;
  const threads = openUploadThreads(config, closers);
  const makeId = createTransferIds(systemClock, systemRandom);
  const running: { pipeline?: Pipeline } = {};
  const storeName = storedStoreName(parts.folder.uploads, () => crypto.randomUUID());
  const removal = await openItemRemoval(parts);
  const stats = createUploadMetrics(base.metrics, { ledger, storeName, clock: systemClock });
  const onItem = (size: number) => {
    stats.onTaken(size);
    running.pipeline?.onItem(size);
  };
  const common = { ...parts, threads, makeId, storeName };
  const opened: { parts?: OpenMultipart } = {};
  const partBytes = () => opened.parts?.diskBytes() ?? 0;
  const { intake, quota, writeReceipt, diskFailure } = await openIntake({ ...common, partBytes, onItem });
  if (intake !== undefined) opened.parts = await openMultipart({ ...common, intake, quota });
  await quota.recount();
  const paid =
    intake === undefined || opened.parts === undefined
      ? undefined
      : await openX402Uploads({ ...common, intake, quota, parts: opened.parts });
  const { publicUrl } = parts;
  const createPaid = paid === undefined ? undefined : createPaidChunks(paid, publicUrl);
  const health = createHealth({
    clock: systemClock,
    checks: [
      createUploadHealth({
        ...{ quota, diskFailure, hasWallet: wallet !== undefined, ledgerFaults: ledger.faults },
        height: () => base.reader.tip()?.height,
        isPriceKnown: payment.isNetworkPriceKnown,
        freeBytesMax: config.FREE_UPLOAD_BYTES,
      }),
      () => running.pipeline?.reasons() ?? [],
    ],
    notes: [],
    readiness: [],
  });
  const receipts = {
    find: intake === undefined ? undefined : (id: string) => ledger.read((tx) => readTakenById(tx, id)),
    writeReceipt,
    semaphore: createSemaphore(receiptSemaphore.atWorkMax, receiptSemaphore.waitingMax),
  };
  const standing = (id: string) => ledger.read((tx) => findStanding(tx, id));
  const nested = createNested(parts, standing);
  const service: Service = {
    reference: uploadReference,
    publicUrl: config.UPLOAD_PUBLIC_URL,
    routes: [
      () =>
        createUploadInformationRoutes({
          ...{ release: version, gatewayUrl, health },
          addresses: payment.addresses,
          freeBytesMax: config.FREE_UPLOAD_BYTES,
          itemBytesMax: config.UPLOAD_BYTES_MAX,
          metrics: config.METRICS_ON_ADMIN_LISTEN ? undefined : base.metrics,
        }),
      () => createUploadPriceRoutes({ prices }),
      () => createStatusRoutes({ standing, nested }),
      () => createReceiptRoutes(receipts),
      () => createItemRoutes({ intake, writeReceipt }),
      () => createChunkRoutes({ multipart: opened.parts?.multipart, createPaid, writeReceipt }),
      () => createX402UploadRoutes({ uploads: paid, intake, writeReceipt, publicUrl }),
    ],
  };
  const start = (wantBundle: WantBundle) => {
    if (wallet !== undefined)
      running.pipeline = startPipeline({
        ...{ ...common, wallet },
        ...{ removal, stats, wantBundle },
      });
  };
  return { service, start };
}

/** Finds items that lie in uploads. */
function createNested(
  { base }: UploadParts,
  standing: (id: string) => Promise<UploadStanding | undefined>,
): (id: string) => Promise<NestedItem | undefined> {
  const { reader, sources } = base;
  const findUnbundled = createUnbundledSearch({
    ...{ reader, standing },
    open: sources.content.openIndexed,
    clock: systemClock,
  });
  const isUpload = async (id: string) => (await standing(id)) !== undefined;
  return (id) => findNested(id, { locate: reader.locate, isUpload, findUnbundled });
}
