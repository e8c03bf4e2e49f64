/**
 * Signs items for clients that upload without a key: in a thread, over a payload in a file.
 * @module
 */

import type { LeaveSigningJob, SignItemJob } from "../../workers/sign.ts";
import { signedHeaderSize } from "../arweave/data-item.ts";
import type { Signer } from "../arweave/signers/scheme.ts";
import type { Tag } from "../arweave/tags.ts";
import { Failure } from "../failures.ts";
import { ignoreRejection } from "../lib/stop.ts";
import type { Pool, Workers } from "../threads/pool.ts";

/** A payload and its tags. */
export type UnsignedPayload = Readonly<{
  /** Path within the folder of uploads. */
  file: string;
  /** Offset of the payload in the file. Bytes. */
  start: number;
  size: number;
  tags: readonly Tag[];
}>;

export type ItemSigner = Readonly<{
  /**
   * Size of the header of an item with these tags.
   * @throws Failure `malformed_input` {reason} for invalid tags.
   */
  headerSize: (tags: readonly Tag[]) => number;
  /**
   * Signs an item. The same payload with the same tags gives the same item.
   *
   * @returns The header of the item.
   * @throws Failure `disk_failed` {reason} when the payload cannot be read; `worker_failed`, `busy`; the signal's
   *   reason.
   */
  sign: (payload: UnsignedPayload, signal: AbortSignal) => Promise<Uint8Array<ArrayBuffer>>;
}>;

export type ItemSignerParts = Readonly<{
  /** The folder of uploads, as an absolute path. */
  folder: string;
  /** Pool of one thread, entry `sign`. */
  pool: Pool<Workers["sign"]>;
  /** File of the RSA key (JWK, 4096 bits), and its public part. */
  keyFile: string;
  key: Pick<Signer, "scheme" | "owner">;
}>;

export function createItemSigner({ folder, pool, keyFile, key }: ItemSignerParts): ItemSigner {
  return {
    headerSize: (tags) => signedHeaderSize({ tags }, key),
    sign: async (payload, signal) => {
      const session = crypto.randomUUID();
      try {
        for (let isFirst = true; ; isFirst = false) {
          const job: SignItemJob = { ...payload, folder, session, keyFile, isFirst };
          const response = await pool.run("signItem", job, { signal });
          if (response.kind === "signed") return response.header;
          if (response.kind === "unread") throw new Failure("disk_failed", { reason: response.reason });
          if (response.kind === "lost")
            throw new Failure("worker_failed", { reason: "the thread that signed the item has ended" });
        }
      } catch (error) {
        // The session of an aborted wait is still open in the thread. A dead thread has released it.
        const job: LeaveSigningJob = { session };
        ignoreRejection(pool.run("leaveSigning", job));
        throw error;
      }
    },
  };
}
