/**
 * Reasons to reject every upload, or every paid upload, with status 503; each is a sentence.
 * @module
 */
import { Failure } from "../failures.ts";
import type { Intake } from "./intake/item-intake.ts";
import type { UploadQuota } from "./intake/upload-quota.ts";

export type UploadNeeds = Readonly<{
  hasWallet: boolean;
  /** Height of the chain; `undefined` while unknown. */
  height: () => number | undefined;
  /** Whether the price of storage is known. */
  isPriceKnown: () => boolean;
  freeBytesMax: number;
  quota: Pick<UploadQuota, "reasons">;
  /** Faults of the ledger. */
  ledgerFaults: () => readonly string[];
  /** The fault of the last write; `undefined` if it succeeded. */
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

/** Wraps an intake to record the fault of the last write. */
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
