/**
 * The roots of the content cache that are in memory: what is known of each, who uses it, and what of it is unwritten.
 * There is one record a name while anyone uses it or anything of it is unwritten; others come and go by use.
 * @module
 */
import { LRUCache } from "lru-cache";
import { assert } from "../../lib/assert.ts";
import { decodeBase64url } from "../../lib/base64url.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { RootSpec } from "../root-spec.ts";
import type { FileIdentity } from "./extent-files.ts";
import type { ExtentMap, RootChange, RootRow } from "./extent-map.ts";
import { createSteps, type Steps } from "./extent-steps.ts";

/** A root in memory. */
export type Root = {
  readonly name: string;
  readonly size: number;
  readonly steps: Steps;
  bytes: number; // of disk that its present steps take
  used: number; // Unix milliseconds
  pinned: boolean;
  digest: Uint8Array | undefined;
  isChanged: boolean; // its row is to be written, apart from its steps
  isGone: boolean; // it was evicted or lost: what comes late for it is void
  users: number; // calls under way and holders
  identity: FileIdentity | undefined; // the file's, when steps were last compared
  isUnsettled: boolean; // its file changed so lately that a comparison then does not hold
  handedOutAt: number; // when its path was last given away, Unix milliseconds
};

/** The table of roots in memory. */
export type Roots = Readonly<{
  /** The record of a root; made when there is none. Not for roots without data. */
  find: (spec: RootSpec) => Root;
  /** As `find`, by name. */
  open: (name: string, size: number) => Root;
  /** The record of a name if it is in memory. */
  known: (name: string) => Root | undefined;
  /** Keeps a record in memory until the returned function is called. */
  use: (root: Root) => () => void;
  /** Notes that a root was used now. */
  touch: (root: Root) => void;
  /** Marks and unmarks steps, keeping count. */
  add: (root: Root, step: number, checksum: bigint) => void;
  drop: (root: Root, step: number) => void;
  /** Notes that the row is to be written. */
  change: (root: Root) => void;
  /** Forgets a root, here and, at once or with the next writing, in the rows. */
  forget: (name: string) => void;
  /** Writes what `forget` could not. To be called before anything else is written. */
  saveForgotten: () => void;
  /** Roots of which something is unwritten, at most `count`. */
  unwritten: (count: number) => Root[];
  /** Writes when roots were used. */
  saveUses: () => void;
  totalBytes: () => number;
  /** Roots that are used or unwritten. */
  activeCount: () => number;
}>;

/** Roots in memory: about 1 KiB each, and 2.3 KiB for each 16 MiB of theirs that was looked at. */
const rootsMax = 4_096;

/** Pages in memory over all roots: 40 MiB, of 270 GiB of data. */
const pagesMax = 16_384;

/** A use is worth a write when the last one written is so much older. */
const useWriteAfterMs = 10_000;

/** The name of a root's file: the size belongs to it, as a tree proves no size beyond its last leaf. */
export function rootName({ id, dataRoot, size }: RootSpec): string {
  const bytes = decodeBase64url(dataRoot === "" ? id : dataRoot);
  assert(bytes?.length === 32, "a root is named by 32 bytes");
  return dataRoot === "" ? bytes.toHex() : `${bytes.toHex()}-${size.toString(36)}`;
}

/** Makes the table over the rows. */
export function createRoots(map: ExtentMap, clock: Clock, log: Log): Roots {
  const active = new Map<string, Root>(); // used or unwritten: never let go of
  const recent = new LRUCache<string, Root>({
    max: rootsMax,
    maxSize: pagesMax,
    sizeCalculation: (root) => Math.max(1, root.steps.pagesLoaded()),
  });
  const uses = createUses(map, clock);
  const forgotten = createForgotten(map, log);
  let total = map.totalBytes();

  function settle(root: Root): void {
    if (root.isGone || root.users > 0 || isUnwritten(root)) return;
    active.delete(root.name);
    recent.delete(root.name); // set anew, so that the pages it has now are counted
    recent.set(root.name, root);
  }

  function forget(name: string): void {
    const root = active.get(name) ?? recent.peek(name);
    total -= root?.bytes ?? map.root(name)?.bytes ?? 0;
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

  return {
    find: (spec) => open(rootName(spec), spec.size),
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
      if (root.isGone) return;
      const bytes = root.steps.add(step, checksum);
      root.bytes += bytes;
      total += bytes;
      change(root);
    },
    drop(root, step) {
      if (root.isGone) return;
      const bytes = root.steps.drop(step);
      root.bytes -= bytes;
      total -= bytes;
      change(root);
    },
    change,
    forget,
    saveForgotten: forgotten.save,
    unwritten: (count) => active.values().filter(isUnwritten).take(count).toArray(),
    saveUses: uses.save,
    totalBytes: () => total,
    activeCount: () => active.size,
  };
}

/** Names whose rows are to be removed: at once, or later when the disk has no space even for that. */
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
    save,
  };
}

/** When roots were used, written a bunch at a time. */
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
    steps: createSteps(size, new Set(number === undefined ? [] : map.pages(number)), (page) =>
      number === undefined ? undefined : map.page(number, page),
    ),
    bytes: row?.bytes ?? 0,
    used: row?.used ?? now,
    pinned: row?.pinned ?? false,
    digest: row?.digest,
    isChanged: false,
    isGone: false,
    users: 0,
    identity: undefined,
    isUnsettled: false,
    handedOutAt: 0,
  };
}

function isUnwritten(root: Root): boolean {
  return root.isChanged || root.steps.isDirty();
}

/** Takes what is unwritten of a root, as a change of its row. */
export function takeChange(root: Root): RootChange {
  root.isChanged = false;
  const { name, size, bytes, used, pinned, digest } = root;
  return { name, size, bytes, used, pinned, digest, pages: root.steps.takeDirty() };
}
