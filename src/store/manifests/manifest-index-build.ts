/**
 * Builds the index of one manifest from its bytes.
 *
 * The index is written under a temporary name, synced and renamed; then its folder is synced. So a file at the final
 * path was complete when it was created. The build reads each byte once. It needs about as much memory as the manifest
 * has bytes.
 * @module
 */
import { closeSync, fdatasyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { type Id, idFromBytes } from "../../arweave/id.ts";
import {
  createManifestScan,
  type PathTable,
  pathDigestSize,
  type ScannedManifest,
} from "../../arweave/manifest-scan.ts";
import { assert } from "../../lib/assert.ts";
import { syncFolder } from "../durable-file.ts";
import { createFileSessions } from "../file-sessions.ts";
import { type IndexHead, indexSizeOf, pageSize, recordSize, writeHead, writePages } from "./manifest-index-file.ts";

/** The next bytes of a manifest. */
export type BuildIndexJob = Readonly<{
  /** Identifies the build among the open builds of this thread. */
  session: string;
  /** Only with the first bytes. */
  begin?: BeginIndex;
  /** Begins with the bytes; the main thread overwrites it after the response. */
  shared: SharedArrayBuffer;
  size: number;
  isLast: boolean;
}>;

/** Parameters of a build. */
export type BeginIndex = Readonly<{
  id: Id;
  /** Size of the manifest, bytes. */
  size: number;
  /** Absolute paths of the index: while it is written, and when it is complete. */
  temporaryPath: string;
  path: string;
  salt: Uint8Array;
  /** Unix milliseconds. */
  builtAt: number;
}>;

/** Progress of the build. */
export type BuildIndexResult =
  | Readonly<{ kind: "more" }>
  /** The index is at its path; it may record that the manifest is unreadable. @property bytes - Size of the file. */
  | Readonly<{ kind: "built"; bytes: number }>
  /** The file could not be written; `reason` is the system's message. */
  | Readonly<{ kind: "unread"; reason: string }>
  /** The thread that began the build has ended. */
  | Readonly<{ kind: "lost" }>;

/** Ends a build before its last bytes. */
export type LeaveIndexJob = Readonly<{ session: string }>;

/** The calls of a thread that builds. */
type IndexBuilder = Readonly<{
  buildIndex: (job: BuildIndexJob) => BuildIndexResult;
  leaveIndex: (job: LeaveIndexJob) => void;
}>;

type IndexBuild = Readonly<{
  /** Reads the next bytes. @returns False when the remaining bytes are not needed. */
  take: (bytes: Uint8Array) => boolean;
  /** Writes the index. @returns Its size, bytes. */
  finish: () => number;
}>;

/** Bytes of a manifest in one job. */
export const buildPieceBytes = 2 ** 20;

/** Bytes of one write. */
const bufferBytes = 2 ** 20;

export function createIndexBuilder(): IndexBuilder {
  const builds = createFileSessions<IndexBuild>(() => undefined);
  const memory = createTableMemory(); // shared, because a thread builds one index at a time
  let piece: Uint8Array | undefined; // a copy: text decoders reject shared memory
  return {
    buildIndex: ({ session, begin, shared, size, isLast }) => {
      piece ??= new Uint8Array(buildPieceBytes);
      piece.set(new Uint8Array(shared, 0, size));
      const bytes = piece.subarray(0, size);
      const first = begin === undefined ? undefined : () => beginIndexBuild(begin, memory);
      return builds.step(session, first, (build): BuildIndexResult => {
        const isWanted = build.take(bytes);
        return isWanted && !isLast ? { kind: "more" } : { kind: "built", bytes: build.finish() };
      });
    },
    leaveIndex: ({ session }) => builds.leave(session),
  };
}

function beginIndexBuild(begin: BeginIndex, memory: TableMemory): IndexBuild {
  const table = createPathTable(begin.size, memory);
  const scan = createManifestScan(begin.size, begin.salt, table);
  return {
    take: scan.take,
    finish: () => {
      const scanned = scan.finish();
      const head = headOf(begin, scanned, table);
      try {
        writeIndex(begin, head, table);
      } catch (error) {
        rmSync(begin.temporaryPath, { force: true });
        throw error;
      }
      return indexSizeOf(head.count);
    },
  };
}

function headOf({ id, builtAt, salt }: BeginIndex, scanned: ScannedManifest, table: BuiltPaths): IndexHead {
  const common = { id, builtAt, salt };
  if (scanned.kind === "unreadable")
    return { ...common, count: 0, index: undefined, fallback: undefined, unreadable: scanned.reason };
  const { index, fallback } = scanned;
  const target = index === undefined ? undefined : "id" in index ? index.id : table.get(index.digest);
  return {
    ...common,
    count: table.count(),
    index: target && idFromBytes(target),
    fallback: fallback && idFromBytes(fallback),
    unreadable: undefined,
  };
}

function writeIndex({ temporaryPath, path }: BeginIndex, head: IndexHead, table: BuiltPaths): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = openSync(temporaryPath, "wx", 0o600);
  try {
    const buffer = new Uint8Array(bufferBytes);
    writeHead(head, buffer.subarray(0, pageSize));
    let held = pageSize;
    const flush = () => {
      for (let at = 0; at < held; ) at += writeSync(file, buffer, at, held - at);
      held = 0;
    };
    if (head.count > 0)
      writePages(table.sorted(), head.salt, (page) => {
        if (held === bufferBytes) flush();
        buffer.set(page, held);
        held += pageSize;
      });
    flush();
    fdatasyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporaryPath, path);
  syncFolder(dirname(path));
}

/** The shortest path that maps to an id, `"":{"id":"…"},`: bytes of the manifest. */
const pathTextMin = 56;
/** The paths of one manifest: a hash table of fixed size, about as large as the manifest. */
type BuiltPaths = PathTable &
  Readonly<{
    count: () => number;
    /** The id of a path. */
    get: (digest: Uint8Array) => Uint8Array | undefined;
    /** The records, ascending by digest. Each is valid until the next one is read. */
    sorted: () => Iterable<Uint8Array>;
  }>;

/** Buffers of a table, reused by one build after another. */
type TableMemory = {
  records: Uint8Array;
  isLive: Uint8Array;
  slots: Uint32Array;
  slotOfRecord: Uint32Array;
};

export function createTableMemory(): TableMemory {
  const none = () => new Uint32Array(0);
  return { records: new Uint8Array(0), isLive: new Uint8Array(0), slots: none(), slotOfRecord: none() };
}

/**
 * @param manifestSize - Bytes; bounds the number of paths.
 * @param memory - In use until the next table is created in it.
 */
export function createPathTable(manifestSize: number, memory: TableMemory): BuiltPaths {
  const recordsMax = Math.floor(manifestSize / pathTextMin) + 1;
  // At most two thirds full. A slot is 0 when free, else the record's number plus 1.
  const slotCount = 2 ** Math.ceil(Math.log2(recordsMax * 1.5 + 1));
  reserve(memory, recordsMax, slotCount);
  const { records, isLive, slots, slotOfRecord } = memory;
  const view = new DataView(records.buffer);
  let used = 0;
  let live = 0;

  const wordOf = (record: number) => view.getUint32(record * recordSize);

  /** The slot of a digest, or the free slot for it. Digests are salted, so they are spread evenly. */
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
        assert(used < recordsMax, "the manifest's size bounds the number of its paths");
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
      // Clearing costs no more than the insertions before it: an empty table clears nothing.
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

/** Grows the buffers as needed, and clears leftovers of the previous build that are read before they are written. */
function reserve(memory: TableMemory, recordsMax: number, slotCount: number): void {
  if (memory.isLive.length < recordsMax) {
    memory.records = new Uint8Array(recordsMax * recordSize);
    memory.isLive = new Uint8Array(recordsMax);
    memory.slotOfRecord = new Uint32Array(recordsMax);
  } else memory.isLive.fill(0, 0, recordsMax);
  if (memory.slots.length < slotCount) memory.slots = new Uint32Array(slotCount);
  else memory.slots.fill(0, 0, slotCount);
}

/** Numbers of the live records, sorted by digest: a bucket sort with about one record a bucket. */
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
