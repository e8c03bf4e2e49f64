/**
 * All rows of an index file, read from its tables without the posting index.
 * @module
 */
import { addressFromBytes, addressOfKey, idFromBytes } from "../../../src/arweave/id.ts";
import { placeOfRow } from "../../../src/store/index/place.ts";
import { decodeTagBlob } from "../../../src/store/index/rows/tag-blob.ts";
import { closeDatabase, openForReading, prepareQuery } from "../../../src/store/sqlite.ts";
import type { ModelRow } from "./model.ts";

const cacheBytes = 2 ** 20;

type TableRow = Readonly<{
  high: number;
  low: number;
  fine: number;
  id: Uint8Array;
  address: Uint8Array;
  target: Uint8Array | null;
  size: number;
  sig: number;
  parent: number | null;
  tags: Uint8Array;
  ingested: number;
}>;

/** Reads the rows of an index at their canonical and their other places. */
export function storedRows(path: string): ModelRow[] {
  const db = openForReading(path, cacheBytes);
  try {
    const columns = "n, fine, id, owner, target, size, sig, parent, tags, ingested";
    return prepareQuery<TableRow>(
      db,
      `SELECT n >> 31 AS high, n & 0x7fffffff AS low, fine, id, address, target, size, sig, parent, tags, ingested
       FROM (SELECT ${columns} FROM items UNION ALL SELECT ${columns} FROM duplicates) JOIN owners USING (owner)`,
    )
      .all()
      .map(({ high, low, fine, id, address, target, size, sig, parent, tags, ingested }) => ({
        kind: sig < 0 ? "transaction" : "item",
        place: placeOfRow({ high, low, fine }),
        id: idFromBytes(id),
        ownerAddress: addressFromBytes(address),
        target: target === null ? "" : addressOfKey(target),
        tags: decodeTagBlob(tags),
        size,
        parentOffset: parent,
        ingestedAt: ingested,
      }));
  } finally {
    closeDatabase(db);
  }
}
