/**
 * Outbox of webhook events. An announcement stores only the key of an indexed object. Once the events are chosen,
 * a delivery for each target replaces the announcement.
 *
 * Both lists are bounded and drop their oldest rows. Rows survive the end of the process. A power loss may lose the
 * last moments, as it may in the index.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Clock, unixSeconds } from "../lib/clock.ts";
import { closeDatabase, inTransaction, openForWriting, prepare, prepareQuery } from "./sqlite.ts";

/** A change of the index that targets may be notified of. */
export type Announcement = Readonly<{ kind: AnnouncedKind; key: string }>;

/** `queued transaction`: requested by an operator, possibly long before the chain is followed to its block. */
type AnnouncedKind = "block" | "block transaction" | "queued transaction" | "item";

/** An announcement with its number. Numbers only grow. */
export type AnnouncedRow = Announcement & Readonly<{ number: number }>;

/** An event, the same for all targets. */
export type Delivery = Readonly<{ event: string; body: string }>;

/** A delivery to one target. */
export type OutboxRow = Delivery &
  Readonly<{
    /** Only grows; a target receives its deliveries in this order. */
    number: number;
    /** Unix seconds. */
    createdAt: number;
    /** Attempts that the target rejected. */
    rejections: number;
  }>;

export type Outbox = Readonly<{
  /**
   * Stores announcements.
   *
   * @param height - Height of the block that the announcements complete.
   * @returns How many old announcements were dropped.
   */
  announce: (rows: readonly Announcement[], height?: number) => number;
  /** The oldest announcements. */
  announced: (limit: number) => readonly AnnouncedRow[];
  /**
   * Replaces announcements up to a number with deliveries to every target.
   *
   * @returns How many old deliveries were dropped.
   */
  choose: (upTo: number, deliveries: readonly Delivery[]) => number;
  /** The target's oldest delivery. */
  first: (target: string) => OutboxRow | undefined;
  /** Removes a delivery that arrived or was given up. */
  remove: (number: number) => void;
  /** Counts a rejection of a delivery by its target. */
  rejected: (number: number) => void;
  /** Removes deliveries that are older than this. @returns How many. */
  expire: (ageSecondsMax: number) => number;
  /** Height of the newest announced block; undefined for a new file. */
  height: () => number | undefined;
  /** Records that the blocks from a height on were rolled back. */
  rollback: (fromHeight: number) => void;
  counts: () => Readonly<{ deliveries: number; announced: number }>;
  close: () => void;
}>;

/** Maximum rows of each list. */
type OutboxLimits = Readonly<{ deliveriesMax: number; announcedMax: number }>;

/** Deliveries of one day of a quiet gateway; announcements of a few busy blocks, few of which pass the filters. */
const outboxLimitsDefault: OutboxLimits = { deliveriesMax: 10_000, announcedMax: 200_000 };

const migrations = [
  `CREATE TABLE announced (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, key TEXT NOT NULL) STRICT;
   CREATE TABLE letters (
     number INTEGER PRIMARY KEY AUTOINCREMENT,
     target TEXT NOT NULL,
     event TEXT NOT NULL,
     body TEXT NOT NULL,
     created_at INTEGER NOT NULL,
     refusals INTEGER NOT NULL DEFAULT 0
   ) STRICT;
   CREATE INDEX letters_of_target ON letters (target, number);
   CREATE TABLE progress (one INTEGER PRIMARY KEY CHECK (one = 1), height INTEGER NOT NULL) STRICT;`,
  "CREATE TABLE queued_transactions (number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE) STRICT;",
  "CREATE INDEX letters_by_age ON letters (created_at);",
];

/** Queued transactions that are remembered until their block is announced; the oldest are dropped. */
const queuedMax = 10_000;

const cacheBytes = 2 ** 20;

/**
 * Opens the file; creates it when absent.
 *
 * @param targets - Stored deliveries to any other target are removed at once.
 */
export function openOutbox(
  path: string,
  targets: readonly string[],
  clock: Clock,
  limits: OutboxLimits = outboxLimitsDefault,
): Outbox {
  const db = openForWriting(path, { migrations, synchronous: "NORMAL", cacheBytes });
  const run = (sql: string) => prepare(db, sql);
  const announce = run("INSERT INTO announced (kind, key) VALUES (?, ?)");
  const trimAnnounced = run("DELETE FROM announced WHERE number <= (SELECT max(number) FROM announced) - ?");
  const isNew = createNewness(db);
  const setHeight = run("INSERT INTO progress VALUES (1, ?) ON CONFLICT DO UPDATE SET height = excluded.height");
  const lower = run("UPDATE progress SET height = min(height, ?)");
  const forget = run("DELETE FROM announced WHERE number <= ?");
  const write = run("INSERT INTO letters (target, event, body, created_at) VALUES (?, ?, ?, ?)");
  const trimDeliveries = run(
    "DELETE FROM letters WHERE number IN (SELECT number FROM letters ORDER BY number LIMIT max(0, ?))",
  );
  const remove = run("DELETE FROM letters WHERE number = ?");
  const rejected = run("UPDATE letters SET refusals = refusals + 1 WHERE number = ?");
  const expire = run("DELETE FROM letters WHERE created_at < ?");
  const announced = prepareQuery<AnnouncedRow>(db, "SELECT number, kind, key FROM announced ORDER BY number LIMIT ?");
  const first = prepareQuery<OutboxRow>(
    db,
    `SELECT number, event, body, created_at AS createdAt, refusals AS rejections FROM letters
     WHERE target = ? ORDER BY number LIMIT 1`,
  );
  const progress = prepareQuery<{ height: number }>(db, "SELECT height FROM progress");
  const counts = prepareQuery<{ deliveries: number; announced: number }>(
    db,
    "SELECT (SELECT count(*) FROM letters) AS deliveries, (SELECT count(*) FROM announced) AS announced",
  );
  const deliveryCount = prepareQuery<{ deliveries: number }>(db, "SELECT count(*) AS deliveries FROM letters");
  run("DELETE FROM letters WHERE target NOT IN (SELECT value FROM json_each(?))").run(JSON.stringify(targets));

  return {
    announce: (rows, height) =>
      inTransaction(db, () => {
        for (const row of rows) if (isNew(row)) announce.run(row.kind, row.key);
        if (height !== undefined) setHeight.run(height);
        return trimAnnounced.run(limits.announcedMax).changes;
      }),
    announced: (limit) => announced.all(limit),
    choose: (upTo, deliveries) =>
      inTransaction(db, () => {
        const now = unixSeconds(clock);
        for (const { event, body } of deliveries) for (const target of targets) write.run(target, event, body, now);
        forget.run(upTo);
        const excess = (deliveryCount.get()?.deliveries ?? 0) - limits.deliveriesMax;
        return excess > 0 ? trimDeliveries.run(excess).changes : 0;
      }),
    first: (target) => first.get(target) ?? undefined,
    remove: (number) => {
      remove.run(number);
    },
    rejected: (number) => {
      rejected.run(number);
    },
    expire: (ageSecondsMax) => expire.run(unixSeconds(clock) - ageSecondsMax).changes,
    height: () => progress.get()?.height,
    rollback: (fromHeight) => {
      lower.run(fromHeight - 1);
    },
    counts: () => counts.get() ?? { deliveries: 0, announced: 0 },
    close: () => closeDatabase(db),
  };
}

/** Creates a predicate that accepts a queued transaction once, and not again with its block. */
function createNewness(db: Database): (announcement: Announcement) => boolean {
  const add = prepare(db, "INSERT OR IGNORE INTO queued_transactions (key) VALUES (?)");
  const remove = prepare(db, "DELETE FROM queued_transactions WHERE key = ?");
  const trim = prepare(
    db,
    "DELETE FROM queued_transactions WHERE number <= (SELECT max(number) FROM queued_transactions) - ?",
  );
  return ({ kind, key }) => {
    if (kind === "block transaction") return remove.run(key).changes === 0;
    if (kind !== "queued transaction") return true;
    const isAdded = add.run(key).changes > 0;
    trim.run(queuedMax);
    return isAdded;
  };
}
