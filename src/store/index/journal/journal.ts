/**
 * The journal of changes: which rows and blocks the index lists from now on, and which it no longer lists.
 *
 * Each transaction of the writer adds its net changes: an id that leaves one place and takes another is one change.
 * A change has a number, which grows by one. Applied in order to what a reader knew at one number, the changes give
 * what the index lists at a later one. Pruning is not a change.
 *
 * Many changes at once (an import, or following far behind the tip) are one `reset`: they exceed a rate, and only their
 * number is stored.
 * Source: docs/reference/index-layout.md#journal.
 * @module
 */
import type { Database } from "bun:sqlite";
import { idFromBytes } from "../../../arweave/id.ts";
import { assert } from "../../../lib/assert.ts";
import type { Clock } from "../../../lib/clock.ts";
import { changeDatabase, inSnapshot, prepare, prepareQuery } from "../../sqlite.ts";
import { pendingHeight } from "../place.ts";
import {
  blockRecord,
  type Change,
  heightOfHigh,
  type JournalBlock,
  type JournalPlace,
  type JournalRow,
  placeRecord,
  type RowChangeKind,
  readRecords,
  rowRecord,
} from "./change-record.ts";
import { createPlaceLookup, type RemovedRow } from "./journal-places.ts";

/** The journal of one database. Calls run inside the writer's transaction. */
export type Journal = Readonly<{
  /** A row was added at its canonical place. */
  came: (row: JournalRow) => void;
  /** A row was removed from its canonical place. */
  left: (row: JournalRow) => void;
  /** A row at another place of its id was removed: the bundle of rows that leave after it. */
  duplicateLeft: (row: RemovedRow) => void;
  blockCame: (block: JournalBlock) => void;
  /** Blocks were removed, the highest first. */
  blocksLeft: (blocks: readonly JournalBlock[]) => void;
  /** The transaction is part of a large import: its changes are one reset. */
  reset: () => void;
  /** Writes the changes of the transaction. */
  flush: () => void;
  /** Drops the changes of a failed transaction. */
  discard: () => void;
}>;

/** Bounds of the journal. */
export type JournalSizes = Readonly<{
  /** Changes that are stored. */
  changesMax: number;
  bytesMax: number;
  /** Changes of one transaction; more are a reset. */
  stepMax: number;
  /** Changes at once before they are a reset, and how many a second go on without one. */
  burst: number;
  perSecond: number;
}>;

export const journalSizesDefault: JournalSizes = {
  changesMax: 100_000,
  bytesMax: 64 * 2 ** 20,
  stepMax: 25_000,
  burst: 50_000,
  perSecond: 2_000,
};

/** Bounds of one record: a reader decodes one at a time. */
const recordMax = { changes: 500, bytes: 512 * 2 ** 10 } as const;
/** The journal may exceed its bounds by this part before it is pruned, so that pruning is rare. */
const slack = 1.1;
/** Records that one transaction prunes. */
const prunedRecordsMax = 1_000;

/** The change of one id within a transaction. `from`: its place before, looked up while its bundle was there. */
type RowNote = {
  row: JournalRow;
  readonly before: JournalRow | undefined;
  readonly from: JournalPlace | undefined;
  after: JournalRow | undefined;
};

/** A change as it is written, after the places that it refers to. */
type Written = Readonly<{ record: Buffer; at?: JournalPlace | undefined; from?: JournalPlace | undefined }>;

type Totals = { newest: number; changes: number; bytes: number; endsWithReset: boolean };

/** Creates the journal of one database, for its writer. */
export function createJournal(db: Database, clock: Clock, sizes: JournalSizes = journalSizesDefault): Journal {
  const notes = new Map<string, RowNote>();
  const cameBlocks: JournalBlock[] = [];
  const leftBlocks: JournalBlock[] = [];
  const rate = createRate(clock, sizes);
  const records = createRecords(db, sizes);
  const placesBefore = createPlaceLookup(db);
  const placesAfter = createPlaceLookup(db);
  let noted = 0;
  let isReset = false;

  /** Counts a change; false when the transaction is a reset. */
  const isDetailed = (): boolean => {
    noted += 1;
    if (noted > sizes.stepMax || (noted === 1 && rate.isExceeded())) isReset = true;
    return !isReset;
  };
  const clear = (): void => {
    notes.clear();
    cameBlocks.length = 0;
    leftBlocks.length = 0;
    placesBefore.clear();
    placesAfter.clear();
    noted = 0;
    isReset = false;
  };
  return {
    came: (row) => {
      if (!isDetailed()) return;
      const id = idFromBytes(row.id);
      const note = notes.get(id);
      if (note === undefined) notes.set(id, { row, before: undefined, from: undefined, after: row });
      else Object.assign(note, { row, after: row });
    },
    left: (row) => {
      if (!isDetailed()) return;
      const id = idFromBytes(row.id);
      const note = notes.get(id);
      placesBefore.remember(row);
      if (note === undefined) notes.set(id, { row, before: row, from: placesBefore.of(row), after: undefined });
      else note.after = undefined;
    },
    duplicateLeft: (row) => {
      if (!isReset) placesBefore.remember(row);
    },
    blockCame: (block) => {
      if (isDetailed()) cameBlocks.push(block);
    },
    blocksLeft: (blocks) => {
      for (const block of blocks) if (isDetailed()) leftBlocks.push(block);
    },
    reset: () => {
      isReset = true;
    },
    flush: () => {
      if (isReset) records.addReset();
      else if (noted > 0) records.add(changesOf(notes.values(), cameBlocks, leftBlocks, placesAfter.of));
      rate.take(noted);
      clear();
    },
    discard: () => {
      clear();
      records.discard();
    },
  };
}

/** The net changes in order: what left first, then the blocks that came, then their rows. */
function changesOf(
  notes: Iterable<RowNote>,
  cameBlocks: readonly JournalBlock[],
  leftBlocks: readonly JournalBlock[],
  placeOf: (row: JournalRow) => JournalPlace | undefined,
): Written[] {
  const gone: Written[] = leftBlocks.map((block) => ({ record: blockRecord("block_forked", block) }));
  const blocks = cameBlocks.map((block) => ({ record: blockRecord("block", block) }));
  const come: Written[] = [];
  for (const { row, before, from, after } of notes) {
    if (before?.high === after?.high && before?.low === after?.low) continue;
    const kind = kindOf(before?.high, after?.high);
    const isPending = after !== undefined && isPendingHigh(after.high);
    const places = kind === "mined" && after !== undefined ? { at: placeOf(after), from } : { at: from };
    const has = { isPending, place: places.at !== undefined, from: places.from !== undefined };
    const isCome = kind === "pending" || kind === "mined";
    (isCome ? come : gone).push({ record: rowRecord(kind, row, has), ...places });
  }
  return [...gone, ...blocks, ...come];
}

function isPendingHigh(high: number | undefined): boolean {
  return high !== undefined && heightOfHigh(high) === pendingHeight;
}

/** What happened to a row. @param from - Upper half of its place before; undefined when it was not listed. */
function kindOf(from: number | undefined, to: number | undefined): RowChangeKind {
  if (to !== undefined && !isPendingHigh(to)) return "mined";
  if (from !== undefined && !isPendingHigh(from)) return "forked";
  return to === undefined ? "dropped" : "pending";
}

/** A bucket of changes that fills with time. What exceeds it goes on until the changes have paused. */
function createRate(clock: Clock, { burst, perSecond }: JournalSizes) {
  let level = burst;
  let at = clock();
  const refill = (): void => {
    const now = clock();
    level = Math.min(burst, level + (Math.max(0, now - at) * perSecond) / 1_000);
    at = now;
  };
  return {
    isExceeded: () => {
      refill();
      return level <= 0;
    },
    take: (changes: number) => {
      refill();
      level = Math.max(-burst, level - changes);
    },
  };
}

/** The records of one database. */
function createRecords(db: Database, { changesMax, bytesMax }: JournalSizes) {
  const insert = prepare(db, "INSERT INTO changes VALUES (?, ?, ?)");
  const drop = prepare(db, "DELETE FROM changes WHERE last = ?");
  const dropOldest = prepare(db, "DELETE FROM changes WHERE last <= ?");
  const sums = prepareQuery<{ newest: number; changes: number; bytes: number }>(
    db,
    `SELECT coalesce(max(last), 0) AS newest, coalesce(sum(count), 0) AS changes,
       coalesce(sum(length(body)), 0) AS bytes FROM changes`,
  );
  const length = prepareQuery<{ bytes: number }>(db, "SELECT length(body) AS bytes FROM changes WHERE last = ?");
  const oldest = prepareQuery<{ last: number; count: number; bytes: number }>(
    db,
    "SELECT last, count, length(body) AS bytes FROM changes ORDER BY last LIMIT ?",
  );
  let known: Totals | undefined;
  const totalsOf = (): Totals => {
    if (known !== undefined) return known;
    const { newest, changes, bytes } = sums.get() ?? { newest: 0, changes: 0, bytes: 0 };
    known = { newest, changes, bytes, endsWithReset: length.get(newest)?.bytes === 0 };
    return known;
  };
  const prune = (totals: Totals): void => {
    if (totals.changes <= changesMax * slack && totals.bytes <= bytesMax * slack) return;
    let last: number | undefined;
    for (const record of oldest.all(prunedRecordsMax)) {
      if (totals.changes <= changesMax && totals.bytes <= bytesMax) break;
      if (record.last === totals.newest) break; // its number must stay known
      last = record.last;
      totals.changes -= record.count;
      totals.bytes -= record.bytes;
    }
    if (last !== undefined) dropOldest.run(last);
  };
  const addRecord = (totals: Totals, count: number, body: Uint8Array): void => {
    totals.newest += count;
    totals.changes += count;
    totals.bytes += body.length;
    insert.run(totals.newest, count, body);
    totals.endsWithReset = body.length === 0;
  };
  return {
    add: (changes: readonly Written[]) => {
      if (changes.length === 0) return;
      const totals = totalsOf();
      for (const { count, body } of inRecords(changes)) addRecord(totals, count, Buffer.concat(body));
      prune(totals);
    },
    /** Successive resets are one record, with the newest number. */
    addReset: () => {
      const totals = totalsOf();
      if (totals.endsWithReset) {
        drop.run(totals.newest);
        totals.changes -= 1;
      }
      addRecord(totals, 1, new Uint8Array(0));
      prune(totals);
    },
    discard: () => {
      known = undefined;
    },
  };
}

type RecordParts = { count: number; bytes: number; readonly body: Buffer[] };

/** Divides changes into records within their bounds. Each record has the places of its own rows. */
function inRecords(changes: readonly Written[]): RecordParts[] {
  const parts: RecordParts[] = [];
  let part: RecordParts | undefined;
  let places: Omit<Written, "record"> = {};
  const add = (to: RecordParts, bytes: Buffer): void => {
    to.body.push(bytes);
    to.bytes += bytes.length;
  };
  for (const { record, at, from } of changes) {
    const isFull =
      part !== undefined && (part.count >= recordMax.changes || part.bytes + record.length > recordMax.bytes);
    if (part === undefined || isFull) {
      part = { count: 0, bytes: 0, body: [] };
      parts.push(part);
      places = {};
    }
    if (at !== undefined && at !== places.at) add(part, placeRecord("at", at));
    if (from !== undefined && from !== places.from) add(part, placeRecord("from", from));
    places = { at: at ?? places.at, from: from ?? places.from };
    add(part, record);
    part.count += 1;
  }
  return parts;
}

/**
 * Gives the journal of a closed index a new name: an index that was restored from a backup will use numbers again that
 * readers know.
 */
export function renameJournal(path: string): void {
  changeDatabase(path, (db) => db.run("UPDATE meta SET value = lower(hex(randomblob(6))) WHERE name = 'journal'"));
}

/** A change with its number. */
export type NumberedChange = Readonly<{ number: number; change: Change }>;

/** Reads of the journal. */
export type JournalReads = Readonly<{
  /** Name of the journal, which differs in each index; numbers of two journals are not comparable. */
  name: () => string;
  /** Number of the newest change; 0 before the first one. */
  newest: () => number;
  /**
   * Some of the changes after a number, in order; empty when there are none.
   *
   * @returns Undefined when the journal does not have all changes after the number: the oldest were pruned, or the
   *   number is above the newest.
   */
  after: (number: number) => readonly NumberedChange[] | undefined;
}>;

/** Creates the reads of one database. */
export function createJournalReads(db: Database): JournalReads {
  const named = prepareQuery<{ value: string }>(db, "SELECT value FROM meta WHERE name = 'journal'");
  const newest = prepareQuery<{ last: number }>(db, "SELECT last FROM changes ORDER BY last DESC LIMIT 1");
  const next = prepareQuery<{ last: number; count: number; body: Uint8Array }>(
    db,
    "SELECT last, count, body FROM changes WHERE last > ? ORDER BY last LIMIT 1",
  );
  const oldest = prepareQuery<{ first: number }>(
    db,
    "SELECT last - count + 1 AS first FROM changes ORDER BY last LIMIT 1",
  );
  return {
    name: () => {
      const name = named.get()?.value;
      assert(name !== undefined, "an index names its journal");
      return name;
    },
    newest: () => newest.get()?.last ?? 0,
    // Of one state: a change that is added between two reads would look like a gap.
    after: (number) =>
      inSnapshot(db, () => {
        const record = next.get(number);
        if (record === undefined) return number === (newest.get()?.last ?? 0) ? [] : undefined;
        const first = record.last - record.count + 1;
        if (first > number + 1 && (oldest.get()?.first ?? 0) > number + 1) return undefined;
        const changes = readRecords(record.body);
        assert(changes.length === record.count, "a record of the journal has the number of its changes");
        return changes
          .map((change, index) => ({ number: first + index, change }))
          .slice(Math.max(0, number + 1 - first));
      }),
  };
}
