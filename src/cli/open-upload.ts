/**
 * The upload service put together: the wallet, what takes items in, and the routes.
 * @module
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Id } from "../arweave/id.ts";
import type { UploadedPayload } from "../content/uploaded.ts";
import type { PublicUrl } from "../http/public-url.ts";
import { uploadReference } from "../http/reference/upload-reference.ts";
import type { Service } from "../http/service.ts";
import { createItemRoutes } from "../http/upload/item-routes.ts";
import { createReceiptWriter } from "../http/upload/receipt-record.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { systemClock } from "../lib/clock.ts";
import { refundReservation } from "../payment/refunds.ts";
import { createIndexWriterCalls, type WriteJob } from "../store/index-thread.ts";
import { makeItemFolders } from "../store/item-files.ts";
import type { LedgerDatabase } from "../store/ledger/database.ts";
import { createTransferIds } from "../store/ledger/transfer-ids.ts";
import { createAnnouncer } from "../upload/announcer.ts";
import { createIntake } from "../upload/intake.ts";
import { createItemStore } from "../upload/item-store.ts";
import { openPipeline, type Pipeline } from "../upload/pipeline.ts";
import { bundleBytesMax, bundleItemsMax } from "../upload/plan.ts";
import { createUploadRoom } from "../upload/room.ts";
import { findUpload, keptBytes } from "../upload/uploads.ts";
import type { Base, BaseParts } from "./open-base.ts";
import { openBundleChain } from "./open-bundle-chain.ts";
import type { OpenPayment } from "./open-payment.ts";
import { openUploadThreads } from "./open-threads.ts";
import { systemRandom } from "./random.ts";
import { readUploadWallet, type UploadWallet } from "./upload-wallet.ts";

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

/** The upload service, open. */
export type OpenUpload = Readonly<{
  service: Service;
  /** Begins to bring items to the chain; the gateway's index, which reads them back, must be at work. */
  start: (wantBundle: (id: Id) => Promise<void>) => void;
}>;

/** Opens it; everything is closed by `closers`. */
export async function openUpload(parts: UploadParts): Promise<OpenUpload> {
  const { config, folder, base, payment, wallet, log, closers } = parts;
  const { ledger, credits, prices } = payment;
  mkdirSync(folder.uploads, { recursive: true, mode: 0o700 });
  makeItemFolders(folder.uploads);
  const threads = openUploadThreads(config, closers);
  let kept = await ledger.read(keptBytes);
  const makeId = createTransferIds(systemClock, systemRandom);
  const running: { pipeline?: Pipeline } = {};
  const startedAt = systemClock();
  base.findUploadedBy((id) => findPayload(ledger, folder.uploads, startedAt, id));
  const room = createUploadRoom({
    folder: folder.uploads,
    keptBytes: () => kept,
    bytesMax: config.UPLOAD_DISK_BYTES_MAX,
    freeBytesMin: config.UPLOAD_FREE_BYTES_MIN,
    clock: systemClock,
  });
  const index = createIndexWriterCalls(folder.index, (job: WriteJob) => base.threads.index.run("write", job));
  const announcer = createAnnouncer({ addPending: index.addPending, log });
  const intake =
    wallet === undefined
      ? undefined
      : createIntake({
          ...{ ledger, room, prices, clock: systemClock },
          store: createItemStore(folder.uploads, threads.intake),
          balance: credits.balance,
          height: () => base.reader.tip()?.height ?? 0,
          rules: {
            itemBytesMax: config.UPLOAD_BYTES_MAX,
            freeBytesMax: config.FREE_UPLOAD_BYTES,
            allowed: new Set(config.UPLOAD_ALLOWED_ADDRESSES),
            blocked: new Set(config.UPLOAD_BLOCKED_ADDRESSES),
          },
          onTaken: (item) => {
            kept += item.size;
            running.pipeline?.wake();
            return announcer.announce(item.row);
          },
          makeId,
        });
  const receiptWallet =
    config.RECEIPT_WALLET_FILE === undefined
      ? wallet
      : readUploadWallet("RECEIPT_WALLET_FILE", config.RECEIPT_WALLET_FILE);
  const writeReceipt = createReceiptWriter({
    publicKey: receiptWallet === undefined ? "" : encodeBase64url(receiptWallet.wallet.owner),
    sign: async (terms, signal) => {
      const job = { keyFile: receiptWallet?.file ?? "", receipts: [terms] };
      const [signature = ""] = await threads.receipts.run<string[]>("signReceipts", job, { signal });
      return signature;
    },
    hosts: (request) =>
      [parts.gatewayUrl(request)].filter((url) => url !== "").map((url) => new URL(url).host),
  });
  const service: Service = {
    reference: uploadReference,
    routes: [() => createItemRoutes({ intake, writeReceipt })],
  };
  const start = (wantBundle: (id: Id) => Promise<void>) => {
    if (wallet === undefined) return;
    running.pipeline = openPipeline({
      ...{ ledger, folder: folder.uploads, walletFile: wallet.file, makeId, clock: systemClock, log },
      threads: threads.bundles,
      chain: openBundleChain({
        ...base.sources,
        reader: base.reader,
        address: wallet.wallet.address,
        wantBundle,
      }),
      refund: refundReservation,
      rules: {
        plan: { itemsMax: bundleItemsMax, bytesMax: bundleBytesMax, waitMs: config.UPLOAD_BUNDLE_WAIT_MS },
        confirmations: config.UPLOAD_CONFIRMATIONS,
        lookMs: config.UPLOAD_LOOK_MS,
        againMs: againLooks * config.UPLOAD_LOOK_MS,
      },
    });
    closers.add("bundles", running.pipeline.close);
  };
  return { service, start };
}

/** The bytes of an item that is not on the chain for good yet. */
async function findPayload(
  ledger: LedgerDatabase,
  uploads: string,
  startedAt: number,
  id: Id,
): Promise<UploadedPayload | undefined> {
  const upload = await ledger.read((tx) => findUpload(tx, id));
  if (upload === undefined || upload.state === "failed" || upload.state === "permanent") return undefined;
  const { bytes, headerSize, contentType, contentEncoding, digest } = upload;
  return {
    ...{ id, contentType, contentEncoding, digest },
    path: join(uploads, bytes.file),
    start: bytes.offset + headerSize,
    size: bytes.size - headerSize,
    isFresh: upload.receivedAt >= startedAt,
  };
}

/** A bundle that so many looks did not see on the chain, or not whole, is sent again. */
const againLooks = 20;
