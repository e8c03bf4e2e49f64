/**
 * Reads the items of a batch of rows back, as they were before they were encoded.
 * @module
 */
import { addressFromBytes, addressOfKey, idFromBytes } from "../../src/arweave/id.ts";
import type { ItemRow } from "../../src/store/index/index-types.ts";
import { transactionsPerBlockMax } from "../../src/store/index/place.ts";
import { ownerOf, type RowBatch, rowOf } from "../../src/store/index/rows/row-batch.ts";
import { textOfStored } from "../../src/store/index/rows/stored-row.ts";
import { decodeTagBlob } from "../../src/store/index/rows/tag-blob.ts";

/** The items of a batch, in place order. */
export function itemsOfBatch(batch: RowBatch): ItemRow[] {
  return Array.from({ length: batch.count }, (_, index) => {
    const row = rowOf(batch, index);
    const owner = ownerOf(batch, row.owner);
    if (row.digest === null) throw new Error("a row of an item has a digest");
    return {
      place: {
        height: Math.floor(row.high / transactionsPerBlockMax),
        txIndex: row.high % transactionsPerBlockMax,
        offset: row.low * 64 + row.fine,
      },
      id: idFromBytes(row.id),
      parentOffset: row.parent,
      signatureType: row.sig,
      owner: new Uint8Array(owner.key),
      ownerAddress: addressFromBytes(owner.address),
      target: row.target === null ? "" : addressOfKey(row.target),
      anchor: textOfStored(row.anchor),
      tags: decodeTagBlob(row.tags),
      headerSize: row.head,
      size: row.size,
      digest: new Uint8Array(row.digest),
    };
  });
}
