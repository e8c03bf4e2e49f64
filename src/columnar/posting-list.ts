/**
 * Postings of an export: the values that filters search for, sorted by key, then by place.
 *
 * A key is 36 bits of a hash of the kind and the value, or of an id: two values may share a key, so a reader checks the
 * row. Key and number of the row are one integer below 2^53, so that they are sorted as one typed array.
 * Source: docs/reference/columnar.md#postings.
 * @module
 */
import { assert } from "../lib/assert.ts";
import type { ExportRow } from "../store/index/export-rows.ts";
import { createFilterKeys, filterSecretBytes } from "../store/index/filter-key.ts";
import { type PlaceHalves, placeHigh, placeLow } from "../store/index/place.ts";

/** Postings of rows, in memory. */
export type PostingList = Readonly<{
  add: (row: ExportRow) => void;
  /** Whether the list must be taken before another row is added. */
  isFull: () => boolean;
  /** Takes the postings in order; the list is empty afterwards. The object is reused for each of them. */
  take: () => Generator<Posting>;
}>;

/** A row of the table `postings`. */
export type Posting = Readonly<{ key: number }> & PlaceHalves;

/** Keys of the table `postings`, as a reader computes them. */
export type PostingKeys = Readonly<{
  owner: (address: Uint8Array) => number;
  recipient: (target: Uint8Array) => number;
  /** @param id - Of the item or transaction that contains the row. */
  parent: (id: Uint8Array) => number;
  /** @param id - Of the row. */
  id: (id: Uint8Array) => number;
  tag: (name: string, value: string) => number;
}>;

/** Postings of one sorted run: 8 MiB. */
const entriesMax = 2 ** 20;

/** Rows of one run. Row numbers and keys fit 53 bits together. */
const rowsMax = 2 ** 17;

/** The keys of the index have 47 bits (src/store/index/filter-key.ts). */
const droppedKeys = 2 ** 11;

/** One row has at most this many postings (src/arweave/tags.ts): its tags, id, owner, target and parent. */
const postingsPerRowMax = 2_048 + 4;

export function createPostingList(): PostingList {
  const entries = new Float64Array(entriesMax);
  const highs = new Float64Array(rowsMax);
  const lows = new Uint32Array(rowsMax);
  const keys = createPostingKeys();
  let count = 0;
  let rows = 0;
  const addKey = (key: number): void => {
    assert(count < entriesMax, "a list is taken when it is full");
    entries[count] = key * rowsMax + rows;
    count += 1;
  };
  return {
    add: (row) => {
      const { id, ownerAddress, target, parent, tags } = row;
      addKey(keys.id(id));
      addKey(keys.owner(ownerAddress));
      if (target !== null) addKey(keys.recipient(target));
      if (parent !== null) addKey(keys.parent(parent.id));
      for (const { name, value } of tags) addKey(keys.tag(name, value));
      highs[rows] = placeHigh(row);
      lows[rows] = placeLow(row);
      rows += 1;
    },
    isFull: () => count + postingsPerRowMax > entriesMax || rows === rowsMax,
    take: function* () {
      const posting = { key: 0, high: 0, low: 0 };
      let before = -1;
      for (const entry of entries.subarray(0, count).sort()) {
        // A tag that occurs twice in a row is one posting.
        if (entry === before) continue;
        before = entry;
        posting.key = Math.floor(entry / rowsMax);
        const row = entry - posting.key * rowsMax;
        posting.high = highs[row] ?? 0;
        posting.low = lows[row] ?? 0;
        yield posting;
      }
      count = 0;
      rows = 0;
    },
  };
}

/** Keys are the same in every export: the files of several gateways can be read together. */
export function createPostingKeys(): PostingKeys {
  const keys = createFilterKeys(new Uint8Array(filterSecretBytes));
  const shorten = (key: number): number => Math.floor(key / droppedKeys);
  return {
    owner: (address) => shorten(keys.owner(address)),
    recipient: (target) => shorten(keys.recipient(target)),
    parent: (id) => shorten(keys.id(id)),
    // An id is a hash already.
    id: (id) =>
      (id[0] ?? 0) * 2 ** 28 +
      (id[1] ?? 0) * 2 ** 20 +
      (id[2] ?? 0) * 2 ** 12 +
      (id[3] ?? 0) * 16 +
      ((id[4] ?? 0) >> 4),
    tag: (name, value) => shorten(keys.tag(name, value)),
  };
}
