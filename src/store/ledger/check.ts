/**
 * The checker: what must be true of a ledger, asked of its rows by SQL alone, so that it shares no code, and no
 * mistake, with the rules that wrote them.
 *
 * Each owner of tables states its truths in a list of its own; one line here adds it.
 * Source: docs/reference/payment.md#invariants-of-the-ledger.
 * @module
 */
import { cardPaymentChecks } from "./checks/card-payments.ts";
import type { LedgerCheck } from "./checks/check-row.ts";
import { creditChecks } from "./checks/credits.ts";
import { entryChecks } from "./checks/entries.ts";
import { promoChecks } from "./checks/promo.ts";
import { readingChecks } from "./checks/reading.ts";
import { tokenPaymentChecks } from "./checks/token-payments.ts";
import { uploadChecks } from "./checks/uploads.ts";
import { x402PaymentChecks } from "./checks/x402-payments.ts";
import type { LedgerDatabase } from "./database.ts";

/** All that is checked, in the order in which it is told. */
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

/** Something that is not as it must be. */
export type Finding = Readonly<{
  /** What should have been true. */
  rule: string;
  /** The row that it is not true of. */
  subject: string;
  found: string;
}>;

/** So many findings of one rule are told; a ledger with more has one cause, not thousands. */
const findingsMax = 100;

/**
 * Checks all of a ledger in one snapshot.
 *
 * @param checks - Some of the truths, for tests of one owner's rows.
 * @returns What is wrong; empty when nothing is. At most `findingsMax` a rule.
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

/** Sums come in two halves (check-row.ts); people want one number. */
function readFound(found: string | null): string {
  if (found === null) return "nothing";
  return found.replace(sumPattern, (_, high: string, low: string) => String(BigInt(high) * 2n ** 32n + BigInt(low)));
}

const sumPattern = /(-?\d+) \* 2\^32 \+ (-?\d+)/g;
