/**
 * What is true of approvals and reservations: their state, and the accounts that hold their credits.
 * @module
 */
import { type LedgerCheck, sumIsNotZero, sumText } from "./check-row.ts";

/** Where winc came from; a reservation without rows of parts is all its payer's own. */
const allParts =
  "(SELECT reservation_id, payer, approval_id, winc FROM reservation_parts UNION ALL " +
  "SELECT r.id, r.payer, NULL, r.winc FROM reservations r WHERE r.winc > 0 AND NOT EXISTS " +
  "(SELECT 1 FROM reservation_parts p WHERE p.reservation_id = r.id))";

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
      "WHERE a.account LIKE 'escrow:%' AND NOT EXISTS " +
      "(SELECT 1 FROM approvals p WHERE p.id = SUBSTR(a.account, LENGTH('escrow:') + 1))",
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
      "WHERE a.account LIKE 'held:%' AND NOT EXISTS " +
      "(SELECT 1 FROM reservations r WHERE r.id = SUBSTR(a.account, LENGTH('held:') + 1))",
  },
  {
    rule: "the parts of a reservation sum to it",
    violations:
      `SELECT id AS subject, 'off by ' || ${sumText("winc")} AS found FROM ` +
      "(SELECT id, winc FROM reservations UNION ALL " +
      `SELECT reservation_id, -winc FROM ${allParts} AS parts) AS both_sides ` +
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
    // Refunds go to the payers: what was drawn stays drawn.
    rule: "what posted reservations drew from an approval is posted there",
    violations:
      `SELECT id AS subject, 'off by ' || ${sumText("winc")} AS found FROM ` +
      "(SELECT id, posted AS winc FROM approvals UNION ALL " +
      "SELECT rp.approval_id, -rp.winc FROM reservation_parts rp JOIN reservations r ON r.id = rp.reservation_id " +
      "WHERE r.state IN ('posted', 'refunded') AND rp.approval_id IS NOT NULL) AS both_sides " +
      `GROUP BY id HAVING ${sumIsNotZero("winc")}`,
  },
  {
    rule: "an item is paid for at most once",
    violations:
      "SELECT item_id AS subject, COUNT(*) AS found FROM reservations WHERE state IN ('pending', 'posted') " +
      "GROUP BY item_id HAVING COUNT(*) > 1",
  },
  {
    rule: "an approval is given once, with all that was approved",
    violations:
      "SELECT p.id AS subject, COUNT(t.id) AS found FROM approvals p " +
      "LEFT JOIN entries e ON e.account = 'escrow:' || p.id AND e.amount = p.winc " +
      "LEFT JOIN transfers t ON t.id = e.transfer_id AND t.kind = 'approval' " +
      "GROUP BY p.id HAVING COUNT(t.id) <> 1",
  },
  {
    rule: "an approval gives back once, in the way in which it ended",
    violations:
      "SELECT p.id AS subject, p.state || ' after ' || COUNT(*) AS found FROM approvals p " +
      "JOIN entries e ON e.account = 'escrow:' || p.id JOIN transfers t ON t.id = e.transfer_id " +
      "WHERE t.kind IN ('approval_revoked', 'approval_expired') GROUP BY p.id, p.state " +
      "HAVING COUNT(*) > 1 OR MIN(t.kind) <> 'approval_' || p.state",
  },
  {
    rule: "who draws on an approval is the approved one, before it expires",
    violations:
      "SELECT r.id AS subject, p.id AS found FROM reservation_parts rp " +
      "JOIN reservations r ON r.id = rp.reservation_id JOIN approvals p ON p.id = rp.approval_id " +
      "WHERE r.payer <> p.approved_address OR rp.payer <> p.paying_address OR r.created_at >= p.expires_at",
  },
  {
    rule: "a signer's own part comes from the signer",
    violations:
      "SELECT r.id AS subject, rp.payer AS found FROM reservation_parts rp " +
      "JOIN reservations r ON r.id = rp.reservation_id WHERE rp.approval_id IS NULL AND rp.payer <> r.payer",
  },
  {
    rule: "a reservation that costs something is filled once, and emptied once in the way in which it ended",
    violations:
      "SELECT r.id AS subject, " +
      "r.state || ' after ' || COUNT(t.id) || ' of ' || COALESCE(MAX(t.kind), 'none') AS found " +
      "FROM reservations r LEFT JOIN entries e ON e.account = 'held:' || r.id " +
      "LEFT JOIN transfers t ON t.id = e.transfer_id GROUP BY r.id, r.state, r.winc, r.transfer_id " +
      "HAVING COUNT(t.id) <> CASE WHEN r.winc = 0 OR r.transfer_id IS NOT NULL THEN 0 " +
      "WHEN r.state = 'pending' THEN 1 ELSE 2 END " +
      "OR MIN(t.kind) <> 'reservation' OR (COUNT(t.id) = 2 AND MAX(t.kind) <> " +
      "CASE r.state WHEN 'refunded' THEN 'reservation_posted' ELSE 'reservation_' || r.state END)",
  },
  {
    rule: "what paid for an item at once is one movement, of all that the item cost",
    violations:
      `SELECT subject, 'off by ' || ${sumText("winc")} AS found FROM ` +
      "(SELECT t.id || ' for ' || t.change_id AS subject, e.amount AS winc FROM transfers t " +
      "JOIN entries e ON e.transfer_id = t.id AND (e.account = 'revenue' OR e.account LIKE 'revenue#%') " +
      "WHERE t.kind = 'upload' UNION ALL " +
      "SELECT transfer_id || ' for ' || item_id, -winc FROM reservations WHERE transfer_id IS NOT NULL) " +
      `AS both_sides GROUP BY subject HAVING ${sumIsNotZero("winc")}`,
  },
  {
    rule: "what was paid for an item is paid back as often as its reservations were refunded, and no more",
    violations:
      `SELECT item_id AS subject, 'off by ' || ${sumText("winc")} AS found FROM ` +
      "(SELECT item_id, winc FROM reservations WHERE state = 'refunded' UNION ALL " +
      "SELECT t.change_id, e.amount FROM transfers t JOIN entries e ON e.transfer_id = t.id " +
      "WHERE t.kind = 'refund' AND (e.account = 'revenue' OR e.account LIKE 'revenue#%')) AS both_sides " +
      `GROUP BY item_id HAVING ${sumIsNotZero("winc")}`,
  },
  {
    rule: "a part of a reservation was taken from where it says",
    violations:
      `SELECT rp.reservation_id AS subject, COALESCE(rp.approval_id, rp.payer) AS found FROM ${allParts} rp ` +
      "JOIN reservations r ON r.id = rp.reservation_id " +
      // The transfer first, then its one entry: an account of many entries is not searched for each of its parts.
      "WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.amount = -rp.winc " +
      "AND e.account = " +
      "CASE WHEN rp.approval_id IS NULL THEN 'user:' || rp.payer ELSE 'escrow:' || rp.approval_id END " +
      "AND e.transfer_id = COALESCE(r.transfer_id, " +
      "(SELECT MIN(t.id) FROM entries h JOIN transfers t ON t.id = h.transfer_id " +
      "WHERE h.account = 'held:' || rp.reservation_id AND t.kind = 'reservation')))",
  },
];
