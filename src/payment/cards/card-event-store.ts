/**
 * Reports of the card provider about payments, stored so that their order does not matter.
 *
 * Every kind of report is joined with what is known already by a rule that gives the same whichever comes first: the
 * first word on a payment, the newest word on the sum of its refunds and on each dispute. What follows for the
 * credits is decided elsewhere (settlement.ts), from all of them.
 * Source: docs/reference/payment.md#card-payments; docs/reference/threats.md (L3).
 * @module
 */
import { assert } from "../../lib/assert.ts";
import { readTime, type Tx } from "../../store/ledger/ledger-database.ts";

/** The status of a dispute. An inquiry moves no money; an open or lost dispute holds the money back, a won one not. */
const disputeStatuses = ["inquiry", "inquiry_closed", "open", "won", "lost"] as const;
export type DisputeStatus = (typeof disputeStatuses)[number];

/** One thing that a message says. Times are the provider's, Unix ms. */
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
  /** A refund came to nothing: how much is refunded now has to be asked. */
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
  /** Nobody can pay this quote any more. */
  | Readonly<{ kind: "ended"; quoteId: string; state: "expired" | "failed" }>;

/** All that is known of one payment. */
export type CardPayment = Readonly<{
  id: string;
  quoteId: string | undefined;
  /** Undefined until the payment itself was reported. */
  paid: Readonly<{ at: number; amount: bigint; currency: string }> | undefined;
  refunded: bigint;
  refund: "wanted" | "asked" | undefined;
}>;

/** A dispute of a payment. */
export type CardDispute = Readonly<{ amount: bigint; currency: string; status: DisputeStatus }>;

/** Later steps of a dispute; of two that are equally late the one with the newer message holds. */
const disputeRank: Readonly<Record<DisputeStatus, number>> = {
  inquiry: 1,
  inquiry_closed: 2,
  open: 3,
  won: 4,
  lost: 4,
};

/** The provider's times are whole seconds. Milliseconds. */
const secondMs = 1_000n;

/** Joins a report about a payment with what is known. */
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
      return await keepRefunded(tx, report);
    case "refund_failed":
      await tx.run(
        "UPDATE card_payments SET recheck_as_of = ? " + "WHERE id = ? AND (recheck_as_of IS NULL OR recheck_as_of < ?)",
        BigInt(report.asOf),
        report.paymentId,
        BigInt(report.asOf),
      );
      return;
    case "dispute":
      return await keepDispute(tx, report);
  }
}

/** Finds what is known of a payment. */
export async function findPayment(tx: Tx, paymentId: string): Promise<CardPayment | undefined> {
  const row = await tx.get<PaymentRow>(
    "SELECT id, quote_id, paid_at, amount, currency, refunded, refund FROM card_payments WHERE id = ?",
    paymentId,
  );
  return row === undefined ? undefined : readPayment(row);
}

/** The disputes of a payment. */
export async function disputesOf(tx: Tx, paymentId: string): Promise<CardDispute[]> {
  const rows = await tx.all<{ amount: bigint; currency: string; status: string }>(
    "SELECT amount, currency, status FROM card_disputes WHERE payment_id = ? ORDER BY id",
    paymentId,
  );
  return rows.map(({ amount, currency, status }) => ({ amount, currency, status: readStatus(status) }));
}

/** Writes down that a payment is to be given back, once. */
export async function wantRefund(tx: Tx, paymentId: string): Promise<void> {
  await tx.run("UPDATE card_payments SET refund = 'wanted' WHERE id = ? AND refund IS NULL", paymentId);
}

/**
 * Payments whose refund was not requested from the provider yet, in the order of their ids.
 * @param after - Only those behind this one; "" for all.
 */
export async function refundsWanted(tx: Tx, after: string, limit: number): Promise<string[]> {
  const rows = await tx.all<{ id: string }>(
    "SELECT id FROM card_payments WHERE refund = 'wanted' AND id > ? ORDER BY id LIMIT ?",
    after,
    BigInt(limit),
  );
  return rows.map(({ id }) => id);
}

/** The refund was requested from the provider. */
export async function refundRequested(tx: Tx, paymentId: string): Promise<void> {
  await tx.run("UPDATE card_payments SET refund = 'asked' WHERE id = ?", paymentId);
}

/** Payments of which the sum of refunds has to be asked for, and as of when it is then known. */
export async function refundsInDoubt(tx: Tx, limit: number): Promise<Readonly<{ paymentId: string; asOf: number }>[]> {
  const rows = await tx.all<{ id: string; recheck_as_of: bigint }>(
    "SELECT id, recheck_as_of FROM card_payments WHERE recheck_as_of IS NOT NULL ORDER BY recheck_as_of, id LIMIT ?",
    BigInt(limit),
  );
  return rows.map((row) => ({ paymentId: row.id, asOf: readTime(row.recheck_as_of) }));
}

/** The sum of refunds is known as of that time; a doubt that is newer stays. */
export async function doubtEnded(tx: Tx, paymentId: string, asOf: number): Promise<void> {
  await tx.run(
    "UPDATE card_payments SET recheck_as_of = NULL WHERE id = ? AND recheck_as_of <= ?",
    paymentId,
    BigInt(asOf),
  );
}

/**
 * The newer sum of refunds holds; of two of one second the larger one, for the sum grows. Only where a refund came to
 * nothing it shrinks: then the sum was asked for, and what else is said of that second is doubted.
 */
async function keepRefunded(tx: Tx, report: Extract<CardReport, { kind: "refunded" }>): Promise<void> {
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

async function keepDispute(tx: Tx, report: Extract<CardReport, { kind: "dispute" }>): Promise<void> {
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

/** Whether a word on a dispute replaces the known one. Of a won and a lost one of the same second, lost holds. */
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
    refund: row.refund === "wanted" || row.refund === "asked" ? row.refund : undefined,
  };
}
