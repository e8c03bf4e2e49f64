/**
 * What crosses between the main thread and those that take data items in: jobs and their answers.
 * @module
 */
import type { Signing } from "../../arweave/signing.ts";
import type { PendingRow } from "../index/rows.ts";

/** Where an item was written. */
export type WrittenItem = Readonly<{
  /** Below the folder of uploads. */
  file: string;
  /** The byte of the file at which the item begins. */
  offset: number;
  /** Of the whole item. Bytes. */
  size: number;
  /** The item as the index has items that are in no block; its signature was checked. */
  row: PendingRow;
  signing: Signing;
}>;

/** Why an item was not taken; the reason is for people. */
export type NotTaken =
  /** It is no data item. One lower-case sentence. */
  | Readonly<{ kind: "invalid"; reason: string }>
  /** The disk did not take it: the name of the system's error, and what it said. */
  | Readonly<{ kind: "unwritten"; code: string; reason: string }>
  /** The thread that had its first bytes is gone. */
  | Readonly<{ kind: "lost"; reason: string }>;

/** What became of an item. */
export type IntakeResult = Readonly<{ kind: "written"; item: WrittenItem }> | NotTaken;

/** Whole items, small ones. */
export type TakeItemsJob = Readonly<{ folder: string; items: readonly Uint8Array[] }>;

/** Begins an item that comes in pieces. */
export type BeginItemJob = Readonly<{
  folder: string;
  /** Names the item among all that ever came, and its file. */
  session: string;
  /** Of the whole item, where it is known. Bytes. */
  size: number | undefined;
}>;

/** The next bytes of an item that was begun; they do not change until it is answered. */
export type FeedItemJob = Readonly<{ session: string; pieces: readonly Uint8Array[] }>;

/** The next bytes of a payload whose SHA-256 is computed beside the rest. */
export type DigestItemJob = FeedItemJob &
  Readonly<{
    /** Where they begin in the payload; 0 begins the digest. */
    start: number;
  }>;

/** Ends a digest, or leaves it. */
export type EndDigestJob = Readonly<{ session: string }>;

/** The SHA-256 of all that came. */
export type EndDigestResult = Readonly<{ kind: "digest"; digest: Uint8Array }>;

/** Goes on, or says why it need not. */
export type FeedItemResult = Readonly<{ kind: "fed" }> | NotTaken;

/** Ends an item that came in pieces. */
export type FinishItemJob = Readonly<{
  session: string;
  /** SHA-256 of the payload. */
  digest: Uint8Array;
}>;

/** Lets an item go, wherever it stands. */
export type DropItemJob = Readonly<{ folder: string; session: string }>;
