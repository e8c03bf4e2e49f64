/**
 * The checker: reads the invariants of a ledger from its rows by SQL alone, so that it shares no code, and no mistake,
 * with the rules that wrote them.
 * Source: docs/reference/payment.md#invariants-of-the-ledger.
 * @module
 */

import type { LedgerDatabase } from "./ledger-database.ts";
import {
  cardPaymentChecks,
  creditChecks,
  entryChecks,
  type LedgerCheck,
  promoChecks,
  readingChecks,
  tokenPaymentChecks,
  uploadChecks,
  x402PaymentChecks,
} from "./ledger-invariants.ts";

/** All invariants, in the order of the report. */
export const ledgerChecks: readonly LedgerCheck[] = [
  ...entryChecks,
  ...creditChecks,
  ...tokenPaymentChecks,
  ...x402PaymentChecks,
  ...readingChecks,
  ...cardPaymentChecks,
  ...promoChecks,
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
 * @returns The broken invariants. At most `findingsMax` a rule.
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

/** Joins the two halves of sums (ledger-invariants.ts). */
function readFound(found: string | null): string {
  if (found === null) return "nothing";
  return found.replace(sumPattern, (_, high: string, low: string) => String(BigInt(high) * 2n ** 32n + BigInt(low)));
}

const sumPattern = /(-?\d+) \* 2\^32 \+ (-?\d+)/g;
