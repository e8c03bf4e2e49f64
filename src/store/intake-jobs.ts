/**
 * What crosses between the main thread and those that take data items in: jobs and their answers.
 * @module
 */
import type { PendingRow } from "./rows.ts";

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
}>;

/** Why an item was not taken; the reason is for people. */
export type NotTaken =
  /** It is no data item. One lower-case sentence. */
  | Readonly<{ kind: "invalid"; reason: string }>
  /** The disk did not take it: what the system said. */
  | Readonly<{ kind: "unwritten"; reason: string }>;

/** What became of an item. */
export type IntakeAnswer = Readonly<{ kind: "written"; item: WrittenItem }> | NotTaken;

/** Whole items, small ones. */
export type TakeItemsJob = Readonly<{ folder: string; items: readonly Uint8Array[] }>;

/** The next bytes of an item that comes in pieces; the first piece opens it. */
export type FeedItemJob = Readonly<{
  folder: string;
  /** Names the item among those under way in this thread. */
  session: string;
  piece: Uint8Array;
  /** Size of the whole item, where it is known. */
  size: number | undefined;
}>;

/** Goes on, or says why it need not. */
export type FeedItemAnswer = Readonly<{ kind: "fed" }> | NotTaken;

/** Ends an item that came in pieces, with or without keeping it. */
export type EndItemJob = Readonly<{ session: string }>;
