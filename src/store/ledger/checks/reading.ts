/**
 * What is true of bytes that readers have paid for.
 * @module
 */
import type { LedgerCheck } from "./check-row.ts";

export const readingChecks: readonly LedgerCheck[] = [
  {
    rule: "a reading allowance belongs to a settled x402 payment that was made for reading",
    violations:
      "SELECT a.payment_id AS subject, COALESCE(p.purpose, 'no payment') AS found FROM reading_allowances a " +
      "LEFT JOIN x402_payments p ON p.id = a.payment_id WHERE p.id IS NULL OR " +
      "p.purpose <> 'reading:' || a.client OR p.state NOT IN ('settled', 'reversed')",
  },
  {
    rule: "a reading allowance was charged for once, and nothing else was charged for as reading",
    violations:
      "SELECT a.payment_id AS subject, COUNT(t.id) AS found FROM reading_allowances a LEFT JOIN transfers t " +
      "ON t.change_id = 'reading/' || a.payment_id AND t.kind = 'reading' GROUP BY a.payment_id " +
      "HAVING COUNT(t.id) <> 1 UNION ALL " +
      "SELECT t.id, 0 FROM transfers t LEFT JOIN reading_allowances a ON t.change_id = 'reading/' || a.payment_id " +
      "WHERE t.kind = 'reading' AND a.payment_id IS NULL",
  },
  {
    rule: "a reading allowance has left no more than was bought, and not less than nothing",
    violations:
      "SELECT payment_id AS subject, bytes_left AS found FROM reading_allowances " +
      "WHERE bytes_left < 0 OR bytes_left > bytes",
  },
];
