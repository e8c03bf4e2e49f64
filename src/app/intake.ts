/**
 * What takes data items in, put together: threads, room on the disk, the index that is told, and receipts.
 * @module
 */
import { join } from "node:path";
import type { Id } from "../arweave/id.ts";
import type { UploadedPayload } from "../content/uploaded-bytes.ts";
import { createReceiptWriter, type ReceiptWriter } from "../http/upload/receipt-record.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { systemClock } from "../lib/clock.ts";
import { createIndexWriterCalls, type WriteJob } from "../store/index/thread.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import type { MakeId } from "../store/ledger/transfers.ts";
import { makeItemFolders } from "../store/uploads/item-files.ts";
import { watchDisk } from "../upload/health.ts";
import { createAnnouncer } from "../upload/intake/announcer.ts";
import { createIntake, type Intake } from "../upload/intake/intake.ts";
import { createItemStore } from "../upload/intake/item-store.ts";
import { createUploadQuota, type UploadQuota } from "../upload/intake/upload-quota.ts";
import { createReceiptSigner } from "../upload/receipt-signer.ts";
import { findUpload, storedBytes } from "../upload/uploads.ts";
import { readAddressList } from "./address-list.ts";
import type { UploadThreads } from "./threads.ts";
import type { UploadParts } from "./upload-setup.ts";
import { readUploadWallet } from "./upload-wallet.ts";

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
