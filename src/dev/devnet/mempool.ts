/**
 * Pending transactions, and transactions that were dropped later.
 *
 * The database stores them, so that a kill of the process loses no accepted transaction.
 * @module
 */
import type { Database } from "bun:sqlite";
import type { Id } from "../../arweave/id.ts";
import { readTransactionHeader, type Transaction } from "../../arweave/transaction.ts";
import { Failure } from "../../failures.ts";
import type { DataKey } from "./chunk-store.ts";

export type PendingTransaction = Readonly<{
  sequence: number; // order of arrival
  transaction: Transaction; // without its data
  data: DataKey | undefined; // key of its data, also for format 1
}>;

export type Mempool = Readonly<{
  size: () => number;
  /** In order of arrival. */
  list: () => readonly PendingTransaction[];
  get: (id: string) => PendingTransaction | undefined;
  isFull: () => boolean;
  /** Whether a pending or expected transaction has this data. */
  hasData: (key: DataKey) => boolean;
  /** Announces a transaction with this data. @returns Withdraws the announcement. */
  expect: (key: DataKey) => () => void;
  /** @throws Failure `busy` when the mempool is full. */
  add: (transaction: Transaction, data: DataKey | undefined) => void;
  /** Removes mined or dropped transactions. */
  remove: (ids: readonly Id[]) => void;
  /** Stores the error codes of a rejected transaction. */
  reject: (id: Id, codes: readonly string[]) => void;
  /** The error codes of a rejected transaction. */
  rejection: (id: string) => readonly string[] | undefined;
  clear: () => void;
}>;

/** Ten blocks. Each block validates all pending transactions again, in 60 ms at most (measured: 6 µs each). */
const pendingCountMax = 10_000;

/** Maximum number of stored rejections; the oldest are dropped. */
const rejectedCountMax = 10_000;

export function createMempool(database: Database): Mempool {
  const pending = loadPending(database);
  const insert = database.query<null, [number, string, string, string]>(
    "INSERT INTO pending (sequence, id, text, data_root) VALUES (?, ?, ?, ?)",
  );
  const remove = database.query<null, [string]>("DELETE FROM pending WHERE id = ?");
  const awaited = new Map<string, number>(); // pending transactions by their data
  for (const { data } of pending.values()) count(awaited, data, 1);
  const expected = new Set<Readonly<{ name: string }>>();
  let sequence = [...pending.values()].at(-1)?.sequence ?? 0;
  return {
    size: () => pending.size,
    list: () => [...pending.values()],
    get: (id) => pending.get(id),
    isFull: () => pending.size >= pendingCountMax,
    hasData: (key) => {
      const name = dataName(key);
      return awaited.has(name) || expected.values().some((one) => one.name === name);
    },
    expect: (key) => {
      const one = { name: dataName(key) };
      expected.add(one);
      return () => void expected.delete(one);
    },
    add: (transaction, data) => {
      if (pending.size >= pendingCountMax) throw new Failure("busy", { pendingCountMax });
      insert.run(sequence + 1, transaction.id, transaction.text, data?.root ?? "");
      sequence += 1;
      pending.set(transaction.id, { sequence, transaction, data });
      count(awaited, data, 1);
    },
    remove: (ids) => {
      for (const id of ids) {
        remove.run(id);
        count(awaited, pending.get(id)?.data, -1);
        pending.delete(id);
      }
    },
    ...createRejections(database),
    clear: () => {
      database.run("DELETE FROM pending");
      database.run("DELETE FROM rejected");
      pending.clear();
      awaited.clear();
    },
  };
}

function count(awaited: Map<string, number>, data: DataKey | undefined, by: number): void {
  if (data === undefined) return;
  const name = dataName(data);
  const left = (awaited.get(name) ?? 0) + by;
  if (left === 0) awaited.delete(name);
  else awaited.set(name, left);
}

function dataName({ root, size }: DataKey): string {
  return `${root} ${size}`;
}

function createRejections(database: Database): Pick<Mempool, "reject" | "rejection"> {
  const insert = database.query<null, [string, string]>(
    "INSERT INTO rejected (id, codes) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET codes = excluded.codes",
  );
  const trim = database.query<null, [number]>(
    "DELETE FROM rejected WHERE sequence <= (SELECT max(sequence) FROM rejected) - ?",
  );
  const select = database.query<{ codes: string }, [string]>("SELECT codes FROM rejected WHERE id = ?");
  return {
    reject: (id, codes) => {
      insert.run(id, codes.join(" "));
      trim.run(rejectedCountMax);
    },
    rejection: (id) => select.get(id)?.codes.split(" "),
  };
}

function loadPending(database: Database): Map<string, PendingTransaction> {
  type Row = { sequence: number; text: string; data_root: string };
  const rows = database.query<Row, []>("SELECT sequence, text, data_root FROM pending ORDER BY sequence").all();
  return new Map(
    rows.map(({ sequence, text, data_root: root }) => {
      const transaction = readTransactionHeader(text);
      const data = root === "" ? undefined : { root, size: transaction.dataSize };
      return [transaction.id, { sequence, transaction, data }];
    }),
  );
}
