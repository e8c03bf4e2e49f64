/**
 * A batch of rows in columns, as the writer stores them.
 *
 * The thread that verifies rows encodes them: bytes of ids and tags, and the keys of their filters. The only writer
 * then looks up ids and writes. The thread may also test the ids in the filters of large parts (id-tester.ts). A batch
 * is plain arrays, which cross threads as bytes.
 * Source: docs/reference/index-layout.md#inserting.
 * @module
 */
import { deserialize, serialize } from "bun:jsc";
import { type Address, idBytes } from "../../../arweave/id.ts";
import { assert } from "../../../lib/assert.ts";
import type { FilterKeys } from "../filter-key.ts";
import type { ItemRow, SerializedRows } from "../index-types.ts";
import type { TestIds } from "../parts/id-tester.ts";
import type { TestedIds } from "../parts/part-reads.ts";
import { compareHalves } from "../place.ts";
import { type StoredRow, storedItem } from "./stored-row.ts";
import { encodeTagBlob } from "./tag-blob.ts";

/** The address and the public key of an owner of a batch's rows: views. */
export type BatchOwner = Readonly<{ address: Uint8Array; key: Uint8Array }>;

/** Rows in place order. */
export type RowBatch = Readonly<{
  count: number;
  /** Upper 32 and lower 31 bits of each place. */
  high: Uint32Array;
  low: Uint32Array;
  /** `numberColumns` of each row. */
  numbers: Float64Array;
  /** Of each row its id, digest, target, anchor and tag blob. An absent one has no bytes. */
  bytes: Uint8Array;
  /** Of each distinct owner its address and public key; `ownerEnds`: the end of each. */
  owners: Uint8Array;
  ownerEnds: Uint32Array;
  /** Keys of each row (filter-key.ts): id, owner, recipient if any, tags. */
  keys: Float64Array;
  /** End of each row's keys. */
  keyEnds: Uint32Array;
  /** Numbers of the rows in the order of the keys of their ids. */
  idOrder: Uint32Array;
  /** What the filters of parts said of the ids, in that order; undefined: they were not tested. */
  tested: TestedIds | undefined;
  /** A key that is the same for all rows of an index, and differs between indexes. */
  mark: number;
}>;

/** A row of a batch. Its bytes are views. */
export type BatchRow = Readonly<{
  high: number;
  low: number;
  fine: number;
  id: Uint8Array;
  /** Position in the owners of the batch, and the owner's address. */
  owner: number;
  address: Uint8Array;
  target: Uint8Array | null;
  anchor: string | Uint8Array | null;
  head: number;
  size: number;
  sig: number;
  parent: number | null;
  tags: Uint8Array;
  digest: Uint8Array | null;
  trusted: number;
}>;

/** Columns of `numbers`. The ends are positions in `bytes`; a row begins where the row before it ends. */
const numberColumns = 12;
const column = {
  fine: 0,
  owner: 1,
  head: 2,
  size: 3,
  sig: 4,
  /** −1: directly in the transaction. */
  parent: 5,
  trusted: 6,
  /** 1 for an anchor that is text, not bytes. */
  anchorText: 7,
  digestEnd: 8,
  targetEnd: 9,
  anchorEnd: 10,
  tagsEnd: 11,
} as const;

const idBytesCount = 32;
const noBytes = new Uint8Array(0);

/** Encodes data items in any order. @param keys - Of the index that they are for. */
export function encodeItems(items: readonly ItemRow[], keys: FilterKeys): RowBatch {
  return encodeRows(items.map(storedItem), keys);
}

/** Encodes rows in any order. @param keys - Of the index that the rows are for. */
export function encodeRows(rows: readonly StoredRow[], keys: FilterKeys): RowBatch {
  const ordered = rows.toSorted(compareHalves);
  const bytes = createByteList(rows.length * 256);
  const owners = createOwnerList(keys);
  const numbers = new Float64Array(rows.length * numberColumns);
  const keyEnds = new Uint32Array(rows.length);
  const found: number[] = [];
  ordered.forEach((row, index) => {
    const owner = owners.numberOf(row);
    const base = index * numberColumns;
    const idAt = bytes.addId(row.id);
    numbers[base + column.fine] = row.fine;
    numbers[base + column.owner] = owner.number;
    numbers[base + column.head] = row.head;
    numbers[base + column.size] = row.size;
    numbers[base + column.sig] = row.sig;
    numbers[base + column.parent] = row.parent ?? -1;
    numbers[base + column.trusted] = row.trusted;
    numbers[base + column.anchorText] = typeof row.anchor === "string" ? 1 : 0;
    numbers[base + column.digestEnd] = bytes.add(row.digest ?? noBytes);
    numbers[base + column.targetEnd] = bytes.add(row.target ?? noBytes);
    numbers[base + column.anchorEnd] = bytes.add(anchorBytes(row.anchor));
    numbers[base + column.tagsEnd] = bytes.add(encodeTagBlob(row.tags));
    found.push(keys.id(bytes.view(idAt, idAt + idBytesCount)), owner.key);
    if (row.target !== null) found.push(keys.recipient(row.target));
    for (const { name, value } of row.tags) found.push(keys.tag(name, value));
    keyEnds[index] = found.length;
  });
  return {
    count: rows.length,
    high: Uint32Array.from(ordered, ({ high }) => high),
    low: Uint32Array.from(ordered, ({ low }) => low),
    numbers,
    bytes: bytes.all(),
    ...owners.columns(),
    keys: Float64Array.from(found),
    keyEnds,
    idOrder: orderOfIds(found, keyEnds),
    tested: undefined,
    mark: keys.transaction(),
  };
}

/** The batch with what the filters say of its ids. @param test - Of the index that the batch is for. */
export function withTestedIds(batch: RowBatch, test: TestIds): RowBatch {
  return { ...batch, tested: test(sortedIdKeys(batch)) };
}

/** A batch for another thread. */
export function serializeBatch(batch: RowBatch): SerializedRows {
  return serialize(batch);
}

/** Reads the output of `serializeBatch`. @param keys - Of the index that the batch is added to. */
export function readBatch(serialized: SerializedRows, keys: FilterKeys): RowBatch {
  const batch: RowBatch = deserialize(serialized);
  assert(batch.mark === keys.transaction(), "a batch has the keys of the index that it is added to");
  return batch;
}

/** Returns a row. */
export function rowOf(batch: RowBatch, index: number): BatchRow {
  const { high, low, numbers, bytes } = batch;
  const base = index * numberColumns;
  const start = index === 0 ? 0 : numberAt(numbers, base - numberColumns + column.tagsEnd);
  const digestEnd = numberAt(numbers, base + column.digestEnd);
  const targetEnd = numberAt(numbers, base + column.targetEnd);
  const anchorEnd = numberAt(numbers, base + column.anchorEnd);
  const parent = numberAt(numbers, base + column.parent);
  const owner = numberAt(numbers, base + column.owner);
  const anchor = bytesOrNull(bytes, targetEnd, anchorEnd);
  const isText = numbers[base + column.anchorText] === 1;
  return {
    high: high[index] ?? 0,
    low: low[index] ?? 0,
    fine: numberAt(numbers, base + column.fine),
    id: bytes.subarray(start, start + idBytesCount),
    owner,
    address: ownerOf(batch, owner).address,
    target: bytesOrNull(bytes, digestEnd, targetEnd),
    anchor: anchor !== null && isText ? textOf(anchor) : anchor,
    head: numberAt(numbers, base + column.head),
    size: numberAt(numbers, base + column.size),
    sig: numberAt(numbers, base + column.sig),
    parent: parent === -1 ? null : parent,
    tags: bytes.subarray(anchorEnd, numberAt(numbers, base + column.tagsEnd)),
    digest: bytesOrNull(bytes, start + idBytesCount, digestEnd),
    trusted: numberAt(numbers, base + column.trusted),
  };
}

/** Returns an owner. */
export function ownerOf({ owners, ownerEnds }: RowBatch, owner: number): BatchOwner {
  const start = owner === 0 ? 0 : (ownerEnds[owner - 1] ?? 0);
  const keyStart = start + idBytesCount;
  return { address: owners.subarray(start, keyStart), key: owners.subarray(keyStart, ownerEnds[owner]) };
}

/** The keys of a row; the first one is the key of its id. */
export function keysOfBatchRow({ keys, keyEnds }: RowBatch, index: number): number[] {
  return Array.from(keys.subarray(startOfKeys(keyEnds, index), keyEnds[index]));
}

/** The keys of the rows' ids, in their order. */
export function sortedIdKeys({ keys, keyEnds, idOrder }: RowBatch): number[] {
  return Array.from(idOrder, (index) => numberAt(keys, startOfKeys(keyEnds, index)));
}

/** Whether a batch has transactions: their signature types are negative. */
export function hasTransactions({ numbers }: RowBatch): boolean {
  for (let at = column.sig; at < numbers.length; at += numberColumns) if (numberAt(numbers, at) < 0) return true;
  return false;
}

/** Whether a batch has rows that this process has verified. */
export function hasVerified({ numbers }: RowBatch): boolean {
  for (let at = column.trusted; at < numbers.length; at += numberColumns) if (numberAt(numbers, at) === 0) return true;
  return false;
}

function startOfKeys(keyEnds: Uint32Array, index: number): number {
  return index === 0 ? 0 : (keyEnds[index - 1] ?? 0);
}

function orderOfIds(keys: readonly number[], keyEnds: Uint32Array): Uint32Array {
  const idKeys = Array.from(keyEnds, (_, index) => keys[startOfKeys(keyEnds, index)] ?? 0);
  return Uint32Array.from(idKeys.keys()).sort((a, b) => (idKeys[a] ?? 0) - (idKeys[b] ?? 0));
}

function numberAt(numbers: Float64Array, at: number): number {
  return numbers[at] ?? 0;
}

function bytesOrNull(bytes: Uint8Array, start: number, end: number): Uint8Array | null {
  return start === end ? null : bytes.subarray(start, end);
}

function anchorBytes(anchor: string | Uint8Array | null): Uint8Array {
  return typeof anchor === "string" ? Buffer.from(anchor) : (anchor ?? noBytes);
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString();
}

/** Distinct owners, and the key of each. */
function createOwnerList(keys: Pick<FilterKeys, "owner">) {
  const bytes = createByteList(0);
  const ends: number[] = [];
  const known = new Map<Address, Readonly<{ number: number; key: number }>>();
  return {
    numberOf: ({ ownerAddress, ownerKey }: Pick<StoredRow, "ownerAddress" | "ownerKey">) => {
      const before = known.get(ownerAddress);
      if (before !== undefined) return before;
      const address = idBytes(ownerAddress);
      const owner = { number: ends.length, key: keys.owner(address) };
      bytes.add(address);
      ends.push(bytes.add(ownerKey));
      known.set(ownerAddress, owner);
      return owner;
    },
    columns: () => ({ owners: bytes.all(), ownerEnds: Uint32Array.from(ends) }),
  };
}

/** Joins bytes. Each call returns the end of what it added. */
function createByteList(sizeGuess: number) {
  let buffer = Buffer.allocUnsafe(Math.max(sizeGuess, 1_024));
  let end = 0;
  const reserve = (size: number): void => {
    if (end + size <= buffer.length) return;
    const larger = Buffer.allocUnsafe((end + size) * 2);
    larger.set(buffer.subarray(0, end));
    buffer = larger;
  };
  return {
    add: (bytes: Uint8Array): number => {
      reserve(bytes.length);
      buffer.set(bytes, end);
      end += bytes.length;
      return end;
    },
    /** Returns the start of the id's bytes. Its type guarantees the canonical spelling, which is not checked again. */
    addId: (id: StoredRow["id"]): number => {
      reserve(idBytesCount);
      const size = buffer.write(id, end, "base64url");
      assert(size === idBytesCount, "an id has 32 bytes");
      end += idBytesCount;
      return end - idBytesCount;
    },
    view: (from: number, to: number): Uint8Array => buffer.subarray(from, to),
    /** A copy, as large as what was added. */
    all: (): Uint8Array => new Uint8Array(buffer.subarray(0, end)),
  };
}
