/**
 * The reader of the index, and the types of its results beside rows.
 * @module
 */
import type { BlockHash, Id } from "../../arweave/id.ts";
import type { BundlePass } from "./bundle-passes.ts";
import type { Place } from "./place.ts";
import type {
  BundleRow,
  BundleStatus,
  InvalidItem,
  Located,
  MissingRow,
  Page,
  PageBlock,
  PagePlan,
  PageRow,
  TransactionRow,
} from "./rows.ts";

/** The block up to which the chain was followed. */
export type Tip = Readonly<{ height: number; hash: BlockHash; timestamp: number }>;

/** A transaction's JSON. With `dataAt`, the `data` value was cut out there and is in the extents (headers.ts). */
export type TransactionText = Readonly<{ text: string; dataAt: number | null }>;

/** A block's JSON and what was checked of it. */
export type BlockText = Readonly<{
  text: string;
  checked: readonly string[];
  unchecked: readonly string[];
}>;

/** One page of blocks in height order. */
export type BlocksPlan = Readonly<{
  hashes?: readonly BlockHash[];
  height?: Readonly<{ min?: number; max?: number }>;
  order: "asc" | "desc";
  afterHeight?: number;
  limit: number;
}>;

/** An item that overlaps a span of a root transaction's data. */
export type ItemSpan = Readonly<{
  id: Id;
  /** SHA-256 of the payload; absent for a nested bundle that the index filter left out. */
  digest?: Uint8Array;
  start: number;
  end: number;
}>;

/** The place of a transaction's data in the weave; half-open, absolute. */
export type WeaveSpan = Readonly<{
  id: Id;
  place: Place;
  start: bigint;
  end: bigint;
  format: 1 | 2;
  dataRoot: string;
}>;

/** Numbers of the debug record (docs/reference/gateway.md#debug). Absent times and heights are null. */
export type IndexCounts = Readonly<{
  owners: number;
  transactions: number;
  items: number;
  nestedItems: number;
  pendingTransactions: number;
  pendingItems: number;
  duplicates: number;
  blocks: number;
  missingTransactions: number;
  bundles: number;
  bundlesQueued: number;
  bundlesFailed: number;
  /** Entries of unbundled bundles, valid or not. */
  bundleItems: number;
  /** Of them, those that passed the index filter. */
  matchedItems: number;
  stable: HeightCounts;
  recent: HeightCounts;
}>;

/** Numbers of one range of heights. */
export type HeightCounts = Readonly<{
  blocks: number;
  /** Transactions that the blocks name. */
  blockTransactions: number;
  transactions: number;
  items: number;
  minHeight: number | null;
  maxHeight: number | null;
  minItemHeight: number | null;
  maxItemHeight: number | null;
}>;

/** Latest times, Unix seconds; null when it never happened. */
export type IndexTimes = Readonly<{
  bundleQueuedAt: number | null;
  bundleSkippedAt: number | null;
  bundleUnbundledAt: number | null;
  bundleFullyIndexedAt: number | null;
  recentItemIndexedAt: number | null;
  stableItemIndexedAt: number | null;
}>;

/** The reader. */
export type IndexReader = Readonly<{
  /** Undefined while nothing was followed. */
  tip: () => Tip | undefined;
  /** By height or hash. */
  block: (block: number | BlockHash) => PageBlock | undefined;
  blockText: (block: number | BlockHash) => BlockText | undefined;
  /** Blocks, with one row of look-ahead. */
  blocks: (plan: BlocksPlan) => Readonly<{ rows: readonly PageBlock[]; hasNextPage: boolean }>;
  /** Blocks that hold data items, in order; heights inclusive, at most `limit`. */
  heightsWithItems: (
    first: number,
    last: number,
    limit: number,
  ) => readonly Readonly<{ height: number; itemCount: number }>[];
  /** Height, block hash and number of confirmations are those of a transaction in a followed block. */
  transactionStatus: (id: Id) => Readonly<{ height: number; hash: BlockHash; confirmations: number }> | undefined;
  transactionText: (id: Id) => TransactionText | undefined;
  /** The signature of the item at a place in no block; undefined where it is not known. */
  pendingSignature: (place: Place) => Uint8Array | undefined;
  /** Undefined for an id that the index does not have. */
  locate: (id: Id) => Located | undefined;
  placeOf: (id: Id) => Place | undefined;
  /** The canonical place first, then the others in order. */
  placesOf: (id: Id) => readonly Place[];
  /** One row with all its columns. */
  row: (id: Id) => PageRow | undefined;
  /** Rows by place, with one row of look-ahead. */
  page: (plan: PagePlan) => Page;
  /** Counts the rows of a plan (`limit` and `columns` aside); undefined when there are more than `max`. */
  count: (plan: PagePlan, max: number) => number | undefined;
  /** Runs calls of this reader that must see one state of the index. Short ones: the log grows while it lasts. */
  snapshot: <Result>(work: () => Result) => Result;
  /**
   * Items of every nesting level that overlap `[start, end)` of a root's data, in place order, also those whose
   * canonical place is elsewhere; at most `limit`.
   */
  itemsWithin: (root: Place, start: number, end: number, limit: number) => readonly ItemSpan[];
  /** The transaction whose data holds the absolute weave byte. */
  transactionAt: (weaveOffset: bigint) => WeaveSpan | undefined;
  /** The span of a transaction's data in the weave; undefined when unknown or empty. */
  weaveSpan: (id: Id) => WeaveSpan | undefined;
  /** The span of a block in the weave, and the transactions with data there, in weave order. */
  transactionsOfBlock: (
    height: number,
  ) => readonly Pick<TransactionRow, "id" | "txIndex" | "format" | "dataSize" | "dataRoot">[];
  /** Missing transactions that are due, oldest attempt first. */
  dueMissing: (nowMs: number, limit: number) => readonly MissingRow[];
  bundleStatus: (id: Id) => BundleStatus | undefined;
  /** An id as the queue of bundles would have it, whether or not it is one; undefined for what is in no block. */
  bundleRow: (id: Id) => BundleRow | undefined;
  /** Entries of a bundle that are no valid items, in order; at most `limit`. */
  invalidItems: (id: Id, limit: number) => readonly InvalidItem[];
  /**
   * Entries that were read of the bundles at a root's place and within it, on every level, since the root was queued
   * last.
   */
  entriesUnder: (root: Place) => number;
  /** Passes over the bundles that are under way. */
  bundlePasses: () => readonly BundlePass[];
  /** When the next bundle is due. Unix milliseconds; undefined when none is queued. */
  nextBundleAt: () => number | undefined;
  counts: () => IndexCounts;
  times: () => IndexTimes;
  /** Texts of what is wrong with the file; empty when it is whole. Reads all of it. */
  integrity: () => readonly string[];
  close: () => void;
}>;
