/**
 * What crosses between the main thread and those that verify and unbundle: jobs and their answers.
 *
 * Rows for the index travel serialised: the main thread hands them on to the writer's thread and never looks
 * inside.
 * @module
 */
import type { EntryPlace } from "../../arweave/bundle.ts";
import type { BlockHash, Id } from "../../arweave/id.ts";
import type { BundleRow, InvalidItem, SerialisedRows, TransactionRow } from "../index/rows.ts";

/** One batch to read. All offsets are bytes of the root's data. */
export type UnbundleJob = Readonly<{
  /** File whose byte n is byte n of the root's data, present over the bundle's whole span. */
  path: string;
  /** Where the root transaction stands, and its id. */
  root: Readonly<{ height: number; txIndex: number }>;
  rootId: Id;
  /** The bundle itself: the root transaction or an item in it. */
  bundleId: Id;
  /** The bundle's payload: its first byte, and its size. */
  start: number;
  size: number;
  /** First byte of the header of the item that is the bundle; null: the bundle is the transaction. */
  parentOffset: number | null;
  /** Nesting of the bundle: 0 for a transaction. */
  depth: number;
  /**
   * Where to begin: an entry, and where its item stands within the bundle when the caller knows (`next` of
   * the batch before).
   */
  from: Readonly<{ index: number; offset?: number }>;
  /** A batch ends after this many entries, or after the item with which this many bytes were walked. */
  entriesMax: number;
  bytesMax: number;
  /** Texts of the filters; both say yes to everything when `bypassFilter`. */
  indexFilter: string;
  unbundleFilter: string;
  bypassFilter: boolean;
}>;

/** What a batch became. */
export type UnbundleResult =
  | Readonly<{
      kind: "batch";
      /** Entries of the whole bundle, by its header. */
      count: number;
      /**
       * Verified items that the index filter chose: `bun:jsc`-serialised `ItemRow[]`, to be handed on
       * untouched.
       */
      rows: SerialisedRows;
      /** Ids of those rows, in order. */
      ids: readonly Id[];
      /** Items that are bundles themselves and that the unbundle filter chose, or that are in the index. */
      bundles: readonly BundleRow[];
      /** Of the entries of this batch, those whose item is wrong; `invalid` names the first ones. */
      invalidCount: number;
      invalid: readonly InvalidItem[];
      /** Where the next batch begins; undefined: the bundle is done. */
      next: EntryPlace | undefined;
    }>
  /** The bytes are no bundle, and never will be. */
  | Readonly<{ kind: "malformed"; reason: string }>;

/** A block with its transactions, to be verified. Texts are JSON as a node sent them. */
export type CheckBlockJob = Readonly<{
  block: string;
  /** By position in the block's `txs`; null for one that no source would give. */
  transactions: readonly (Uint8Array | null)[];
  /**
   * The block before, verified or about to be; left out of account when its hash is not the one that the
   * block names.
   */
  previous: string | undefined;
  /** Whether the chain's first block is the main network's, so that its fork heights hold. */
  isMainNet: boolean;
}>;

/** A transaction of a job that is not what it should be. */
export type FaultyTransaction = Readonly<{ txIndex: number; reason: string }>;

/** Data from a transaction's own JSON: covered by its signature (format 1), or proven by its data root (format 2). */
export type CarriedData = Readonly<{ id: Id; bytes: Uint8Array }>;

/** What a block turned out to be. */
export type CheckBlockResult =
  | Readonly<{
      kind: "accepted";
      /** `bun:jsc`-serialised `BlockRows`, to be handed on untouched. */
      rows: SerialisedRows;
      bundleCount: number;
      checked: readonly string[];
      unchecked: readonly string[];
      data: readonly CarriedData[];
    }>
  /** The block itself is wrong. */
  | Readonly<{ kind: "refused"; reason: string }>
  /** The block was not looked at further: these must be had from elsewhere, or done without. */
  | Readonly<{ kind: "faulty"; transactions: readonly FaultyTransaction[] }>;

/** Transactions outside of a block that is verified with them: once missing, or pending. */
export type CheckTransactionsJob = Readonly<{
  transactions: readonly Readonly<{ id: Id; text: Uint8Array }>[];
}>;

/** One transaction's outcome, in the order of the job. */
export type CheckedTransaction =
  | Readonly<{
      kind: "valid";
      row: Omit<TransactionRow, "txIndex">;
      isBundle: boolean;
      data: CarriedData | undefined;
    }>
  | Readonly<{ kind: "invalid"; reason: string }>;

/** A block that is said to name a transaction. */
export type CheckBlockNamesJob = Readonly<{
  /** JSON as a node sent it. */
  block: string;
  id: Id;
  height: number;
  hash: BlockHash;
}>;

/** A data item whole. */
export type CheckItemJob = Readonly<{ id: Id; bytes: Uint8Array }>;

/** A data item whose payload went by: its header, and the message that its signature must sign. */
export type CheckItemMessageJob = Readonly<{ header: Uint8Array; message: Uint8Array }>;

/** Whether an item's signature holds over its payload, and the payload's SHA-256. */
export type CheckedItemPayload =
  | Readonly<{ kind: "valid"; digest: Uint8Array }>
  | Readonly<{ kind: "invalid"; reason: string }>;
