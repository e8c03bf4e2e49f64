/**
 * The types of rows in the form in which the tables store them (encoded-row.ts).
 * @module
 */

/** The columns of a row in `items`. */
export type StoredColumns = Readonly<{
  /** Upper 32 and lower 31 bits of the place; the exact byte is low × 64 + fine. */
  high: number;
  low: number;
  fine: number;
  id: Uint8Array;
  target: Uint8Array | null;
  anchor: string | Uint8Array | null;
  head: number;
  size: number;
  /** Signature type; negative for a transaction. */
  sig: number;
  /** Offset of the parent's header; null: the transaction itself. */
  parent: number | null;
  /** Unix seconds. */
  ingested: number;
  /** tag-blob.ts; null when not selected. */
  tags: Uint8Array | null;
}>;

export type EncodedOwner = Readonly<{
  address: Uint8Array;
  /** Null when not selected; empty when unknown. */
  key: Uint8Array | null;
}>;

export type EncodedBlock = Readonly<{
  height: number;
  hash: Uint8Array;
  previous: Uint8Array | null;
  timestamp: number;
}>;

/** What only transactions have. */
export type EncodedAmounts = Readonly<{ quantity: string; reward: string; format: number }>;

/** One row of a page. Columns that were not selected are null or undefined. */
export type EncodedRow = Readonly<{
  stored: StoredColumns;
  owner: EncodedOwner;
  block: EncodedBlock | undefined;
  /** The id of the directly containing bundle. */
  parentId: Uint8Array | undefined;
  amounts: EncodedAmounts | undefined;
}>;

/** A page: at most `limit` rows, and whether more rows follow. */
export type EncodedPage = Readonly<{ rows: readonly EncodedRow[]; hasNextPage: boolean }>;
