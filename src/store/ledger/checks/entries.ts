/**
 * What is true of accounts, transfers and entries.
 * @module
 */
import { type LedgerCheck, sumIsNotZero, sumText } from "./check-row.ts";

/** Accounts that hold what is someone's. */
const guarded = ["user", "escrow", "held", "gift"].map((kind) => `a.account LIKE '${kind}:%'`).join(" OR ");

export const entryChecks: readonly LedgerCheck[] = [
  {
    rule: "the sum over all accounts is zero",
    violations:
      `SELECT 'all entries' AS subject, ${sumText("amount")} AS found FROM entries ` +
      `HAVING ${sumIsNotZero("amount")}`,
  },
  {
    rule: "the legs of a transfer sum to zero",
    violations:
      `SELECT transfer_id AS subject, ${sumText("amount")} AS found FROM entries ` +
      `GROUP BY transfer_id HAVING ${sumIsNotZero("amount")}`,
  },
  {
    rule: "an account's balance is the sum of its entries",
    violations:
      `SELECT account AS subject, 'off by ' || ${sumText("amount")} AS found FROM ` +
      "(SELECT account, -amount AS amount FROM entries UNION ALL " +
      "SELECT account, balance FROM accounts) AS both_sides " +
      `GROUP BY account HAVING ${sumIsNotZero("amount")}`,
  },
  {
    rule: "an entry belongs to an account and a transfer",
    violations:
      "SELECT e.account || ' in ' || e.transfer_id AS subject, e.amount AS found FROM entries e " +
      "LEFT JOIN accounts a ON a.account = e.account LEFT JOIN transfers t ON t.id = e.transfer_id " +
      "WHERE a.account IS NULL OR t.id IS NULL",
  },
  {
    rule: "nobody holds less than nothing but after a chargeback or a reversal",
    violations:
      `SELECT a.account AS subject, a.balance AS found FROM accounts a WHERE a.balance < 0 AND (${guarded}) ` +
      "AND NOT EXISTS (SELECT 1 FROM entries e JOIN transfers t ON t.id = e.transfer_id " +
      "WHERE e.account = a.account AND e.amount < 0 AND t.kind IN ('chargeback', 'reversal'))",
  },
];
