/**
 * The invariants of a ledger, each a query for the rows that break it.
 *
 * Sums are split into two halves so that they cannot overflow 64 bits.
 * Source: docs/reference/payment.md#invariants-of-the-ledger.
 * @module
 */

export type LedgerCheck = Readonly<{
  /** The invariant, as a sentence. */
  rule: string;
  /** A query for the rows that break it: columns `subject` (text: which row) and `found` (its value). */
  violations: string;
}>;

/** 2^32: sums are taken of the upper and the lower half, because SQLite fails when a partial sum exceeds 64 bits. */
const half = "4294967296";

/** SQL that is true when a sum of integers is not zero. @param value - SQL of one summand, within ±2^62. */
function sumIsNotZero(value: string): string {
  const low = `SUM((${value}) % ${half})`;
  return `(${low} % ${half} <> 0 OR SUM((${value}) / ${half}) <> -(${low} / ${half}))`;
}

/** SQL of the text of such a sum, in its two halves. */
function sumText(value: string): string {
  const part = (sql: string) => `CAST(COALESCE(SUM(${sql}), 0) AS TEXT)`;
  return `${part(`(${value}) / ${half}`)} || ' * 2^32 + ' || ${part(`(${value}) % ${half}`)}`;
}

// Accounts, transfers and entries.

/** Accounts that hold what is someone's. */
const guardedAccounts = ["user", "escrow", "held", "gift"].map((kind) => `a.account LIKE '${kind}:%'`).join(" OR ");

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
      `SELECT a.account AS subject, a.balance AS found FROM accounts a WHERE a.balance < 0 AND (${guardedAccounts}) ` +
      "AND NOT EXISTS (SELECT 1 FROM entries e JOIN transfers t ON t.id = e.transfer_id " +
      "WHERE e.account = a.account AND e.amount < 0 AND t.kind IN ('chargeback', 'reversal'))",
  },
];

// Approvals and reservations: their state, and the accounts that hold their credits.

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

// Token payments: their state, their transfers, and the events that they claimed.

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
    rule: "a credited token payment has a block, and a failed one has a reason",
    violations:
      "SELECT id AS subject, state AS found FROM token_payments WHERE " +
      "(state = 'credited' AND (block_height IS NULL OR credited_at IS NULL OR credits = 0)) OR " +
      "(state = 'failed' AND (failure_reason IS NULL OR credits > 0)) OR (state = 'pending' AND credits > 0) OR " +
      "state NOT IN ('pending', 'credited', 'reversed', 'failed')",
  },
];

// x402 payments: their state, their transfers, and the events that they claimed.

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

// Bytes that readers have paid for.

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

// Card payments: quotes, the provider's events, gifts, and the resulting credits.

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

// Promo codes: their counts, and the payments that used them.

export const promoChecks: readonly LedgerCheck[] = [
  {
    rule: "a promo code is counted as often as it was used",
    violations:
      "SELECT code AS subject, SUM(counted) || ' counted, ' || SUM(used) || ' used' AS found FROM " +
      "(SELECT code, uses AS counted, 0 AS used FROM promo_counts UNION ALL " +
      "SELECT code, 0, 1 FROM promo_uses) AS both_sides GROUP BY code HAVING SUM(counted) <> SUM(used)",
  },
  {
    rule: "a promo code was used by a payment of the account that was made",
    violations:
      "SELECT u.address || ' ' || u.code AS subject, COALESCE(q.state, 'no payment') AS found FROM promo_uses u " +
      "LEFT JOIN quotes q ON q.id = u.payment_id AND q.address = u.address " +
      "WHERE q.id IS NULL OR q.state <> 'paid'",
  },
];

// Uploads and bundles: each item was paid for once or refunded, and has one position.

export const uploadChecks: readonly LedgerCheck[] = [
  {
    rule: "an act of signing is one upload",
    violations:
      "SELECT signing_id AS subject, COUNT(*) || ' uploads' AS found FROM uploads " +
      "WHERE signing_id IS NOT NULL AND failed_reason IS NULL AND double_of IS NULL " +
      "GROUP BY signing_id HAVING COUNT(*) > 1",
  },
  {
    rule: "an upload that repeats another is not charged",
    violations:
      "SELECT id AS subject, winc AS found FROM uploads " +
      "WHERE double_of IS NOT NULL AND (winc > 0 OR reservation_id IS NOT NULL)",
  },
  {
    rule: "an item that was charged for was paid for with a reservation of its own",
    violations:
      "SELECT u.id AS subject, COALESCE(r.state, 'nothing') AS found FROM uploads u " +
      "LEFT JOIN reservations r ON r.id = u.reservation_id WHERE u.failed_reason IS NULL AND " +
      "(u.winc > 0 OR u.reservation_id IS NOT NULL) AND " +
      "(r.id IS NULL OR r.state <> 'posted' OR r.item_id <> u.id OR r.winc <> u.winc)",
  },
  {
    rule: "what was paid for an item that failed is paid back",
    violations:
      "SELECT u.id AS subject, r.state AS found FROM uploads u JOIN reservations r ON r.id = u.reservation_id " +
      "WHERE u.failed_reason IS NOT NULL AND r.state <> 'refunded'",
  },
  {
    rule: "an item is in a bundle of its own store that goes to the chain, or in none",
    violations:
      "SELECT u.id AS subject, COALESCE(b.state, 'no bundle') AS found FROM uploads u " +
      "LEFT JOIN bundles b ON b.id = u.bundle_id WHERE u.bundle_id IS NOT NULL AND " +
      "(b.id IS NULL OR b.state = 'dropped' OR b.store <> u.store)",
  },
  {
    // A bundle that is planned may have lost items that failed, until it is dropped.
    rule: "a bundle whose transaction is signed has all of its items",
    violations:
      "SELECT b.id AS subject, COUNT(u.id) || ' of ' || b.item_count AS found FROM bundles b " +
      "LEFT JOIN uploads u ON u.bundle_id = b.id WHERE b.state IN ('prepared', 'seeded', 'permanent') " +
      "GROUP BY b.id, b.item_count, b.items_size " +
      "HAVING COUNT(u.id) <> b.item_count OR COALESCE(SUM(u.size), 0) <> b.items_size",
  },
  {
    rule: "an item directly follows those before it in its bundle",
    violations:
      "SELECT p.id AS subject, p.behind AS found FROM (SELECT u.id, u.behind, u.position, " +
      "SUM(u.size) OVER (PARTITION BY u.bundle_id ORDER BY u.position) - u.size AS before_it, " +
      "ROW_NUMBER() OVER (PARTITION BY u.bundle_id ORDER BY u.position) - 1 AS nth FROM uploads u " +
      "JOIN bundles b ON b.id = u.bundle_id WHERE b.state IN ('filling', 'prepared', 'seeded', 'permanent')) AS p " +
      "WHERE p.behind <> p.before_it OR p.position <> p.nth",
  },
];
