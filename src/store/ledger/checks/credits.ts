/**
 * What is true of approvals and reservations: their state, and the accounts that hold their credits.
 * @module
 */
import { type LedgerCheck, sumIsNotZero, sumText } from "./check-row.ts";

export const creditChecks: readonly LedgerCheck[] = [
  {
    rule: "an active approval's escrow holds what is left of it, an ended one's nothing",
    violations:
      "SELECT p.id AS subject, COALESCE(a.balance, 0) AS found FROM approvals p " +
      "LEFT JOIN accounts a ON a.account = 'escrow:' || p.id WHERE COALESCE(a.balance, 0) <> " +
      "CASE p.state WHEN 'active' THEN p.winc - p.pending - p.posted ELSE 0 END",
  },
  {
    rule: "an escrow belongs to an approval",
    violations:
      "SELECT a.account AS subject, a.balance AS found FROM accounts a " +
      "LEFT JOIN approvals p ON a.account = 'escrow:' || p.id WHERE a.account LIKE 'escrow:%' AND p.id IS NULL",
  },
  {
    rule: "of an approval no more is used than was approved",
    violations:
      "SELECT id AS subject, pending + posted AS found FROM approvals " +
      "WHERE pending < 0 OR posted < 0 OR pending + posted > winc",
  },
  {
    rule: "an approval is used when all of it is posted, and only then",
    violations:
      "SELECT id AS subject, state AS found FROM approvals " +
      "WHERE (state = 'used' AND posted <> winc) OR (state = 'active' AND posted = winc)",
  },
  {
    rule: "a reservation is held while it is pending, and not after",
    violations:
      "SELECT r.id AS subject, COALESCE(a.balance, 0) AS found FROM reservations r " +
      "LEFT JOIN accounts a ON a.account = 'held:' || r.id WHERE COALESCE(a.balance, 0) <> " +
      "CASE r.state WHEN 'pending' THEN r.winc ELSE 0 END",
  },
  {
    rule: "what is held belongs to a reservation",
    violations:
      "SELECT a.account AS subject, a.balance AS found FROM accounts a " +
      "LEFT JOIN reservations r ON a.account = 'held:' || r.id WHERE a.account LIKE 'held:%' AND r.id IS NULL",
  },
  {
    rule: "the parts of a reservation sum to it",
    violations:
      `SELECT id AS subject, 'off by ' || ${sumText("winc")} AS found FROM ` +
      "(SELECT id, winc FROM reservations UNION ALL SELECT reservation_id, -winc FROM reservation_parts) AS both_sides " +
      `GROUP BY id HAVING ${sumIsNotZero("winc")}`,
  },
  {
    rule: "what pending reservations draw from an approval is pending there",
    violations:
      `SELECT id AS subject, 'off by ' || ${sumText("winc")} AS found FROM ` +
      "(SELECT id, pending AS winc FROM approvals UNION ALL " +
      "SELECT rp.approval_id, -rp.winc FROM reservation_parts rp JOIN reservations r ON r.id = rp.reservation_id " +
      "WHERE r.state = 'pending' AND rp.approval_id IS NOT NULL) AS both_sides " +
      `GROUP BY id HAVING ${sumIsNotZero("winc")}`,
  },
  {
    rule: "what posted reservations drew from an approval is posted there",
    violations:
      `SELECT id AS subject, 'off by ' || ${sumText("winc")} AS found FROM ` +
      "(SELECT id, posted AS winc FROM approvals UNION ALL " +
      "SELECT rp.approval_id, -rp.winc FROM reservation_parts rp JOIN reservations r ON r.id = rp.reservation_id " +
      "WHERE r.state = 'posted' AND rp.approval_id IS NOT NULL) AS both_sides " +
      `GROUP BY id HAVING ${sumIsNotZero("winc")}`,
  },
  {
    rule: "an item is paid for at most once",
    violations:
      "SELECT item_id AS subject, COUNT(*) AS found FROM reservations WHERE state IN ('pending', 'posted') " +
      "GROUP BY item_id HAVING COUNT(*) > 1",
  },
];
