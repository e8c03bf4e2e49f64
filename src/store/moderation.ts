/**
 * What this gateway refuses to serve: ids, content hashes and names, in a file of their own.
 *
 * The index can be rebuilt from the chain, what an administrator was told cannot: this file is synced before a call
 * returns, and every process that has it open sees the change with its next question.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { decodeBase64url, encodeBase64url } from "../lib/base64url.ts";
import { type Clock, unixSeconds } from "../lib/clock.ts";
import { closeDatabase, openForWriting, prepare, prepareQuery } from "./sqlite.ts";

/** What an administrator says beside the thing itself; documentation only. */
export type BlockNote = Readonly<{ source?: string; notes?: string }>;

/** One refusal, as it is listed. */
export type Blocked = Readonly<{
  kind: BlockedKind;
  /** The id, the base64url SHA-256, or the name. */
  value: string;
  source: string | null;
  notes: string | null;
  /** Unix seconds. */
  blockedAt: number;
}>;

/** Where in the list a refusal stands. */
export type BlockedPosition = Pick<Blocked, "blockedAt" | "kind" | "value">;

/** What can be refused. */
export type BlockedKind = "id" | "hash" | "name";

/** Where the payload of a refused id lies; half-open bytes of the data of its root transaction. */
export type RefusedPlace = Readonly<{
  rootId: Id;
  /** base64url; "" when the root has none. */
  dataRoot: string;
  start: number;
  end: number;
}>;

/** The refusals in force. Every question reads the file: an answer is never older than the call. */
export type Moderation = Readonly<{
  block: (kind: BlockedKind, value: string, note: BlockNote) => void;
  /** Notes where a refused id lies, so that its bytes are known also where the index does not have it. */
  place: (id: Id, place: RefusedPlace) => void;
  /** Answers whether it was blocked. */
  unblock: (kind: BlockedKind, value: string) => boolean;
  isBlockedId: (id: Id) => boolean;
  /** @param digest - SHA-256 of a payload, 32 bytes. */
  isBlockedDigest: (digest: Uint8Array) => boolean;
  isBlockedName: (name: string) => boolean;
  /** Whether the payload of a refused id is known to lie in a span of a transaction's data. */
  isBlockedWithin: (rootId: Id, start: number, end: number) => boolean;
  /** The same of data by its root, for bytes of which no more is known; "" is never refused. */
  isBlockedUnder: (dataRoot: string, start: number, end: number) => boolean;
  /** Whether content of unknown digest must be hashed before it leaves. */
  hasBlockedDigests: () => boolean;
  /** Whether anything of that kind is refused. */
  has: (kind: BlockedKind) => boolean;
  /** Changes whenever a refusal is added or taken back, in any process: a key for what was derived from them. */
  version: () => number;
  /** In order of time, newest first; at most `limit`, those that come after one that was listed. */
  list: (limit: number, after?: BlockedPosition) => readonly Blocked[];
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
];

const beforeAll = { blockedAt: Number.MAX_SAFE_INTEGER, kind: "", value: "" } as const;

/** The file is small: refusals are typed in by people or come from lists of thousands. */
const cacheBytes = 2 * 2 ** 20;

/** Opens the refusals, creating the file when absent. Any number of threads and processes may hold it. */
export function openModeration(path: string, clock: Clock): Moderation {
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
  const newest = prepareQuery<Blocked>(
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
