/**
 * The stored form of a row of `items`, made from a transaction, a data item or a pending row.
 * @module
 */
import { type Address, addressKey, type Id, isAddress, isOwnerAddress } from "../../../arweave/id.ts";
import type { Tag } from "../../../arweave/tags.ts";
import { assert } from "../../../lib/assert.ts";
import { decodeBase64url, encodeBase64url } from "../../../lib/base64url.ts";
import type { FilterKeys } from "../filter-key.ts";
import {
  type ImportedItemRow,
  type ItemRow,
  type PendingRow,
  type TransactionRow,
  transactionSignatureTypes,
} from "../index-types.ts";
import { isPlace, type Place, placeHigh, placeLow } from "../place.ts";

/** A row as the tables store it, before its texts are encoded (row-batch.ts). */
export type StoredRow = Readonly<{
  /** Upper 32 and lower 31 bits of the place. */
  high: number;
  low: number;
  /** The exact byte is low × 64 + fine. */
  fine: number;
  id: Id;
  ownerAddress: Address;
  ownerKey: Uint8Array;
  target: Uint8Array | null;
  anchor: string | Uint8Array | null;
  head: number;
  size: number;
  sig: number;
  parent: number | null;
  tags: readonly Tag[];
  digest: Uint8Array | null;
  trusted: 0 | 1;
}>;

/** Columns of `items` and `duplicates`, in the order of their values. */
export const rowColumns =
  "n, fine, id, owner, target, anchor, head, size, sig, parent, tags, digest, ingested, trusted";

export function storedItem(row: ItemRow): StoredRow {
  assert(isPlace(row.place) && row.place.offset >= 0, "an item is within the bounds of a place");
  assert(row.digest.length === 32, "a digest has 32 bytes");
  return { ...itemColumns(row.place, row), parent: row.parentOffset, trusted: 0 };
}

export function storedImport(row: ImportedItemRow): StoredRow {
  assert(isPlace(row.place) && row.place.offset >= 0, "an item is within the bounds of a place");
  return { ...itemColumns(row.place, { ...row, digest: null }), parent: row.parentOffset, trusted: 1 };
}

/** The columns that items in blocks and pending rows have in common. */
function itemColumns(place: Place, row: Omit<PendingRow, "kind" | "verified">): Omit<StoredRow, "parent" | "trusted"> {
  return {
    ...halves(place),
    ...names(row),
    ownerKey: row.owner,
    anchor: storedText(row.anchor),
    head: row.headerSize,
    size: row.size,
    sig: row.signatureType,
    digest: row.digest,
  };
}

export function storedTransaction(height: number, row: TransactionRow): StoredRow {
  const ownerKey = decodeBase64url(row.owner);
  assert(ownerKey !== undefined, "an owner is canonical base64url");
  return {
    ...halves({ height, txIndex: row.txIndex, offset: -1 }),
    ...names(row),
    ownerKey,
    anchor: storedText(row.lastTx),
    head: 0,
    size: row.dataSize,
    sig: transactionSignatureTypes[row.signatureType],
    parent: null,
    digest: null,
    trusted: row.text === "" ? 1 : 0,
  };
}

export function storedPending(place: Place, row: PendingRow): StoredRow {
  return { ...itemColumns(place, row), parent: null, trusted: row.verified ? 0 : 1 };
}

/** The keys of all filters of a stored row except for the id. A tag that occurs twice yields its key twice. */
export function filterKeysOfRow(keys: FilterKeys, row: KeyedRow): number[] {
  const found = [keys.owner(row.owner)];
  if (row.target !== null) found.push(keys.recipient(row.target));
  for (const { name, value } of row.tags) found.push(keys.tag(name, value));
  return found;
}

/** The columns that determine a row's keys. */
export type KeyedRow = Readonly<{
  id: Uint8Array;
  /** The owner's address, 32 bytes. */
  owner: Uint8Array;
  target: Uint8Array | null;
  /** Signature type; negative for a transaction. */
  sig: number;
  tags: readonly Tag[];
}>;

/** Bytes that are unique for each target; `addressOfKey` returns the text. */
export function targetBytes(target: string): Uint8Array {
  const bytes = isAddress(target) ? addressKey(target) : decodeBase64url(target);
  assert(bytes !== undefined, "a target that is not an address is canonical base64url");
  return bytes;
}

/** The bytes of a text in canonical base64url, else the text itself; null for "". */
export function storedText(text: string): string | Uint8Array | null {
  return text === "" ? null : (decodeBase64url(text) ?? text);
}

/** The text of a column that `storedText` wrote, or of a BLOB column. */
export function textOfStored(value: string | Uint8Array | null): string {
  if (value === null) return "";
  return typeof value === "string" ? value : encodeBase64url(value);
}

/** Writes 32 bytes of a column as an address. */
export function addressFromBytes(bytes: Uint8Array): Address {
  const text = encodeBase64url(bytes);
  assert(isOwnerAddress(text), "an address has 32 bytes");
  return text;
}

function halves(place: Place): Readonly<{ high: number; low: number; fine: number }> {
  return { high: placeHigh(place), low: placeLow(place), fine: place.offset === -1 ? 0 : place.offset % 64 };
}

function names(
  row: Readonly<{ id: Id; ownerAddress: Address; target: string; tags: readonly Tag[] }>,
): Pick<StoredRow, "id" | "ownerAddress" | "target" | "tags"> {
  const { id, ownerAddress, tags } = row;
  return { id, ownerAddress, target: row.target === "" ? null : targetBytes(row.target), tags };
}
