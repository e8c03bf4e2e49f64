/**
 * Ids that an operator asked for and that the index does not have: they wait here until they are found, or
 * given up.
 * @module
 */
import type { Database } from "bun:sqlite";
import type { Id } from "../arweave/id.ts";
import { type Clock, unixSeconds } from "../lib/clock.ts";
import { prepare, prepareQuery } from "./sqlite.ts";

/** What is wanted of an id. */
export type StagedWish = Readonly<{
  id: Id;
  /** Whether it is to be unbundled, also when its tags do not say that it is a bundle. */
  isBundle: boolean;
  /** Whether the filters are passed over. */
  bypassFilter: boolean;
}>;

/** An id that waits. */
export type StagedRow = StagedWish &
  Readonly<{
    /** Unix seconds. */
    firstStagedAt: number;
    lastStagedAt: number;
    /** Times it was looked for since it was last asked for. */
    attempts: number;
    /** Why the last attempt failed. */
    reason: string | null;
    /** Grows each time it is asked for. */
    revision: number;
    /** Whether writing it to the index was begun. */
    isFound: boolean;
  }>;

/** The ids that wait. */
export type Staged = Readonly<{
  /** Adds a wish, or adds to the one that is there and makes it due. Answers false when too many wait. */
  add: (wish: StagedWish) => boolean;
  /** Those that are due, longest due first. */
  due: (nowMs: number, limit: number) => readonly StagedRow[];
  /** When the next one is due, Unix milliseconds; undefined when none waits. */
  nextDueAt: () => number | undefined;
  /** Notes a failed attempt. Nothing happens when it was asked for again meanwhile. */
  postpone: (row: StagedRow, dueAtMs: number, reason: string) => void;
  /** Notes that the id was found and is about to be written to the index. */
  found: (id: Id) => void;
  /** Takes an id out: it was found, or given up. Nothing happens when it was asked for again meanwhile. */
  remove: (row: StagedRow) => void;
  find: (id: Id) => StagedRow | undefined;
  count: () => number;
}>;

/** Ids that wait at once: days of work for one node, and a list that is still quick to search. */
export const stagedMax = 10_000;

type Row = Omit<StagedRow, "isBundle" | "bypassFilter" | "isFound"> &
  Readonly<{ isBundle: number; bypassFilter: number; isFound: number }>;

/** Opens the list over the writing connection of its file. */
export function createStaged(db: Database, clock: Clock): Staged {
  const columns = `id, is_bundle AS isBundle, bypass_filter AS bypassFilter, first_staged_at AS firstStagedAt,
    last_staged_at AS lastStagedAt, attempts, reason, revision, is_found AS isFound`;
  const add = prepare(
    db,
    `INSERT INTO staged (id, is_bundle, bypass_filter, first_staged_at, last_staged_at, due_at)
     VALUES (?1, ?2, ?3, ?4, ?4, 0)
     ON CONFLICT DO UPDATE SET is_bundle = max(is_bundle, excluded.is_bundle),
       bypass_filter = max(bypass_filter, excluded.bypass_filter), last_staged_at = excluded.last_staged_at,
       revision = revision + 1, attempts = 0, due_at = 0`,
  );
  const postpone = prepare(
    db,
    "UPDATE staged SET attempts = attempts + 1, due_at = ?, reason = ? WHERE id = ? AND revision = ?",
  );
  const found = prepare(db, "UPDATE staged SET is_found = 1 WHERE id = ?");
  const remove = prepare(db, "DELETE FROM staged WHERE id = ? AND revision = ?");
  const find = prepareQuery<Row>(db, `SELECT ${columns} FROM staged WHERE id = ?`);
  const due = prepareQuery<Row>(db, `SELECT ${columns} FROM staged WHERE due_at <= ? ORDER BY due_at LIMIT ?`);
  const next = prepareQuery<{ at: number | null }>(db, "SELECT min(due_at) AS at FROM staged");
  const count = prepareQuery<{ count: number }>(db, "SELECT count(*) AS count FROM staged");

  return {
    add: ({ id, isBundle, bypassFilter }) => {
      if (find.get(id) === undefined && (count.get()?.count ?? 0) >= stagedMax) return false;
      add.run(id, isBundle ? 1 : 0, bypassFilter ? 1 : 0, unixSeconds(clock));
      return true;
    },
    due: (nowMs, limit) => due.all(nowMs, limit).map(stagedOf),
    nextDueAt: () => next.get()?.at ?? undefined,
    postpone: ({ id, revision }, dueAtMs, reason) => {
      postpone.run(dueAtMs, reason, id, revision);
    },
    found: (id) => {
      found.run(id);
    },
    remove: ({ id, revision }) => {
      remove.run(id, revision);
    },
    find: (id) => {
      const row = find.get(id);
      return row === undefined ? undefined : stagedOf(row);
    },
    count: () => count.get()?.count ?? 0,
  };
}

function stagedOf({ isBundle, bypassFilter, isFound, ...row }: Row): StagedRow {
  return { ...row, isBundle: isBundle === 1, bypassFilter: bypassFilter === 1, isFound: isFound === 1 };
}
