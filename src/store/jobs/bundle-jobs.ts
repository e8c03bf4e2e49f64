/**
 * What crosses between the main thread and those that make bundles: jobs and their answers.
 *
 * What the system says of a file is an answer, because an error crosses threads without its code.
 * @module
 */
import type { MessagePort } from "node:worker_threads";
import type { PendingRow } from "../index/rows.ts";

/** An item of a bundle, and where its bytes lie. */
export type BundleItem = Readonly<{
  id: string;
  /** Below the folder of uploads. */
  file: string;
  offset: number;
  size: number;
  headerSize: number;
  /** SHA-256 of the payload, base64url: ten thousand texts cross in a quarter of the time of as many arrays. */
  digest: string;
}>;

/** Files could not be read for a reason that says nothing of their bytes: it is to be tried again. */
export type FilesFault = Readonly<{ kind: "trouble"; reason: string }>;

/** A bundle whose items are chosen, to be laid out: each is read once, compared, and hashed. */
export type LayBundleJob = Readonly<{ folder: string; bundleId: string; items: readonly BundleItem[] }>;

/** What became of it. */
export type LayBundleResult =
  | LaidBundle
  /** Items whose bytes are not what they were; the others are well. */
  | Readonly<{ kind: "poisoned"; items: readonly Readonly<{ id: string; reason: string }>[] }>
  | FilesFault;

/** A bundle that is laid out: its layout is on the disk. */
export type LaidBundle = Readonly<{
  kind: "laid";
  /** base64url. */
  dataRoot: string;
  /** Of the transaction's data. Bytes. */
  dataSize: number;
}>;

/** What the transaction of a bundle says. */
export type SignBundleJob = Readonly<{
  walletFile: string;
  /** base64url. */
  anchor: string;
  /** Winston. */
  reward: bigint;
  tags: readonly Readonly<{ name: string; value: string }>[];
  /** base64url. */
  dataRoot: string;
  dataSize: number;
}>;

/** A signed transaction, and its JSON without data. */
export type SignBundleResult = Readonly<{ transactionId: string; text: string }>;

/** A run of chunks of a bundle that is laid out. */
export type BundleChunksJob = Readonly<{
  folder: string;
  bundleId: string;
  /** Of its transaction, base64url. */
  dataRoot: string;
  /** Of the chunks that are posted: the empty one at the end is not. */
  first: number;
  count: number;
  /** Takes the chunks as nodes take them, JSON (threads/parcel.ts). */
  port: MessagePort;
}>;

/** What became of them. */
export type BundleChunksResult =
  | Readonly<{ kind: "chunks" }>
  /** No layout of this data root is there: the bundle is to be laid out again. */
  | Readonly<{ kind: "unlaid" }>
  | FilesFault;

/** Items of which the index has not heard, to be read and verified once more. */
export type ReadItemsJob = Readonly<{ folder: string; items: readonly BundleItem[] }>;

/** Rows of those that could be read and are what they were. */
export type ReadItemsResult = Readonly<{ rows: readonly PendingRow[] }>;
