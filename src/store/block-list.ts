/**
 * The block list: ids, content hashes and names that this gateway does not serve, in a separate database.
 *
 * Unlike the index, the block list cannot be rebuilt from the chain. A write is synced before its call returns, and
 * every process that has the file open sees the change with its next query.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { decodeBase64url, encodeBase64url } from "../lib/base64url.ts";
import { type Clock, unixSeconds } from "../lib/clock.ts";
import { closeDatabase, openForWriting, prepare, prepareQuery } from "./sqlite.ts";

/** Source and notes that an administrator gives for an entry; shown in the list only. */
export type BlockNote = Readonly<{ source?: string; notes?: string }>;

/** One entry of the list. */
export type BlockedEntry = Readonly<{
  kind: BlockedKind;
  /** The id, the base64url SHA-256, or the name. */
  value: string;
  source: string | null;
  notes: string | null;
  /** Unix seconds. */
  blockedAt: number;
}>;

/** Position of an entry in the list. */
export type BlockedPosition = Pick<BlockedEntry, "blockedAt" | "kind" | "value">;

type BlockedKind = "id" | "hash" | "name";

/** Position of a blocked id's payload: a half-open span of its root transaction's data. */
export type BlockedPlace = Readonly<{
  rootId: Id;
  /** base64url; "" when the root has none. */
  dataRoot: string;
  start: number;
  end: number;
}>;

/** The block list. Every query reads the file, so it sees all earlier changes. */
export type BlockList = Readonly<{
  block: (kind: BlockedKind, value: string, note: BlockNote) => void;
  /** Records where a blocked id's bytes are, for roots that the index does not have. */
  place: (id: Id, place: BlockedPlace) => void;
  /** @returns Whether it was blocked. */
  unblock: (kind: BlockedKind, value: string) => boolean;
  /** @param value - As in `BlockedEntry`. */
  isBlocked: (kind: BlockedKind, value: string) => boolean;
  isBlockedId: (id: Id) => boolean;
  /** @param digest - SHA-256 of a payload, 32 bytes. */
  isBlockedDigest: (digest: Uint8Array) => boolean;
  isBlockedName: (name: string) => boolean;
  /** Whether a span of a transaction's data overlaps the payload of a blocked id. */
  isBlockedWithin: (rootId: Id, start: number, end: number) => boolean;
  /** The same by data root, for bytes whose transaction is unknown; "" is never blocked. */
  isBlockedUnder: (dataRoot: string, start: number, end: number) => boolean;
  /** Whether content of unknown digest must be hashed before it is served. */
  hasBlockedDigests: () => boolean;
  /** Whether anything of that kind is blocked. */
  has: (kind: BlockedKind) => boolean;
  /** Changes when any process adds or removes an entry or a place: a cache key for values derived from the list. */
  version: () => number;
  /** Newest first; at most `limit` entries after the given position. */
  list: (limit: number, after?: BlockedPosition) => readonly BlockedEntry[];
  close: () => void;
}>;

const migrations = [
  `CREATE TABLE blocked (
     kind TEXT NOT NULL CHECK (kind IN ('id', 'hash', 'name')),
     value TEXT NOT NULL,
     source TEXT,
     notes TEXT,
     blocked_at INTEGER NOT NULL,
     PRIMARY KEY (kind, value)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE revision (number INTEGER NOT NULL) STRICT;
   INSERT INTO revision VALUES (0);
   CREATE TRIGGER blocked_added AFTER INSERT ON blocked BEGIN UPDATE revision SET number = number + 1; END;
   CREATE TRIGGER blocked_removed AFTER DELETE ON blocked BEGIN UPDATE revision SET number = number + 1; END;`,
  `CREATE TABLE places (
     id TEXT PRIMARY KEY,
     root TEXT NOT NULL,
     data_root TEXT NOT NULL,
     first INTEGER NOT NULL,
     beyond INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX places_by_root ON places (root);
   CREATE INDEX places_by_data_root ON places (data_root) WHERE data_root <> '';
   CREATE TRIGGER place_removed AFTER DELETE ON blocked WHEN old.kind = 'id'
     BEGIN DELETE FROM places WHERE id = old.value; END;`,
  "CREATE TRIGGER place_added AFTER INSERT ON places BEGIN UPDATE revision SET number = number + 1; END;",
];

const beforeAll = { blockedAt: Number.MAX_SAFE_INTEGER, kind: "", value: "" } as const;

/** The file is small: entries are typed by people or come from lists of thousands. */
const cacheBytes = 2 * 2 ** 20;

/** Opens the block list; creates the file when absent. Several threads and processes may have it open. */
export function openBlockList(path: string, clock: Clock): BlockList {
  const db = openForWriting(path, { migrations, synchronous: "FULL", cacheBytes });
  const put = prepare(
    db,
    `INSERT INTO blocked (kind, value, source, notes, blocked_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET source = excluded.source, notes = excluded.notes`,
  );
  const putPlace = prepare(
    db,
    `INSERT OR REPLACE INTO places SELECT ?1, ?2, ?3, ?4, ?5
     WHERE EXISTS (SELECT 1 FROM blocked WHERE kind = 'id' AND value = ?1)`,
  );
  const within = (column: "root" | "data_root") =>
    prepareQuery<{ found: number }>(
      db,
      `SELECT 1 AS found FROM places WHERE ${column} = ?1 AND ${column} <> '' AND first < ?3 AND beyond > ?2 LIMIT 1`,
    );
  const withinRoot = within("root");
  const underRoot = within("data_root");
  const remove = prepare(db, "DELETE FROM blocked WHERE kind = ? AND value = ?");
  const find = prepareQuery<{ found: number }>(db, "SELECT 1 AS found FROM blocked WHERE kind = ? AND value = ?");
  const findAny = prepareQuery<{ found: number }>(db, "SELECT 1 AS found FROM blocked WHERE kind = ? LIMIT 1");
  const revision = prepareQuery<{ number: number }>(db, "SELECT number FROM revision");
  const newest = prepareQuery<BlockedEntry>(
    db,
    `SELECT kind, value, source, notes, blocked_at AS blockedAt FROM blocked
     WHERE blocked_at < ?1 OR (blocked_at = ?1 AND (kind, value) > (?2, ?3))
     ORDER BY blocked_at DESC, kind, value LIMIT ?4`,
  );
  const isBlocked = (kind: BlockedKind, value: string): boolean => find.get(kind, value) !== undefined;
  const has = (kind: BlockedKind): boolean => findAny.get(kind) !== undefined;

  return {
    block: (kind, value, { source, notes }) => {
      put.run(kind, value, source ?? null, notes ?? null, unixSeconds(clock));
    },
    place: (id, { rootId, dataRoot, start, end }) => {
      putPlace.run(id, rootId, dataRoot, start, end);
    },
    isBlockedWithin: (rootId, start, end) => withinRoot.get(rootId, start, end) !== undefined,
    isBlockedUnder: (dataRoot, start, end) => underRoot.get(dataRoot, start, end) !== undefined,
    unblock: (kind, value) => remove.run(kind, value).changes > 0,
    isBlocked,
    isBlockedId: (id) => isBlocked("id", id),
    isBlockedDigest: (digest) => isBlocked("hash", encodeBase64url(digest)),
    isBlockedName: (name) => isBlocked("name", name),
    hasBlockedDigests: () => has("hash"),
    has,
    version: () => revision.get()?.number ?? 0,
    list: (limit, after) => {
      const { blockedAt, kind, value } = after ?? beforeAll;
      return newest.all(blockedAt, kind, value, limit);
    },
    close: () => closeDatabase(db),
  };
}

/** Whether a text can be the hash of content: base64url SHA-256 in its canonical spelling. */
export function isContentHash(text: string): boolean {
  return decodeBase64url(text)?.length === 32;
}
