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

/** A payload, and what is said of it. */
export type UnsignedPayload = Readonly<{
  /** Below the folder of uploads. */
  file: string;
  /** Where it begins in the file, and its size. Bytes. */
  start: number;
  size: number;
  tags: readonly Tag[];
}>;

/** Signs items. */
export type ItemSigner = Readonly<{
  /**
   * The size of the header that an item with these tags has.
   * @throws Failure `malformed_input` {reason} for tags that no item can have.
   */
  headerSize: (tags: readonly Tag[]) => number;
  /**
   * Signs an item; the same payload with the same tags is the same item.
   *
   * @returns Its header.
   * @throws Failure `disk_failed` {reason} when the payload cannot be read; `worker_failed`, `busy`; the signal's
   *   reason.
   */
  sign: (payload: UnsignedPayload, signal: AbortSignal) => Promise<Uint8Array<ArrayBuffer>>;
}>;

/** What it works with. */
export type ItemSignerParts = Readonly<{
  /** That of uploads, as an absolute path. */
  folder: string;
  /** Of one thread, entry `sign`. */
  pool: Pool<Workers["sign"]>;
  /** Key (JWK), RSA of 4096 bits, and its public half. */
  keyFile: string;
  key: Pick<Signer, "scheme" | "owner">;
}>;

/** Creates it. */
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
            throw new Failure("worker_failed", { reason: "the thread that signed the item is gone" });
        }
      } catch (error) {
        // After a wait that was cut short it is still open there; a thread that died has let go of it.
        const job: LeaveSigningJob = { session };
        ignoreRejection(pool.run("leaveSigning", job));
        throw error;
      }
    },
  };
}
