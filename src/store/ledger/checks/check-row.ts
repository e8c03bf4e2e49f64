/**
 * The form of a truth about the ledger, and sums that cannot overflow on the way.
 * @module
 */

/** One truth. */
export type LedgerCheck = Readonly<{
  /** The truth, as a sentence. */
  rule: string;
  /** A query for what breaks it: columns `subject` (text: which row) and `found` (what stands there). */
  violations: string;
}>;

/** 2^32: sums are taken of the upper and the lower half, for SQLite fails where a partial sum passes 64 bits. */
const half = "4294967296";

/** SQL that is true when a sum of integers is not zero. @param value - SQL of one summand, within ±2^62. */
export function sumIsNotZero(value: string): string {
  const low = `SUM((${value}) % ${half})`;
  return `(${low} % ${half} <> 0 OR SUM((${value}) / ${half}) <> -(${low} / ${half}))`;
}

/** SQL of the text of such a sum, in its two halves. */
export function sumText(value: string): string {
  const part = (sql: string) => `CAST(COALESCE(SUM(${sql}), 0) AS TEXT)`;
  return `${part(`(${value}) / ${half}`)} || ' * 2^32 + ' || ${part(`(${value}) % ${half}`)}`;
}
