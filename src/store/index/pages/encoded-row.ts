/**
 * Rows of pages in the form in which the tables store them: ids, keys and tags are bytes.
 *
 * A GraphQL response is written from these rows without other objects in between; every other reader takes the same
 * rows as texts (`pageRow`). Rows of one page share the objects of their owners, blocks and parents.
 * Source: docs/reference/index-layout.md#pages-of-results.
 * @module
 */
import { addressOfKey, blockHashBytes, blockHashFromBytes, idBytes, idFromBytes } from "../../../arweave/id.ts";
import { decodeBase64url, encodeBase64url } from "../../../lib/base64url.ts";
import type { PageBlock, PageRow } from "../index-types.ts";
import { placeHigh, placeLow, placeOfRow, stepBytes } from "../place.ts";
import { addressFromBytes, storedText, targetBytes, textOfStored } from "../rows/stored-row.ts";
import { decodeTagBlob, encodeTagBlob } from "../rows/tag-blob.ts";
import type { EncodedBlock, EncodedOwner, EncodedRow } from "./encoded-types.ts";

/** Writes rows as texts; texts of the owners and blocks that they share are made once. */
export function pageRows(rows: readonly EncodedRow[]): PageRow[] {
  const keys = new Map<EncodedOwner, string>();
  const blocks = new Map<EncodedBlock, PageBlock>();
  return rows.map((row) => pageRow(row, keys, blocks));
}

function pageRow(
  { stored, owner, block, parentId, amounts }: EncodedRow,
  keys: Map<EncodedOwner, string>,
  blocks: Map<EncodedBlock, PageBlock>,
): PageRow {
  return {
    kind: stored.sig < 0 ? "transaction" : "item",
    place: placeOfRow(stored),
    id: idFromBytes(stored.id),
    ownerAddress: addressFromBytes(owner.address),
    ownerKey: known(keys, owner, ({ key }) => (key === null ? "" : encodeBase64url(key))),
    target: stored.target === null ? "" : addressOfKey(stored.target),
    anchor: textOfStored(stored.anchor),
    signatureType: stored.sig,
    size: stored.size,
    headerSize: stored.head,
    tags: stored.tags === null ? [] : decodeTagBlob(stored.tags),
    quantity: BigInt(amounts?.quantity ?? 0),
    reward: BigInt(amounts?.reward ?? 0),
    format: amounts?.format ?? 2,
    parentId: parentId === undefined ? undefined : idFromBytes(parentId),
    block: block === undefined ? undefined : known(blocks, block, pageBlock),
    ingestedAt: stored.ingested,
  };
}

function pageBlock({ height, hash, timestamp, previous }: EncodedBlock): PageBlock {
  return {
    height,
    hash: blockHashFromBytes(hash),
    timestamp,
    previous: previous === null ? "" : blockHashFromBytes(previous),
  };
}

/** The reverse of `pageRows`, for rows of other stores. */
export function encodedRow(row: PageRow): EncodedRow {
  const { place, block, ownerKey, parentId } = row;
  return {
    stored: {
      high: placeHigh(place),
      low: placeLow(place),
      fine: place.offset === -1 ? 0 : place.offset % stepBytes,
      id: idBytes(row.id),
      target: row.target === "" ? null : targetBytes(row.target),
      anchor: storedText(row.anchor),
      head: row.headerSize,
      size: row.size,
      sig: row.signatureType,
      parent: null,
      ingested: row.ingestedAt,
      tags: encodeTagBlob(row.tags),
    },
    owner: { address: idBytes(row.ownerAddress), key: decodeBase64url(ownerKey) ?? null },
    block: block === undefined ? undefined : encodedBlock(block),
    parentId: parentId === undefined ? undefined : idBytes(parentId),
    amounts: { quantity: String(row.quantity), reward: String(row.reward), format: row.format },
  };
}

export function encodedBlock({ height, hash, timestamp, previous }: PageBlock): EncodedBlock {
  return {
    height,
    hash: blockHashBytes(hash),
    timestamp,
    previous: previous === "" ? null : blockHashBytes(previous),
  };
}

function known<Key, Value>(values: Map<Key, Value>, key: Key, make: (key: Key) => Value): Value {
  const before = values.get(key);
  if (before !== undefined) return before;
  const made = make(key);
  values.set(key, made);
  return made;
}
