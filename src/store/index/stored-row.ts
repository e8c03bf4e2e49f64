/**
 * One row of `items` on its way into the database, made from a transaction, a data item or a pending row.
 * @module
 */
import type { SQLQueryBindings } from "bun:sqlite";
import { type Address, addressKey, type Id, isAddress, isOwnerAddress } from "../../arweave/id.ts";
import type { Tag } from "../../arweave/tags.ts";
import { assert } from "../../lib/assert.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import type { FilterKeys } from "./filter-key.ts";
import { isPlace, type Place, placeHigh, placeLow } from "./place.ts";
import { type ItemRow, type PendingRow, type TransactionRow, transactionSignatureTypes } from "./rows.ts";

/** A row as the tables have it, with the texts from which its keys are made. */
export type StoredRow = Readonly<{
  /** Upper 32 and lower 31 bits of the place. */
  high: number;
  low: number;
  /** The exact byte is low × 64 + fine. */
  fine: number;
  idText: Id;
  id: Uint8Array;
  ownerAddress: Address;
  /** The address, 32 bytes. */
  owner: Uint8Array;
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

/** Columns of `items` and `duplicates`, in the order in which they are written. */
export const rowColumns =
  "n, fine, id, owner, target, anchor, head, size, sig, parent, tags, digest, ingested, trusted";

/** A data item as it is stored. */
export function storedItem(row: ItemRow): StoredRow {
  assert(isPlace(row.place) && row.place.offset >= 0, "an item is within the bounds of a place");
  assert(row.digest.length === 32, "a digest has 32 bytes");
  return {
    ...halves(row.place),
    ...names(row),
    ownerKey: row.owner,
    anchor: storedText(row.anchor),
    head: row.headerSize,
    size: row.size,
    sig: row.signatureType,
    parent: row.parentOffset,
    digest: row.digest,
    trusted: 0,
  };
}

/** A transaction as it is stored. */
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
    trusted: 0,
  };
}

/** A pending row as it is stored. */
export function storedPending(place: Place, row: PendingRow): StoredRow {
  return {
    ...halves(place),
    ...names(row),
    ownerKey: row.owner,
    anchor: storedText(row.anchor),
    head: row.headerSize,
    size: row.size,
    sig: row.signatureType,
    parent: null,
    digest: row.digest,
    trusted: row.verified ? 0 : 1,
  };
}

/** The keys by which filters other than the id find a row. A tag that occurs twice gives its key twice. */
export function filterKeysOfRow(keys: FilterKeys, row: KeyedRow): number[] {
  const found = [keys.owner(row.owner)];
  if (row.target !== null) found.push(keys.recipient(row.target));
  for (const { name, value } of row.tags) found.push(keys.tag(name, value));
  return found;
}

/** What keys are made of. */
export type KeyedRow = Readonly<{
  id: Uint8Array;
  /** The owner's address, 32 bytes. */
  owner: Uint8Array;
  target: Uint8Array | null;
  /** Signature type; negative for a transaction. */
  sig: number;
  tags: readonly Tag[];
}>;

/** The values of `rowColumns` but for `n`, which is bound as its two halves. */
export function rowValues(row: StoredRow, owner: number, tagBlob: Uint8Array, ingested: number): SQLQueryBindings[] {
  return [
    row.high,
    row.low,
    row.fine,
    row.id,
    owner,
    row.target,
    row.anchor,
    row.head,
    row.size,
    row.sig,
    row.parent,
    tagBlob,
    row.digest,
    ingested,
    row.trusted,
  ];
}

/** Bytes that differ for any two targets; `addressOfKey` gives the text again. */
function targetBytes(target: string): Uint8Array {
  const bytes = isAddress(target) ? addressKey(target) : decodeBase64url(target);
  assert(bytes !== undefined, "a target that is not an address is canonical base64url");
  return bytes;
}

/** Bytes where the text is the canonical base64url of some, else the text; null for "". */
export function storedText(text: string): string | Uint8Array | null {
  return text === "" ? null : (decodeBase64url(text) ?? text);
}

/** The text that `storedText` or a BLOB column keeps. */
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

/** The bytes of a name that is canonical by its type: checking it again costs as much as reading it. */
function bytesOf(name: Id | Address): Uint8Array {
  const bytes = Buffer.from(name, "base64url");
  assert(bytes.length === 32, "an id or an address has 32 bytes");
  return bytes;
}

function names(
  row: Readonly<{ id: Id; ownerAddress: Address; target: string; tags: readonly Tag[] }>,
): Pick<StoredRow, "idText" | "id" | "ownerAddress" | "owner" | "target" | "tags"> {
  const target = row.target === "" ? null : targetBytes(row.target);
  const { ownerAddress, tags } = row;
  return {
    idText: row.id,
    id: bytesOf(row.id),
    ownerAddress,
    owner: bytesOf(ownerAddress),
    target,
    tags,
  };
}
