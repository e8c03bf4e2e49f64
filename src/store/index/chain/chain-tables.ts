/**
 * Blocks, their transactions and pending rows in the index, for the writer.
 *
 * Pending rows are transactions of the mempool, and items that were uploaded or announced. Their places are above every
 * block, in order of arrival. When a block includes the id, the block's row becomes canonical. The pending row becomes
 * a duplicate until it expires, or until a reorganization makes it canonical again.
 * Source: docs/reference/index-layout.md#places; docs/reference/gateway.md#queueing.
 * @module
 */
import type { Database } from "bun:sqlite";
import { blockHashBytes, type Id, idBytes } from "../../../arweave/id.ts";
import { assert } from "../../../lib/assert.ts";
import { prepare, prepareQuery } from "../../sqlite.ts";
import type { FilterKeys } from "../filter-key.ts";
import type { Counts } from "../index-counters.ts";
import type { BlockChecks, BlockRow, PendingRow, TransactionRow, WeaveLayout } from "../index-types.ts";
import type { JournalBlock } from "../journal/change-record.ts";
import type { Journal } from "../journal/journal.ts";
import {
  nextPendingSequence,
  type Place,
  packHeight,
  packPlace,
  pendingHeight,
  pendingPlace,
  placeHigh,
  placeLow,
  transactionsPerBlockMax,
} from "../place.ts";
import { halvesSql, placeSql } from "../place-sql.ts";
import { encodeRows } from "../rows/row-batch.ts";
import { type RowTable, removeInSteps } from "../rows/row-table.ts";
import { storedPending, storedText, storedTransaction } from "../rows/stored-row.ts";
import { cutData, packText } from "./header-texts.ts";

/** A stored block. */
type KnownBlock = Readonly<{ hash: Uint8Array; followed: number; stored: number }>;

/** The chain of one database. Calls run inside the writer's transaction. */
export type ChainTables = Readonly<{
  /** Adds a block, or marks an existing one with single transactions as followed. */
  addBlock: (block: BlockRow, followed: boolean) => void;
  /** Adds transactions of a stored block. Existing ones only get their place in the weave, if they have none. */
  addTransactions: (height: number, rows: readonly TransactionRow[], ingested: number) => void;
  /** Adds the fields that a pending transaction has beside its row. */
  addPendingTransaction: (place: Place, row: NonNullable<PendingRow["transaction"]>) => void;
  addMissing: (place: Place, id: TransactionRow["id"], dueAtMs: number) => void;
  /** Removes the mark of a missing transaction; false when that id is not missing there. */
  foundMissing: (place: Place, id: TransactionRow["id"]) => boolean;
  /** Without effect when another id is missing there, after a reorg. */
  postponeMissing: (place: Place, id: TransactionRow["id"], dueAtMs: number) => void;
  /** Makes a missing transaction due no later than that; false when that id is not missing there. */
  hurryMissing: (place: Place, id: TransactionRow["id"], dueAtMs: number) => boolean;
  setWeaveLayout: (height: number, layout: WeaveLayout) => void;
  setChecks: (height: number, checks: BlockChecks) => void;
  known: (height: number) => KnownBlock | undefined;
  /** Removes all rows from `height` up, except for pending rows; returns how many blocks and rows were removed. */
  removeFrom: (height: number) => Readonly<{ blocks: number; rows: number }>;
}>;

const addBlockSql = `INSERT INTO blocks (height, hash, previous, timestamp, tx_count, stored_count, followed,
   weave_size, block_size, checked, unchecked)
 VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?)
 ON CONFLICT (height) DO UPDATE SET followed = max(followed, excluded.followed),
   checked = CASE WHEN followed > excluded.followed THEN checked ELSE excluded.checked END,
   unchecked = CASE WHEN followed > excluded.followed THEN unchecked ELSE excluded.unchecked END`;

/** Dependencies, all of one database. */
type ChainParts = Readonly<{ db: Database; keys: FilterKeys; rows: RowTable; counts: Counts; journal: Journal }>;

export function createChainTables({ db, keys, rows, counts, journal }: ChainParts): ChainTables {
  const addBlock = prepare(db, addBlockSql);
  const addText = prepare(db, "INSERT OR IGNORE INTO block_texts VALUES (?, ?)");
  const known = prepareQuery<KnownBlock>(
    db,
    "SELECT hash, followed, stored_count AS stored FROM blocks WHERE height = ?",
  );
  const addStored = prepare(db, "UPDATE blocks SET stored_count = stored_count + ? WHERE height = ?");
  const addMissing = prepare(db, "INSERT OR IGNORE INTO missing VALUES (?, ?, 0, ?)");
  const dropMissing = prepare(db, "DELETE FROM missing WHERE n = ? AND id = ?");
  const postpone = prepare(db, "UPDATE missing SET attempts = attempts + 1, due_at = ? WHERE n = ? AND id = ?");
  const hurry = prepare(db, "UPDATE missing SET due_at = min(due_at, ?) WHERE n = ? AND id = ?");
  const setSpan = prepare(db, `UPDATE transactions SET weave_start = ?, weave_end = ? WHERE n = ${placeSql("?", "0")}`);
  const setChecks = prepare(db, "UPDATE blocks SET checked = ?, unchecked = ? WHERE height = ?");
  const addParts = createTransactionParts(db);
  const followedFrom = prepareQuery<JournalBlock>(
    db,
    "SELECT height, hash, previous, timestamp FROM blocks WHERE height >= ? AND followed = 1 ORDER BY height DESC",
  );
  const removeRange = createRangeRemoval(db, counts);

  return {
    addBlock: (block, followed) => {
      const before = known.get(block.height);
      const hash = blockHashBytes(block.hash);
      assert(before === undefined || Buffer.compare(before.hash, hash) === 0, "a height has one block");
      const previous = block.previous === "" ? null : blockHashBytes(block.previous);
      addBlock.run(
        ...[block.height, hash, previous, block.timestamp, block.txCount, followed ? 1 : 0],
        ...[block.weaveSize.toString(), block.blockSize.toString()],
        ...[JSON.stringify(block.checked), JSON.stringify(block.unchecked)],
      );
      if (block.text !== "") addText.run(block.height, packText(block.text));
      if (!followed || before?.followed === 1) return;
      journal.blockCame({ height: block.height, hash, previous, timestamp: block.timestamp });
      counts.add("blocks", 1);
      counts.add("blockTransactions", block.txCount);
      counts.add("transactions", before?.stored ?? 0);
    },
    addTransactions: (height, transactions, ingested) => {
      const stored = transactions.map((row) => storedTransaction(height, row));
      rows.add(encodeRows(stored, keys), ingested);
      const added = transactions.filter((row) => addParts({ height, txIndex: row.txIndex, offset: -1 }, row));
      addStored.run(added.length, height);
      if (known.get(height)?.followed === 1) counts.add("transactions", added.length);
    },
    addPendingTransaction: (place, row) => {
      addParts(place, row);
    },
    addMissing: (place, id, dueAtMs) => {
      counts.add("missingTransactions", addMissing.run(packPlace(place), idBytes(id), dueAtMs).changes);
    },
    foundMissing: (place, id) => {
      const { changes } = dropMissing.run(packPlace(place), idBytes(id));
      counts.add("missingTransactions", -changes);
      return changes > 0;
    },
    postponeMissing: (place, id, dueAtMs) => {
      postpone.run(dueAtMs, packPlace(place), idBytes(id));
    },
    hurryMissing: (place, id, dueAtMs) => hurry.run(dueAtMs, packPlace(place), idBytes(id)).changes > 0,
    setWeaveLayout: (height, layout) => {
      for (const { txIndex, start, end } of layout) setSpan.run(start, end, placeHigh({ height, txIndex, offset: -1 }));
    },
    setChecks: (height, { checked, unchecked }) => {
      setChecks.run(JSON.stringify(checked), JSON.stringify(unchecked), height);
    },
    known: (height) => known.get(height),
    removeFrom: (height) => {
      const first = packHeight(height);
      const last = packHeight(pendingHeight) - 1n;
      journal.blocksLeft(followedFrom.all(height));
      const removed = removeInSteps((limit) => rows.remove("n BETWEEN ? AND ?", [first, last], limit));
      return { blocks: removeRange(height, first, last), rows: removed };
    },
  };
}

type Parts = Pick<TransactionRow, "format" | "quantity" | "reward" | "dataRoot" | "text" | "dataAt"> &
  Partial<Pick<TransactionRow, "weaveStart" | "weaveEnd">>;

/** Writes the fields that only transactions have; returns whether the place had none before. */
function createTransactionParts(db: Database): (place: Place, row: Parts) => boolean {
  const add = prepare(db, `INSERT OR IGNORE INTO transactions VALUES (${placeSql()}, ?, ?, ?, ?, ?, ?)`);
  const addText = prepare(db, `INSERT OR IGNORE INTO transaction_texts VALUES (${placeSql()}, ?, ?)`);
  const complete = prepare(
    db,
    `UPDATE transactions SET weave_start = ?, weave_end = ? WHERE n = ${placeSql()} AND weave_start IS NULL`,
  );
  return (place, row) => {
    const high = placeHigh(place);
    const low = placeLow(place);
    const { format, quantity, reward, weaveStart = null, weaveEnd = null } = row;
    const cut = row.dataAt === undefined ? cutData(row.text) : { text: row.text, dataAt: row.dataAt };
    if (row.text !== "") addText.run(high, low, cut.dataAt, packText(cut.text));
    const dataRoot = storedText(row.dataRoot);
    assert(typeof dataRoot !== "string", "a data root is canonical base64url");
    const amounts = [quantity.toString(), reward.toString()];
    if (add.run(high, low, format, ...amounts, dataRoot, weaveStart, weaveEnd).changes > 0) return true;
    // A transaction that an operator requested was added before the layout of its block was known.
    if (weaveStart !== null) complete.run(weaveStart, weaveEnd, high, low);
    return false;
  };
}

/** Removes rows of the other tables in a range of places; returns how many blocks were removed. */
function createRangeRemoval(db: Database, counts: Counts): (height: number, first: bigint, last: bigint) => number {
  const byPlace = ["transactions", "transaction_texts", "pruned_items"].map((table) =>
    prepare(db, `DELETE FROM ${table} WHERE n BETWEEN ? AND ?`),
  );
  const missing = prepare(db, "DELETE FROM missing WHERE n BETWEEN ? AND ?");
  const storedItems = prepareQuery<{ count: number }>(
    db,
    "SELECT count(*) AS count FROM pruned_items WHERE stored = 1 AND n BETWEEN ? AND ?",
  );
  const sums = prepareQuery<{ blocks: number; named: number; stored: number }>(
    db,
    `SELECT coalesce(sum(followed), 0) AS blocks, coalesce(sum(tx_count * followed), 0) AS named,
       coalesce(sum(stored_count * followed), 0) AS stored
     FROM blocks WHERE height >= ?`,
  );
  const texts = prepare(db, "DELETE FROM block_texts WHERE height >= ?");
  const blocks = prepare(db, "DELETE FROM blocks WHERE height >= ?");
  return (height, first, last) => {
    const gone = sums.get(height) ?? { blocks: 0, named: 0, stored: 0 };
    counts.add("blocks", -gone.blocks);
    counts.add("blockTransactions", -gone.named);
    counts.add("transactions", -gone.stored);
    counts.add("missingTransactions", -missing.run(first, last).changes);
    counts.add("storedItems", -(storedItems.get(first, last)?.count ?? 0));
    for (const statement of byPlace) statement.run(first, last);
    texts.run(height);
    return blocks.run(height).changes;
  };
}

/** The pending rows of one database. Calls run inside the writer's transaction. */
export type Pending = Readonly<{
  add: (rows: readonly PendingRow[], ingested: number) => number;
  remove: (ids: readonly Id[]) => number;
  expire: (beforeSeconds: number) => number;
  /** As `expire`, but only for announced items: their signatures are unverified, and their bytes may never arrive. */
  expireAnnounced: (beforeSeconds: number) => number;
}>;

/** Dependencies, all of one database. */
type PendingParts = Readonly<{ db: Database; keys: FilterKeys; rows: RowTable; chain: ChainTables; counts: Counts }>;

export function createPending({ db, keys, rows, chain, counts }: PendingParts): Pending {
  const firstPending = packHeight(pendingHeight);
  const takeNumbers = createNumbering(db);
  const dropParts = ["transactions", "transaction_texts", "pending_signatures"].map((table) =>
    prepare(db, `DELETE FROM ${table} WHERE n = ${placeSql()}`),
  );
  const isAnnounced = createAnnouncedTest(db);
  const duplicatesOf = prepareQuery<{ high: number; low: number }>(
    db,
    `SELECT ${halvesSql("n")} FROM duplicates WHERE id = ? AND n >= ?`,
  );
  const dropDuplicates = prepare(db, "DELETE FROM duplicates WHERE id = ? AND n >= ?");
  const expired = "n >= ? AND ingested < ? AND (trusted = 1 OR sig < 0)";
  const announced = "n >= ? AND ingested < ? AND trusted = 1 AND sig > 0";
  const addSignature = prepare(db, `INSERT INTO pending_signatures VALUES (${placeSql()}, ?)`);
  const dropAnnouncedSignatures = prepare(
    db,
    `DELETE FROM pending_signatures WHERE n IN
       (SELECT n FROM items WHERE ${announced} UNION ALL SELECT n FROM duplicates WHERE ${announced})`,
  );
  const expiredPlaces = prepareQuery<{ high: number; low: number }>(
    db,
    `SELECT ${halvesSql("n")} FROM items WHERE ${expired} AND sig < 0 UNION ALL
     SELECT ${halvesSql("n")} FROM duplicates WHERE ${expired} AND sig < 0`,
  );
  const removeAll = (condition: string, beforeSeconds: number): number =>
    removeInSteps((limit) => rows.remove(condition, [firstPending, beforeSeconds], limit));
  const dropPartsAt = ({ high, low }: Readonly<{ high: number; low: number }>): void => {
    for (const statement of dropParts) statement.run(high, low);
  };

  const removeOne = (id: Id): number => {
    const bytes = idBytes(id);
    const canonical = rows.find([bytes]).get(id);
    for (const place of duplicatesOf.all(bytes, firstPending)) dropPartsAt(place);
    const apart = dropDuplicates.run(bytes, firstPending).changes;
    counts.add("duplicates", -apart);
    if (canonical === undefined || !isPending(canonical.high)) return apart;
    dropPartsAt(canonical);
    return apart + rows.remove(`n = ${placeSql()}`, [canonical.high, canonical.low], 1);
  };

  return {
    add: (pending, ingested) => {
      const existing = rows.find(pending.map(({ id }) => idBytes(id)));
      const fresh = [...new Map(pending.map((row) => [row.id, row])).values()].filter((row) => {
        const place = existing.get(row.id);
        // A verified row replaces an announced one, because it does not expire as early.
        const isBetter = place !== undefined && row.verified && isAnnounced(place);
        if (isBetter) removeOne(row.id);
        return place === undefined || isBetter;
      });
      const numbers = takeNumbers(fresh.length);
      const placed = fresh.map((row, at) => ({ place: pendingPlace(numbers[at] ?? 0), row }));
      const stored = placed.map(({ place, row }) => storedPending(place, row));
      rows.add(encodeRows(stored, keys), ingested);
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
    `SELECT 1 AS one FROM items WHERE n = ${placeSql()} AND trusted = 1`,
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
      sequence = nextPendingSequence(sequence);
      return sequence;
    });
    store.run(sequence);
    return numbers;
  };
}
