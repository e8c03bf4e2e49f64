/**
 * What is true of promo codes: they are counted as often as they were used, and used by payments that were made.
 * @module
 */
import type { LedgerCheck } from "./check-row.ts";

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
