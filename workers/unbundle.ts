/**
 * Thread entry: reads one batch of a bundle's items from a root's file, verifies each, and returns rows for the index.
 *
 * Memory does not grow with the bundle: the header is read in steps, a payload beyond the window in pieces, and one
 * pass over the bytes computes the signature's hash and the digest. An invalid item is reported and skipped; the others
 * are indexed. Only the file's content under the root is trusted.
 * Source: docs/reference/index-layout.md#bundles; ANS-104 §1–§3.
 * @module
 */
import { closeSync, openSync, readSync } from "node:fs";
import {
  type BundleEntry,
  bundleCountSize,
  bundleEntrySize,
  type EntryPlace,
  firstEntry,
  isBundleTags,
  readBundleCount,
  readBundleEntries,
} from "../src/arweave/bundle.ts";
import {
  createItemHash,
  hashItem,
  type InvalidItem as InvalidDataItem,
  type ItemDigests,
  type ItemHeader,
  readItemHeader,
  verifyItem,
} from "../src/arweave/data-item.ts";
import { type Filter, itemSubject, matches, readFilter } from "../src/arweave/filter.ts";
import { type Id, idFromBytes } from "../src/arweave/id.ts";
import { assert } from "../src/lib/assert.ts";
import { createFilterKeys, type FilterKeys } from "../src/store/index/filter-key.ts";
import type { BundleRow, InvalidItem, ItemRow, SerializedRows } from "../src/store/index/index-types.ts";
import { type IdTester, openIdTester } from "../src/store/index/parts/id-tester.ts";
import { isPlace } from "../src/store/index/place.ts";
import { encodeItems, serializeBatch, withTestedIds } from "../src/store/index/rows/row-batch.ts";
import { createCollections } from "../src/threads/collect.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

/** A batch to read. All offsets are bytes of the root's data. */
export type UnbundleJob = Readonly<{
  /** A file of the root's data with the bytes of the complete bundle, at their offsets in the data. */
  path: string;
  /** The place of the root transaction, and its id. */
  root: Readonly<{ height: number; txIndex: number }>;
  rootId: Id;
  /** The bundle itself: the root transaction or an item in it. */
  bundleId: Id;
  /** The bundle's payload: its first byte, and its size. */
  start: number;
  size: number;
  /** First byte of the header of the item that is the bundle; null: the bundle is the transaction. */
  parentOffset: number | null;
  /** Nesting of the bundle: 0 for a transaction. */
  depth: number;
  /** The first entry, and the offset of its item in the bundle, if known (`next` of the previous batch). */
  from: Readonly<{ index: number; offset?: number }>;
  /** A batch ends after this many entries, or after the item that reaches this many bytes. */
  entriesMax: number;
  bytesMax: number;
  /** Texts of the filters; both are ignored when `bypassFilter`. */
  indexFilter: string;
  unbundleFilter: string;
  bypassFilter: boolean;
  /** Of the index that the rows are for (filter-key.ts). */
  filterSecret: Uint8Array;
  /** The file of that index; undefined: the ids of the rows are not tested (id-tester.ts). */
  indexPath: string | undefined;
}>;

/** The result of a batch. */
export type UnbundleResult =
  | Readonly<{
      kind: "batch";
      /** Entries of the complete bundle, from its header. */
      count: number;
      /** Verified items that the index filter chose, encoded for the writer (row-batch.ts), passed on unchanged. */
      rows: SerializedRows;
      /** Ids of those rows, in order. */
      ids: readonly Id[];
      /** Items that are bundles themselves and that the unbundle filter chose, or that are in the index. */
      bundles: readonly BundleRow[];
      /** Number of invalid items of this batch; `invalid` lists the first ones. */
      invalidCount: number;
      invalid: readonly InvalidItem[];
      /** Where the next batch begins; undefined: the bundle is done. */
      next: EntryPlace | undefined;
    }>
  /** The bytes are not a valid bundle. */
  | Readonly<{ kind: "malformed"; reason: string }>;

/**
 * Bytes of a root in memory; the longest header of the lenient rules (1 MiB of tags) fits.
 */
const windowBytes = 2 * 2 ** 20;

/** Bytes that are read first for the header of a large item; most headers fit. */
const headerGuessBytes = 8 * 1024;

/** Entries of the bundle's header that are read in one step, and their bytes. */
const entriesPerStep = 1_024;
const headerWindowBytes = entriesPerStep * bundleEntrySize;

/** A batch ends after this many bytes of headers, so that 1,000 items with 1 MiB of tags are not one batch. */
const rowBytesMax = 8 * 2 ** 20;

/** Each tag counts as this much more: the index writes a key of it, also when it has four bytes. */
const keyBytes = 64;

/** Invalid entries that a batch lists; the rest are only counted. */
const invalidNamedMax = 1_000;

/**
 * Reads and verifies one batch.
 *
 * @throws Error when the file is missing or shorter than the bundle: the caller fetches the bytes again.
 */
export function unbundle(job: UnbundleJob): UnbundleResult {
  const file = openSync(job.path, "r");
  try {
    const end = job.start + job.size;
    return readBatch(job, createWindow(file, end, headerWindowBytes), createWindow(file, end, windowBytes));
  } finally {
    closeSync(file);
  }
}

type Window = Readonly<{
  /** A view of `count` bytes at `at`, at most the window's size; valid until the next call. */
  bytes: (at: number, count: number) => Uint8Array;
}>;

type Place = EntryPlace & Readonly<{ fault?: string }>;

function readBatch(job: UnbundleJob, header: Window, items: Window): UnbundleResult {
  const head = header.bytes(job.start, Math.min(job.size, bundleCountSize));
  const counted = readBundleCount(head, job.size);
  if (counted.kind === "invalid") return { kind: "malformed", reason: counted.reason };
  const { count } = counted;
  const batch = createBatch(job);
  let place = findEntry(job, header, count);
  while (place.fault === undefined && place.index < count && batch.hasSpace(place.index)) {
    const step = readEntries(job, header, place, count, batch.entriesLeft(place.index));
    const taken = takeEntries(step.entries, batch, (entry) => readItem(items, job.start + entry.offset, entry));
    // A fault after the end of this batch is found again by the next one.
    place = taken ?? { ...step.next, ...(step.fault !== undefined && { fault: step.fault }) };
  }
  if (place.fault !== undefined)
    batch.reject(place.index, readId(job, header, place.index), job.start + place.offset, place.fault);
  const isDone = place.fault !== undefined || place.index >= count;
  return { kind: "batch", count, next: isDone ? undefined : place, ...batch.finish() };
}

/** Adds entries until the batch is full. @returns The first entry that was not added, if any. */
function takeEntries(
  entries: readonly BundleEntry[],
  batch: Batch,
  read: (entry: BundleEntry) => VerifiedItem | InvalidDataItem,
): EntryPlace | undefined {
  for (const entry of entries) {
    if (!batch.hasSpace(entry.index)) return { index: entry.index, offset: entry.offset };
    batch.add(entry, read(entry));
  }
  return undefined;
}

/** The place of this batch's first entry: from the caller, or the sum of the sizes before it. */
function findEntry(job: UnbundleJob, header: Window, count: number): Place {
  const { index, offset } = job.from;
  if (offset !== undefined) return { index, offset };
  let place: Place = firstEntry(count);
  while (place.index < index && place.index < count && place.fault === undefined) {
    const step = readEntries(job, header, place, count, index - place.index);
    place = { ...step.next, ...(step.fault !== undefined && { fault: step.fault }) };
  }
  return place;
}

function readEntries(job: UnbundleJob, header: Window, place: EntryPlace, count: number, most: number) {
  const entries = Math.min(entriesPerStep, most, count - place.index);
  const at = job.start + bundleCountSize + place.index * bundleEntrySize;
  return readBundleEntries(header.bytes(at, entries * bundleEntrySize), place, count, job.size);
}

/** The id of an entry in the bundle's header, after the entry's size. */
function readId(job: UnbundleJob, header: Window, index: number): Id {
  const entry = header.bytes(job.start + bundleCountSize + index * bundleEntrySize, bundleEntrySize);
  return idFromBytes(entry.subarray(bundleEntrySize / 2));
}

/** A verified item. Only its owner's bytes are a copy; the other byte fields change with the window. */
type VerifiedItem = Readonly<{ kind: "item"; header: ItemHeader; digest: Uint8Array }>;

function readItem(window: Window, at: number, { id, size }: BundleEntry): VerifiedItem | InvalidDataItem {
  const read = size <= windowBytes ? readSmall(window, at, size) : readLarge(window, at, size);
  if (read.kind === "invalid") return read;
  if (read.header.id !== id) return invalidItem("the item's id is not the id in its bundle");
  const { message, digest } = read.hash();
  const verdict = verifyItem(read.header, message);
  return verdict.valid ? { kind: "item", header: read.header, digest } : invalidItem(verdict.reason);
}

type ReadItem = Readonly<{ kind: "read"; header: ItemHeader; hash: () => ItemDigests }> | InvalidDataItem;

function readSmall(window: Window, at: number, size: number): ReadItem {
  const item = window.bytes(at, size);
  const read = readItemHeader(item, "lenient", size);
  if (read.kind === "invalid") return read;
  if (read.kind === "need") return invalidItem("the item is cut short");
  // A copy: the window moves before the rows are encoded.
  const header = { ...read.header, owner: read.header.owner.slice() };
  return { kind: "read", header, hash: () => hashItem(header, item.subarray(header.headerSize)) };
}

function readLarge(window: Window, at: number, size: number): ReadItem {
  let held = headerGuessBytes;
  for (;;) {
    const read = readItemHeader(window.bytes(at, held), "lenient", size);
    if (read.kind === "invalid") return read;
    if (read.kind === "header") {
      const header = ownedHeader(read.header);
      return {
        kind: "read",
        header,
        hash: () => hashLarge(window, header, at + header.headerSize, at + size),
      };
    }
    if (read.bytes > windowBytes) return invalidItem(`the header is larger than ${windowBytes} bytes`);
    assert(read.bytes > held, "a header that needs more bytes needs more than it was given");
    held = read.bytes;
  }
}

/** A copy of a header, independent of the window. */
function ownedHeader(header: ItemHeader): ItemHeader {
  return {
    ...header,
    owner: header.owner.slice(),
    signature: header.signature.slice(),
    rawTags: header.rawTags.slice(),
    targetBytes: header.targetBytes.slice(),
    anchorBytes: header.anchorBytes.slice(),
  };
}

function hashLarge(window: Window, header: ItemHeader, start: number, end: number): ItemDigests {
  const hash = createItemHash(header, end - start);
  for (let at = start; at < end; at += windowBytes) {
    hash.update(window.bytes(at, Math.min(windowBytes, end - at)));
  }
  return hash.finish();
}

function invalidItem(reason: string): InvalidDataItem {
  return { kind: "invalid", reason };
}

type Batch = ReturnType<typeof createBatch>;

/** Collects the results of a batch, and decides when it is full. */
function createBatch(job: UnbundleJob) {
  const chooses = (filter: Filter) => (header: ItemHeader, dataSize: number) =>
    job.bypassFilter || matches(filter, itemSubject(header, { dataSize, parentId: job.bundleId, rootId: job.rootId }));
  const isIndexed = chooses(filterOf(job.indexFilter));
  const isUnbundled = chooses(filterOf(job.unbundleFilter));
  const rows: ItemRow[] = [];
  const bundles: BundleRow[] = [];
  const invalid: InvalidItem[] = [];
  let invalidCount = 0;
  let walkedBytes = 0;
  let rowBytes = 0;

  const reject = (entry: number, id: Id, offset: number, reason: string) => {
    invalidCount += 1;
    if (invalid.length < invalidNamedMax) invalid.push({ entry, id, offset, reason });
  };

  const add = ({ index, id, offset, size }: BundleEntry, item: VerifiedItem | InvalidDataItem) => {
    walkedBytes += size;
    const at = job.start + offset;
    if (item.kind === "invalid") return reject(index, id, at, item.reason);
    const row = rowOf(job, item, at, size);
    if (!isPlace(row.place)) return reject(index, id, at, "the item's offset is beyond the largest place");
    const indexed = isIndexed(item.header, row.size);
    if (indexed) {
      rows.push(row);
      rowBytes += item.header.headerSize + keyBytes * row.tags.length;
    }
    // A bundle that is in the index but not chosen is also queued: the queue records that it was skipped.
    if (isBundleTags(row.tags) && (indexed || isUnbundled(item.header, row.size))) bundles.push(bundleOf(job, row));
  };

  return {
    add,
    reject,
    entriesLeft: (index: number) => job.from.index + job.entriesMax - index,
    hasSpace: (index: number) =>
      index < job.from.index + job.entriesMax && walkedBytes < job.bytesMax && rowBytes < rowBytesMax,
    finish: () => ({
      rows: encoded(rows, job),
      ids: rows.map(({ id }) => id),
      bundles,
      invalidCount,
      invalid,
    }),
  };
}

function rowOf(job: UnbundleJob, { header, digest }: VerifiedItem, at: number, size: number): ItemRow {
  return {
    place: { height: job.root.height, txIndex: job.root.txIndex, offset: at },
    id: header.id,
    parentOffset: job.parentOffset,
    signatureType: header.signatureType,
    owner: header.owner,
    ownerAddress: header.ownerAddress,
    target: header.target,
    anchor: header.anchor,
    tags: header.tags,
    headerSize: header.headerSize,
    size: size - header.headerSize,
    digest,
  };
}

function bundleOf(job: UnbundleJob, { id, place, headerSize, size }: ItemRow): BundleRow {
  return {
    id,
    place,
    parentOffset: job.parentOffset,
    headerSize,
    size,
    depth: job.depth + 1,
    bypassFilter: job.bypassFilter,
  };
}

/** Parsed filters: two texts, which change only with a restart. */
const filters = new Map<string, Filter>();
const filtersMax = 16;

function filterOf(text: string): Filter {
  const known = filters.get(text);
  if (known !== undefined) return known;
  const filter = readFilter(text);
  if (filters.size >= filtersMax) filters.clear();
  filters.set(text, filter);
  return filter;
}

/** The key functions of the index that was used last, and its tester: a program has one index. */
let lastKeys: Readonly<{ secret: Uint8Array; keys: FilterKeys }> | undefined;
let lastTester: Readonly<{ path: string; secret: Uint8Array; tester: IdTester }> | undefined;

const countBytes = createCollections();

function encoded(rows: readonly ItemRow[], { filterSecret, indexPath }: UnbundleJob): SerializedRows {
  const batch = encodeItems(rows, keysOf(filterSecret));
  const tested = indexPath === undefined ? batch : withTestedIds(batch, testerOf(indexPath, filterSecret).test);
  const serialized = serializeBatch(tested);
  countBytes(serialized.byteLength);
  return serialized;
}

function keysOf(secret: Uint8Array): FilterKeys {
  if (lastKeys === undefined || Buffer.compare(lastKeys.secret, secret) !== 0)
    lastKeys = { secret, keys: createFilterKeys(secret) };
  return lastKeys.keys;
}

function testerOf(path: string, secret: Uint8Array): IdTester {
  if (lastTester?.path === path && Buffer.compare(lastTester.secret, secret) === 0) return lastTester.tester;
  lastTester?.tester.close();
  lastTester = undefined;
  const tester = openIdTester(path, secret);
  lastTester = { path, secret, tester };
  return tester;
}

/** A moving view of a file. */
function createWindow(file: number, end: number, size: number): Window {
  const buffer = new Uint8Array(size);
  let start = 0;
  let held = 0;

  const load = (at: number) => {
    const wanted = Math.min(size, end - at);
    let got = 0;
    while (got < wanted) {
      const read = readSync(file, buffer, got, wanted - got, at + got);
      if (read === 0) throw new Error(`the file ends at byte ${at + got}, before the bundle does`);
      got += read;
    }
    start = at;
    held = wanted;
  };

  return {
    bytes: (at, count) => {
      assert(count <= size && at + count <= end, "a view is within the window and the bundle");
      if (at < start || at + count > start + held) load(at);
      return buffer.subarray(at - start, at - start + count);
    },
  };
}
