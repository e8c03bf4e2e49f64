/**
 * The ledger's database: durable transactions, the values of rows, and the limits that SQLite and PostgreSQL share.
 *
 * Rules use one SQL dialect, the part that SQLite and PostgreSQL share: `?` for values, `ON CONFLICT`, `RETURNING`,
 * `CAST(SUM(x) AS BIGINT)`; no dates, floats, blobs, sequences or functions that only one of them has.
 * Source: docs/decisions/070-ledger.md.
 * @module
 */
import { assert } from "../../lib/assert.ts";

/** A value of a row or a parameter. Times are Unix milliseconds, truth is 0n or 1n, all integers are bigint. */
export type Value = string | bigint | null;

/** A row: its columns by name. The caller states the shape beside its SQL. */
export type Row = Readonly<Record<string, Value>>;

/**
 * One transaction, as its work sees it. It ends with the work; later calls fail.
 *
 * A statement that fails ends the transaction: the work cannot go on after catching its error.
 */
export type Tx = Readonly<{
  /** All rows, in the order of the SQL. */
  all: <Shape extends Row>(sql: string, ...values: Value[]) => Promise<Shape[]>;
  /** The first row. */
  get: <Shape extends Row>(sql: string, ...values: Value[]) => Promise<Shape | undefined>;
  /** Runs a statement that returns no rows. @returns How many rows it changed. */
  run: (sql: string, ...values: Value[]) => Promise<number>;
}>;

/** Work within one transaction. It uses and awaits only `tx`, because it may run again. */
export type Work<Result> = (tx: Tx) => Promise<Result>;

/** An open ledger. */
export type LedgerDatabase = Readonly<{
  kind: "sqlite" | "postgres";
  /**
   * Runs work as one transaction: when the promise resolves, all of it is on the disk; when it rejects with the
   * work's own error, none of it is. Transactions are serializable.
   *
   * @throws Failure `busy` when too many are waiting, `database_unavailable` when the database cannot write; after
   *   the latter it is unknown whether the work was stored.
   */
  write: <Result>(work: Work<Result>) => Promise<Result>;
  /** Runs reads that see one state of the ledger; a write within it fails. */
  read: <Result>(work: Work<Result>) => Promise<Result>;
  /**
   * Waits until all that reads have shown so far is on the disk. A read may see rows that a power cut would remove, so
   * that nothing is promised because of them before this resolves.
   *
   * @throws Failure `database_unavailable` once the disk has failed: such rows may be lost.
   */
  confirmed: () => Promise<void>;
  /** Why nothing can be written, as sentences for an operator. Empty while the ledger works. */
  faults: () => readonly string[];
  /** Finishes what was accepted, then closes. */
  close: () => Promise<void>;
}>;

/** Reads what is on the disk: a response may promise something because of it. */
export async function readDurably<Found>(ledger: LedgerDatabase, work: Work<Found>): Promise<Found> {
  const found = await ledger.read(work);
  if (found !== undefined) await ledger.confirmed();
  return found;
}

/**
 * Amounts and balances are within ±(2^62 − 1), 4.6 million AR: the sum of any two still fits the 64 bits of both
 * databases. SQLite would silently continue in floating point.
 */
export const amountMax = 2n ** 62n - 1n;

/** Transactions that may wait. More are rejected as `busy`. */
export const waitingMax = 10_000;

/** Work waits only for its own statements, so a longer time is a defect. */
export const workTimeoutMs = 10_000;

/** Asserts that both databases store the values unchanged. */
export function checkValues(values: readonly Value[]): void {
  for (const value of values) {
    if (typeof value === "bigint")
      assert(value <= amountMax && value >= -amountMax, "an integer of the ledger is within ±(2^62 − 1)");
    else if (value !== null) assert(!value.includes("\0"), "a text of the ledger has no NUL, which PostgreSQL rejects");
  }
}

/** A text of another server as the ledger can store it: without NUL. */
export function storableText(text: string): string {
  return text.replaceAll("\0", "");
}

/** A time as `Clock` gives it. @param value - Unix milliseconds. */
export function readTime(value: bigint): number {
  const time = Number(value);
  assert(Number.isSafeInteger(time), "a time in the ledger is a safe integer");
  return time;
}

/** A count, or a height of a chain. */
export function readCount(value: bigint): number {
  const count = Number(value);
  assert(Number.isSafeInteger(count) && count >= 0, "a count in the ledger is a safe integer, 0 or more");
  return count;
}
