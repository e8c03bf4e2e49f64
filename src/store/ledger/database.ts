/**
 * What the ledger asks of a database: transactions that are durable when they are answered. Types only.
 *
 * The rules speak one SQL, the part that SQLite and PostgreSQL share: `?` for values, `ON CONFLICT`, `RETURNING`,
 * `CAST(SUM(x) AS BIGINT)`; no dates, floats, blobs, sequences or functions that only one of them has.
 * Source: docs/decisions/070-ledger.md.
 * @module
 */

/** A value of a row or a parameter. Times are Unix milliseconds, truth is 0n or 1n, all integers are bigint. */
export type Value = string | bigint | null;

/** A row: its columns by name. The shape is the caller's word, stated beside its SQL. */
export type Row = Readonly<Record<string, Value>>;

/**
 * One transaction, as its work sees it. It ends with the work: what is asked later is refused.
 *
 * A statement that fails ends the transaction: the work cannot go on after catching its error.
 */
export type Tx = Readonly<{
  /** All rows, in the order of the SQL. */
  all: <Shape extends Row>(sql: string, ...values: Value[]) => Promise<Shape[]>;
  /** The first row. */
  get: <Shape extends Row>(sql: string, ...values: Value[]) => Promise<Shape | undefined>;
  /** Runs a statement that answers no rows, and tells how many rows it changed. */
  run: (sql: string, ...values: Value[]) => Promise<number>;
}>;

/** Work within one transaction: it touches nothing but `tx` and waits for nothing else, for it may be run again. */
export type Work<Result> = (tx: Tx) => Promise<Result>;

/** An open ledger. */
export type LedgerDatabase = Readonly<{
  kind: "sqlite" | "postgres";
  /**
   * Runs work as one transaction: when the promise resolves, all of it is on the disk; when it rejects with the
   * work's own error, nothing of it is there. Transactions see each other whole, in some order.
   *
   * @throws Failure `busy` when too many are waiting, `database_unavailable` when the database cannot write; after
   *   the latter it is unknown whether the work was kept.
   */
  write: <Result>(work: Work<Result>) => Promise<Result>;
  /** Runs reads that see one state of the ledger; a write within it fails. */
  read: <Result>(work: Work<Result>) => Promise<Result>;
  /** What is wrong with it, as sentences for an operator: why nothing can be written. Empty while all is well. */
  faults: () => readonly string[];
  /** Finishes what was accepted, then closes. */
  close: () => Promise<void>;
}>;
