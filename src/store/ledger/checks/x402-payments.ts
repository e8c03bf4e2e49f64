/**
 * What is true of payments by x402: their state, what they moved, and the events that they claimed.
 * @module
 */
import { type LedgerCheck, sumIsNotZero, sumText } from "./check-row.ts";

export const x402PaymentChecks: readonly LedgerCheck[] = [
  {
    rule: "an x402 payment's payer has of it what it is worth while it is settled, and nothing otherwise",
    violations:
      `SELECT id AS subject, 'off by ' || ${sumText("winc")} AS found FROM ` +
      "(SELECT p.id, CASE p.state WHEN 'settled' THEN p.winc ELSE 0 END AS winc FROM x402_payments p UNION ALL " +
      "SELECT p.id, -e.amount FROM x402_payments p JOIN transfers t ON t.change_id = p.id " +
      "JOIN entries e ON e.transfer_id = t.id AND e.account = 'user:' || p.payer) AS both_sides " +
      `GROUP BY id HAVING ${sumIsNotZero("winc")}`,
  },
  {
    rule: "an x402 payment is credited once, if it was ever settled, and reversed once, if it was reversed",
    violations:
      "SELECT p.id AS subject, p.state || ' after ' || COUNT(CASE t.kind WHEN 'x402_payment' THEN 1 END) || " +
      "' credits and ' || COUNT(CASE t.kind WHEN 'reversal' THEN 1 END) || ' reversals' AS found " +
      "FROM x402_payments p LEFT JOIN transfers t ON t.change_id = p.id GROUP BY p.id, p.state " +
      "HAVING COUNT(CASE t.kind WHEN 'x402_payment' THEN 1 END) <> " +
      "CASE WHEN p.state IN ('settled', 'reversed') THEN 1 ELSE 0 END OR " +
      "COUNT(CASE t.kind WHEN 'reversal' THEN 1 END) <> CASE p.state WHEN 'reversed' THEN 1 ELSE 0 END",
  },
  {
    rule: "an x402 payment that was ever settled has claimed its event, and no other has",
    violations:
      "SELECT p.id AS subject, p.state AS found FROM x402_payments p " +
      "LEFT JOIN events v ON v.source = 'x402' AND v.event_id = p.id " +
      "WHERE (p.state IN ('settled', 'reversed')) <> (v.event_id IS NOT NULL)",
  },
  {
    rule: "what x402 brought belongs to a payment, and so does each event of it",
    violations:
      "SELECT t.id AS subject, t.change_id AS found FROM transfers t LEFT JOIN x402_payments p ON p.id = t.change_id " +
      "WHERE p.id IS NULL AND t.kind = 'x402_payment' UNION ALL " +
      "SELECT v.event_id, v.source FROM events v LEFT JOIN x402_payments p ON p.id = v.event_id " +
      "WHERE p.id IS NULL AND v.source = 'x402'",
  },
  {
    rule: "an x402 payment that is settled has its transaction, block and balance; one that ended says why",
    violations:
      "SELECT id AS subject, state AS found FROM x402_payments WHERE " +
      "(state IN ('settled', 'reversed') AND (transaction_hash IS NULL OR block_height IS NULL OR " +
      "block_hash IS NULL OR settled_at IS NULL OR balance IS NULL)) OR " +
      "(state IN ('rejected', 'reversed') AND (reason IS NULL OR ended_at IS NULL)) OR " +
      "(state IN ('seen', 'settling') AND due_at IS NULL) OR " +
      "state NOT IN ('seen', 'settling', 'settled', 'rejected', 'reversed')",
  },
  {
    rule: "an x402 payment is named by its authorization",
    violations:
      "SELECT id AS subject, nonce AS found FROM x402_payments " +
      "WHERE id <> network || '/' || asset || '/' || payer || '/' || nonce",
  },
];
