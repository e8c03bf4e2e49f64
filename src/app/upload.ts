/**
 * The upload service: the intake of items, uploads in parts, the pipeline that brings items to the chain, and the
 * routes.
 * @module
 */

import { join } from "node:path";
import type { Id } from "../arweave/id.ts";
import { arweave } from "../arweave/signers/arweave.ts";
import type { UploadedPayload } from "../content/uploaded.ts";
import { createHealth } from "../gateway/health.ts";
import type { PublicUrl } from "../http/public-url.ts";
import { uploadReference } from "../http/reference/upload-reference.ts";
import type { Service } from "../http/service.ts";
import { createChunkRoutes } from "../http/upload/chunk-routes.ts";
import { createUploadInformationRoutes } from "../http/upload/information-routes.ts";
import { createItemRoutes } from "../http/upload/item-routes.ts";
import { createUploadPriceRoutes } from "../http/upload/price-routes.ts";
import { createReceiptWriter, type ReceiptWriter } from "../http/upload/receipt-record.ts";
import { createReceiptRoutes, receiptSemaphore } from "../http/upload/receipt-routes.ts";
import { createStatusRoutes } from "../http/upload/status-routes.ts";
import { createPaidChunks } from "../http/upload/x402-chunks.ts";
import { createX402UploadRoutes } from "../http/upload/x402-upload-routes.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { systemClock } from "../lib/clock.ts";
import type { Closers } from "../lib/closers.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import { refundReservation } from "../payment/credits/refunds.ts";
import { pendingHeight } from "../store/index/place.ts";
import { createIndexWriterCalls, type WriteJob } from "../store/index/thread.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { createTransferIds, type MakeId } from "../store/ledger/transfers.ts";
import { makeItemFolders, storedStoreName } from "../store/uploads/item-files.ts";
import { openPartFiles } from "../store/uploads/part-files.ts";
import { createAnnouncer } from "../upload/intake/announcer.ts";
import { deadlineFrom, readTakenById } from "../upload/intake/charge.ts";
import { createFileCheck } from "../upload/intake/file-check.ts";
import { createIntake, type Intake } from "../upload/intake/item-intake.ts";
import { createItemStore } from "../upload/intake/item-store.ts";
import { announceItemsOfBundle, announceMissedItems, type MissedItemsParts } from "../upload/intake/missed-items.ts";
import { createUploadQuota, type UploadQuota } from "../upload/intake/upload-quota.ts";
import { createItemSigner } from "../upload/item-signing.ts";
import { createFinalizer } from "../upload/multipart/finalize.ts";
import { createMultipart, type Multipart } from "../upload/multipart/multipart-uploads.ts";
import { createPartWriters } from "../upload/multipart/part-writers.ts";
import { openMultipartSweep } from "../upload/multipart/sweep.ts";
import { findNested, type NestedItem } from "../upload/nested-offsets.ts";
import { openPipeline, type Pipeline } from "../upload/pipeline/bundle-pipeline.ts";
import { openRemoval, type Removal } from "../upload/pipeline/file-removal.ts";
import { bundleBytesMax, bundleItemsMax } from "../upload/pipeline/plan-bundles.ts";
import { createReceiptSigner } from "../upload/receipt-signer.ts";
import { createUnbundledSearch } from "../upload/unbundled-uploads.ts";
import { createUploadHealth, watchDisk } from "../upload/upload-health.ts";
import { createUploadMetrics, type UploadMetrics } from "../upload/upload-metrics.ts";
import { findUpload, findUploadStatus, storedBytes, type UploadStatus } from "../upload/upload-rows.ts";
import { createX402Uploads, type X402Uploads } from "../upload/x402/x402-uploads.ts";
import { version } from "../version.ts";
import { readAddressList } from "./address-settings.ts";
import type { Base, BaseParts } from "./base.ts";
import { openBundleChain } from "./bundle-chain.ts";
import { readUploadWallet, storedSigningWallet, type UploadWallet } from "./keys.ts";
import type { OpenPayment } from "./payment.ts";
import { systemRandom } from "./random.ts";
import { openUploadThreads, type UploadThreads } from "./threads.ts";

/** What the upload service is opened with. */
export type UploadParts = BaseParts &
  Readonly<{
    base: Base;
    payment: OpenPayment;
    /** Undefined: uploads are off. */
    wallet: UploadWallet | undefined;
    /** Where a caller reaches the gateway, and this service. */
    gatewayUrl: PublicUrl;
    publicUrl: PublicUrl;
  }>;

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
  const standing = (id: string) => ledger.read((tx) => findUploadStatus(tx, id));
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
  standing: (id: string) => Promise<UploadStatus | undefined>,
): (id: string) => Promise<NestedItem | undefined> {
  const { reader, sources } = base;
  const findUnbundled = createUnbundledSearch({
    ...{ reader, findStatus: standing },
    open: sources.content.openIndexed,
    clock: systemClock,
  });
  const isUpload = async (id: string) => (await standing(id)) !== undefined;
  return (id) => findNested(id, { locate: reader.locate, isUpload, findUnbundled });
}

/** What it is opened with. */
export type IntakeSetup = UploadParts &
  Readonly<{
    threads: UploadThreads;
    makeId: MakeId;
    /** Of the folder of uploads (store/uploads/store-name.ts). */
    storeName: string;
    /** What uploads in parts take of the disk. Bytes. */
    partBytes: () => number;
    /** Told when there is a new item to be bundled. */
    onItem: (size: number) => void;
  }>;

/** What takes items in, open. */
export type OpenIntake = Readonly<{
  /** Undefined: no wallet is set, and uploads are off. */
  intake: Intake | undefined;
  quota: UploadQuota;
  writeReceipt: ReceiptWriter;
  /** Why the last item could not be written; `undefined` when it could. */
  diskFailure: () => string | undefined;
}>;

/** Opens it. Rejects when the ledger cannot be read. */
export async function openIntake(parts: IntakeSetup): Promise<OpenIntake> {
  const { config, folder, base, payment, wallet, threads, makeId, storeName, log } = parts;
  const { ledger, credits, prices } = payment;
  makeItemFolders(folder.uploads);
  const startedAt = systemClock();
  base.findUploadedBy((id) => findPayload(ledger, { path: folder.uploads, name: storeName }, startedAt, id));
  const countStored = async () => (await ledger.read((tx) => storedBytes(tx, storeName))) + parts.partBytes();
  const quota = createUploadQuota({
    folder: folder.uploads,
    countStored,
    storedBytes: await countStored(),
    bytesMax: config.UPLOAD_DISK_BYTES_MAX,
    freeBytesMin: config.UPLOAD_FREE_BYTES_MIN,
    clock: systemClock,
    log,
  });
  const writeReceipt = openReceipts(parts);
  if (wallet === undefined) return { intake: undefined, quota, writeReceipt, diskFailure: () => undefined };

  const index = createIndexWriterCalls(folder.index, (job: WriteJob) => base.threads.index.run("write", job));
  const announcer = createAnnouncer({ addPending: index.addPending, log });
  const { intake, failure } = watchDisk(
    createIntake({
      ledger,
      quota,
      prices,
      makeId,
      storeName,
      clock: systemClock,
      store: createItemStore(folder.uploads, threads.intake),
      balance: credits.balance,
      blockList: base.sources.blockList,
      height: () => base.reader.tip()?.height,
      rules: {
        itemBytesMax: config.UPLOAD_BYTES_MAX,
        freeBytesMax: config.FREE_UPLOAD_BYTES,
        allowed: readAddressList("UPLOAD_ALLOWED_ADDRESSES", config.UPLOAD_ALLOWED_ADDRESSES),
        blocked: readAddressList("UPLOAD_BLOCKED_ADDRESSES", config.UPLOAD_BLOCKED_ADDRESSES),
      },
      onTaken: (item) => {
        parts.onItem(item.size);
        return announcer.announce(item.row);
      },
    }),
  );
  return { intake, quota, writeReceipt, diskFailure: failure };
}

/** Receipts are signed in a thread, by the wallet that posts bundles unless another is set. */
function openReceipts({ config, wallet, threads, gatewayUrl }: IntakeSetup): ReceiptWriter {
  const file = config.RECEIPT_WALLET_FILE;
  const signer = file === undefined ? wallet : readUploadWallet("RECEIPT_WALLET_FILE", file);
  return createReceiptWriter({
    publicKey: signer === undefined ? "" : encodeBase64url(signer.wallet.owner),
    sign: createReceiptSigner({
      signAll: (receipts) => threads.receipts.run("signReceipts", { keyFile: signer?.file ?? "", receipts }),
      threads: threads.receiptThreads,
    }),
    hosts: (request) => [gatewayUrl(request)].filter((url) => url !== "").map((url) => new URL(url).host),
  });
}

/** The bytes of an item that is not on the chain for good yet. */
async function findPayload(
  ledger: LedgerDatabase,
  uploads: Readonly<{ path: string; name: string }>,
  startedAt: number,
  id: Id,
): Promise<UploadedPayload | undefined> {
  const upload = await ledger.read((tx) => findUpload(tx, id));
  // Another program of the same ledger has what lies elsewhere.
  if (upload === undefined || upload.store !== uploads.name) return undefined;
  if (upload.state === "failed" || upload.state === "permanent") return undefined;
  const { bytes, headerSize, contentType, contentEncoding, digest } = upload;
  return {
    id,
    contentType,
    contentEncoding,
    digest,
    path: join(uploads.path, bytes.file),
    start: bytes.offset + headerSize,
    headerSize,
    size: bytes.size - headerSize,
    // The folder is this process's alone.
    verifiedAt: upload.receivedAt >= startedAt ? upload.receivedAt : undefined,
  };
}

/** What they are opened with. */
export type MultipartSetup = UploadParts &
  Readonly<{
    intake: Intake;
    quota: UploadQuota;
    threads: UploadThreads;
    makeId: MakeId;
    /** Of the folder of uploads (store/uploads/store-name.ts). */
    storeName: string;
  }>;

/** Uploads in parts, open. */
export type OpenMultipart = Readonly<{
  multipart: Multipart;
  /** Ends an upload before its time. */
  drop: (id: string) => Promise<void>;
  /** What the file of an upload is called below the folder of uploads. */
  nameOf: (id: string) => string;
  /** What they take of the disk. Bytes. */
  diskBytes: () => number;
}>;

/**
 * Half of what uploads may take: whoever fills it with what nobody pays for leaves the other half to those who do. The
 * largest item has room in any case.
 */
function unpaidBytesOf({ UPLOAD_DISK_BYTES_MAX: all, UPLOAD_BYTES_MAX: item }: UploadParts["config"]): number {
  return Math.max(Math.floor(all / 2), Math.min(item, all));
}

/**
 * Opens them; everything is closed by `closers`. What they take of the disk is still to be told to the room.
 *
 * Rejects when the ledger or the folder cannot be read.
 */
export async function openMultipart(parts: MultipartSetup): Promise<OpenMultipart> {
  const { config, folder, payment, intake, quota, threads, makeId, storeName, log, closers } = parts;
  const { ledger } = payment;
  const files = await openPartFiles(folder.uploads);
  const writers = createPartWriters(files, quota);
  const finalizer = createFinalizer({
    ledger,
    writers,
    intake,
    makeId,
    clock: systemClock,
    log,
    check: createFileCheck(folder.uploads, threads.walks),
    atOnce: threads.walks.length,
  });
  closers.add("finalizing of uploads", finalizer.close);
  const multipart = createMultipart({
    storeName,
    ledger,
    writers,
    finalizer,
    makeId,
    clock: systemClock,
    itemBytesMax: config.UPLOAD_BYTES_MAX,
    unpaidBytesMax: unpaidBytesOf(config),
    makeUploadId: () => crypto.randomUUID(),
  });
  const sweep = await openMultipartSweep({
    storeName,
    ledger,
    files,
    writers,
    finalizer,
    makeId,
    clock: systemClock,
    log,
    onEnded: multipart.forget,
  });
  closers.add("sweep of uploads in parts", sweep.close);
  return { multipart, drop: sweep.drop, nameOf: writers.nameOf, diskBytes: writers.diskBytes };
}

/** What they are opened with. */
export type X402UploadsSetup = UploadParts &
  Readonly<{ intake: Intake; parts: OpenMultipart; quota: UploadQuota; threads: UploadThreads }>;

/** Opens them; undefined where x402 is off. */
export async function openX402Uploads(setup: X402UploadsSetup): Promise<X402Uploads | undefined> {
  const { config, folder, base, payment, intake, parts, quota, threads, log } = setup;
  const { x402, credits } = payment;
  if (x402 === undefined) return undefined;
  const { file: keyFile, wallet } = await storedSigningWallet(folder.uploads);
  const key = { scheme: arweave, owner: wallet.owner };
  const { multipart, drop, nameOf } = parts;
  return createX402Uploads({
    x402,
    intake,
    multipart,
    drop,
    nameOf,
    credits,
    log,
    clock: systemClock,
    blockList: base.sources.blockList,
    signer: createItemSigner({ folder: folder.uploads, pool: threads.signing, keyFile, key }),
    rules: {
      itemBytesMax: config.UPLOAD_BYTES_MAX,
      freeBytesMax: config.FREE_UPLOAD_BYTES,
      blocked: readAddressList("UPLOAD_BLOCKED_ADDRESSES", config.UPLOAD_BLOCKED_ADDRESSES),
    },
    checkReady: (size) => {
      deadlineFrom(base.reader.tip()?.height);
      quota.take(size).release();
    },
  });
}

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
      statusOf: (id) => {
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
function startTelling(parts: MissedItemsParts, closers: Closers): (bundleId: string) => void {
  const life = new AbortController();
  const { log } = parts;
  let last: Promise<void> = Promise.resolve();
  const queue = (work: () => Promise<void>) => {
    last = last.then(work).catch((error: unknown) => {
      if (!life.signal.aborted) log.error("the index was not told of uploads", { error });
    });
  };
  queue(() => announceMissedItems(parts, life.signal));
  closers.add("telling of uploads", async () => {
    life.abort(new DOMException("uploads were closed", "AbortError"));
    await last;
  });
  return (bundleId) => queue(() => announceItemsOfBundle(parts, bundleId, life.signal));
}
