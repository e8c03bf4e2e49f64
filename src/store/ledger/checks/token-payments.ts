/**
 * What is true of payments in tokens: their state, what they moved, and the events that they claimed.
 * @module
 */
import { type LedgerCheck, sumIsNotZero, sumText } from "./check-row.ts";

export const tokenPaymentChecks: readonly LedgerCheck[] = [
  {
    rule: "a token payment's account has of it what it is credited with, and nothing of one that is not",
    violations:
      `SELECT id AS subject, 'off by ' || ${sumText("winc")} AS found FROM ` +
      "(SELECT p.id, CASE p.state WHEN 'credited' THEN p.winc ELSE 0 END AS winc FROM token_payments p UNION ALL " +
      "SELECT p.id, -e.amount FROM token_payments p JOIN transfers t ON t.change_id = p.id " +
      "JOIN entries e ON e.transfer_id = t.id AND e.account = 'user:' || p.destination) AS both_sides " +
      `GROUP BY id HAVING ${sumIsNotZero("winc")}`,
  },
  {
    rule: "a token payment is credited as often as it says, and reversed once less while it is credited",
    violations:
      "SELECT p.id AS subject, p.state || ' after ' || COUNT(CASE t.kind WHEN 'token_payment' THEN 1 END) || " +
      "' credits and ' || COUNT(CASE t.kind WHEN 'reversal' THEN 1 END) || ' reversals' AS found " +
      "FROM token_payments p LEFT JOIN transfers t ON t.change_id = p.id GROUP BY p.id, p.state, p.credits " +
      "HAVING COUNT(CASE t.kind WHEN 'token_payment' THEN 1 END) <> p.credits OR " +
      "COUNT(CASE t.kind WHEN 'reversal' THEN 1 END) <> " +
      "p.credits - CASE p.state WHEN 'credited' THEN 1 ELSE 0 END",
  },
  {
    rule: "a token payment that was ever credited has claimed its event, and no other has",
    violations:
      "SELECT p.id AS subject, p.credits AS found FROM token_payments p " +
      "LEFT JOIN events v ON v.source = 'token' AND v.event_id = p.id " +
      "WHERE (p.credits > 0) <> (v.event_id IS NOT NULL)",
  },
  {
    rule: "every later credit of token payments has claimed an event of its own",
    violations:
      `SELECT 'all token payments' AS subject, 'off by ' || ${sumText("credits")} AS found FROM ` +
      "(SELECT credits - 1 AS credits FROM token_payments WHERE credits > 0 UNION ALL " +
      "SELECT -1 FROM events WHERE source = 'token' AND event_id LIKE '%#%') AS both_sides " +
      `HAVING ${sumIsNotZero("credits")}`,
  },
  {
    rule: "what a token brought belongs to a payment",
    violations:
      "SELECT t.id AS subject, t.change_id AS found FROM transfers t " +
      "LEFT JOIN token_payments p ON p.id = t.change_id WHERE p.id IS NULL AND t.kind = 'token_payment'",
  },
  {
    rule: "a token payment that was credited stands in a block, and one that failed says why",
    violations:
      "SELECT id AS subject, state AS found FROM token_payments WHERE " +
      "(state = 'credited' AND (block_height IS NULL OR credited_at IS NULL OR credits = 0)) OR " +
      "(state = 'failed' AND (failure_reason IS NULL OR credits > 0)) OR (state = 'pending' AND credits > 0) OR " +
      "state NOT IN ('pending', 'credited', 'reversed', 'failed')",
  },
];
