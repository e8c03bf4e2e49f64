/**
 * The folder of manifest indexes: one file a manifest, with look-ups that read few pages, and eviction within a budget.
 *
 * Builds write elsewhere and rename, so every file was complete when it was created. A file that is damaged later is
 * removed and reported as absent, so that it is built again. Processes may share a folder: a file that another
 * process replaced or removed is looked up or built like any other.
 * Source: docs/decisions/090-manifest-indexes.md.
 * @module
 */
import { readdir, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { type Id, idBytes } from "../../arweave/id.ts";
import type { ResolvedPath } from "../../arweave/manifest.ts";
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { removeFolder } from "../../lib/remove-folder.ts";
import { type IndexResult, lookUpPath } from "./manifest-index-file.ts";

/** Identifies an index. Indexes of verified and of unverified bytes are separate. */
export type IndexKey = Readonly<{ id: Id; verified: boolean }>;

/** Result of a look-up. */
type ManifestResponse =
  | Readonly<{ kind: "found"; resolved: ResolvedPath | undefined }>
  | Readonly<{ kind: "unreadable"; reason: string }>;

export type ManifestIndexes = Readonly<{
  /**
   * Looks a path up. Rejects with Failure `busy` when the system has no file handle left.
   * @returns Undefined when the index must be built.
   */
  lookUp: (key: IndexKey, path: string) => Promise<ManifestResponse | undefined>;
  /** Paths for a build: temporary and final. The temporary path is unique for each call. */
  place: (key: IndexKey) => Readonly<{ temporaryPath: string; path: string }>;
  /** Counts a new index, and evicts the least recently used ones. */
  add: (key: IndexKey, bytes: number) => void;
  stats: () => Readonly<{ bytes: number; count: number }>;
  /** Waits for background work. */
  close: () => Promise<void>;
}>;

type ManifestIndexesOptions = Readonly<{
  folder: string;
  /** Disk space of all indexes; the newest index is stored even when it is larger. */
  bytesMax: number;
  clock: Clock;
  log: Log;
}>;

/** Time to live of an index of unverified bytes, because other bytes may replace them. Milliseconds. */
export const unverifiedTtlMs = 60_000;

/** Minimum size that each file counts for the budget; it bounds the number of files. Bytes. */
const chargedMin = 64 * 2 ** 10;

/** Precision with which the order of use survives a restart. Milliseconds. */
const touchEveryMs = 60 * 60_000;

const indexEnd = ".index";
const unverifiedEnd = ".unverified.index";
const temporaryPattern = /\.(\d+)-\d+\.part$/;

/** Codes of a system without handles or memory; the file may be intact. */
const shortageCodes: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE", "ENOMEM"]);

type Entry = Readonly<{ bytes: number; touchedAt: number }>;

/** Opens the folder, which is created with the first index. Existing files are counted in the background. */
export function openManifestIndexes(options: ManifestIndexesOptions): ManifestIndexes {
  const { folder, clock, log } = options;
  const files = createFiles(options);
  let temporaries = 0;
  return {
    async lookUp(key, path) {
      const file = fileOf(key);
      const response = await readIndex(pathIn(folder, file), key.id, path);
      if (response.kind === "absent") return undefined;
      if (response.kind === "damaged") {
        log.warn("the index of a manifest was damaged and will be built again", { file });
        files.forget(file);
        return undefined;
      }
      if (!key.verified && Math.abs(clock() - response.builtAt) > unverifiedTtlMs) return undefined;
      files.use(file);
      return response;
    },
    place(key) {
      const path = pathIn(folder, fileOf(key));
      temporaries += 1;
      return { path, temporaryPath: `${path}.${process.pid}-${temporaries}.part` };
    },
    add: (key, bytes) => files.add(fileOf(key), bytes),
    stats: files.stats,
    close: files.close,
  };
}

function pathIn(folder: string, file: string): string {
  return join(folder, file.slice(0, 2), file);
}

/** The files of the folder, in order of use. */
function createFiles({ folder, bytesMax, clock, log }: ManifestIndexesOptions) {
  const openedAt = clock();
  let entries = new Map<string, Entry>(); // by file, least recently used first
  let totalBytes = 0;
  const work = new Set<Promise<void>>();

  function inBackground(task: Promise<void>): void {
    const watched = task
      .catch((error: unknown) => log.warn("maintenance of the folder of manifest indexes failed", { folder, error }))
      .finally(() => work.delete(watched));
    work.add(watched);
  }

  function count(file: string, entry: Entry): void {
    totalBytes += entry.bytes - (entries.get(file)?.bytes ?? 0);
    entries.delete(file);
    entries.set(file, entry);
  }

  function forget(file: string): void {
    totalBytes -= entries.get(file)?.bytes ?? 0;
    entries.delete(file);
    // Synchronous, so that it cannot remove a file that is built meanwhile.
    removeFolder(pathIn(folder, file));
  }

  function evict(): void {
    for (const file of entries.keys()) {
      if (totalBytes <= bytesMax || entries.size <= 1) return;
      forget(file);
    }
  }

  async function countAll(): Promise<void> {
    const found = await listFiles(folder);
    for (const each of found)
      if (isLeftBehind(each, openedAt)) await rm(join(folder, each.shard, each.name), { force: true });
    const known = entries;
    entries = new Map();
    totalBytes = 0;
    const old = found.filter(({ name }) => name.endsWith(indexEnd) && !known.has(name));
    for (const { name, size, usedAt } of old.toSorted((one, other) => one.usedAt - other.usedAt))
      count(name, { bytes: Math.max(chargedMin, size), touchedAt: usedAt });
    for (const [file, entry] of known) count(file, entry);
    evict();
  }

  inBackground(countAll());

  return {
    forget,
    add(file: string, bytes: number): void {
      count(file, { bytes: Math.max(chargedMin, bytes), touchedAt: clock() });
      evict();
    },
    use(file: string): void {
      const entry = entries.get(file);
      if (entry === undefined) return; // not counted yet
      const now = clock();
      const isOld = now - entry.touchedAt > touchEveryMs;
      count(file, isOld ? { ...entry, touchedAt: now } : entry);
      if (isOld) inBackground(touch(pathIn(folder, file), now));
    },
    stats: () => ({ bytes: totalBytes, count: entries.size }),
    close: async (): Promise<void> => {
      await Promise.all(work);
    },
  };
}

/** Stores the time of use; has no effect when the file was evicted meanwhile. */
async function touch(path: string, now: number): Promise<void> {
  await orMissing(utimes(path, now / 1_000, now / 1_000));
}

function fileOf({ id, verified }: IndexKey): string {
  return `${idBytes(id).toHex()}${verified ? indexEnd : unverifiedEnd}`;
}

async function readIndex(path: string, id: Id, wanted: string): Promise<IndexResult> {
  try {
    return await lookUpPath(path, id, wanted);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    if (shortageCodes.has(error.code)) throw new Failure("busy", { path }, error);
    return { kind: "damaged" }; // a disk error, or a folder at the path
  }
}

type StoredFile = Readonly<{ shard: string; name: string; size: number; usedAt: number }>;

async function listFiles(folder: string): Promise<StoredFile[]> {
  const files: StoredFile[] = [];
  for (const shard of await namesIn(folder))
    for (const name of await namesIn(join(folder, shard))) {
      const found = await orMissing(stat(join(folder, shard, name)));
      if (found !== undefined) files.push({ shard, name, size: found.size, usedAt: found.mtimeMs });
    }
  return files;
}

async function namesIn(folder: string): Promise<string[]> {
  return (await orMissing(readdir(folder))) ?? [];
}

async function orMissing<Result>(work: Promise<Result>): Promise<Result | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"))
      return undefined;
    throw error;
  }
}

/** Whether a temporary file was left by a process that has ended, or by an earlier one with the same number. */
function isLeftBehind({ name, usedAt }: StoredFile, openedAt: number): boolean {
  const pid = temporaryPattern.exec(name)?.[1];
  if (pid === undefined) return false;
  return Number(pid) === process.pid ? usedAt < openedAt : !isAlive(Number(pid));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"; // another user's
  }
}
