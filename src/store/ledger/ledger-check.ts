/**
 * The invariants of a ledger, each a query for the rows that break it, and the check of a ledger against them.
 *
 * The check uses SQL alone, so that it shares no code, and no mistake, with the rules that wrote the rows. Sums are
 * split into two halves so that they cannot overflow 64 bits.
 * Source: docs/reference/payment.md#invariants-of-the-ledger.
 * @module
 */
import type { LedgerDatabase } from "./ledger-database.ts";

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

/**
 * SQL of the keys whose amounts do not sum to zero, with the sum.
 *
 * @param key - A column of `rows`. @param amount - A column of `rows`. @param rows - SQL of both sides, one negative.
 */
function sumsOff(key: string, amount: string, rows: string): string {
  return (
    `SELECT ${key} AS subject, 'off by ' || ${sumText(amount)} AS found FROM (${rows}) AS both_sides ` +
    `GROUP BY ${key} HAVING ${sumIsNotZero(amount)}`
  );
}

/** @param violationsOf - The query of each rule. */
function checksOf(violationsOf: Readonly<Record<string, string>>): readonly LedgerCheck[] {
  return Object.entries(violationsOf).map(([rule, violations]) => ({ rule, violations }));
}

// Accounts, transfers and entries.

/** Accounts that belong to a client. */
const guardedAccounts = ["user", "escrow", "held", "gift"].map((kind) => `a.account LIKE '${kind}:%'`).join(" OR ");

export const entryChecks = checksOf({
  "the sum over all accounts is zero":
    `SELECT 'all entries' AS subject, ${sumText("amount")} AS found ` + `FROM entries HAVING ${sumIsNotZero("amount")}`,
  "the legs of a transfer sum to zero":
    `SELECT transfer_id AS subject, ${sumText("amount")} AS found FROM entries ` +
    `GROUP BY transfer_id HAVING ${sumIsNotZero("amount")}`,
  "an account's balance is the sum of its entries": sumsOff(
    "account",
    "amount",
    "SELECT account, -amount AS amount FROM entries UNION ALL SELECT account, balance FROM accounts",
  ),
  "an entry belongs to an account and a transfer":
    "SELECT e.account || ' in ' || e.transfer_id AS subject, e.amount AS found FROM entries e " +
    "LEFT JOIN accounts a ON a.account = e.account LEFT JOIN transfers t ON t.id = e.transfer_id " +
    "WHERE a.account IS NULL OR t.id IS NULL",
  "a client's account is below zero only after a chargeback or a reversal":
    `SELECT a.account AS subject, a.balance AS found FROM accounts a WHERE a.balance < 0 AND (${guardedAccounts}) ` +
    "AND NOT EXISTS (SELECT 1 FROM entries e JOIN transfers t ON t.id = e.transfer_id " +
    "WHERE e.account = a.account AND e.amount < 0 AND t.kind IN ('chargeback', 'reversal'))",
});

// Approvals and reservations: their state, and the accounts that hold their credits.

/** The sources of winc; a reservation without rows of parts is paid by its payer alone. */
const allParts =
  "(SELECT reservation_id, payer, approval_id, winc FROM reservation_parts UNION ALL " +
  "SELECT r.id, r.payer, NULL, r.winc FROM reservations r WHERE r.winc > 0 AND NOT EXISTS " +
  "(SELECT 1 FROM reservation_parts p WHERE p.reservation_id = r.id))";

export const creditChecks = checksOf({
  "an escrow holds the rest of an active approval, and nothing of an ended approval":
    "SELECT p.id AS subject, COALESCE(a.balance, 0) AS found FROM approvals p " +
    "LEFT JOIN accounts a ON a.account = 'escrow:' || p.id WHERE COALESCE(a.balance, 0) <> " +
    "CASE p.state WHEN 'active' THEN p.winc - p.pending - p.posted ELSE 0 END",
  "an escrow belongs to an approval":
    "SELECT a.account AS subject, a.balance AS found FROM accounts a " +
    "WHERE a.account LIKE 'escrow:%' AND NOT EXISTS " +
    "(SELECT 1 FROM approvals p WHERE p.id = SUBSTR(a.account, LENGTH('escrow:') + 1))",
  "an approval is not used beyond its approved amount":
    "SELECT id AS subject, pending + posted AS found FROM approvals " +
    "WHERE pending < 0 OR posted < 0 OR pending + posted > winc",
  "an approval has the state used exactly when all of it is posted":
    "SELECT id AS subject, state AS found FROM approvals " +
    "WHERE (state = 'used' AND posted <> winc) OR (state = 'active' AND posted = winc)",
  "a reservation's credits are held exactly while it is pending":
    "SELECT r.id AS subject, COALESCE(a.balance, 0) AS found FROM reservations r " +
    "LEFT JOIN accounts a ON a.account = 'held:' || r.id WHERE COALESCE(a.balance, 0) <> " +
    "CASE r.state WHEN 'pending' THEN r.winc ELSE 0 END",
  "a held account belongs to a reservation":
    "SELECT a.account AS subject, a.balance AS found FROM accounts a " +
    "WHERE a.account LIKE 'held:%' AND NOT EXISTS " +
    "(SELECT 1 FROM reservations r WHERE r.id = SUBSTR(a.account, LENGTH('held:') + 1))",
  "the parts of a reservation sum to its amount": sumsOff(
    "id",
    "winc",
    `SELECT id, winc FROM reservations UNION ALL SELECT reservation_id, -winc FROM ${allParts} AS parts`,
  ),
  "an approval's pending amount is the sum that pending reservations draw from it": sumsOff(
    "id",
    "winc",
    "SELECT id, pending AS winc FROM approvals UNION ALL " +
      "SELECT rp.approval_id, -rp.winc FROM reservation_parts rp JOIN reservations r ON r.id = rp.reservation_id " +
      "WHERE r.state = 'pending' AND rp.approval_id IS NOT NULL",
  ),
  // Refunds go to the payers: what was drawn stays drawn.
  "an approval's posted amount is the sum that posted reservations drew from it": sumsOff(
    "id",
    "winc",
    "SELECT id, posted AS winc FROM approvals UNION ALL " +
      "SELECT rp.approval_id, -rp.winc FROM reservation_parts rp JOIN reservations r ON r.id = rp.reservation_id " +
      "WHERE r.state IN ('posted', 'refunded') AND rp.approval_id IS NOT NULL",
  ),
  "an item is paid for at most once":
    "SELECT item_id AS subject, COUNT(*) AS found FROM reservations WHERE state IN ('pending', 'posted') " +
    "GROUP BY item_id HAVING COUNT(*) > 1",
  "an approval is funded once, with its approved amount":
    "SELECT p.id AS subject, COUNT(t.id) AS found FROM approvals p " +
    "LEFT JOIN entries e ON e.account = 'escrow:' || p.id AND e.amount = p.winc " +
    "LEFT JOIN transfers t ON t.id = e.transfer_id AND t.kind = 'approval' " +
    "GROUP BY p.id HAVING COUNT(t.id) <> 1",
  "an approval returns its rest once, by the transfer of its end":
    "SELECT p.id AS subject, p.state || ' after ' || COUNT(*) AS found FROM approvals p " +
    "JOIN entries e ON e.account = 'escrow:' || p.id JOIN transfers t ON t.id = e.transfer_id " +
    "WHERE t.kind IN ('approval_revoked', 'approval_expired') GROUP BY p.id, p.state " +
    "HAVING COUNT(*) > 1 OR MIN(t.kind) <> 'approval_' || p.state",
  "only the approved address draws on an approval, before it expires":
    "SELECT r.id AS subject, p.id AS found FROM reservation_parts rp " +
    "JOIN reservations r ON r.id = rp.reservation_id JOIN approvals p ON p.id = rp.approval_id " +
    "WHERE r.payer <> p.approved_address OR rp.payer <> p.paying_address OR r.created_at >= p.expires_at",
  "a part without an approval comes from the signer":
    "SELECT r.id AS subject, rp.payer AS found FROM reservation_parts rp " +
    "JOIN reservations r ON r.id = rp.reservation_id WHERE rp.approval_id IS NULL AND rp.payer <> r.payer",
  "a reservation above 0 winc is funded once, and emptied once by the transfer of its end":
    "SELECT r.id AS subject, " +
    "r.state || ' after ' || COUNT(t.id) || ' of ' || COALESCE(MAX(t.kind), 'none') AS found " +
    "FROM reservations r LEFT JOIN entries e ON e.account = 'held:' || r.id " +
    "LEFT JOIN transfers t ON t.id = e.transfer_id GROUP BY r.id, r.state, r.winc, r.transfer_id " +
    "HAVING COUNT(t.id) <> CASE WHEN r.winc = 0 OR r.transfer_id IS NOT NULL THEN 0 " +
    "WHEN r.state = 'pending' THEN 1 ELSE 2 END " +
    "OR MIN(t.kind) <> 'reservation' OR (COUNT(t.id) = 2 AND MAX(t.kind) <> " +
    "CASE r.state WHEN 'refunded' THEN 'reservation_posted' ELSE 'reservation_' || r.state END)",
  "an immediate payment for an item is one transfer of its price": sumsOff(
    "subject",
    "winc",
    "SELECT t.id || ' for ' || t.change_id AS subject, e.amount AS winc FROM transfers t " +
      "JOIN entries e ON e.transfer_id = t.id AND (e.account = 'revenue' OR e.account LIKE 'revenue#%') " +
      "WHERE t.kind = 'upload' UNION ALL " +
      "SELECT transfer_id || ' for ' || item_id, -winc FROM reservations WHERE transfer_id IS NOT NULL",
  ),
  "the refunds of an item equal its refunded reservations": sumsOff(
    "item_id",
    "winc",
    "SELECT item_id, winc FROM reservations WHERE state = 'refunded' UNION ALL " +
      "SELECT t.change_id, e.amount FROM transfers t JOIN entries e ON e.transfer_id = t.id " +
      "WHERE t.kind = 'refund' AND (e.account = 'revenue' OR e.account LIKE 'revenue#%')",
  ),
  "a part of a reservation was taken from its recorded source":
    `SELECT rp.reservation_id AS subject, COALESCE(rp.approval_id, rp.payer) AS found FROM ${allParts} rp ` +
    "JOIN reservations r ON r.id = rp.reservation_id " +
    // The transfer first, then its one entry: an account of many entries is not searched for each of its parts.
    "WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.amount = -rp.winc " +
    "AND e.account = " +
    "CASE WHEN rp.approval_id IS NULL THEN 'user:' || rp.payer ELSE 'escrow:' || rp.approval_id END " +
    "AND e.transfer_id = COALESCE(r.transfer_id, " +
    "(SELECT MIN(t.id) FROM entries h JOIN transfers t ON t.id = h.transfer_id " +
    "WHERE h.account = 'held:' || rp.reservation_id AND t.kind = 'reservation')))",
});

// Token payments: their state, their transfers, and the events that they claimed.

export const tokenPaymentChecks = checksOf({
  "a credited token payment has added its winc to its account, and any other payment nothing": sumsOff(
    "id",
    "winc",
    "SELECT p.id, CASE p.state WHEN 'credited' THEN p.winc ELSE 0 END AS winc FROM token_payments p UNION ALL " +
      "SELECT p.id, -e.amount FROM token_payments p JOIN transfers t ON t.change_id = p.id " +
      "JOIN entries e ON e.transfer_id = t.id AND e.account = 'user:' || p.destination",
  ),
  "a token payment has its count of credits, and one reversal fewer while it is credited":
    "SELECT p.id AS subject, p.state || ' after ' || COUNT(CASE t.kind WHEN 'token_payment' THEN 1 END) || " +
    "' credits and ' || COUNT(CASE t.kind WHEN 'reversal' THEN 1 END) || ' reversals' AS found " +
    "FROM token_payments p LEFT JOIN transfers t ON t.change_id = p.id GROUP BY p.id, p.state, p.credits " +
    "HAVING COUNT(CASE t.kind WHEN 'token_payment' THEN 1 END) <> p.credits OR " +
    "COUNT(CASE t.kind WHEN 'reversal' THEN 1 END) <> " +
    "p.credits - CASE p.state WHEN 'credited' THEN 1 ELSE 0 END",
  "a token payment has claimed its event exactly when it was ever credited":
    "SELECT p.id AS subject, p.credits AS found FROM token_payments p " +
    "LEFT JOIN events v ON v.source = 'token' AND v.event_id = p.id " +
    "WHERE (p.credits > 0) <> (v.event_id IS NOT NULL)",
  "each later credit of a token payment has claimed its own event":
    `SELECT 'all token payments' AS subject, 'off by ' || ${sumText("credits")} AS found FROM ` +
    "(SELECT credits - 1 AS credits FROM token_payments WHERE credits > 0 UNION ALL " +
    "SELECT -1 FROM events WHERE source = 'token' AND event_id LIKE '%#%') AS both_sides " +
    `HAVING ${sumIsNotZero("credits")}`,
  "a token transfer belongs to a token payment":
    "SELECT t.id AS subject, t.change_id AS found FROM transfers t " +
    "LEFT JOIN token_payments p ON p.id = t.change_id WHERE p.id IS NULL AND t.kind = 'token_payment'",
  "a credited token payment has a block, and a failed one has a reason":
    "SELECT id AS subject, state AS found FROM token_payments WHERE " +
    "(state = 'credited' AND (block_height IS NULL OR credited_at IS NULL OR credits = 0)) OR " +
    "(state = 'failed' AND (failure_reason IS NULL OR credits > 0)) OR (state = 'pending' AND credits > 0) OR " +
    "state NOT IN ('pending', 'credited', 'reversed', 'failed')",
});

// x402 payments: their state, their transfers, and the events that they claimed.

export const x402PaymentChecks = checksOf({
  "a settled x402 payment has added its winc to its payer, and any other payment nothing": sumsOff(
    "id",
    "winc",
    "SELECT p.id, CASE p.state WHEN 'settled' THEN p.winc ELSE 0 END AS winc FROM x402_payments p UNION ALL " +
      "SELECT p.id, -e.amount FROM x402_payments p JOIN transfers t ON t.change_id = p.id " +
      "JOIN entries e ON e.transfer_id = t.id AND e.account = 'user:' || p.payer",
  ),
  "an x402 payment is credited once if it was ever settled, and reversed once if it was reversed":
    "SELECT p.id AS subject, p.state || ' after ' || COUNT(CASE t.kind WHEN 'x402_payment' THEN 1 END) || " +
    "' credits and ' || COUNT(CASE t.kind WHEN 'reversal' THEN 1 END) || ' reversals' AS found " +
    "FROM x402_payments p LEFT JOIN transfers t ON t.change_id = p.id GROUP BY p.id, p.state " +
    "HAVING COUNT(CASE t.kind WHEN 'x402_payment' THEN 1 END) <> " +
    "CASE WHEN p.state IN ('settled', 'reversed') THEN 1 ELSE 0 END OR " +
    "COUNT(CASE t.kind WHEN 'reversal' THEN 1 END) <> CASE p.state WHEN 'reversed' THEN 1 ELSE 0 END",
  "an x402 payment has claimed its event exactly when it was ever settled":
    "SELECT p.id AS subject, p.state AS found FROM x402_payments p " +
    "LEFT JOIN events v ON v.source = 'x402' AND v.event_id = p.id " +
    "WHERE (p.state IN ('settled', 'reversed')) <> (v.event_id IS NOT NULL)",
  "an x402 transfer and an x402 event belong to an x402 payment":
    "SELECT t.id AS subject, t.change_id AS found FROM transfers t LEFT JOIN x402_payments p ON p.id = t.change_id " +
    "WHERE p.id IS NULL AND t.kind = 'x402_payment' UNION ALL " +
    "SELECT v.event_id, v.source FROM events v LEFT JOIN x402_payments p ON p.id = v.event_id " +
    "WHERE p.id IS NULL AND v.source = 'x402'",
  "a settled x402 payment has its transaction, block and balance; an ended payment has a reason":
    "SELECT id AS subject, state AS found FROM x402_payments WHERE " +
    "(state IN ('settled', 'reversed') AND (transaction_hash IS NULL OR block_height IS NULL OR " +
    "block_hash IS NULL OR settled_at IS NULL OR balance IS NULL)) OR " +
    "(state IN ('rejected', 'reversed') AND (reason IS NULL OR ended_at IS NULL)) OR " +
    "(state IN ('seen', 'settling') AND due_at IS NULL) OR " +
    "state NOT IN ('seen', 'settling', 'settled', 'rejected', 'reversed')",
  "an x402 payment is named by its authorization":
    "SELECT id AS subject, nonce AS found FROM x402_payments " +
    "WHERE id <> network || '/' || asset || '/' || payer || '/' || nonce",
});

// Bytes that readers have paid for.

export const readingChecks = checksOf({
  "a reading allowance belongs to a settled x402 payment that was made for reading":
    "SELECT a.payment_id AS subject, COALESCE(p.purpose, 'no payment') AS found FROM reading_allowances a " +
    "LEFT JOIN x402_payments p ON p.id = a.payment_id WHERE p.id IS NULL OR " +
    "p.purpose <> 'reading:' || a.client OR p.state NOT IN ('settled', 'reversed')",
  "a reading allowance has one reading charge, and each reading charge has an allowance":
    "SELECT a.payment_id AS subject, COUNT(t.id) AS found FROM reading_allowances a LEFT JOIN transfers t " +
    "ON t.change_id = 'reading/' || a.payment_id AND t.kind = 'reading' GROUP BY a.payment_id " +
    "HAVING COUNT(t.id) <> 1 UNION ALL " +
    "SELECT t.id, 0 FROM transfers t LEFT JOIN reading_allowances a ON t.change_id = 'reading/' || a.payment_id " +
    "WHERE t.kind = 'reading' AND a.payment_id IS NULL",
  "a reading allowance has between 0 and its bought bytes left":
    "SELECT payment_id AS subject, bytes_left AS found FROM reading_allowances " +
    "WHERE bytes_left < 0 OR bytes_left > bytes",
});

// Card payments: quotes, the provider's events, gifts, and the resulting credits.

/** The part of a payment lost by refunds and open or lost disputes; a dispute in another currency counts fully. */
const lost =
  "p.refunded + COALESCE((SELECT SUM(CASE d.currency WHEN p.currency THEN d.amount ELSE p.amount END) " +
  "FROM card_disputes d WHERE d.payment_id = p.id AND d.status IN ('open', 'lost')), 0)";

/** Quotes with the payments that paid them. */
const paidQuotes = "quotes q JOIN card_payments p ON p.id = q.payment_id";

export const cardPaymentChecks = checksOf({
  "a quote has added its credited winc less its withheld winc to its account or gift": sumsOff(
    "id",
    "winc",
    "SELECT id, credited_winc - taken_back_winc AS winc FROM quotes UNION ALL " +
      "SELECT q.id, -e.amount FROM quotes q JOIN transfers t ON t.change_id = q.id " +
      "JOIN entries e ON e.transfer_id = t.id " +
      "WHERE e.account LIKE 'user:%' OR e.account LIKE 'gift:%'",
  ),
  "a quote is credited once exactly when it is paid":
    "SELECT q.id AS subject, q.state || ' after ' || COUNT(t.id) AS found FROM quotes q " +
    "LEFT JOIN transfers t ON t.change_id = q.id AND t.kind IN ('payment', 'gift_payment') " +
    "GROUP BY q.id, q.state HAVING COUNT(t.id) <> CASE q.state WHEN 'paid' THEN 1 ELSE 0 END",
  "a credit by card belongs to a quote":
    "SELECT t.id AS subject, t.change_id AS found FROM transfers t LEFT JOIN quotes q ON q.id = t.change_id " +
    "WHERE t.kind IN ('payment', 'gift_payment') AND t.change_id IS NOT NULL AND q.id IS NULL",
  "a quote is paid exactly by a payment of its amount and currency":
    "SELECT q.id AS subject, q.state AS found FROM quotes q LEFT JOIN card_payments p ON p.id = q.payment_id " +
    "WHERE (q.state = 'paid') <> (p.paid_at IS NOT NULL) OR (q.state = 'paid' AND " +
    "(p.amount <> q.payment_amount OR p.currency <> q.currency OR p.quote_id <> q.id))",
  "a payment for one of the quotes pays the quote or is refunded":
    "SELECT p.id AS subject, q.state AS found FROM card_payments p JOIN quotes q ON q.id = p.quote_id " +
    "WHERE p.paid_at IS NOT NULL AND (COALESCE(q.payment_id, '') = p.id) = (p.refund IS NOT NULL)",
  "all credits are withheld when all of a payment is lost, and none when nothing is lost":
    `SELECT q.id AS subject, q.taken_back_winc AS found FROM ${paidQuotes} WHERE ` +
    `(${lost} >= p.amount AND q.taken_back_winc <> q.credited_winc) OR (${lost} = 0 AND q.taken_back_winc <> 0) ` +
    "OR q.taken_back_winc < 0 OR q.taken_back_winc > q.credited_winc",
  "a quote credits its promised winc, or the paid part when its promo codes no longer applied":
    "SELECT id AS subject, credited_winc AS found FROM quotes WHERE state = 'paid' AND " +
    "(credited_winc - promo_winc > winc OR (credited_winc <> winc AND (promo_winc <> 0 OR promo_codes = '[]')) " +
    "OR promo_winc < 0)",
  "a gift holds its credits exactly until it is redeemed":
    "SELECT g.id AS subject, g.state || ' with ' || COALESCE(a.balance, 0) AS found FROM gifts g " +
    "JOIN quotes q ON q.id = g.quote_id LEFT JOIN accounts a ON a.account = 'gift:' || g.id " +
    "WHERE COALESCE(a.balance, 0) <> CASE g.state WHEN 'open' THEN q.credited_winc - q.taken_back_winc ELSE 0 END",
  "a gift account belongs to a gift":
    "SELECT a.account AS subject, a.balance AS found FROM accounts a " +
    "LEFT JOIN gifts g ON a.account = 'gift:' || g.id WHERE a.account LIKE 'gift:%' AND g.id IS NULL",
  "a redeemed gift has one redemption, a redeemer and a time":
    "SELECT g.id AS subject, g.state || ' after ' || COUNT(t.id) AS found FROM gifts g " +
    "LEFT JOIN transfers t ON t.change_id = g.quote_id AND t.kind = 'gift_redemption' " +
    "GROUP BY g.id, g.state, g.redeemed_by, g.redeemed_at HAVING " +
    "COUNT(t.id) <> CASE g.state WHEN 'redeemed' THEN 1 ELSE 0 END OR " +
    "(g.state = 'redeemed') <> (g.redeemed_by IS NOT NULL AND g.redeemed_at IS NOT NULL)",
  "states of quotes, gifts, refunds and disputes are valid":
    "SELECT id AS subject, state AS found FROM quotes WHERE state NOT IN ('open', 'paid', 'expired', 'failed') " +
    "UNION ALL SELECT id, state FROM gifts WHERE state NOT IN ('unpaid', 'open', 'redeemed') " +
    "UNION ALL SELECT id, refund FROM card_payments WHERE refund NOT IN ('wanted', 'asked') " +
    "UNION ALL SELECT id, status FROM card_disputes " +
    "WHERE status NOT IN ('inquiry', 'inquiry_closed', 'open', 'won', 'lost')",
});

// Promo codes: their counts, and the payments that used them.

export const promoChecks = checksOf({
  "a promo code's count equals its number of uses":
    "SELECT code AS subject, SUM(counted) || ' counted, ' || SUM(used) || ' used' AS found FROM " +
    "(SELECT code, uses AS counted, 0 AS used FROM promo_counts UNION ALL " +
    "SELECT code, 0, 1 FROM promo_uses) AS both_sides GROUP BY code HAVING SUM(counted) <> SUM(used)",
  "a use of a promo code belongs to a paid quote of its account":
    "SELECT u.address || ' ' || u.code AS subject, COALESCE(q.state, 'no payment') AS found FROM promo_uses u " +
    "LEFT JOIN quotes q ON q.id = u.payment_id AND q.address = u.address " +
    "WHERE q.id IS NULL OR q.state <> 'paid'",
});

// Actions of operators: each has moved what it says, once.

export const operatorChecks = checksOf({
  "an operator's grant or adjustment has moved its winc into its account, and any other action nothing": sumsOff(
    "id",
    "winc",
    "SELECT 'operator/' || id AS id, winc FROM operator_actions UNION ALL " +
      "SELECT t.change_id, -e.amount FROM transfers t JOIN entries e ON e.transfer_id = t.id " +
      "WHERE t.change_id LIKE 'operator/%' AND e.account LIKE 'user:%'",
  ),
  "an operator's grant or adjustment is one transfer, with its operator and reason":
    "SELECT a.id AS subject, COUNT(t.id) AS found FROM operator_actions a " +
    "LEFT JOIN transfers t ON t.change_id = 'operator/' || a.id AND t.note = a.operator || ': ' || a.reason AND " +
    "t.kind = CASE a.kind WHEN 'grant' THEN 'promotion' ELSE 'adjustment' END " +
    "GROUP BY a.id, a.kind HAVING COUNT(t.id) <> CASE WHEN a.kind IN ('grant', 'adjust') THEN 1 ELSE 0 END",
});

// Uploads and bundles: each item was paid for once or refunded, and has one position.

export const uploadChecks = checksOf({
  "a signing belongs to one upload":
    "SELECT signing_id AS subject, COUNT(*) || ' uploads' AS found FROM uploads " +
    "WHERE signing_id IS NOT NULL AND failed_reason IS NULL AND double_of IS NULL " +
    "GROUP BY signing_id HAVING COUNT(*) > 1",
  "a duplicate upload is not charged":
    "SELECT id AS subject, winc AS found FROM uploads " +
    "WHERE double_of IS NOT NULL AND (winc > 0 OR reservation_id IS NOT NULL)",
  "a charged item has its own posted reservation":
    "SELECT u.id AS subject, COALESCE(r.state, 'nothing') AS found FROM uploads u " +
    "LEFT JOIN reservations r ON r.id = u.reservation_id WHERE u.failed_reason IS NULL AND " +
    "(u.winc > 0 OR u.reservation_id IS NOT NULL) AND " +
    "(r.id IS NULL OR r.state <> 'posted' OR r.item_id <> u.id OR r.winc <> u.winc)",
  "the payment for a failed item is refunded":
    "SELECT u.id AS subject, r.state AS found FROM uploads u JOIN reservations r ON r.id = u.reservation_id " +
    "WHERE u.failed_reason IS NOT NULL AND r.state <> 'refunded'",
  "an item's bundle is in the item's store and is not dropped":
    "SELECT u.id AS subject, COALESCE(b.state, 'no bundle') AS found FROM uploads u " +
    "LEFT JOIN bundles b ON b.id = u.bundle_id WHERE u.bundle_id IS NOT NULL AND " +
    "(b.id IS NULL OR b.state = 'dropped' OR b.store <> u.store)",
  // A bundle that is planned may have lost items that failed, until it is dropped.
  "a bundle with a signed transaction has all of its items":
    "SELECT b.id AS subject, COUNT(u.id) || ' of ' || b.item_count AS found FROM bundles b " +
    "LEFT JOIN uploads u ON u.bundle_id = b.id WHERE b.state IN ('prepared', 'seeded', 'permanent') " +
    "GROUP BY b.id, b.item_count, b.items_size " +
    "HAVING COUNT(u.id) <> b.item_count OR COALESCE(SUM(u.size), 0) <> b.items_size",
  "an item directly follows the items before it in its bundle":
    "SELECT p.id AS subject, p.behind AS found FROM (SELECT u.id, u.behind, u.position, " +
    "SUM(u.size) OVER (PARTITION BY u.bundle_id ORDER BY u.position) - u.size AS before_it, " +
    "ROW_NUMBER() OVER (PARTITION BY u.bundle_id ORDER BY u.position) - 1 AS nth FROM uploads u " +
    "JOIN bundles b ON b.id = u.bundle_id WHERE b.state IN ('filling', 'prepared', 'seeded', 'permanent')) AS p " +
    "WHERE p.behind <> p.before_it OR p.position <> p.nth",
});

/** All invariants, in the order of the report. */
export const ledgerChecks: readonly LedgerCheck[] = [
  ...entryChecks,
  ...creditChecks,
  ...tokenPaymentChecks,
  ...x402PaymentChecks,
  ...readingChecks,
  ...cardPaymentChecks,
  ...promoChecks,
  ...operatorChecks,
  ...uploadChecks,
];

/** A broken invariant. */
export type Finding = Readonly<{
  /** The invariant. */
  rule: string;
  /** The row that breaks it. */
  subject: string;
  found: string;
}>;

/** Findings reported for one rule; more of them have the same cause. */
const findingsMax = 100;

/**
 * Checks all of a ledger in one snapshot.
 *
 * @param checks - A subset for tests.
 * @returns The broken invariants. At most `findingsMax` for each rule.
 */
export function checkLedger(
  database: LedgerDatabase,
  checks: readonly LedgerCheck[] = ledgerChecks,
): Promise<Finding[]> {
  return database.read(async (tx) => {
    const findings: Finding[] = [];
    for (const { rule, violations } of checks) {
      const rows = await tx.all<{ subject: string; found: string | null }>(
        `SELECT subject, CAST(found AS TEXT) AS found FROM (${violations}) AS violations LIMIT ?`,
        BigInt(findingsMax),
      );
      findings.push(...rows.map(({ subject, found }) => ({ rule, subject, found: readFound(found) })));
    }
    return findings;
  });
}

/** Joins the two halves of sums (`sumText`). */
function readFound(found: string | null): string {
  if (found === null) return "nothing";
  return found.replace(sumPattern, (_, high: string, low: string) => String(BigInt(high) * 2n ** 32n + BigInt(low)));
}

const sumPattern = /(-?\d+) \* 2\^32 \+ (-?\d+)/g;
