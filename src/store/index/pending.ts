/**
 * Pending rows, for the writer: transactions of the mempool and items that were uploaded or announced.
 *
 * Their places are above every block, in order of arrival. When a block includes the id, the block's row becomes
 * canonical. The pending row becomes a duplicate until it expires, or until a reorganization makes it canonical again.
 * @module
 */
import type { Database } from "bun:sqlite";
import { type Id, idBytes } from "../../arweave/id.ts";
import { prepare, prepareQuery } from "../sqlite.ts";
import type { ChainTables } from "./chain-tables.ts";
import type { Counts } from "./counts.ts";
import { packHeight, pendingHeight, pendingPlace, placeHigh, placeLow, transactionsPerBlockMax } from "./place.ts";
import type { RowTable } from "./row-table.ts";
import type { PendingRow } from "./rows.ts";
import { storedPending } from "./stored-row.ts";

/** The pending rows of one database. Calls run inside the writer's transaction. */
export type Pending = Readonly<{
  add: (rows: readonly PendingRow[], ingested: number) => number;
  remove: (ids: readonly Id[]) => number;
  expire: (beforeSeconds: number) => number;
  /** As `expire`, but only for announced items: their signatures are unverified, and their bytes may never arrive. */
  expireAnnounced: (beforeSeconds: number) => number;
}>;

/** Dependencies, all of one database. */
export type PendingParts = Readonly<{ db: Database; rows: RowTable; chain: ChainTables; counts: Counts }>;

const rowsPerRemoval = 5_000;
const stepsPerTransaction = 2 ** 31;

export function createPending({ db, rows, chain, counts }: PendingParts): Pending {
  const firstPending = packHeight(pendingHeight);
  const takeNumbers = createNumbering(db);
  const dropParts = ["transactions", "transaction_texts", "pending_signatures"].map((table) =>
    prepare(db, `DELETE FROM ${table} WHERE n = (? << 31) | ?`),
  );
  const isAnnounced = createAnnouncedTest(db);
  const duplicatesOf = prepareQuery<{ high: number; low: number }>(
    db,
    "SELECT n >> 31 AS high, n & 0x7fffffff AS low FROM duplicates WHERE id = ? AND n >= ?",
  );
  const dropDuplicates = prepare(db, "DELETE FROM duplicates WHERE id = ? AND n >= ?");
  const expired = "n >= ? AND ingested < ? AND (trusted = 1 OR sig < 0)";
  const announced = "n >= ? AND ingested < ? AND trusted = 1 AND sig > 0";
  const addSignature = prepare(db, "INSERT INTO pending_signatures VALUES ((? << 31) | ?, ?)");
  const dropAnnouncedSignatures = prepare(
    db,
    `DELETE FROM pending_signatures WHERE n IN
       (SELECT n FROM items WHERE ${announced} UNION ALL SELECT n FROM duplicates WHERE ${announced})`,
  );
  const expiredPlaces = prepareQuery<{ high: number; low: number }>(
    db,
    `SELECT n >> 31 AS high, n & 0x7fffffff AS low FROM items WHERE ${expired} AND sig < 0 UNION ALL
     SELECT n >> 31, n & 0x7fffffff FROM duplicates WHERE ${expired} AND sig < 0`,
  );
  const removeAll = (condition: string, beforeSeconds: number): number => {
    let removed = 0;
    let step: number;
    do {
      step = rows.remove(condition, [firstPending, beforeSeconds], rowsPerRemoval);
      removed += step;
    } while (step === rowsPerRemoval);
    return removed;
  };
  const dropPartsAt = ({ high, low }: Readonly<{ high: number; low: number }>): void => {
    for (const statement of dropParts) statement.run(high, low);
  };

  const removeOne = (id: Id): number => {
    const bytes = idBytes(id);
    const canonical = rows.find([{ id: bytes }]).get(id);
    for (const place of duplicatesOf.all(bytes, firstPending)) dropPartsAt(place);
    const apart = dropDuplicates.run(bytes, firstPending).changes;
    counts.add("duplicates", -apart);
    if (canonical === undefined || !isPending(canonical.high)) return apart;
    dropPartsAt(canonical);
    return apart + rows.remove("n = (? << 31) | ?", [canonical.high, canonical.low], 1);
  };

  return {
    add: (pending, ingested) => {
      const existing = rows.find(pending.map(({ id }) => ({ id: idBytes(id) })));
      const fresh = [...new Map(pending.map((row) => [row.id, row])).values()].filter((row) => {
        const place = existing.get(row.id);
        // A verified row replaces an announced one, because it does not expire as early.
        const isBetter = place !== undefined && row.verified && isAnnounced(place);
        if (isBetter) removeOne(row.id);
        return place === undefined || isBetter;
      });
      const numbers = takeNumbers(fresh.length);
      const placed = fresh.map((row, at) => ({ place: pendingPlace(numbers[at] ?? 0), row }));
      rows.add(
        placed.map(({ place, row }) => storedPending(place, row)),
        ingested,
      );
      for (const { place, row } of placed) {
        if (row.transaction !== undefined) chain.addPendingTransaction(place, row.transaction);
        if (row.signature !== undefined) addSignature.run(placeHigh(place), placeLow(place), row.signature);
      }
      return fresh.length;
    },
    remove: (ids) => ids.reduce((sum, id) => sum + removeOne(id), 0),
    expire: (beforeSeconds) => {
      dropAnnouncedSignatures.run(firstPending, beforeSeconds, firstPending, beforeSeconds);
      for (const place of expiredPlaces.all(firstPending, beforeSeconds, firstPending, beforeSeconds))
        dropPartsAt(place);
      return removeAll(expired, beforeSeconds);
    },
    expireAnnounced: (beforeSeconds) => {
      dropAnnouncedSignatures.run(firstPending, beforeSeconds, firstPending, beforeSeconds);
      return removeAll(announced, beforeSeconds);
    },
  };
}

function isPending(high: number): boolean {
  return Math.floor(high / transactionsPerBlockMax) === pendingHeight;
}

/** Creates a predicate for pending rows that were only announced. */
function createAnnouncedTest(db: Database): (place: Readonly<{ high: number; low: number }>) => boolean {
  const trusted = prepareQuery<{ one: number }>(
    db,
    "SELECT 1 AS one FROM items WHERE n = (? << 31) | ? AND trusted = 1",
  );
  return ({ high, low }) => isPending(high) && trusted.get(high, low) !== undefined;
}

/** Assigns sequence numbers to pending rows; they continue after restarts. */
function createNumbering(db: Database): (count: number) => readonly number[] {
  const last = prepareQuery<{ value: number }>(db, "SELECT value FROM meta WHERE name = 'pending_sequence'");
  const store = prepare(db, "INSERT OR REPLACE INTO meta VALUES ('pending_sequence', ?)");
  return (count) => {
    let sequence = last.get()?.value ?? 0;
    const numbers = Array.from({ length: count }, () => {
      sequence = nextSequence(sequence);
      return sequence;
    });
    store.run(sequence);
    return numbers;
  };
}

/** The next sequence number. Skips numbers with a lower half of 0, which denotes a transaction of a block. */
function nextSequence(sequence: number): number {
  return (sequence + 1) % stepsPerTransaction === 0 ? sequence + 2 : sequence + 1;
}
