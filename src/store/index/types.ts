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

/** A transaction's JSON. With `dataAt`, the `data` value was cut out there and is in the content cache (headers.ts). */
export type TransactionText = Readonly<{ text: string; dataAt: number | null }>;

/** A block's JSON, and which of its fields were verified. */
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
  /** SHA-256 of the payload; absent for a nested bundle that the index filter excluded. */
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

/** Counts of the debug record (docs/reference/gateway.md#debug). Absent times and heights are null. */
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
  /** Entries that passed the index filter. */
  matchedItems: number;
  stable: HeightCounts;
  recent: HeightCounts;
}>;

/** Counts of one range of heights. */
export type HeightCounts = Readonly<{
  blocks: number;
  /** Ids in the blocks' `txs`. */
  blockTransactions: number;
  transactions: number;
  items: number;
  minHeight: number | null;
  maxHeight: number | null;
  minItemHeight: number | null;
  maxItemHeight: number | null;
}>;

/** Latest times, Unix seconds; null for an event that never happened. */
export type IndexTimes = Readonly<{
  bundleQueuedAt: number | null;
  bundleSkippedAt: number | null;
  bundleUnbundledAt: number | null;
  bundleFullyIndexedAt: number | null;
  recentItemIndexedAt: number | null;
  stableItemIndexedAt: number | null;
}>;

/** The reader. All calls are synchronous. */
export type IndexReader = Readonly<{
  /** Undefined before the first followed block. */
  tip: () => Tip | undefined;
  /** By height or hash. */
  block: (block: number | BlockHash) => PageBlock | undefined;
  blockText: (block: number | BlockHash) => BlockText | undefined;
  /** At most `limit` blocks, and whether more follow. */
  blocks: (plan: BlocksPlan) => Readonly<{ rows: readonly PageBlock[]; hasNextPage: boolean }>;
  /** Blocks with data items, in order; heights inclusive, at most `limit`. */
  heightsWithItems: (
    first: number,
    last: number,
    limit: number,
  ) => readonly Readonly<{ height: number; itemCount: number }>[];
  /** Undefined unless the transaction is in a followed block. */
  transactionStatus: (id: Id) => Readonly<{ height: number; hash: BlockHash; confirmations: number }> | undefined;
  transactionText: (id: Id) => TransactionText | undefined;
  /** The signature of an item in no block; undefined when unknown. */
  pendingSignature: (place: Place) => Uint8Array | undefined;
  /** Undefined for an id that the index does not have. */
  locate: (id: Id) => Located | undefined;
  placeOf: (id: Id) => Place | undefined;
  /** The canonical place first, then the other places in order. */
  placesOf: (id: Id) => readonly Place[];
  /** One row with all columns. */
  row: (id: Id) => PageRow | undefined;
  /** At most `limit` rows in place order, and whether more follow. */
  page: (plan: PagePlan) => Page;
  /** Counts the rows of a plan, ignoring `limit` and `columns`; undefined when there are more than `max`. */
  count: (plan: PagePlan, max: number) => number | undefined;
  /** Runs reads that must see one state of the index. They must be short: the log grows meanwhile. */
  snapshot: <Result>(work: () => Result) => Result;
  /**
   * Items of every nesting level that overlap `[start, end)` of a root's data, in place order; at most `limit`.
   * Includes items whose canonical place is elsewhere.
   */
  itemsWithin: (root: Place, start: number, end: number, limit: number) => readonly ItemSpan[];
  /** The transaction whose data includes the absolute weave offset. */
  transactionAt: (weaveOffset: bigint) => WeaveSpan | undefined;
  /** The span of a transaction's data in the weave; undefined when unknown or empty. */
  weaveSpan: (id: Id) => WeaveSpan | undefined;
  /** The transactions of a block with data in the weave, in weave order. */
  transactionsOfBlock: (
    height: number,
  ) => readonly Pick<TransactionRow, "id" | "txIndex" | "format" | "dataSize" | "dataRoot">[];
  /** Missing transactions that are due, oldest attempt first. */
  dueMissing: (nowMs: number, limit: number) => readonly MissingRow[];
  bundleStatus: (id: Id) => BundleStatus | undefined;
  /** An id as a bundle for the queue, even when it is not a bundle; undefined for an id in no block. */
  bundleRow: (id: Id) => BundleRow | undefined;
  /** Entries of a bundle that are not valid items, in order; at most `limit`. */
  invalidItems: (id: Id, limit: number) => readonly InvalidItem[];
  /** Entries that were read of all bundles at or within a root's place since the root was last queued. */
  entriesUnder: (root: Place) => number;
  /** Passes over the bundles that are in progress. */
  bundlePasses: () => readonly BundlePass[];
  /** When the next bundle is due, Unix milliseconds; undefined when the queue is empty. */
  nextBundleAt: () => number | undefined;
  counts: () => IndexCounts;
  times: () => IndexTimes;
  /** Descriptions of damage; empty when the file is intact. Reads the complete file. */
  integrity: () => readonly string[];
  close: () => void;
}>;
