/**
 * The content cache's rows: roots, their last use, and the checksums of their steps. They survive restarts.
 * Transactions are small. The caller syncs data to the disk before it saves a row that describes the data.
 * @module
 */
import type { Database, SQLQueryBindings } from "bun:sqlite";

import { checkIntegrity, closeDatabase, inTransaction, openForWriting, removeDatabase } from "../sqlite.ts";

/** A stored root. */
export type RootRow = Readonly<{
  root: number;
  name: string;
  size: number; // bytes of data
  bytes: number; // disk space of its present steps
  used: number; // Unix milliseconds of its last use
  pinned: boolean;
  digest: Uint8Array | undefined; // SHA-256 of the complete data; undefined until all data was read
}>;

/** Changes of one root, written together. */
export type RootChange = Readonly<{
  name: string;
  size: number;
  bytes: number;
  used: number;
  pinned: boolean;
  digest: Uint8Array | undefined;
  pages: readonly Readonly<{ page: number; sums: Uint8Array }>[];
}>;

/** The rows. Calls are synchronous and touch few rows, except for `totalBytes` and `names`. */
export type ExtentMap = Readonly<{
  root: (name: string) => RootRow | undefined;
  page: (root: number, page: number) => Uint8Array | undefined;
  /** Numbers of the pages that have rows. */
  pages: (root: number) => number[];
  /** Writes changes in one transaction. */
  save: (changes: readonly RootChange[]) => void;
  /** Writes the times of last use. */
  touch: (uses: ReadonlyMap<string, number>) => void;
  /** The least recently used roots that are not pinned. */
  oldest: (count: number) => Readonly<{ name: string; bytes: number }>[];
  remove: (names: readonly string[]) => void;
  /** Disk space of all present steps; reads all roots (80 ms per million). */
  totalBytes: () => number;
  /** Names after a name, in order, for iteration in small steps. */
  names: (after: string, count: number) => string[];
  count: () => number;
  /** Descriptions of damage; empty when the file is intact. Reads the complete file. */
  integrity: () => string[];
  close: () => void;
}>;

const migrations = [
  `CREATE TABLE roots (
     root INTEGER PRIMARY KEY,
     name TEXT NOT NULL UNIQUE,
     size INTEGER NOT NULL,
     bytes INTEGER NOT NULL,
     used INTEGER NOT NULL,
     pinned INTEGER NOT NULL,
     digest BLOB
   ) STRICT;
   CREATE INDEX roots_by_use ON roots (used) WHERE pinned = 0;
   CREATE TABLE pages (
     root INTEGER NOT NULL,
     page INTEGER NOT NULL,
     sums BLOB NOT NULL,
     PRIMARY KEY (root, page)
   ) STRICT, WITHOUT ROWID;`,
];

/** Enough for point reads of small rows; the operating system caches the rest. */
const cacheBytes = 4 * 2 ** 20;

/** Enough to report that the file is damaged. */
const faultsMax = 100;

type StoredRoot = Omit<RootRow, "pinned" | "digest"> & Readonly<{ pinned: number; digest: Uint8Array | null }>;

/**
 * Opens the rows. Recreates a file that is damaged or of an unknown version, because it is only a cache.
 *
 * @param path - The SQLite file.
 * @param onReset - Called with the reason when the file was recreated; the files of its rows are then orphans.
 */
export function openExtentMap(path: string, onReset: (reason: string) => void): ExtentMap {
  const db = openOrReset(path, onReset);
  // Closing the connection finalizes statements of `query`; statements of `prepare` would keep the file open.
  const rootByName = db.query<StoredRoot, SQLQueryBindings[]>("SELECT * FROM roots WHERE name = ?");
  const pageOf = db.query<{ sums: Uint8Array }, SQLQueryBindings[]>(
    "SELECT sums FROM pages WHERE root = ? AND page = ?",
  );
  const pagesOf = db.query<{ page: number }, SQLQueryBindings[]>("SELECT page FROM pages WHERE root = ?");
  const putRoot = db.query<
    { root: number },
    SQLQueryBindings[]
  >(`INSERT INTO roots (name, size, bytes, used, pinned, digest) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes, used = max(used, excluded.used),
       pinned = excluded.pinned, digest = excluded.digest
     RETURNING root`);
  const putPage = db.query(
    "INSERT INTO pages VALUES (?, ?, ?) ON CONFLICT (root, page) DO UPDATE SET sums = excluded.sums",
  );
  const setUsed = db.query("UPDATE roots SET used = ? WHERE name = ?");
  const byUse = db.query<{ name: string; bytes: number }, SQLQueryBindings[]>(
    "SELECT name, bytes FROM roots WHERE pinned = 0 ORDER BY used LIMIT ?",
  );
  const dropPages = db.query("DELETE FROM pages WHERE root = (SELECT root FROM roots WHERE name = ?)");
  const dropRoot = db.query("DELETE FROM roots WHERE name = ?");
  const sum = db.query<{ total: number }, SQLQueryBindings[]>("SELECT coalesce(sum(bytes), 0) AS total FROM roots");
  const someNames = db.query<{ name: string }, SQLQueryBindings[]>(
    "SELECT name FROM roots WHERE name > ? ORDER BY name LIMIT ?",
  );
  const countRoots = db.query<{ count: number }, SQLQueryBindings[]>("SELECT count(*) AS count FROM roots");

  function saveOne({ name, size, bytes, used, pinned, digest, pages }: RootChange): void {
    const row = putRoot.get(name, size, bytes, used, pinned ? 1 : 0, digest ?? null);
    for (const { page, sums } of pages) if (row !== null) putPage.run(row.root, page, sums);
  }

  return {
    root(name) {
      const row = rootByName.get(name);
      return row === null ? undefined : { ...row, pinned: row.pinned === 1, digest: row.digest ?? undefined };
    },
    page: (root, page) => pageOf.get(root, page)?.sums,
    pages: (root) => pagesOf.all(root).map(({ page }) => page),
    save: (changes) => inTransaction(db, () => changes.forEach(saveOne)),
    touch: (uses) =>
      inTransaction(db, () => {
        for (const [name, used] of uses) setUsed.run(used, name);
      }),
    oldest: (count) => byUse.all(count),
    remove: (names) =>
      inTransaction(db, () => {
        for (const name of names) {
          dropPages.run(name);
          dropRoot.run(name);
        }
      }),
    totalBytes: () => sum.get()?.total ?? 0,
    names: (after, count) => someNames.all(after, count).map(({ name }) => name),
    count: () => countRoots.get()?.count ?? 0,
    integrity: () => checkIntegrity(db, faultsMax),
    close: () => closeDatabase(db),
  };
}

function openOrReset(path: string, onReset: (reason: string) => void): Database {
  // A transaction that a power loss reverts costs a fetch, never a wrong byte.
  const open = () => openForWriting(path, { migrations, synchronous: "NORMAL", cacheBytes });
  try {
    return open();
  } catch (error) {
    if (!(error instanceof Error) || !isDamage(error.cause)) throw error;
    onReset(error.message);
  }
  removeDatabase(path);
  return open();
}

/** Whether the file is damaged, as SQLite reports it, or of a version that `openForWriting` rejects. */
function isDamage(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false;
  return "code" in cause && typeof cause.code === "string" ? /^SQLITE_(CORRUPT|NOTADB)/.test(cause.code) : true;
}
