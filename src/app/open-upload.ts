/**
 * Opens the upload service: the intake of items, multipart uploads, the pipeline that posts bundles, and the routes.
 * @module
 */
import { EventEmitter } from "node:events";
import { join } from "node:path";
import type { WrittenItem } from "../../workers/intake.ts";
import type { Id } from "../arweave/id.ts";
import { arweave } from "../arweave/signers/arweave.ts";
import type { Nodes } from "../chain/nodes.ts";
import type { Config } from "../config/settings.ts";
import type { GatewayContentStore } from "../content/content.ts";
import type { FindUploaded } from "../content/uploaded.ts";
import { Failure } from "../failures.ts";
import { createHealth } from "../gateway/health.ts";
import type { PublicUrl } from "../http/public-url.ts";
import type { Service } from "../http/service-app.ts";
import { createUploadInformationRoutes } from "../http/service-information.ts";
import {
  createItemRoutes,
  createReceiptRoutes,
  createStatusRoutes,
  receiptSemaphore,
} from "../http/upload/item-routes.ts";
import { createMultipartRoutes } from "../http/upload/multipart-routes.ts";
import { createUploadPriceRoutes } from "../http/upload/upload-price-routes.ts";
import { uploadReference } from "../http/upload/upload-reference.ts";
import { createReceiptWriter, type ReceiptWriter } from "../http/upload/upload-responses.ts";
import { createPaidUploadCreator } from "../http/upload/x402-upload-payments.ts";
import { createX402UploadRoutes } from "../http/upload/x402-upload-routes.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { systemClock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import { refundReservation } from "../payment/credits/reservations.ts";
import type { BlockList } from "../store/block-list.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import { pendingHeight } from "../store/index/place.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { createTransferIds, type MakeId } from "../store/ledger/transfers.ts";
import { makeItemFolders } from "../store/uploads/item-files.ts";
import { openPartFiles, type PartFiles } from "../store/uploads/part-files.ts";
import { deadlineFrom, findTakenDurably } from "../upload/intake/charge-item.ts";
import { createFileCheck } from "../upload/intake/file-check.ts";
import { createAnnouncer, startAnnouncements } from "../upload/intake/index-announcements.ts";
import { createIntake, type Intake } from "../upload/intake/item-intake.ts";
import { createItemStore } from "../upload/intake/item-store.ts";
import { createUnnamedBytes } from "../upload/intake/unnamed-bytes.ts";
import { createUploadQuota, type UploadQuota } from "../upload/intake/upload-quota.ts";
import { openMultipartSweep } from "../upload/multipart/multipart-expiry.ts";
import { createFinalizer } from "../upload/multipart/multipart-finalizer.ts";
import { createMultipart, type Multipart } from "../upload/multipart/multipart-uploads.ts";
import { createPartWriters, type PartWriters } from "../upload/multipart/part-writers.ts";
import { findNested, type NestedItem } from "../upload/nested-offsets.ts";
import { listUnfinishedBundles, retryBundle } from "../upload/pipeline/bundle-overview.ts";
import { openPipeline, type Pipeline } from "../upload/pipeline/bundle-pipeline.ts";
import { openRemoval, type Removal } from "../upload/pipeline/file-removal.ts";
import { bundleBytesMax, bundleItemsMax } from "../upload/pipeline/plan-bundles.ts";
import { createUnbundledSearch } from "../upload/unbundled-uploads.ts";
import { createUploadHealth, watchDisk } from "../upload/upload-health.ts";
import { countUploads, createUploadMetrics, type UploadMetrics } from "../upload/upload-metrics.ts";
import { findUpload, findUploadStatus, storedBytes, type UploadStatus } from "../upload/upload-rows.ts";
import { createItemSigner, createReceiptSigner } from "../upload/upload-signing.ts";
import { createWalletMonitor } from "../upload/wallet-monitor.ts";
import { createX402Uploads, type X402Uploads } from "../upload/x402/x402-uploads.ts";
import { version } from "../version.ts";
import { type AppContext, createCheckList } from "./base.ts";
import { openBundleChain } from "./bundle-chain.ts";
import type { DataFolder } from "./data-folder.ts";
import { readUploadWallet, storedSigningWallet, type UploadWallet } from "./keys.ts";
import { readAddressList } from "./list-settings.ts";
import type { MonitoredUploads } from "./monitoring.ts";
import type { OpenPayment } from "./open-payment.ts";
import { startPublication } from "./open-solvency.ts";
import { systemRandom } from "./random.ts";
import { openUploadThreads, type UploadThreads } from "./threads.ts";

type UploadParts = Readonly<{
  ledger: LedgerDatabase;
  /** Name of the folder of uploads (store/uploads/item-files.ts). */
  storeName: string;
  reader: IndexReader;
  index: IndexWriterCalls;
  nodes: Nodes;
  content: Pick<GatewayContentStore, "openIndexed">;
  blockList: BlockList;
  metrics: Metrics;
  payment: OpenPayment;
  /** Undefined: uploads are off. */
  wallet: UploadWallet | undefined;
  /** Base URLs at which clients reach the gateway and this service. */
  gatewayUrl: PublicUrl;
  publicUrl: PublicUrl;
}>;

/** Requests a bundle to be indexed regardless of the gateway's filters. */
type WantBundle = (id: Id) => Promise<void>;

type OpenUpload = Readonly<{
  service: Service;
  /** Starts the pipeline. The gateway, whose index reads bundles back, must be open. */
  start: (wantBundle: WantBundle) => void;
  /** For the operator; undefined while uploads are off. */
  monitored: MonitoredUploads | undefined;
  /** Fails, and refunds, all permanent items, for a chain that was begun anew. No effect before `start`. */
  failPermanent: () => Promise<void>;
}>;

/** Opens the service; `closers` close it. Rejects when the ledger cannot be read. */
export async function openUpload(app: AppContext, parts: UploadParts): Promise<OpenUpload> {
  const { config, folder, log, closers } = app;
  const { ledger, storeName, reader, metrics, payment, wallet, gatewayUrl, publicUrl } = parts;
  const threads = openUploadThreads(config, closers);
  const makeId = createTransferIds(systemClock, systemRandom);
  const unnamed = createUnnamedBytes();
  const removal = await openItemRemoval(app, ledger, unnamed.forget);
  const stats = createUploadMetrics(metrics, { ledger, storeName, clock: systemClock });
  const items = new EventEmitter<{ taken: [size: number]; retried: [] }>();
  items.on("taken", stats.onTaken);

  makeItemFolders(folder.uploads);
  const files = wallet === undefined ? undefined : await openPartFiles(folder.uploads);
  const countItems = () => ledger.read((tx) => storedBytes(tx, storeName));
  const quota = createUploadQuota({
    folder: folder.uploads,
    countStored: async () => (await countItems()) + unnamed.bytes() + (writers?.diskBytes() ?? 0),
    storedBytes: await countItems(),
    bytesMax: config.UPLOAD_DISK_BYTES_MAX,
    freeBytesMin: config.UPLOAD_FREE_BYTES_MIN,
    clock: systemClock,
    log,
  });
  const writers = files && createPartWriters(files, quota);
  const writeReceipt = openReceipts(config, parts, threads);
  const onUnnamed = (item: WrittenItem) => {
    unnamed.add(item);
    removal.note([item.file]);
  };
  const onTaken = (size: number) => items.emit("taken", size);
  const accepting = { quota, threads, makeId, onTaken, onUnnamed };
  const { intake, diskFailure } = openIntake(app, parts, accepting);
  const multipart =
    intake && files && writers && (await openMultipart(app, parts, { intake, files, writers, threads, makeId }));
  await quota.recount();
  const paid = intake && multipart && (await openX402Uploads(app, parts, { intake, multipart, quota, threads }));
  const createPaid = paid && createPaidUploadCreator(paid, publicUrl);
  const checks = createChecks(config, parts, { quota, diskFailure });
  const health = createHealth({ clock: systemClock, checks: [checks.check], notes: [], readiness: [] });
  const find = intake && ((id: string) => findTakenDurably(ledger, id));
  const semaphore = createSemaphore(receiptSemaphore.atWorkMax, receiptSemaphore.waitingMax);
  const findStatus = (id: string) => ledger.read((tx) => findUploadStatus(tx, id));
  const service: Service = {
    reference: uploadReference,
    publicUrl: config.UPLOAD_PUBLIC_URL,
    routes: () => [
      createUploadInformationRoutes({
        release: version,
        gatewayUrl,
        health,
        addresses: payment.addresses,
        freeBytesMax: config.FREE_UPLOAD_BYTES,
        itemBytesMax: config.UPLOAD_BYTES_MAX,
        metrics: config.METRICS_ON_ADMIN_LISTEN ? undefined : metrics,
      }),
      createUploadPriceRoutes({ prices: payment.prices }),
      createStatusRoutes({ findStatus, nested: createNested(parts, findStatus) }),
      createReceiptRoutes({ find, writeReceipt, semaphore }),
      createItemRoutes({ intake, writeReceipt }),
      createMultipartRoutes({ multipart: multipart?.multipart, createPaid, writeReceipt }),
      createX402UploadRoutes({ uploads: paid, intake, writeReceipt, publicUrl }),
    ],
  };
  let failPermanent = async (): Promise<void> => undefined;
  const start = (wantBundle: WantBundle) => {
    if (wallet === undefined) return;
    const pipeline = startPipeline(app, parts, { wallet, threads, makeId, removal, stats, wantBundle });
    failPermanent = pipeline.failPermanent;
    items.on("retried", pipeline.wake);
    items.on("taken", pipeline.onItem);
    checks.add(pipeline.reasons);
    checks.add(startPublication(app, { ledger, reader, metrics, reports: payment.reports, intake, wallet }));
  };
  const monitored = wallet && monitoredUploads(config, parts, wallet, () => items.emit("retried"));
  return { service, start, monitored, failPermanent: () => failPermanent() };
}

function createChecks(
  config: Config,
  { ledger, reader, payment, wallet }: UploadParts,
  parts: Readonly<{ quota: UploadQuota; diskFailure: OpenIntake["diskFailure"] }>,
) {
  const health = createUploadHealth({
    ...parts,
    hasWallet: wallet !== undefined,
    ledgerFaults: ledger.faults,
    height: () => reader.tip()?.height,
    isPriceKnown: payment.isNetworkPriceKnown,
    freeBytesMax: config.FREE_UPLOAD_BYTES,
  });
  return createCheckList([health]);
}

/** Most bundles that the operator sees at once. */
const listedBundlesMax = 100;

function monitoredUploads(
  config: Config,
  { ledger, storeName, reader, nodes, metrics }: UploadParts,
  { wallet: { address } }: UploadWallet,
  onRetried: () => void,
): MonitoredUploads {
  const balance = async (signal: AbortSignal) => {
    const response = await nodes.ask((node, own) => node.balance(address, own), signal);
    if (response.kind === "ok") return response.value;
    throw new Failure("source_failed", { reason: "no node gave the balance of the wallet", response });
  };
  return {
    wallet: createWalletMonitor(metrics, { address, balance, clock: systemClock }),
    counts: () => ledger.read((tx) => countUploads(tx, storeName, systemClock())),
    bundles: () => {
      const confirmation = { confirmations: config.UPLOAD_CONFIRMATIONS, height: reader.tip()?.height };
      return ledger.read((tx) => listUnfinishedBundles(tx, storeName, listedBundlesMax, confirmation));
    },
    retry: async (id) => {
      const isKnown = await ledger.write((tx) => retryBundle(tx, storeName, id, systemClock()));
      if (isKnown) onRetried();
      return isKnown;
    },
  };
}

/** Starts to remove unneeded files. Must be opened before the intake, because it lists the files of an earlier run. */
async function openItemRemoval(
  { folder, log, closers }: AppContext,
  ledger: LedgerDatabase,
  onGone: (file: string) => void,
): Promise<Removal> {
  const removal = await openRemoval({
    ledger,
    folder: folder.uploads,
    onGone,
    graceMs: removalGraceMs,
    clock: systemClock,
    log,
  });
  closers.add("removal of uploads' files", removal.close);
  return removal;
}

/** Creates the search for items that are nested in uploads. */
function createNested(
  { reader, content }: UploadParts,
  findStatus: (id: string) => Promise<UploadStatus | undefined>,
): (id: string) => Promise<NestedItem | undefined> {
  const findUnbundled = createUnbundledSearch({
    reader,
    findStatus,
    open: content.openIndexed,
    clock: systemClock,
  });
  const isUpload = async (id: string) => (await findStatus(id)) !== undefined;
  return (id) => findNested(id, { locate: reader.locate, isUpload, findUnbundled });
}

type IntakeNeeds = Readonly<{
  quota: UploadQuota;
  threads: UploadThreads;
  makeId: MakeId;
  /** Called for each accepted item. @param size - Of the complete item. Bytes. */
  onTaken: (size: number) => void;
  /** As of `createItemStore`. */
  onUnnamed: (item: WrittenItem) => void;
}>;

type OpenIntake = Readonly<{
  /** Undefined while uploads are off: no wallet is set. */
  intake: Intake | undefined;
  /** The fault of the last write; undefined if it succeeded. */
  diskFailure: () => string | undefined;
}>;

function openIntake(
  { config, folder, log }: AppContext,
  { ledger, storeName, reader, index, blockList, payment, wallet }: UploadParts,
  { quota, threads, makeId, onTaken, onUnnamed }: IntakeNeeds,
): OpenIntake {
  if (wallet === undefined) return { intake: undefined, diskFailure: () => undefined };
  const announcer = createAnnouncer({ addPending: index.addPending, log });
  const { intake, failure } = watchDisk(
    createIntake({
      ledger,
      quota,
      prices: payment.prices,
      makeId,
      storeName,
      clock: systemClock,
      store: createItemStore(folder.uploads, threads.intake, onUnnamed),
      balance: payment.credits.balance,
      blockList,
      height: () => reader.tip()?.height,
      rules: {
        itemBytesMax: config.UPLOAD_BYTES_MAX,
        freeBytesMax: config.FREE_UPLOAD_BYTES,
        allowed: readAddressList("UPLOAD_ALLOWED_ADDRESSES", config.UPLOAD_ALLOWED_ADDRESSES),
        blocked: readAddressList("UPLOAD_BLOCKED_ADDRESSES", config.UPLOAD_BLOCKED_ADDRESSES),
      },
      onTaken: (item) => {
        onTaken(item.size);
        return announcer.announce(item.row);
      },
    }),
  );
  return { intake, diskFailure: failure };
}

/** Receipts are signed in threads, with the wallet that posts bundles unless RECEIPT_WALLET_FILE names another. */
function openReceipts(config: Config, { wallet, gatewayUrl }: UploadParts, threads: UploadThreads): ReceiptWriter {
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

/** Creates the search for uploads that are not permanent yet: they are served from their files. */
export function createUploadSearch(
  ledger: LedgerDatabase,
  folder: Pick<DataFolder, "uploads">,
  storeName: string,
): FindUploaded {
  const startedAt = systemClock();
  return async (id) => {
    const upload = await ledger.read((tx) => findUpload(tx, id));
    // Uploads of other stores belong to other processes with the same ledger.
    if (upload === undefined || upload.store !== storeName) return undefined;
    if (upload.state === "failed" || upload.state === "permanent") return undefined;
    const { bytes, headerSize, contentType, contentEncoding, digest } = upload;
    return {
      id,
      contentType,
      contentEncoding,
      digest,
      path: join(folder.uploads, bytes.file),
      start: bytes.offset + headerSize,
      headerSize,
      size: bytes.size - headerSize,
      // Only this process writes to the folder.
      verifiedAt: upload.receivedAt >= startedAt ? upload.receivedAt : undefined,
    };
  };
}

type MultipartNeeds = Readonly<{
  intake: Intake;
  files: PartFiles;
  writers: PartWriters;
  threads: UploadThreads;
  makeId: MakeId;
}>;

type OpenMultipart = Readonly<{
  multipart: Multipart;
  /** Ends an upload before it expires. */
  drop: (id: string) => Promise<void>;
  /** Path of an upload's file within the folder of uploads. */
  nameOf: (id: string) => string;
}>;

/** Half of the quota, so that unpaid parts cannot exhaust it; at least the size of the largest item. Bytes. */
function unpaidBytesOf({ UPLOAD_DISK_BYTES_MAX: all, UPLOAD_BYTES_MAX: item }: Config): number {
  return Math.max(Math.floor(all / 2), Math.min(item, all));
}

/** Opens multipart uploads. Rejects when the ledger or the folder cannot be read. */
async function openMultipart(
  { config, folder, log, closers }: AppContext,
  { ledger, storeName }: UploadParts,
  { intake, files, writers, threads, makeId }: MultipartNeeds,
): Promise<OpenMultipart> {
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
  closers.add("expiry of multipart uploads", sweep.close);
  return { multipart, drop: sweep.drop, nameOf: writers.nameOf };
}

type X402UploadsNeeds = Readonly<{
  intake: Intake;
  multipart: OpenMultipart;
  quota: UploadQuota;
  threads: UploadThreads;
}>;

/** Opens uploads that x402 pays for; undefined if x402 is off. */
async function openX402Uploads(
  { config, folder, log }: AppContext,
  { reader, blockList, payment }: UploadParts,
  { intake, multipart: { multipart, drop, nameOf }, quota, threads }: X402UploadsNeeds,
): Promise<X402Uploads | undefined> {
  const { x402, credits } = payment;
  if (x402 === undefined) return undefined;
  const { file: keyFile, wallet } = await storedSigningWallet(folder.uploads);
  const key = { scheme: arweave, owner: wallet.owner };
  return createX402Uploads({
    x402,
    intake,
    multipart,
    drop,
    nameOf,
    credits,
    log,
    clock: systemClock,
    blockList,
    signer: createItemSigner({ folder: folder.uploads, pool: threads.signing, keyFile, key }),
    rules: {
      itemBytesMax: config.UPLOAD_BYTES_MAX,
      freeBytesMax: config.FREE_UPLOAD_BYTES,
      blocked: readAddressList("UPLOAD_BLOCKED_ADDRESSES", config.UPLOAD_BLOCKED_ADDRESSES),
    },
    checkReady: (size) => {
      deadlineFrom(reader.tip()?.height);
      quota.take(size).release();
    },
  });
}

type PipelineNeeds = Readonly<{
  wallet: UploadWallet;
  threads: UploadThreads;
  makeId: MakeId;
  removal: Removal;
  stats: UploadMetrics;
  wantBundle: WantBundle;
}>;

/** A bundle that this many checks did not find on the chain, or not completely, is posted or seeded again. */
const againLooks = 20;

/** Delay of the removal of a file: by then, readers that found the file have opened it. Milliseconds. */
const removalGraceMs = 60_000;

function startPipeline(
  { config, folder, log, closers }: AppContext,
  { ledger, storeName, reader, index, nodes, blockList }: UploadParts,
  { wallet, threads, makeId, removal, stats, wantBundle }: PipelineNeeds,
): Pipeline {
  const chain = openBundleChain({ nodes, reader, index, address: wallet.wallet.address, wantBundle });
  const announcements = startAnnouncements({
    ledger,
    threads: threads.bundles,
    folder: folder.uploads,
    storeName,
    log,
    addPending: index.addPending,
    forgetPending: chain.forgetPending,
    statusOf: (id) => {
      const place = reader.placeOf(id);
      if (place === undefined) return undefined;
      return place.height === pendingHeight ? "pending" : "mined";
    },
  });
  closers.add("announcements of uploads", announcements.close);
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
    blockList,
    onLeft: removal.note,
    onEnded: stats.onEnded,
    onLeftBlock: announcements.announceBundle,
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
