/**
 * What crosses between the main thread and the one that signs items: jobs and their answers.
 * @module
 */

/** A step of signing an item whose payload lies in a file. */
export type SignItemJob = Readonly<{
  /** That of uploads, as an absolute path. */
  folder: string;
  /** Names the item among those under way in this thread. */
  session: string;
  /** Below the folder. */
  file: string;
  /** Where the payload begins in the file, and its size. Bytes. */
  start: number;
  size: number;
  tags: readonly Readonly<{ name: string; value: string }>[];
  /** Key (JWK), RSA of 4096 bits. */
  keyFile: string;
  /** The first step; the others go on where the last one ended. */
  isFirst: boolean;
}>;

/** How far it is. */
export type SignItemResult =
  | Readonly<{ kind: "more" }>
  /** What belongs before the payload. */
  | Readonly<{ kind: "signed"; header: Uint8Array<ArrayBuffer> }>
  /** The disk did not give the payload: what the system said. */
  | Readonly<{ kind: "unread"; reason: string }>
  /** The thread that began is gone. */
  | Readonly<{ kind: "lost" }>;

/** Lets an item go that will not be signed. */
export type LeaveSigningJob = Readonly<{ session: string }>;
