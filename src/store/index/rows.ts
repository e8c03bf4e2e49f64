/**
 * The rows of the index: the types of writes, of queries, and of results.
 *
 * All of these are plain values that cross threads by structured clone.
 * @module
 */
import type { Address, BlockHash, Id } from "../../arweave/id.ts";
import type { Tag } from "../../arweave/tags.ts";
import type { Place } from "./place.ts";

/** A verified data item of a bundle. Its payload begins at `place.offset + headerSize` of the root's data. */
export type ItemRow = Readonly<{
  place: Place;
  id: Id;
  /** Byte of the parent item's header in the root's data; null: the item is directly in the transaction. */
  parentOffset: number | null;
  signatureType: number;
  /** The public key as the header carries it. */
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
  /** SHA-256 of the payload. */
  digest: Uint8Array;
}>;

/** A verified transaction of a block. A `Transaction` of arweave/transaction.ts with its position added is one. */
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
  /** The JSON as the node wrote it; with `dataAt` present, its `data` value has been cut out (headers.ts `cutData`). */
  text: string;
  /** Index in `text` at which the `data` value was; null: nothing was cut. Absent: the writer cuts. */
  dataAt?: number | null;
}>;

/** A block, with what was checked of it. */
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
  /** The JSON as the node wrote it. */
  text: string;
  checked: readonly string[];
  unchecked: readonly string[];
}>;

/** A transaction that a block names and that no source would give yet. */
export type MissingRow = Readonly<{ place: Place; id: Id; attempts: number }>;

/** The places of one block's transactions in the weave; half-open, absolute. */
export type WeaveLayout = readonly Readonly<{ txIndex: number; start: bigint; end: bigint }>[];

/** A bundle to be queued: a transaction, or an item that is a bundle itself. */
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
  /** Whether both filters are skipped for it and what it contains. */
  bypassFilter: boolean;
}>;

/** One block with everything that is written in the same database transaction. */
export type BlockRows = Readonly<{
  block: BlockRow;
  transactions: readonly TransactionRow[];
  missing: readonly Readonly<{ txIndex: number; id: Id }>[];
  bundles: readonly BundleRow[];
}>;

/**
 * Which bundle a step is about. With `id`, a step does nothing when another bundle is at that place by now
 * (a reorganisation came between). With `bypassFilter: false`, an outcome is dropped and the bundle queued again when
 * its filters were bypassed meanwhile.
 */
export type BundleRef = Place & Readonly<{ id?: Id; bypassFilter?: boolean }>;

/** An entry of a bundle that is no valid item; its siblings are. */
export type InvalidItem = Readonly<{
  /** Number of the entry in the bundle, 0-based. */
  entry: number;
  /** Byte of the root's data where the item begins. */
  offset: number;
  id: Id;
  reason: string;
}>;

/** Rows as another thread serialised them with `bun:jsc`. */
export type SerialisedRows = ArrayBufferLike;

/** A bundle taken from the queue, to be worked on. */
export type BundleJob = BundleRow &
  Readonly<{
    rootId: Id;
    /** The first entry whose row is not in the index yet: a crash repeats at most one batch. */
    nextEntry: number;
    /** Times it was taken before. */
    attempts: number;
    /** Items of this bundle that are in the index already, from the batches before `nextEntry`. */
    matchedCount: number;
  }>;

/** The bundle status record of the specification; times are Unix seconds, absent values null. */
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

/** A row that is in no block yet: a transaction of the mempool, or an item that was uploaded or announced. */
export type PendingRow = Readonly<{
  kind: "transaction" | "item";
  id: Id;
  /** For a transaction: -1 (RSA) or -2 (ECDSA) as `transactionSignatureTypes` has it. */
  signatureType: number;
  owner: Uint8Array;
  ownerAddress: Address;
  target: string;
  anchor: string;
  tags: readonly Tag[];
  headerSize: number;
  size: number;
  digest: Uint8Array | null;
  /** Whether this process checked its signature over the whole payload (announced rows: false). */
  verified: boolean;
  /** Of an item, where it is known; a transaction has it in its text. */
  signature?: Uint8Array;
  /** Present for a transaction only. */
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
  /** Whether this process checked the signature: of an item over its payload, of a transaction over its header. */
  verified: boolean;
  /** Whether its height is at most the tip's minus `stableDepth`. */
  stable: boolean;
  /** Whether it is in no block yet. */
  pending: boolean;
  /** Format of the root transaction; absent when the root is not known. */
  rootFormat?: 1 | 2;
  /** Data root of the root transaction, base64url; "" when it has none. */
  dataRoot: string;
  /** Bytes of the root transaction's data. */
  rootSize: number;
  /** Absolute weave offset of the root's first byte. */
  weaveStart?: bigint;
  parentId?: Id;
}>;

/** A tag filter: EQ: some tag has this name and one of the values; NEQ: no tag has. */
export type TagPlan = Readonly<{ name: string; values: readonly string[]; op: "EQ" | "NEQ" }>;

/** Bounds, both inclusive. */
export type Bounds = Readonly<{ min?: number; max?: number }>;

/** Which of the costlier columns of a page are read; the others are left at their empty values. */
export type PageColumns = Readonly<{
  tags: boolean;
  ownerKey: boolean;
  parent: boolean;
  block: boolean;
}>;

/**
 * What a page of rows must satisfy: all of the filters; within one filter, any of its values.
 * An empty list is no filter, but a tag filter without values is met by every row (NEQ) or none (EQ).
 */
export type PagePlan = Readonly<{
  ids?: readonly Id[];
  owners?: readonly Address[];
  recipients?: readonly string[];
  tags?: readonly TagPlan[];
  /** Rows directly in one of these; null: transactions only. */
  bundledIn?: readonly Id[] | null;
  /** Heights. Any bound leaves pending rows out. */
  block?: Bounds;
  /** Unix seconds at which the row was indexed. */
  ingestedAt?: Bounds;
  order: "asc" | "desc";
  /** Rows strictly after this place in the order. */
  after?: Place;
  /** Rows wanted, 1 or more. */
  limit: number;
  columns: PageColumns;
  /** Called between steps of a long query; throws to end it (deadline, abort). */
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
  /** base64url; "" unless asked for, or unknown. */
  ownerKey: string;
  target: string;
  anchor: string;
  signatureType: number;
  size: number;
  headerSize: number;
  /** Empty unless asked for. */
  tags: readonly Tag[];
  quantity: bigint;
  reward: bigint;
  /** 1 or 2; 2 for an item. */
  format: number;
  /** Directly containing bundle; undefined for a transaction, or unless asked for. */
  parentId: Id | undefined;
  /** Undefined while pending, or unless asked for. */
  block: PageBlock | undefined;
  /** Unix seconds. */
  ingestedAt: number;
}>;

/** A page: at most `limit` rows, and whether there is one more after them. */
export type Page = Readonly<{ rows: readonly PageRow[]; hasNextPage: boolean }>;

/** How many blocks deep a row is taken to be final. */
export const stableDepth = 18;

/** Signature types of transactions; data items have positive ones (arweave/signature.ts). */
export const transactionSignatureTypes = { rsa: -1, ecdsa: -2 } as const;

/** Canonical texts of the filters in force (arweave/filter.ts `canonical`). */
export type BundleFilters = Readonly<{ unbundleFilter: string; indexFilter: string }>;

/** What was checked of a block, and what could not be. */
export type BlockChecks = Readonly<{ checked: readonly string[]; unchecked: readonly string[] }>;
