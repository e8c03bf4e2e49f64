/**
 * The types of the index: rows, queries, results, and the reader.
 *
 * All but the reader are plain values, which cross threads by structured clone.
 * @module
 */
import type { Address, BlockHash, Id } from "../../arweave/id.ts";
import type { Tag } from "../../arweave/tags.ts";
import type { JournalReads } from "./journal/journal.ts";
import type { EncodedPage, EncodedRow } from "./pages/encoded-types.ts";
import type { Place } from "./place.ts";
import type { StoredPartitionReads } from "./stored-partitions.ts";

/** The fields that items in blocks and pending rows have in common. */
type SignedRow = Readonly<{
  id: Id;
  /** For a transaction a negative number of `transactionSignatureTypes`. */
  signatureType: number;
  /** The public key, as in the header. */
  owner: Uint8Array;
  ownerAddress: Address;
  /** 43 characters, or "" for none. */
  target: string;
  /** "" for none. */
  anchor: string;
  tags: readonly Tag[];
  /** Bytes from the item's first byte to its payload. */
  headerSize: number;
  /** Bytes of payload. */
  size: number;
}>;

/** A verified data item of a bundle. Its payload begins at `place.offset + headerSize` of the root's data. */
export type ItemRow = SignedRow &
  Readonly<{
    place: Place;
    /** Offset of the parent item's header in the root's data; null: the item is directly in the transaction. */
    parentOffset: number | null;
    /** SHA-256 of the payload. */
    digest: Uint8Array;
  }>;

/** A data item that another gateway verified: this process has not, and does not know the digest of its payload. */
export type ImportedItemRow = Omit<ItemRow, "digest">;

/** A verified transaction of a block: a `Transaction` of arweave/transaction.ts with its position. */
export type TransactionRow = Readonly<{
  /** Position in the block's `txs` array. */
  txIndex: number;
  /** Absolute weave offsets of its data, half-open; absent where the layout is unknown or there is no data. */
  weaveStart?: bigint;
  weaveEnd?: bigint;
  format: 1 | 2;
  id: Id;
  lastTx: string;
  /** The public key, base64url. */
  owner: string;
  ownerAddress: Address;
  signatureType: "rsa" | "ecdsa";
  tags: readonly Tag[];
  target: string;
  quantity: bigint;
  reward: bigint;
  dataSize: number;
  /** base64url, or "" for none. */
  dataRoot: string;
  /**
   * The node's JSON; with `dataAt` present, its `data` value has been cut out (header-texts.ts `cutData`). "" for a
   * transaction that only another gateway verified.
   */
  text: string;
  /** Index in `text` at which the `data` value was; null: nothing was cut. Absent: the writer cuts the data. */
  dataAt?: number | null;
}>;

/** A block, and which of its fields were verified. */
export type BlockRow = Readonly<{
  height: number;
  hash: BlockHash;
  /** "" for the first block. */
  previous: BlockHash | "";
  /** Unix seconds. */
  timestamp: number;
  /** Number of ids in `txs`. */
  txCount: number;
  weaveSize: bigint;
  blockSize: bigint;
  /** The node's JSON; "" when unknown. */
  text: string;
  checked: readonly string[];
  unchecked: readonly string[];
}>;

/** A transaction that a block names and that no source has returned yet. */
export type MissingRow = Readonly<{ place: Place; id: Id; attempts: number }>;

/** The places of one block's transactions in the weave; half-open, absolute. */
export type WeaveLayout = readonly Readonly<{ txIndex: number; start: bigint; end: bigint }>[];

/** A bundle for the queue: a transaction, or a data item that is a bundle. */
export type BundleRow = Readonly<{
  id: Id;
  place: Place;
  /** As in ItemRow; null for a transaction. */
  parentOffset: number | null;
  /** Bytes from the header's first byte to the payload; 0 for a transaction. */
  headerSize: number;
  /** Bytes of payload. */
  size: number;
  /** 0 for a transaction, 1 for a bundle within it, and so on. */
  depth: number;
  /** Whether both filters are skipped for the bundle and its contents. */
  bypassFilter: boolean;
}>;

/** A block and all rows that are written in the same database transaction. */
export type BlockRows = Readonly<{
  block: BlockRow;
  transactions: readonly TransactionRow[];
  missing: readonly Readonly<{ txIndex: number; id: Id }>[];
  bundles: readonly BundleRow[];
}>;

/**
 * Identifies the bundle of a step. With `id`, the step is ignored when another bundle is at that place after a
 * reorganization. With `bypassFilter: false`, the outcome is dropped and the bundle queued again when a request
 * bypassed its filters meanwhile.
 */
export type BundleRef = Place & Readonly<{ id?: Id; bypassFilter?: boolean }>;

/** An entry of a bundle that is not a valid item. Other entries may be valid. */
export type InvalidItem = Readonly<{
  /** Number of the entry in the bundle, 0-based. */
  entry: number;
  /** Offset of the item in the root's data. */
  offset: number;
  id: Id;
  reason: string;
}>;

/** A page of the invalid entries of a bundle. */
export type InvalidItemPage = Readonly<{
  /** Entries of the bundle; null until all of them were read. */
  itemCount: number | null;
  /** Invalid ones; null until all entries were read, and for a bundle that an earlier release unbundled. */
  invalidCount: number | null;
  /** In order. Of very many, only the first ones are stored. */
  items: readonly InvalidItem[];
}>;

/** Rows that another thread serialized with `bun:jsc`. */
export type SerializedRows = ArrayBufferLike;

/** A bundle that was taken from the queue. */
export type BundleJob = BundleRow &
  Readonly<{
    rootId: Id;
    /** The first entry whose row is not in the index yet. A crash repeats at most one batch. */
    nextEntry: number;
    /** Earlier attempts. */
    attempts: number;
    /** Indexed items of this bundle, from the batches before `nextEntry`. */
    matchedCount: number;
  }>;

/** The bundle status record of the specification. Times are Unix seconds; absent values are null. */
export type BundleStatus = Readonly<{
  id: Id;
  rootTransactionId: Id | null;
  formatId: number | null;
  unbundleFilterId: number | null;
  indexFilterId: number | null;
  previousUnbundleFilterId: number | null;
  previousIndexFilterId: number | null;
  dataItemCount: number | null;
  matchedDataItemCount: number | null;
  duplicatedDataItemCount: number | null;
  importAttemptCount: number;
  retryAttemptCount: number;
  firstQueuedAt: number | null;
  lastQueuedAt: number | null;
  firstSkippedAt: number | null;
  lastSkippedAt: number | null;
  firstUnbundledAt: number | null;
  lastUnbundledAt: number | null;
  firstFullyIndexedAt: number | null;
  lastFullyIndexedAt: number | null;
  firstRetriedAt: number | null;
  lastRetriedAt: number | null;
}>;

/** A row in no block: a transaction of the mempool, or an item that was uploaded or announced. */
export type PendingRow = SignedRow &
  Readonly<{
    kind: "transaction" | "item";
    digest: Uint8Array | null;
    /** Whether this process verified the signature over the complete payload (announced rows: false). */
    verified: boolean;
    /** An item's signature, when known; the signature of a transaction is in its text. */
    signature?: Uint8Array;
    /** Only for a transaction. */
    transaction?: Readonly<{
      format: 1 | 2;
      quantity: bigint;
      reward: bigint;
      dataRoot: string;
      text: string;
      dataAt?: number | null;
    }>;
  }>;

/** The location of an id's bytes. */
export type Located = Readonly<{
  id: Id;
  kind: "transaction" | "item";
  place: Place;
  /** The transaction whose data holds the bytes; the id itself for a transaction and for a pending item. */
  rootId: Id;
  /** Bytes of payload. */
  size: number;
  /** First byte of the payload in the root's data. */
  dataOffset: number;
  /** First byte of the item's header in the root's data; 0 for a transaction. */
  itemOffset: number;
  /** 0 for a transaction. */
  headerSize: number;
  signatureType: number;
  ownerAddress: Address;
  contentType?: string;
  contentEncoding?: string;
  /** SHA-256 of the payload, 32 bytes. */
  digest?: Uint8Array;
  /** Whether this process verified the signature: an item's over its payload, a transaction's over its header. */
  verified: boolean;
  /** Whether its height is at most the tip's height minus `stableDepth`. */
  stable: boolean;
  /** Whether it is in no block. */
  pending: boolean;
  /** Format of the root transaction; absent when the root is unknown. */
  rootFormat?: 1 | 2;
  /** Data root of the root transaction, base64url; "" when it has none. */
  dataRoot: string;
  /** Bytes of the root transaction's data. */
  rootSize: number;
  /** Absolute weave offset of the root's first byte. */
  weaveStart?: bigint;
  parentId?: Id;
  /** First byte of the payload of the bundle around an item, in the root's data; 0 in a root. */
  parentStart?: number;
}>;

/** A tag filter: EQ: some tag has this name and one of the values; NEQ: no tag has. */
export type TagPlan = Readonly<{ name: string; values: readonly string[]; op: "EQ" | "NEQ" }>;

/** Bounds, both inclusive. */
export type Bounds = Readonly<{ min?: number; max?: number }>;

/** Columns of a page that are costly to read, in the index or a columnar store; others may be empty in the rows. */
export type PageColumns = Readonly<{
  tags: boolean;
  ownerKey: boolean;
  parent: boolean;
  block: boolean;
  target: boolean;
  anchor: boolean;
  size: boolean;
  /** `signatureType` and `headerSize`. */
  signature: boolean;
  ingestedAt: boolean;
}>;

export const allColumns: PageColumns = {
  tags: true,
  ownerKey: true,
  parent: true,
  block: true,
  target: true,
  anchor: true,
  size: true,
  signature: true,
  ingestedAt: true,
};

export const noColumns: PageColumns = {
  tags: false,
  ownerKey: false,
  parent: false,
  block: false,
  target: false,
  anchor: false,
  size: false,
  signature: false,
  ingestedAt: false,
};

/**
 * Filters of a page. A row must match all filters; within one filter, any of its values.
 * An empty list is ignored, but a tag filter without values matches every row (NEQ) or no row (EQ).
 */
export type PagePlan = Readonly<{
  ids?: readonly Id[];
  owners?: readonly Address[];
  recipients?: readonly string[];
  tags?: readonly TagPlan[];
  /** Rows directly in one of these; null: transactions only. */
  bundledIn?: readonly Id[] | null;
  /** Heights. A bound excludes pending rows. */
  block?: Bounds;
  /** Unix seconds at which the row was indexed. */
  ingestedAt?: Bounds;
  order: "asc" | "desc";
  /** Selects rows strictly after this place in the order. */
  after?: Place;
  /** Maximum number of rows, 1 or more. */
  limit: number;
  columns: PageColumns;
  /** Called between the steps of a long query; throws to end the query (deadline, abort). */
  checkpoint?: () => void;
}>;

/** The block of a row. */
export type PageBlock = Readonly<{
  height: number;
  hash: BlockHash;
  timestamp: number;
  previous: BlockHash | "";
}>;

/** One row of a page. */
export type PageRow = Readonly<{
  kind: "transaction" | "item";
  place: Place;
  id: Id;
  ownerAddress: Address;
  /** base64url; "" when unknown or not selected. */
  ownerKey: string;
  target: string;
  anchor: string;
  signatureType: number;
  size: number;
  headerSize: number;
  /** Empty when not selected. */
  tags: readonly Tag[];
  quantity: bigint;
  reward: bigint;
  /** 1 or 2; 2 for an item. */
  format: number;
  /** The directly containing bundle; undefined for a transaction, or when not selected. */
  parentId: Id | undefined;
  /** Undefined for a pending row, or when not selected. */
  block: PageBlock | undefined;
  /** Unix seconds. */
  ingestedAt: number;
}>;

/** A page: at most `limit` rows, and whether more rows follow. */
export type Page = Readonly<{ rows: readonly PageRow[]; hasNextPage: boolean }>;

/** Depth in blocks from which a row counts as final. */
export const stableDepth = 18;

/** Signature types of transactions; those of data items are positive (arweave/signature.ts). */
export const transactionSignatureTypes = { rsa: -1, ecdsa: -2 } as const;

/** Canonical texts of the current filters (arweave/filter.ts `canonical`). */
export type BundleFilters = Readonly<{ unbundleFilter: string; indexFilter: string }>;

/** Verified and unverified fields of a block. */
export type BlockChecks = Readonly<{ checked: readonly string[]; unchecked: readonly string[] }>;

/** The block up to which the chain was followed. */
export type Tip = Readonly<{ height: number; hash: BlockHash; timestamp: number }>;

/** A transaction's JSON. With `dataAt`, the `data` value was cut out there (header-texts.ts). */
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
  /** Data items that only the columnar store has. */
  storedItems: number;
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

/** A pass in progress. */
export type BundlePass = Readonly<{
  reason: "filters changed" | "queued by height";
  startHeight: number;
  endHeight: number;
  /** Bundles above this height have been evaluated. */
  nextHeight: number;
  bypassFilter: boolean;
}>;

/** The block of a transaction. */
type TransactionStatus = Readonly<{ height: number; hash: BlockHash; confirmations: number }>;

/** The reader. All calls are synchronous. */
export type IndexReader = Readonly<{
  /** The file of the index, and the secret of its filter keys (filter-key.ts), for threads that encode rows. */
  path: string;
  filterSecret: Uint8Array;
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
  transactionStatus: (id: Id) => TransactionStatus | undefined;
  transactionText: (id: Id) => TransactionText | undefined;
  /** Both, by one look-up of the id; undefined unless the transaction is in a followed block and has a text. */
  transactionRecord: (id: Id) => (TransactionStatus & TransactionText) | undefined;
  /** The JSON of a block that no fork replaces; by its hash, that of any block of the index. */
  finalBlock: (block: number | BlockHash) => Uint8Array<ArrayBuffer> | undefined;
  /** The JSON of a transaction of a block that no fork replaces; undefined when its `data` value was cut out. */
  finalTransaction: (id: Id) => Uint8Array<ArrayBuffer> | undefined;
  /** The signature of an item in no block; undefined when unknown. */
  pendingSignature: (place: Place) => Uint8Array | undefined;
  /** Undefined for an id that the index does not have. */
  locate: (id: Id) => Located | undefined;
  placeOf: (id: Id) => Place | undefined;
  /** The canonical place first, then the other places in order. */
  placesOf: (id: Id) => readonly Place[];
  /** The public key of an owner, base64url; undefined for an address that signed no row. */
  ownerKey: (address: Address) => string | undefined;
  /** One row with all columns. */
  row: (id: Id) => PageRow | undefined;
  /** At most `limit` rows in place order, and whether more follow. */
  page: (plan: PagePlan) => Page;
  /** As `row` and `page`, in the form in which the tables store them. */
  encodedRow: (id: Id, columns: PageColumns) => EncodedRow | undefined;
  encodedPage: (plan: PagePlan) => EncodedPage;
  /** Counts the rows of a plan, ignoring `limit` and `columns`; undefined when there are more than `max`. */
  count: (plan: PagePlan, max: number) => number | undefined;
  /** Runs reads that must see one state of the index. They must be short: the log grows meanwhile. */
  snapshot: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /**
   * Items of every nesting level that overlap `[start, end)` of a root's data, in place order; at most `limit`.
   * Includes items whose canonical place is elsewhere.
   */
  itemsWithin: (root: Place, start: number, end: number, limit: number) => readonly ItemSpan[];
  /** Changes with each commit of the writer: a key for what was derived from the index. */
  version: () => number;
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
  /**
   * At most `limit` entries of a bundle that are not valid items; undefined when the index has no bundle with this id.
   *
   * @param from - The first entry that the page may have.
   */
  invalidItems: (id: Id, from: number, limit: number) => InvalidItemPage | undefined;
  /** Entries that were read of all bundles at or within a root's place since the root was last queued. */
  entriesUnder: (root: Place) => number;
  /** Passes over the bundles that are in progress. */
  bundlePasses: () => readonly BundlePass[];
  /** When the next bundle is due, Unix milliseconds; undefined when the queue is empty. */
  nextBundleAt: () => number | undefined;
  counts: () => IndexCounts;
  times: () => IndexTimes;
  /** The journal of changes. */
  journal: JournalReads;
  /** Partitions of the columnar store. */
  storedPartitions: StoredPartitionReads;
  /** Descriptions of damage; empty when the file is intact. Reads the complete file. */
  integrity: () => readonly string[];
  close: () => void;
}>;
