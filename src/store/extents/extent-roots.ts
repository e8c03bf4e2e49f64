/**
 * The in-memory records of the content cache's roots, and the writer that flushes their changes.
 *
 * A name has one record while a caller uses it or changes are unwritten; other records are in an LRU cache. A flush
 * syncs the data before it writes the rows. After a crash the rows may lack stored data but never claim absent data.
 * @module
 */
import { LRUCache } from "lru-cache";
import { assert } from "../../lib/assert.ts";
import { decodeBase64url } from "../../lib/base64url.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { RootSpec } from "../root-spec.ts";
import type { ExtentFiles, FileIdentity } from "./extent-files.ts";
import type { ExtentMap, RootChange, RootRow } from "./extent-map.ts";
import { addStep, createSteps, dropStep, returnDirty, type Steps, takeDirty } from "./extent-steps.ts";
import type { RootHotSteps } from "./hot-steps.ts";

/** A root in memory. */
export type Root = {
  readonly name: string;
  readonly size: number;
  readonly steps: Steps;
  readonly hotSteps: RootHotSteps;
  bytes: number; // disk space of its present steps
  used: number; // Unix milliseconds
  pinned: boolean;
  digest: Uint8Array | undefined;
  isChanged: boolean; // its row, apart from its steps, is unwritten
  isGone: boolean; // evicted or lost: later calls have no effect
  users: number; // calls under way and holders
  identity: FileIdentity | undefined; // of the file when steps were last verified
  isUnsettled: boolean; // the file changed too recently for a verification to hold
  pathReturnedAt: number; // when its path was last returned to a caller, Unix milliseconds
};

/** The table of roots in memory. */
export type Roots = Readonly<{
  /** The record of a root; creates it when absent. Not for roots without data. */
  find: (spec: RootSpec) => Root;
  /** As `find`, by name. */
  open: (name: string, size: number) => Root;
  /** The record of a name if it is in memory. */
  known: (name: string) => Root | undefined;
  /** Holds a record in memory until the returned function is called. */
  use: (root: Root) => () => void;
  /** Sets the root's last use to now. */
  touch: (root: Root) => void;
  /** Mark a step as present or absent, and update the byte counts. */
  add: (root: Root, step: number, checksum: bigint) => void;
  drop: (root: Root, step: number) => void;
  /** Marks the row as unwritten. */
  change: (root: Root) => void;
  /** Removes a root from memory, and its row now or with the next flush. */
  forget: (name: string) => void;
  /** Removes the rows that `forget` could not. Must precede any other write. */
  saveForgotten: () => void;
  /** At most `count` roots with unwritten changes. */
  unwritten: (count: number) => Root[];
  /** Writes the times of last use. */
  saveUses: () => void;
  totalBytes: () => number;
  /** Whether a root was forgotten whose row is not removed yet. */
  isForgotten: (name: string) => boolean;
  /** Number of roots that eviction passes over: they are in use, unwritten or forgotten. */
  passedCount: () => number;
}>;

/** Roots in memory: about 1.4 KB each, and 9 bytes for each of 64 KiB of their data, once its page is loaded. */
const rootsMax = 4_096;

/** Pages in memory over all roots: 40 MiB for 270 GiB of data. */
const pagesMax = 16_384;

/** The last use is written only when the written time is at least this much older. */
const useWriteAfterMs = 10_000;

/** The name of a root's file. It includes the size, because a Merkle tree proves no size beyond its last leaf. */
export function rootName({ id, dataRoot, size }: RootSpec): string {
  const bytes = decodeBase64url(dataRoot === "" ? id : dataRoot);
  assert(bytes?.length === 32, "a root is named by 32 bytes");
  return dataRoot === "" ? bytes.toHex() : `${bytes.toHex()}-${size.toString(36)}`;
}

/** Names of specs: open content requests its root several times for each range, and a name takes about 1 µs. */
const names = new WeakMap<RootSpec, string>();

function nameOf(spec: RootSpec): string {
  const known = names.get(spec);
  if (known !== undefined) return known;
  const name = rootName(spec);
  names.set(spec, name);
  return name;
}

export function createRoots(map: ExtentMap, clock: Clock, log: Log): Roots {
  const active = new Map<string, Root>(); // in use or unwritten: never evicted
  const recent = new LRUCache<string, Root>({
    max: rootsMax,
    maxSize: pagesMax,
    sizeCalculation: (root) => Math.max(1, root.steps.pagesLoaded),
  });
  const uses = createUses(map, clock);
  const forgotten = createForgotten(map, log);
  let total = map.totalBytes();

  function settle(root: Root): void {
    if (root.isGone || root.users > 0 || isUnwritten(root)) return;
    active.delete(root.name);
    recent.delete(root.name); // removed first, so that the cache counts its present number of pages
    recent.set(root.name, root);
  }

  function forget(name: string): void {
    const root = active.get(name) ?? recent.peek(name);
    // The bytes of a row that could not be removed were subtracted before.
    total -= root?.bytes ?? (forgotten.has(name) ? 0 : map.root(name)?.bytes) ?? 0;
    if (root !== undefined) root.isGone = true;
    active.delete(name);
    recent.delete(name);
    uses.forget(name);
    forgotten.add(name);
  }

  function open(name: string, size: number): Root {
    const known = active.get(name) ?? recent.get(name);
    if (known !== undefined) return known;
    const root = load(map, forgotten.has(name) ? undefined : map.root(name), name, size, clock());
    recent.set(name, root);
    return root;
  }

  function change(root: Root): void {
    if (root.isGone) return;
    root.isChanged = true;
    active.set(root.name, root);
  }

  function resize(root: Root, by: number): void {
    root.bytes += by;
    total += by;
    change(root);
  }

  return {
    find: (spec) => open(nameOf(spec), spec.size),
    open,
    known: (name) => active.get(name) ?? recent.peek(name),
    use(root) {
      root.users += 1;
      if (!root.isGone) active.set(root.name, root);
      let ended = false;
      return () => {
        if (ended) return;
        ended = true;
        root.users -= 1;
        settle(root);
      };
    },
    touch: uses.note,
    add(root, step, checksum) {
      if (!root.isGone) resize(root, addStep(root.steps, step, checksum));
    },
    drop(root, step) {
      if (root.isGone) return;
      root.hotSteps.delete(step);
      resize(root, -dropStep(root.steps, step));
    },
    change,
    forget,
    saveForgotten: forgotten.save,
    unwritten: (count) => active.values().filter(isUnwritten).take(count).toArray(),
    saveUses: uses.save,
    totalBytes: () => total,
    isForgotten: forgotten.has,
    passedCount: () => active.size + forgotten.count(),
  };
}

/** Names whose rows are to be removed: now, or later when the disk lacks space even for a removal. */
function createForgotten(map: ExtentMap, log: Log) {
  const names = new Set<string>();
  function save(): void {
    if (names.size > 0) map.remove([...names]);
    names.clear();
  }
  return {
    add(name: string) {
      names.add(name);
      try {
        save();
      } catch (error) {
        log.warn("a content row could not be removed yet", { error });
      }
    },
    has: (name: string) => names.has(name),
    count: () => names.size,
    save,
  };
}

/** Times of last use, written in batches. */
function createUses(map: ExtentMap, clock: Clock) {
  const unwritten = new Map<string, number>();
  return {
    note(root: Root) {
      const now = clock();
      if (now - root.used < useWriteAfterMs || root.bytes === 0) return;
      root.used = now;
      unwritten.set(root.name, now);
    },
    forget: (name: string) => unwritten.delete(name),
    save() {
      if (unwritten.size > 0) map.touch(unwritten);
      unwritten.clear();
    },
  };
}

function load(map: ExtentMap, row: RootRow | undefined, name: string, size: number, now: number): Root {
  assert(row === undefined || row.size === size, "a name has one size");
  const number = row?.root;
  return {
    name,
    size,
    steps: createSteps(size, number === undefined ? [] : map.pages(number), (page) =>
      number === undefined ? undefined : map.page(number, page),
    ),
    hotSteps: new Map(),
    bytes: row?.bytes ?? 0,
    used: row?.used ?? now,
    pinned: row?.pinned ?? false,
    digest: row?.digest,
    isChanged: false,
    isGone: false,
    users: 0,
    identity: undefined,
    isUnsettled: false,
    pathReturnedAt: 0,
  };
}

function isUnwritten(root: Root): boolean {
  return root.isChanged || root.steps.dirtyPages > 0;
}

/** Takes the unwritten changes of a root. */
function takeChange(root: Root): RootChange {
  root.isChanged = false;
  const { name, size, bytes, used, pinned, digest } = root;
  return { name, size, bytes, used, pinned, digest, pages: takeDirty(root.steps) };
}

/** Writes unwritten changes at an interval. */
type Flush = Readonly<{
  /** Writes all current changes. Returns false when a write failed; its changes stay unwritten. */
  run: () => Promise<boolean>;
  /** Stops the interval. */
  stop: () => void;
}>;

/** Roots of one database transaction, which takes a few milliseconds. */
const rootsPerTransaction = 50;

/** Bounds the data that must be fetched again after a crash. */
const flushEveryMs = 1_000;

export function startFlush(parts: {
  map: Pick<ExtentMap, "save">;
  roots: Roots;
  files: Pick<ExtentFiles, "sync">;
  log: Log;
}): Flush {
  const { map, roots, files, log } = parts;
  let running: Promise<boolean> | undefined;
  const timer = setInterval(() => void once(), flushEveryMs);
  timer.unref();

  /** One flush at a time. Errors are logged, not thrown: the next flush retries. */
  function once(): Promise<boolean> {
    running ??= writeAll()
      .catch((error: unknown) => {
        log.error("the content map could not be written", { error });
        return false;
      })
      .finally(() => {
        running = undefined;
      });
    return running;
  }

  async function writeAll(): Promise<boolean> {
    roots.saveForgotten();
    roots.saveUses();
    let isComplete = true;
    for (let left = roots.unwritten(Number.MAX_SAFE_INTEGER).length; left > 0; left -= rootsPerTransaction) {
      isComplete = (await writeSome(roots.unwritten(rootsPerTransaction))) && isComplete;
      if (!isComplete) return false;
    }
    return isComplete;
  }

  async function writeSome(some: readonly Root[]): Promise<boolean> {
    const ends = some.map((root) => roots.use(root));
    // Taken before the files are synced: steps that are marked meanwhile belong to the next flush.
    const taken = some.map((root) => ({ root, change: takeChange(root) }));
    const synced = await Promise.all(taken.map(({ root, change }) => (change.pages.length === 0 ? true : sync(root))));
    const ready = taken.filter(({ root }, index) => synced[index] === true && !root.isGone);
    const isSaved = save(ready.map(({ change }) => change));
    for (const { root, change } of taken) {
      if ((isSaved && ready.some((part) => part.root === root)) || root.isGone) continue;
      root.isChanged = true;
      returnDirty(root.steps, change.pages);
    }
    for (const end of ends) end();
    return isSaved && ready.length === some.filter((root) => !root.isGone).length;
  }

  /** A defect is as a fault of the disk: the root is released, and its changes stay unwritten. */
  async function sync(root: Root): Promise<boolean> {
    try {
      const result = await files.sync(root.name);
      if (result.kind === "lost") roots.forget(root.name);
      if (result.kind === "fault") log.error("a content file could not be synced", { code: result.code });
      return result.kind === "synced";
    } catch (error) {
      log.error("a content file could not be synced", { error });
      return false;
    }
  }

  function save(changes: readonly RootChange[]): boolean {
    try {
      roots.saveForgotten();
      map.save(changes);
      return true;
    } catch (error) {
      log.error("the content map could not be written", { error }); // usually a full disk; the next flush retries
      return false;
    }
  }

  return {
    async run() {
      await running; // the running flush lacks changes that were made after it began
      return once();
    },
    stop: () => clearInterval(timer),
  };
}
