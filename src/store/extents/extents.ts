/**
 * The content cache on this disk: the data of root transactions in sparse files, and the list of their present steps.
 *
 * The cache stores only bytes that its caller has verified, and returns only bytes with the checksum of the stored
 * bytes. Every read compares. A path is returned only while each step of the span has been compared since the file
 * last changed, as its inode and change time show.
 * Source: docs/decisions/020-content-checksums.md.
 * @module
 */
import { mkdirSync } from "node:fs";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { ByteSpan } from "../../lib/range.ts";
import type { RootSpec } from "../root-spec.ts";
import { type ExtentFiles, openExtentFiles } from "./extent-files.ts";
import { type ExtentMap, openExtentMap } from "./extent-map.ts";
import { createQuota, diskFreeBytes, type Quota, type QuotaLimits } from "./extent-quota.ts";
import { createPaths, createVerifiedReads, extentCallBytesMax, sampleSteps } from "./extent-reads.ts";
import { createRoots, type Root, type Roots, startFlush } from "./extent-roots.ts";
import { checksumOf, createFragments, type Fragments, hasSpan, missingSpans, splitSteps } from "./extent-steps.ts";

export type ExtentStats = Readonly<{
  bytes: number; // disk space of present steps
  bytesMax: number;
  freeBytes: number | undefined; // of the disk, at the last check
  damagedSteps: number; // dropped because their checksum differed
  lostFiles: number; // missing or replaced
  evictedRoots: number;
  rejectedWrites: number; // not stored: no space, or a disk fault
}>;

/** The cache of root data on this disk. All spans are bytes of the root's data, half-open. */
export type Extents = Readonly<{
  /** Absent parts of a span: disjoint, ascending, widened to complete steps. Empty when all bytes are present. */
  missing: (root: RootSpec, span: ByteSpan) => ByteSpan[];
  /** Whether every byte of a span is present. */
  present: (root: RootSpec, span: ByteSpan) => boolean;
  /**
   * Stores verified bytes that begin at `start`, at most 1 MiB.
   * Returns false when they could not be stored (no space, disk fault).
   */
  write: (root: RootSpec, start: number, bytes: Uint8Array) => Promise<boolean>;
  /**
   * Reads a span of 1 byte to 1 MiB and verifies its checksums.
   * @returns undefined when a part is absent. Damaged steps are dropped and are then absent.
   */
  read: (root: RootSpec, span: ByteSpan) => Promise<Uint8Array | undefined>;
  /**
   * Returns a span at once: one of at most 16 KiB if it is in memory, because such spans of its steps were read lately;
   * one of at most 256 KiB if its file is open. It is verified at each reading.
   */
  hot: (root: RootSpec, span: ByteSpan) => Uint8Array<ArrayBuffer> | undefined;
  /**
   * Returns the path of the file with a span, once every step of the span was verified since the file last changed.
   * One call verifies at most {@link comparedBytesMax} bytes. The file exists for at least 5 s after the call.
   * @returns undefined when the span is absent, is being written, or is too large to be verified now.
   */
  file: (root: RootSpec, span: ByteSpan) => Promise<string | undefined>;
  /** As `file`, at once: undefined also when part of the span was not verified since the file last changed. */
  hotFile: (root: RootSpec, span: ByteSpan) => string | undefined;
  /** The path of a root's file, which may not exist. */
  path: (root: RootSpec) => string;
  /** Protects a root from eviction until the returned function is called. */
  hold: (root: RootSpec) => () => void;
  /** Protects a root from eviction until `unpin`, also after a restart. */
  pin: (root: RootSpec) => void;
  unpin: (root: RootSpec) => void;
  /** Removes a root's data. Readers that have the file open can finish. */
  remove: (root: RootSpec) => Promise<void>;
  /** SHA-256 of the complete data; undefined until it is set. */
  digest: (root: RootSpec) => Uint8Array | undefined;
  setDigest: (root: RootSpec, digest: Uint8Array) => void;
  /** Whether writes are accepted: false for a while after the disk was full. */
  hasSpace: () => boolean;
  stats: () => ExtentStats;
  /** Verifies up to `count` present steps, chosen by `random`; drops damaged steps. */
  sample: (count: number, random: () => number) => Promise<Readonly<{ compared: number; damaged: number }>>;
  /** Descriptions of damage of the map; empty when it is intact. */
  integrity: () => string[];
  /** Writes all unwritten changes. Returns false when a write failed. */
  flush: () => Promise<boolean>;
  close: () => Promise<void>;
}>;

/** Location and limits of the cache. */
type ExtentsOptions = QuotaLimits &
  Readonly<{
    folder: string; // of the files
    mapPath: string; // of the SQLite file
    clock: Clock;
    log: Log;
    freeBytesOf?: () => Promise<number>; // measures the disk; by default the disk of `folder`
  }>;

/**
 * Opens the cache. Files without a row, left by a crash, are unlinked in the background.
 *
 * @throws Error when the folder or the map cannot be created.
 */
export function openExtents(options: ExtentsOptions): Extents {
  const { folder, clock, log } = options;
  mkdirSync(folder, { recursive: true });
  const map = openExtentMap(options.mapPath, (reason) =>
    log.warn("the content map was damaged and has been recreated; cached content is lost", { reason }),
  );
  const files = openExtentFiles(folder);
  const roots = createRoots(map, clock, log);
  const freeBytesOf = options.freeBytesOf ?? (() => diskFreeBytes(folder));
  const quota = createQuota({ limits: options, map, roots, files, clock, log, freeBytesOf });
  const reads = createVerifiedReads({ roots, files, log });
  const paths = createPaths({ files, reads, clock });
  const flush = startFlush({ map, roots, files, log });
  const sweeping = sweep(files, roots, map).catch((error: unknown) =>
    log.warn("orphaned content files could not be removed", { error }),
  );
  const writes = createWrites({ roots, files, quota, log });

  return {
    missing: (spec, span) => (spec.size === 0 ? [] : missingSpans(roots.find(spec).steps, span)),
    present: (spec, span) => spec.size === 0 || hasSpan(roots.find(spec).steps, span),
    write: writes.write,
    read: (spec, span) => withRoot(roots, spec, span, (root) => reads.read(root, span)),
    hot: (spec, span) => touched(roots, spec, span, (root) => reads.hot(root, span)),
    file: (spec, span) => withRoot(roots, spec, span, (root) => paths.verified(root, span)),
    hotFile: (spec, span) => touched(roots, spec, span, (root) => paths.hot(root, span)),
    path: (spec) => files.path(roots.find(spec).name),
    hold: (spec) => (spec.size === 0 ? () => undefined : roots.use(roots.find(spec))),
    pin: (spec) => setPinned(roots, spec, true),
    unpin: (spec) => setPinned(roots, spec, false),
    async remove(spec) {
      if (spec.size === 0) return;
      const { name } = roots.find(spec);
      roots.forget(name);
      await files.remove(name);
    },
    digest: (spec) => (spec.size === 0 ? undefined : roots.find(spec).digest),
    setDigest(spec, digest) {
      if (spec.size === 0) return;
      const root = roots.find(spec);
      root.digest = digest;
      if (root.bytes > 0) roots.change(root);
    },
    hasSpace: quota.isOpen,
    stats: () => ({
      bytes: roots.totalBytes(),
      bytesMax: options.bytesMax,
      freeBytes: quota.freeBytes(),
      evictedRoots: quota.evictedCount(),
      rejectedWrites: writes.rejected(),
      ...reads.stats(),
    }),
    sample: (count, random) => sampleSteps({ map, roots, reads }, count, random),
    integrity: map.integrity,
    flush: flush.run,
    async close() {
      flush.stop();
      await sweeping;
      await flush.run();
      await files.close();
      map.close();
    },
  };
}

/** Runs `work` on a root whose span is present, and protects the root from eviction meanwhile. */
async function withRoot<Value>(
  roots: Roots,
  spec: RootSpec,
  span: ByteSpan,
  work: (root: Root) => Promise<Value | undefined>,
): Promise<Value | undefined> {
  if (span.start >= span.end) return undefined;
  const root = roots.find(spec);
  if (!hasSpan(root.steps, span)) return undefined;
  roots.touch(root);
  const end = roots.use(root);
  try {
    return await work(root);
  } finally {
    end();
  }
}

/** Reads a root at once, as recently used. */
function touched<Value>(
  roots: Roots,
  spec: RootSpec,
  span: ByteSpan,
  read: (root: Root) => Value | undefined,
): Value | undefined {
  if (span.start >= span.end) return undefined;
  const root = roots.find(spec);
  roots.touch(root);
  return read(root);
}

function setPinned(roots: Roots, spec: RootSpec, pinned: boolean): void {
  if (spec.size === 0) return;
  const root = roots.find(spec);
  root.pinned = pinned;
  roots.change(root);
}

/** Unlinks files without a row: a crash happened between the file and the row, or between the row and the unlink. */
async function sweep(files: ExtentFiles, roots: Roots, map: ExtentMap): Promise<void> {
  for await (const names of files.walk()) {
    for (const name of names) {
      if (roots.known(name) === undefined && map.root(name) === undefined) await files.remove(name);
    }
  }
}

type Stored = "stored" | "rejected" | "lost";

function createWrites(parts: { roots: Roots; files: ExtentFiles; quota: Quota; log: Log }) {
  const { roots, files, quota, log } = parts;
  const fragments = createFragments();
  let rejected = 0;

  async function store(root: Root, start: number, bytes: Uint8Array): Promise<Stored> {
    const release = await quota.reserve(bytes.length);
    if (release === undefined) return "rejected";
    try {
      return root.isGone ? "rejected" : await storeInQuota(root, start, bytes);
    } finally {
      release();
    }
  }

  async function storeInQuota(root: Root, start: number, bytes: Uint8Array): Promise<Stored> {
    const result = await files.write(root.name, root.size, start, bytes);
    if (result.kind === "full") {
      quota.noteFull();
      // A partial write is unusable and would take uncounted space.
      if (root.bytes === 0 && root.users === 1) {
        fragments.forget(root);
        await files.remove(root.name);
      }
    }
    if (result.kind === "fault") log.error("content could not be written", { code: result.code });
    if (result.kind === "lost") return "lost";
    if (result.kind !== "written" || root.isGone) return "rejected";
    mark(roots, fragments, root, start, bytes);
    return "stored";
  }

  async function storeInUse(root: Root, start: number, bytes: Uint8Array) {
    const end = roots.use(root);
    try {
      return await store(root, start, bytes);
    } finally {
      end();
    }
  }

  async function storeInFile(spec: RootSpec, start: number, bytes: Uint8Array): Promise<Stored> {
    const root = roots.find(spec);
    const result = await storeInUse(root, start, bytes);
    if (result !== "lost") return result;
    // Another kind of file is at the path: the root's present steps are lost.
    roots.forget(root.name);
    await files.remove(root.name);
    return await storeInUse(roots.find(spec), start, bytes);
  }

  /** The free space could not be measured, or a file not be removed. */
  function faultOf(error: unknown): Stored {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    log.error("content could not be written", { error });
    return "rejected";
  }

  return {
    async write(spec: RootSpec, start: number, bytes: Uint8Array): Promise<boolean> {
      assert(bytes.length <= extentCallBytesMax, "a write is at most 1 MiB");
      assert(start >= 0 && start + bytes.length <= spec.size, "a write is within its root");
      if (bytes.length === 0) return true;
      const result = await storeInFile(spec, start, bytes).catch(faultOf);
      if (result !== "stored") rejected += 1;
      return result === "stored";
    },
    rejected: () => rejected,
  };
}

/** Marks the steps that are complete now. */
function mark(roots: Roots, fragments: Fragments, root: Root, start: number, bytes: Uint8Array): void {
  for (const { step, span, isComplete } of splitSteps(root.size, start, bytes.length)) {
    if (!isComplete && hasSpan(root.steps, span)) continue;
    const part = bytes.subarray(span.start - start, span.end - start);
    const complete = isComplete ? part : fragments.add(root, step, span.start, part);
    if (complete !== undefined) roots.add(root, step, checksumOf(complete));
  }
}
