/**
 * Reasons to reject every upload, or every paid upload, with status 503; each is a sentence.
 * @module
 */
import { Failure } from "../failures.ts";
import type { Intake } from "./intake/item-intake.ts";
import type { UploadQuota } from "./intake/upload-quota.ts";

/** What uploads need. */
export type UploadNeeds = Readonly<{
  hasWallet: boolean;
  /** Height of the chain; `undefined` while it is not known. */
  height: () => number | undefined;
  /** Whether the price of storage is known. */
  isPriceKnown: () => boolean;
  freeBytesMax: number;
  quota: Pick<UploadQuota, "reasons">;
  /** Why the ledger takes nothing. */
  ledgerFaults: () => readonly string[];
  /** Why the last item could not be written; `undefined` when it could. */
  diskFailure: () => string | undefined;
}>;

export function createUploadHealth(needs: UploadNeeds): () => readonly string[] {
  const { hasWallet, height, isPriceKnown, freeBytesMax, quota, ledgerFaults, diskFailure } = needs;
  return () => {
    const disk = diskFailure();
    return [
      ...(hasWallet ? [] : ["Uploads are off: WALLET_FILE is not set."]),
      ...(height() === undefined ? ["Uploads are rejected: no block has been followed yet."] : []),
      ...(isPriceKnown()
        ? []
        : [`Uploads above ${freeBytesMax} bytes are rejected: the network's price is not known.`]),
      ...ledgerFaults(),
      ...quota.reasons(),
      ...(disk === undefined ? [] : [`The last upload could not be written: ${disk}.`]),
    ];
  };
}

/** Remembers whether the disk took the last item. @returns The intake, and why it did not. */
export function watchDisk(intake: Intake): Readonly<{ intake: Intake; failure: () => string | undefined }> {
  let failure: string | undefined;
  const watched = async <Result>(work: Promise<Result>): Promise<Result> => {
    try {
      const response = await work;
      failure = undefined;
      return response;
    } catch (error) {
      if (error instanceof Failure && error.code === "disk_failed") failure = String(error.context["reason"]);
      throw error;
    }
  };
  return {
    intake: {
      take: (arrival, signal) => watched(intake.take(arrival, signal)),
      acceptStaged: (staged, signal) => watched(intake.acceptStaged(staged, signal)),
    },
    failure: () => failure,
  };
}
