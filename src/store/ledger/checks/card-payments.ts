/**
 * What is true of payments by card: quotes, what the provider said, gifts, and the credits that follow.
 * @module
 */
import { type LedgerCheck, sumIsNotZero, sumText } from "./check-row.ts";

/** What refunds and disputes, open or lost, took of a payment; a dispute in another currency is about all of it. */
const lost =
  "p.refunded + COALESCE((SELECT SUM(CASE d.currency WHEN p.currency THEN d.amount ELSE p.amount END) " +
  "FROM card_disputes d WHERE d.payment_id = p.id AND d.status IN ('open', 'lost')), 0)";

/** Quotes with the payments that paid them. */
const paidQuotes = "quotes q JOIN card_payments p ON p.id = q.payment_id";

export const cardPaymentChecks: readonly LedgerCheck[] = [
  {
    rule: "a quote's account or gift has of it what was credited less what is held back",
    violations:
      `SELECT id AS subject, 'off by ' || ${sumText("winc")} AS found FROM ` +
      "(SELECT id, credited_winc - taken_back_winc AS winc FROM quotes UNION ALL " +
      "SELECT q.id, -e.amount FROM quotes q JOIN transfers t ON t.change_id = q.id " +
      "JOIN entries e ON e.transfer_id = t.id " +
      "WHERE e.account LIKE 'user:%' OR e.account LIKE 'gift:%') AS both_sides " +
      `GROUP BY id HAVING ${sumIsNotZero("winc")}`,
  },
  {
    rule: "a quote is credited once when it is paid, and not otherwise",
    violations:
      "SELECT q.id AS subject, q.state || ' after ' || COUNT(t.id) AS found FROM quotes q " +
      "LEFT JOIN transfers t ON t.change_id = q.id AND t.kind IN ('payment', 'gift_payment') " +
      "GROUP BY q.id, q.state HAVING COUNT(t.id) <> CASE q.state WHEN 'paid' THEN 1 ELSE 0 END",
  },
  {
    rule: "a credit by card belongs to a quote",
    violations:
      "SELECT t.id AS subject, t.change_id AS found FROM transfers t LEFT JOIN quotes q ON q.id = t.change_id " +
      "WHERE t.kind IN ('payment', 'gift_payment') AND t.change_id IS NOT NULL AND q.id IS NULL",
  },
  {
    rule: "a quote is paid by a payment of what it asked for, and no other is",
    violations:
      "SELECT q.id AS subject, q.state AS found FROM quotes q LEFT JOIN card_payments p ON p.id = q.payment_id " +
      "WHERE (q.state = 'paid') <> (p.paid_at IS NOT NULL) OR (q.state = 'paid' AND " +
      "(p.amount <> q.payment_amount OR p.currency <> q.currency OR p.quote_id <> q.id))",
  },
  {
    rule: "a payment for a quote of ours pays it or goes back",
    violations:
      "SELECT p.id AS subject, q.state AS found FROM card_payments p JOIN quotes q ON q.id = p.quote_id " +
      "WHERE p.paid_at IS NOT NULL AND (COALESCE(q.payment_id, '') = p.id) = (p.refund IS NOT NULL)",
  },
  {
    rule: "all is held back when all of a payment is lost, and nothing when nothing is",
    violations:
      `SELECT q.id AS subject, q.taken_back_winc AS found FROM ${paidQuotes} WHERE ` +
      `(${lost} >= p.amount AND q.taken_back_winc <> q.credited_winc) OR (${lost} = 0 AND q.taken_back_winc <> 0) ` +
      "OR q.taken_back_winc < 0 OR q.taken_back_winc > q.credited_winc",
  },
  {
    rule: "a quote credits what it promised, or what was paid for where its promo codes no longer held",
    violations:
      "SELECT id AS subject, credited_winc AS found FROM quotes WHERE state = 'paid' AND " +
      "(credited_winc - promo_winc > winc OR (credited_winc <> winc AND (promo_winc <> 0 OR promo_codes = '[]')) " +
      "OR promo_winc < 0)",
  },
  {
    rule: "a gift holds its credits until it is redeemed, and nothing after",
    violations:
      "SELECT g.id AS subject, g.state || ' with ' || COALESCE(a.balance, 0) AS found FROM gifts g " +
      "JOIN quotes q ON q.id = g.quote_id LEFT JOIN accounts a ON a.account = 'gift:' || g.id " +
      "WHERE COALESCE(a.balance, 0) <> CASE g.state WHEN 'open' THEN q.credited_winc - q.taken_back_winc ELSE 0 END",
  },
  {
    rule: "what waits in a gift belongs to a gift",
    violations:
      "SELECT a.account AS subject, a.balance AS found FROM accounts a " +
      "LEFT JOIN gifts g ON a.account = 'gift:' || g.id WHERE a.account LIKE 'gift:%' AND g.id IS NULL",
  },
  {
    rule: "a gift is redeemed once, by somebody, at some time",
    violations:
      "SELECT g.id AS subject, g.state || ' after ' || COUNT(t.id) AS found FROM gifts g " +
      "LEFT JOIN transfers t ON t.change_id = g.quote_id AND t.kind = 'gift_redemption' " +
      "GROUP BY g.id, g.state, g.redeemed_by, g.redeemed_at HAVING " +
      "COUNT(t.id) <> CASE g.state WHEN 'redeemed' THEN 1 ELSE 0 END OR " +
      "(g.state = 'redeemed') <> (g.redeemed_by IS NOT NULL AND g.redeemed_at IS NOT NULL)",
  },
  {
    rule: "states of quotes, gifts, refunds and disputes are known ones",
    violations:
      "SELECT id AS subject, state AS found FROM quotes WHERE state NOT IN ('open', 'paid', 'expired', 'failed') " +
      "UNION ALL SELECT id, state FROM gifts WHERE state NOT IN ('unpaid', 'open', 'redeemed') " +
      "UNION ALL SELECT id, refund FROM card_payments WHERE refund NOT IN ('wanted', 'asked') " +
      "UNION ALL SELECT id, status FROM card_disputes " +
      "WHERE status NOT IN ('inquiry', 'inquiry_closed', 'open', 'won', 'lost')",
  },
];
