/**
 * The sandbox's database: Stripe's objects, events, due deliveries, and responses by idempotency key.
 *
 * Every call is one transaction that is durable before the response is sent, so a crash loses no reported payment.
 * @module
 */
import { Database } from "bun:sqlite";
import { assert } from "../../lib/assert.ts";
import { isJsonObject, type JsonObject, readJson } from "../../lib/json.ts";

/** Kinds of objects that are stored. */
export type ObjectKind = "payment_intent" | "checkout" | "charge" | "refund" | "dispute" | "event";

/** A due delivery of an event. */
export type Delivery = Readonly<{ id: number; eventId: string; attempts: number; dueAt: number }>;

/** A response that is sent again for the same idempotency key. */
export type StoredResponse = Readonly<{ request: string; status: number; body: string }>;

export type StripeDatabase = Readonly<{
  /** Runs work as one transaction; an error rolls it back. */
  transaction: <Result>(work: () => Result) => Result;
  put: (kind: ObjectKind, object: JsonObject, createdAt: number) => void;
  find: (kind: ObjectKind, id: string) => JsonObject | undefined;
  /** Lists objects, newest first. */
  list: (kind: ObjectKind, page: ListPage) => JsonObject[];
  /** Open checkouts, oldest first. */
  openCheckouts: () => JsonObject[];
  addDelivery: (eventId: string, dueAt: number) => void;
  dueDeliveries: (now: number, limit: number) => Delivery[];
  nextDueAt: () => number | undefined;
  deliveryCount: () => number;
  postponeDelivery: (id: number, dueAt: number) => void;
  removeDelivery: (id: number) => void;
  storeResponse: (key: string, response: StoredResponse, at: number) => void;
  storedResponse: (key: string) => StoredResponse | undefined;
  removeResponsesBefore: (at: number) => void;
  close: () => void;
}>;

/** Part of a list: created in `[from, to)`, Unix milliseconds, and older than the object `after`. */
export type ListPage = Readonly<{ from: number; to: number; after: string | undefined; limit: number }>;

const schema = `
  CREATE TABLE IF NOT EXISTS objects (
    sequence INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    json TEXT NOT NULL,
    UNIQUE (kind, id)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS open_checkouts ON objects (json_extract(json, '$.session.status'))
    WHERE kind = 'checkout';
  CREATE TABLE IF NOT EXISTS letters (
    id INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    due_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX IF NOT EXISTS letters_due ON letters (due_at);
  CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    request TEXT NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;
`;

/**
 * Opens the database.
 * @param path - A file, created if needed; `undefined` uses memory only.
 */
export function openStripeDatabase(path: string | undefined): StripeDatabase {
  const db = new Database(path ?? ":memory:", { create: true, readwrite: true, strict: true });
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  db.run(schema);
  return {
    // A nested transaction is a savepoint.
    transaction: (work) => (db.inTransaction ? db.transaction(work)() : db.transaction(work).immediate()),
    put: (kind, object, createdAt) => {
      db.query(
        "INSERT INTO objects (kind, id, created_at, json) VALUES (?, ?, ?, ?) " +
          "ON CONFLICT (kind, id) DO UPDATE SET json = excluded.json",
      ).run(kind, idOf(object), createdAt, JSON.stringify(object));
    },
    find: (kind, id) => {
      const row = db
        .query<{ json: string }, [string, string]>("SELECT json FROM objects WHERE kind = ? AND id = ?")
        .get(kind, id);
      return row === null ? undefined : readObject(row.json);
    },
    list: (kind, page) => listObjects(db, kind, page),
    openCheckouts: () =>
      db
        .query<{ json: string }, []>(
          "SELECT json FROM objects WHERE kind = 'checkout' AND json_extract(json, '$.session.status') = 'open' " +
            "ORDER BY sequence",
        )
        .all()
        .map(({ json }) => readObject(json)),
    ...deliveryTable(db),
    ...responseTable(db),
    close: () => db.close(),
  };
}

function deliveryTable(db: Database) {
  return {
    addDelivery: (eventId: string, dueAt: number) => {
      db.query("INSERT INTO letters (event_id, attempts, due_at) VALUES (?, 0, ?)").run(eventId, dueAt);
    },
    dueDeliveries: (now: number, limit: number): Delivery[] =>
      db
        .query<{ id: number; event_id: string; attempts: number; due_at: number }, [number, number]>(
          "SELECT id, event_id, attempts, due_at FROM letters WHERE due_at <= ? ORDER BY due_at, id LIMIT ?",
        )
        .all(now, limit)
        .map((row) => ({ id: row.id, eventId: row.event_id, attempts: row.attempts, dueAt: row.due_at })),
    nextDueAt: () =>
      db.query<{ due_at: number | null }, []>("SELECT min(due_at) AS due_at FROM letters").get()?.due_at ?? undefined,
    deliveryCount: () => db.query<{ n: number }, []>("SELECT count(*) AS n FROM letters").get()?.n ?? 0,
    postponeDelivery: (id: number, dueAt: number) => {
      db.query("UPDATE letters SET attempts = attempts + 1, due_at = ? WHERE id = ?").run(dueAt, id);
    },
    removeDelivery: (id: number) => {
      db.query("DELETE FROM letters WHERE id = ?").run(id);
    },
  };
}

function responseTable(db: Database) {
  return {
    storeResponse: (key: string, { request, status, body }: StoredResponse, at: number) => {
      db.query("INSERT INTO answers (key, request, status, body, at) VALUES (?, ?, ?, ?, ?)").run(
        key,
        request,
        status,
        body,
        at,
      );
    },
    storedResponse: (key: string): StoredResponse | undefined =>
      db
        .query<{ request: string; status: number; body: string }, [string]>(
          "SELECT request, status, body FROM answers WHERE key = ?",
        )
        .get(key) ?? undefined,
    removeResponsesBefore: (at: number) => {
      db.query("DELETE FROM answers WHERE at < ?").run(at);
    },
  };
}

function listObjects(db: Database, kind: ObjectKind, { from, to, after, limit }: ListPage): JsonObject[] {
  const place =
    after === undefined
      ? Number.MAX_SAFE_INTEGER
      : (db
          .query<{ sequence: number }, [string, string]>("SELECT sequence FROM objects WHERE kind = ? AND id = ?")
          .get(kind, after)?.sequence ?? 0);
  return db
    .query<{ json: string }, [string, number, number, number, number]>(
      "SELECT json FROM objects WHERE kind = ? AND created_at >= ? AND created_at < ? AND sequence < ? " +
        "ORDER BY sequence DESC LIMIT ?",
    )
    .all(kind, from, to, place, limit)
    .map(({ json }) => readObject(json));
}

function idOf(object: JsonObject): string {
  const id = object["id"];
  assert(typeof id === "string", "an object of the sandbox has an id");
  return id;
}

function readObject(json: string): JsonObject {
  const object = readJson(json);
  assert(isJsonObject(object), "the sandbox stores objects");
  return object;
}
