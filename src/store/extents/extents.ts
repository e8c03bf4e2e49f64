/**
 * The content cache on this disk: the data of root transactions as sparse files, and which steps of them are present.
 *
 * It never learns where bytes come from; it stores only what its caller has checked, and gives back only what still
 * has the checksum that it had then. Every reading compares; a path is given away only while every step of the span
 * was compared since the file last changed, which its inode and change time tell.
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
import { createReading, extentCallBytesMax, sampleSteps } from "./extent-reads.ts";
import { createRoots, type Root, type Roots } from "./extent-roots.ts";
import { checksumOf } from "./extent-steps.ts";
import { startFlush } from "./flush.ts";
import { createFragments, type Fragments, splitSteps } from "./fragments.ts";
import { createPaths } from "./paths.ts";

/** Metrics of the cache. */
export type ExtentStats = Readonly<{
  bytes: number; // of disk that present steps take
  bytesMax: number;
  freeBytes: number | undefined; // of the disk, when it was last asked
  damagedSteps: number; // found different from their checksum, and dropped
  lostFiles: number; // found missing or replaced
  evictedRoots: number;
  rejectedWrites: number; // not stored: no space, or a disk fault
}>;

/** The cache of root data on this disk. All spans are bytes of the root's data, half-open. */
export type Extents = Readonly<{
  /** Which parts of a span are not present: disjoint, ascending, widened to whole steps. Empty when all is present. */
  missing: (root: RootSpec, span: ByteSpan) => ByteSpan[];
  /** Whether every byte of a span is present. */
  present: (root: RootSpec, span: ByteSpan) => boolean;
  /**
   * Stores checked bytes that begin at `start`, at most 1 MiB.
   * Returns false when they could not be stored (no space, disk fault).
   */
  write: (root: RootSpec, start: number, bytes: Uint8Array) => Promise<boolean>;
  /**
   * Reads a span of 1 byte to 1 MiB and compares it with its checksums.
   * @returns undefined when it is not present; what was found damaged is dropped, and is then not present.
   */
  read: (root: RootSpec, span: ByteSpan) => Promise<Uint8Array | undefined>;
  /**
   * Gives the path of the file that holds a span, once every step of the span was compared with its checksum since
   * the file changed last: at most {@link comparedBytesMax} are compared for one call.
   * The file exists for at least 5 s from then.
   * @returns undefined when the span is not present, or is too large to be compared now, or is being written.
   */
  file: (root: RootSpec, span: ByteSpan) => Promise<string | undefined>;
  /** The path of a root's file, whether or not it exists. */
  path: (root: RootSpec) => string;
  /** Keeps a root from being evicted until the returned function is called. */
  hold: (root: RootSpec) => () => void;
  /** Keeps a root from being evicted until `unpin`, also after a restart. */
  pin: (root: RootSpec) => void;
  unpin: (root: RootSpec) => void;
  /** Removes a root's data. Who reads its file already reads on. */
  remove: (root: RootSpec) => Promise<void>;
  /** SHA-256 of the whole data, if it was ever set. */
  digest: (root: RootSpec) => Uint8Array | undefined;
  setDigest: (root: RootSpec, digest: Uint8Array) => void;
  /** Whether there was space lately. */
  hasSpace: () => boolean;
  stats: () => ExtentStats;
  /** Compares up to `count` present steps, chosen by `random`, with their checksums; drops the damaged ones. */
  sample: (count: number, random: () => number) => Promise<Readonly<{ compared: number; damaged: number }>>;
  /** Texts of what is wrong with the map; empty when it is whole. */
  integrity: () => string[];
  /** Writes what is unwritten. Returns false when that failed. */
  flush: () => Promise<boolean>;
  close: () => Promise<void>;
}>;

/** Location and limits of the cache. */
export type ExtentsOptions = QuotaLimits &
  Readonly<{
    folder: string; // of the files
    mapPath: string; // of the SQLite file
    clock: Clock;
    log: Log;
    freeBytesOf?: () => Promise<number>; // asks the disk; by default the one of `folder`
  }>;

/**
 * Opens the cache. What a crash left half done is dropped: files without a row are unlinked in the background.
 *
 * @throws Error when the folder or the map cannot be made.
 */
export function openExtents(options: ExtentsOptions): Extents {
  const { folder, clock, log } = options;
  mkdirSync(folder, { recursive: true });
  const map = openExtentMap(options.mapPath, (reason) =>
    log.warn("the content map was damaged; cached content is forgotten", { reason }),
  );
  const files = openExtentFiles(folder);
  const roots = createRoots(map, clock, log);
  const freeBytesOf = options.freeBytesOf ?? (() => diskFreeBytes(folder));
  const quota = createQuota({ limits: options, map, roots, files, clock, log, freeBytesOf });
  const reading = createReading({ roots, files, log });
  const paths = createPaths({ files, reading, clock });
  const flush = startFlush({ map, roots, files, log });
  const sweeping = sweep(files, roots, map).catch((error: unknown) =>
    log.warn("orphaned content files could not be swept", { error }),
  );
  const writes = createWrites({ roots, files, quota, log });

  return {
    missing: (spec, span) => (spec.size === 0 ? [] : roots.find(spec).steps.missing(span)),
    present: (spec, span) => spec.size === 0 || roots.find(spec).steps.missing(span).length === 0,
    write: writes.write,
    read: (spec, span) => withRoot(roots, spec, span, (root) => reading.compare(root, span)),
    file: (spec, span) => withRoot(roots, spec, span, (root) => paths.give(root, span)),
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
      ...reading.stats(),
    }),
    sample: (count, random) => sampleSteps({ map, roots, reading }, count, random),
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

/** Works on a root whose span is present, and keeps it meanwhile. */
async function withRoot<Value>(
  roots: Roots,
  spec: RootSpec,
  span: ByteSpan,
  work: (root: Root) => Promise<Value | undefined>,
): Promise<Value | undefined> {
  if (span.start >= span.end) return undefined;
  const root = roots.find(spec);
  if (root.steps.missing(span).length > 0) return undefined;
  roots.touch(root);
  const end = roots.use(root);
  try {
    return await work(root);
  } finally {
    end();
  }
}

function setPinned(roots: Roots, spec: RootSpec, pinned: boolean): void {
  if (spec.size === 0) return;
  const root = roots.find(spec);
  root.pinned = pinned;
  roots.change(root);
}

/** Unlinks files that no row names: a crash came between the file and the row, or between the row and the unlink. */
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
    const giveBack = await quota.take(bytes.length);
    if (giveBack === undefined) return "rejected";
    try {
      return root.isGone ? "rejected" : await storeInQuota(root, start, bytes);
    } finally {
      giveBack();
    }
  }

  async function storeInQuota(root: Root, start: number, bytes: Uint8Array): Promise<Stored> {
    const result = await files.write(root.name, root.size, start, bytes);
    if (result.kind === "full") {
      quota.noteFull();
      // What was written before the disk was full is of no use, and would take room that nobody counts.
      if (root.bytes === 0 && root.users === 1) await files.remove(root.name);
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

  return {
    async write(spec: RootSpec, start: number, bytes: Uint8Array): Promise<boolean> {
      assert(bytes.length <= extentCallBytesMax, "a writing is at most 1 MiB");
      assert(start >= 0 && start + bytes.length <= spec.size, "a write is within its root");
      if (bytes.length === 0) return true;
      const root = roots.find(spec);
      let result = await storeInUse(root, start, bytes);
      if (result === "lost") {
        // Something that is not a file is in its place: whatever was present is lost.
        roots.forget(root.name);
        await files.remove(root.name);
        result = await storeInUse(roots.find(spec), start, bytes);
      }
      if (result !== "stored") rejected += 1;
      return result === "stored";
    },
    rejected: () => rejected,
  };
}

/** Marks the steps that are whole now. */
function mark(roots: Roots, fragments: Fragments, root: Root, start: number, bytes: Uint8Array): void {
  const { name, size } = root;
  for (const { step, span, isWhole } of splitSteps(size, start, bytes.length)) {
    const part = bytes.subarray(span.start - start, span.end - start);
    const whole = isWhole ? part : fragments.add(name, size, step, span.start, part);
    if (whole !== undefined) roots.add(root, step, checksumOf(whole));
  }
}
