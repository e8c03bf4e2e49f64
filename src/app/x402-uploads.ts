/**
 * Uploads that are paid for by x402, put together: the payments, the items, and the key that signs for others.
 * @module
 */
import { arweave } from "../arweave/signers/arweave.ts";
import { systemClock } from "../lib/clock.ts";
import { deadlineFrom } from "../upload/intake/charge.ts";
import type { Intake } from "../upload/intake/intake.ts";
import type { UploadQuota } from "../upload/intake/upload-quota.ts";
import { createItemSigner } from "../upload/item-signing.ts";
import { createX402Uploads, type X402Uploads } from "../upload/x402/uploads.ts";
import { readAddressList } from "./address-list.ts";
import type { OpenMultipart } from "./multipart.ts";
import type { UploadThreads } from "./threads.ts";
import type { UploadParts } from "./upload-setup.ts";
import { storedSigningWallet } from "./upload-wallet.ts";

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
    refuseAll: (size) => {
      deadlineFrom(base.reader.tip()?.height);
      quota.take(size).release();
    },
  });
}
