/**
 * Reports of the card provider about payments, stored so that their order does not matter.
 *
 * Every kind of report is merged with the stored state by a rule that does not depend on the order: the first report
 * of a payment, the newest report of the sum of its refunds and of each dispute. card-settlement.ts computes the
 * credits from all reports.
 * Source: docs/reference/payment.md#card-payments; docs/reference/threats.md (L3).
 * @module
 */
import { assert } from "../../lib/assert.ts";
import { readTime, type Tx } from "../../store/ledger/ledger-database.ts";

/** The status of a dispute. An inquiry moves no money; an open or lost dispute withholds it, a won dispute does not. */
const disputeStatuses = ["inquiry", "inquiry_closed", "open", "won", "lost"] as const;
export type DisputeStatus = (typeof disputeStatuses)[number];

/** A report of the provider. Times are the provider's, Unix ms. */
export type CardReport =
  | Readonly<{
      kind: "paid";
      paymentId: string;
      quoteId: string;
      amount: bigint;
      currency: string;
      paidAt: number;
    }>
  | Readonly<{ kind: "refunded"; paymentId: string; amount: bigint /* all refunds so far */; asOf: number }>
  /** A refund failed: the refunded amount has to be requested. */
  | Readonly<{ kind: "refund_failed"; paymentId: string; asOf: number }>
  | Readonly<{
      kind: "dispute";
      paymentId: string;
      disputeId: string;
      amount: bigint;
      currency: string;
      status: DisputeStatus;
      asOf: number;
    }>
  /** The quote can no longer be paid. */
  | Readonly<{ kind: "ended"; quoteId: string; state: "expired" | "failed" }>;

/** The stored state of one payment. */
export type CardPayment = Readonly<{
  id: string;
  quoteId: string | undefined;
  /** Undefined until the payment itself was reported. */
  paid: Readonly<{ at: number; amount: bigint; currency: string }> | undefined;
  refunded: bigint;
  /** The time of the newest report of refunds, the provider's; 0 without one. */
  refundedAsOf: number;
  refund: "wanted" | "asked" | undefined;
}>;

/** A dispute of a payment. */
export type CardDispute = Readonly<{ amount: bigint; currency: string; status: DisputeStatus }>;

/** Order of a dispute's steps; between steps of one rank the newer message wins. */
const disputeRank: Readonly<Record<DisputeStatus, number>> = {
  inquiry: 1,
  inquiry_closed: 2,
  open: 3,
  won: 4,
  lost: 4,
};

/** The provider's times are whole seconds. Milliseconds. */
const secondMs = 1_000n;

/** Merges a report with the stored state of its payment. */
export async function storeReport(tx: Tx, report: Exclude<CardReport, { kind: "ended" }>): Promise<void> {
  await tx.run(
    "INSERT INTO card_payments (id, refunded, refunded_as_of) VALUES (?, 0, 0) ON CONFLICT (id) DO NOTHING",
    report.paymentId,
  );
  switch (report.kind) {
    case "paid":
      await tx.run(
        "UPDATE card_payments SET quote_id = ?, paid_at = ?, amount = ?, currency = ? " +
          "WHERE id = ? AND paid_at IS NULL",
        report.quoteId,
        BigInt(report.paidAt),
        report.amount,
        report.currency,
        report.paymentId,
      );
      return;
    case "refunded":
      return await storeRefunded(tx, report);
    case "refund_failed":
      await tx.run(
        "UPDATE card_payments SET recheck_as_of = ? " + "WHERE id = ? AND (recheck_as_of IS NULL OR recheck_as_of < ?)",
        BigInt(report.asOf),
        report.paymentId,
        BigInt(report.asOf),
      );
      return;
    case "dispute":
      return await storeDispute(tx, report);
  }
}

export async function findPayment(tx: Tx, paymentId: string): Promise<CardPayment | undefined> {
  const row = await tx.get<PaymentRow>(
    "SELECT id, quote_id, paid_at, amount, currency, refunded, refunded_as_of, refund FROM card_payments WHERE id = ?",
    paymentId,
  );
  return row === undefined ? undefined : readPayment(row);
}

export async function disputesOf(tx: Tx, paymentId: string): Promise<CardDispute[]> {
  const rows = await tx.all<{ amount: bigint; currency: string; status: string }>(
    "SELECT amount, currency, status FROM card_disputes WHERE payment_id = ? ORDER BY id",
    paymentId,
  );
  return rows.map(({ amount, currency, status }) => ({ amount, currency, status: readStatus(status) }));
}

/** Marks a payment for a refund, once. */
export async function wantRefund(tx: Tx, paymentId: string): Promise<void> {
  await tx.run("UPDATE card_payments SET refund = 'wanted' WHERE id = ? AND refund IS NULL", paymentId);
}

/**
 * Payments whose refund was not requested from the provider yet, in the order of their ids.
 * @param after - Only payments after this id; "" for all.
 */
export async function refundsWanted(tx: Tx, after: string, limit: number): Promise<string[]> {
  const rows = await tx.all<{ id: string }>(
    "SELECT id FROM card_payments WHERE refund = 'wanted' AND id > ? ORDER BY id LIMIT ?",
    after,
    BigInt(limit),
  );
  return rows.map(({ id }) => id);
}

/** Records that the refund was requested from the provider. */
export async function refundRequested(tx: Tx, paymentId: string): Promise<void> {
  await tx.run("UPDATE card_payments SET refund = 'asked' WHERE id = ?", paymentId);
}

/** Payments whose sum of refunds has to be requested, and the time as of which it is then known. */
export async function refundsInDoubt(tx: Tx, limit: number): Promise<Readonly<{ paymentId: string; asOf: number }>[]> {
  const rows = await tx.all<{ id: string; recheck_as_of: bigint }>(
    "SELECT id, recheck_as_of FROM card_payments WHERE recheck_as_of IS NOT NULL ORDER BY recheck_as_of, id LIMIT ?",
    BigInt(limit),
  );
  return rows.map((row) => ({ paymentId: row.id, asOf: readTime(row.recheck_as_of) }));
}

/** Records that the sum of refunds is known as of a time; a newer doubt remains. */
export async function doubtEnded(tx: Tx, paymentId: string, asOf: number): Promise<void> {
  await tx.run(
    "UPDATE card_payments SET recheck_as_of = NULL WHERE id = ? AND recheck_as_of <= ?",
    paymentId,
    BigInt(asOf),
  );
}

/**
 * Stores the newer sum of refunds; of two in one second the larger sum, because the sum normally grows. It shrinks only
 * after a failed refund: then the sum was requested, and other reports of that second are in doubt.
 */
async function storeRefunded(tx: Tx, report: Extract<CardReport, { kind: "refunded" }>): Promise<void> {
  const { paymentId, amount } = report;
  const asOf = BigInt(report.asOf);
  const isStored = await tx.run(
    "UPDATE card_payments SET refunded = ?, refunded_as_of = ? " +
      "WHERE id = ? AND (refunded_as_of < ? OR (refunded_as_of = ? AND refunded < ?))",
    ...[amount, asOf, paymentId, asOf, asOf, amount],
  );
  if (isStored > 0) return;
  await tx.run(
    "UPDATE card_payments SET recheck_as_of = refunded_as_of + 1 " +
      "WHERE id = ? AND refunded <> ? AND refunded_as_of > ? AND refunded_as_of < ?",
    ...[paymentId, amount, asOf, asOf + secondMs],
  );
}

async function storeDispute(tx: Tx, report: Extract<CardReport, { kind: "dispute" }>): Promise<void> {
  const known = await tx.get<{ status: string; as_of: bigint }>(
    "SELECT status, as_of FROM card_disputes WHERE id = ?",
    report.disputeId,
  );
  if (known !== undefined && !isNewer(report, readStatus(known.status), readTime(known.as_of))) return;
  await tx.run(
    "INSERT INTO card_disputes (id, payment_id, amount, currency, status, as_of) VALUES (?, ?, ?, ?, ?, ?) " +
      "ON CONFLICT (id) DO UPDATE SET amount = excluded.amount, currency = excluded.currency, " +
      "status = excluded.status, as_of = excluded.as_of",
    report.disputeId,
    report.paymentId,
    report.amount,
    report.currency,
    report.status,
    BigInt(report.asOf),
  );
}

/** Whether a report of a dispute replaces the stored status. Between won and lost in the same second, lost wins. */
function isNewer(
  report: Readonly<{ status: DisputeStatus; asOf: number }>,
  status: DisputeStatus,
  asOf: number,
): boolean {
  const rank = disputeRank[report.status] - disputeRank[status];
  if (rank !== 0) return rank > 0;
  if (report.asOf !== asOf) return report.asOf > asOf;
  return report.status === "lost";
}

function readStatus(text: string): DisputeStatus {
  const status = disputeStatuses.find((known) => known === text);
  assert(status !== undefined, "a dispute's status is known");
  return status;
}

type PaymentRow = {
  id: string;
  quote_id: string | null;
  paid_at: bigint | null;
  amount: bigint | null;
  currency: string | null;
  refunded: bigint;
  refunded_as_of: bigint;
  refund: string | null;
};

function readPayment(row: PaymentRow): CardPayment {
  const { paid_at: paidAt, amount, currency } = row;
  const isPaid = paidAt !== null && amount !== null && currency !== null;
  return {
    id: row.id,
    quoteId: row.quote_id ?? undefined,
    paid: isPaid ? { at: readTime(paidAt), amount, currency } : undefined,
    refunded: row.refunded,
    refundedAsOf: readTime(row.refunded_as_of),
    refund: row.refund === "wanted" || row.refund === "asked" ? row.refund : undefined,
  };
}
