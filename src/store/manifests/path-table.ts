/**
 * The paths of one manifest in memory while its index is built: a hash table of fixed size, then records in order.
 *
 * It takes about as much memory as the manifest is large, allocated as it is filled.
 * @module
 */
import { idSize } from "../../arweave/id.ts";
import { type PathTable, pathDigestSize } from "../../arweave/manifest-scan.ts";
import { assert } from "../../lib/assert.ts";

/** A record: the digest of a path, and the id that it means. Bytes. */
export const recordSize = pathDigestSize + idSize;

/** The shortest path that means an id, `"":{"id":"…"},`. Bytes of the manifest. */
const pathTextMin = 56;

/** The table. */
export type BuiltPaths = PathTable &
  Readonly<{
    count: () => number;
    /** What a path means. */
    get: (digest: Uint8Array) => Uint8Array | undefined;
    /** The records, ascending by digest. Each is valid until the next one is taken. */
    sorted: () => Iterable<Uint8Array>;
  }>;

/** Memory of one table after another: what was allocated for one build serves the next. */
export type TableMemory = {
  records: Uint8Array;
  isLive: Uint8Array;
  slots: Uint32Array;
  slotOfRecord: Uint32Array;
};

/** Creates a memory, empty. */
export function createTableMemory(): TableMemory {
  const none = () => new Uint32Array(0);
  return { records: new Uint8Array(0), isLive: new Uint8Array(0), slots: none(), slotOfRecord: none() };
}

/**
 * Creates a table.
 *
 * @param manifestSize - Bytes; bounds the number of paths.
 * @param memory - The table's until the next one is created in it.
 */
export function createPathTable(manifestSize: number, memory: TableMemory): BuiltPaths {
  const recordsMax = Math.floor(manifestSize / pathTextMin) + 1;
  // Filled to two thirds at most; 0 is free, else the record's number from 1.
  const slotCount = 2 ** Math.ceil(Math.log2(recordsMax * 1.5 + 1));
  reserve(memory, recordsMax, slotCount);
  const { records, isLive, slots, slotOfRecord } = memory;
  const view = new DataView(records.buffer);
  let used = 0;
  let live = 0;

  const wordOf = (record: number) => view.getUint32(record * recordSize);

  /** The slot of a digest: its own, or the free one where it belongs. Digests are spread evenly by their salt. */
  function slotOf(digest: Uint8Array): number {
    const [a = 0, b = 0, c = 0, d = 0] = digest;
    const first = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
    let slot = first & (slotCount - 1);
    for (;;) {
      const record = (slots[slot] ?? 0) - 1;
      if (record < 0 || (wordOf(record) === first && isSame(record, digest))) return slot;
      slot = (slot + 1) & (slotCount - 1);
    }
  }

  function isSame(record: number, digest: Uint8Array): boolean {
    const from = record * recordSize;
    for (let at = 0; at < pathDigestSize; at += 1) if (records[from + at] !== digest[at]) return false;
    return true;
  }

  function setLive(record: number, next: 0 | 1): void {
    live += next - (isLive[record] ?? 0);
    isLive[record] = next;
  }

  return {
    put(digest, id) {
      const slot = slotOf(digest);
      let record = (slots[slot] ?? 0) - 1;
      if (id === undefined) {
        if (record >= 0) setLive(record, 0);
        return;
      }
      if (record < 0) {
        assert(used < recordsMax, "a manifest has no more paths than fit in it");
        record = used;
        used += 1;
        slots[slot] = used;
        slotOfRecord[record] = slot;
        records.set(digest, record * recordSize);
      }
      records.set(id, record * recordSize + pathDigestSize);
      setLive(record, 1);
    },
    clear() {
      // What it costs was paid by those who put them in: a text of nothing but "paths" clears nothing.
      for (let record = 0; record < used; record += 1) slots[slotOfRecord[record] ?? 0] = 0;
      isLive.fill(0, 0, used);
      used = 0;
      live = 0;
    },
    count: () => live,
    get(digest) {
      const record = (slots[slotOf(digest)] ?? 0) - 1;
      if (record < 0 || isLive[record] !== 1) return undefined;
      return records.slice(record * recordSize + pathDigestSize, (record + 1) * recordSize);
    },
    *sorted() {
      for (const record of inOrder(used, isLive, live, records))
        yield records.subarray(record * recordSize, (record + 1) * recordSize);
    },
  };
}

/** Makes room for a table, and clears what the one before has left that is read before it is written. */
function reserve(memory: TableMemory, recordsMax: number, slotCount: number): void {
  if (memory.isLive.length < recordsMax) {
    memory.records = new Uint8Array(recordsMax * recordSize);
    memory.isLive = new Uint8Array(recordsMax);
    memory.slotOfRecord = new Uint32Array(recordsMax);
  } else memory.isLive.fill(0, 0, recordsMax);
  if (memory.slots.length < slotCount) memory.slots = new Uint32Array(slotCount);
  else memory.slots.fill(0, 0, slotCount);
}

/** Numbers of the live records by their digests: one bucket a record, each of which is put in order by itself. */
function inOrder(used: number, isLive: Uint8Array, live: number, records: Uint8Array): Uint32Array {
  const view = new DataView(records.buffer);
  const bits = Math.max(1, Math.ceil(Math.log2(live + 1)));
  const bucketOf = (record: number) => view.getUint32(record * recordSize) >>> (32 - bits);
  const ends = new Uint32Array(2 ** bits + 1);
  for (let record = 0; record < used; record += 1) {
    const next = bucketOf(record) + 1;
    if (isLive[record] === 1) ends[next] = (ends[next] ?? 0) + 1;
  }
  for (let bucket = 1; bucket < ends.length; bucket += 1) ends[bucket] = (ends[bucket] ?? 0) + (ends[bucket - 1] ?? 0);
  const order = new Uint32Array(live);
  for (let record = 0; record < used; record += 1) {
    if (isLive[record] !== 1) continue;
    const bucket = bucketOf(record);
    const at = ends[bucket] ?? 0;
    order[at] = record;
    ends[bucket] = at + 1;
  }
  for (let bucket = 0, start = 0; bucket < ends.length - 1; bucket += 1) {
    const end = ends[bucket] ?? 0;
    if (end - start > 1) order.subarray(start, end).sort((a, b) => compareDigests(records, a, b));
    start = end;
  }
  return order;
}

function compareDigests(records: Uint8Array, one: number, other: number): number {
  for (let at = 0; at < pathDigestSize; at += 1) {
    const difference = (records[one * recordSize + at] ?? 0) - (records[other * recordSize + at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
