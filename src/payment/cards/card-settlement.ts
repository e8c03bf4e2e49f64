/**
 * Computes the credits of a card payment from all its reports, and writes the transfer to that state.
 *
 * The computation depends on the reports alone, so that any order of messages ends in the same balances. A payment
 * that matches its quote is credited, and any other is refunded. Refunds and open or lost disputes withhold the same
 * share of the credits from the credited account.
 * Source: docs/reference/payment.md#card-payments; docs/reference/threats.md (L3).
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { LedgerDatabase, Tx } from "../../store/ledger/ledger-database.ts";
import {
  type Account,
  claimEvent,
  gift,
  type Leg,
  type MakeId,
  promo,
  provider,
  transfer,
  user,
} from "../../store/ledger/transfers.ts";
import { refundNote } from "../operator/operator-actions.ts";
import type { CountPromo } from "../top-ups/promo.ts";
import { endQuote, findQuote, type Quote } from "../top-ups/quotes.ts";
import {
  type CardDispute,
  type CardPayment,
  type CardReport,
  disputesOf,
  findPayment,
  storeReport,
  wantRefund,
} from "./card-event-store.ts";
import type { StripeEvent } from "./card-provider.ts";
import { reportOf } from "./stripe-objects.ts";

type SettlementParts = Readonly<{ makeId: MakeId; countPromo: CountPromo }>;

/** The effect of a report. */
type Settled =
  | "credited"
  | "taken_back"
  | "given_back" // credits, after a dispute was won or a refund failed
  | "rejected" // the payment is refunded
  | "refund_failed" // of a rejected payment
  | "ended"
  | "nothing";

/**
 * An authentication by the payer's bank that began before the quote's expiry may end this much later. Checkouts need
 * no such allowance, because the provider ends them.
 */
const lateMsMax = 15 * 60_000;

/** The source of credits bought by card. */
const cards = provider("stripe");

/**
 * Stores a report and writes the resulting transfer.
 * @param now - Unix ms, the time of the transfer.
 */
async function settleReport(tx: Tx, report: CardReport, now: number, parts: SettlementParts): Promise<Settled> {
  if (report.kind === "ended") {
    await endQuote(tx, report.quoteId, report.state);
    return "ended";
  }
  await storeReport(tx, report);
  const payment = await findPayment(tx, report.paymentId);
  if (payment?.paid === undefined || payment.quoteId === undefined) return "nothing";
  const quote = await findQuote(tx, payment.quoteId);
  // Another program may use the same account at the provider: its payments are ignored.
  if (quote === undefined) return "nothing";
  const accepted = await accept(tx, quote, payment, now, parts);
  if (accepted === undefined) return ofRejected[report.kind];
  const moved = await hold(tx, accepted, payment, now, parts.makeId);
  return accepted === quote ? moved : "credited";
}

/** The effects of reports of a rejected payment. */
const ofRejected = {
  paid: "rejected",
  refunded: "nothing",
  refund_failed: "refund_failed",
  dispute: "nothing",
} as const satisfies Readonly<Record<Exclude<CardReport["kind"], "ended">, Settled>>;

/** Why a payment does not pay a quote; undefined when it does. */
function rejectionOf(quote: Quote, payment: CardPayment): string | undefined {
  const { paid } = payment;
  if (paid === undefined) return "it is not paid";
  if (quote.paymentId !== undefined && quote.paymentId !== payment.id) return "the quote is paid already";
  if (quote.paymentId === payment.id) return undefined;
  if (quote.state === "failed") return "the quote has failed";
  if (paid.currency !== quote.currency || paid.amount !== quote.paymentAmount) return "the amount is not the quote's";
  if (quote.method === "checkout-session") return undefined;
  if (quote.sessionId !== undefined && quote.sessionId !== payment.id) return "another payment was made for the quote";
  return paid.at > quote.expiresAt + lateMsMax ? "it was made after the quote had expired" : undefined;
}

/**
 * The part of the credits that is withheld now.
 * @returns Winc, rounded down; all credits when all of the payment is lost.
 */
function withheldWinc(
  creditedWinc: bigint,
  paid: Readonly<{ amount: bigint; currency: string }>,
  refunded: bigint,
  disputes: readonly CardDispute[],
): bigint {
  const disputed = disputes
    .filter(({ status }) => status === "open" || status === "lost")
    // A dispute in another currency than the payment's counts as the full amount.
    .map(({ amount, currency }) => (currency === paid.currency ? amount : paid.amount))
    .reduce((sum, amount) => sum + amount, 0n);
  const lost = refunded + disputed;
  return lost >= paid.amount ? creditedWinc : (creditedWinc * lost) / paid.amount;
}

/** The quote as paid by the payment; undefined when the payment is rejected. */
async function accept(
  tx: Tx,
  quote: Quote,
  payment: CardPayment,
  now: number,
  { makeId, countPromo }: SettlementParts,
): Promise<Quote | undefined> {
  const rejection = rejectionOf(quote, payment);
  if (rejection !== undefined) {
    await wantRefund(tx, payment.id);
    await endQuote(tx, quote.id, "failed", rejection);
    return undefined;
  }
  if (quote.paymentId !== undefined) return quote;

  const paidWinc = (quote.winc * quote.paymentAmount) / quote.quotedPaymentAmount;
  const { address, promoCodes } = quote;
  const hasPromo = address !== undefined && promoCodes.length > 0;
  const use = { codes: promoCodes, paymentId: quote.id, at: BigInt(now) };
  const counts = hasPromo ? await countPromo(tx, { ...use, address }) : true;
  const creditedWinc = counts ? quote.winc : paidWinc;
  const promoWinc = creditedWinc - paidWinc;
  await transfer(tx, {
    id: makeId(),
    kind: quote.giftId === undefined ? "payment" : "gift_payment",
    at: now,
    changeId: quote.id,
    legs: [
      { account: cards, amount: -paidWinc },
      { account: promo, amount: -promoWinc },
      { account: await holderOf(tx, quote), amount: creditedWinc },
    ],
  });
  await tx.run(
    "UPDATE quotes SET state = 'paid', payment_id = ?, credited_at = ?, credited_winc = ?, promo_winc = ?, " +
      "look_at = NULL WHERE id = ?",
    payment.id,
    BigInt(now),
    creditedWinc,
    promoWinc,
    quote.id,
  );
  if (quote.giftId !== undefined)
    await tx.run("UPDATE gifts SET state = 'open' WHERE id = ? AND state = 'unpaid'", quote.giftId);
  return { ...quote, state: "paid", paymentId: payment.id, creditedWinc, promoWinc };
}

/** Adjusts the withheld credits to the reports. */
async function hold(tx: Tx, quote: Quote, payment: CardPayment, now: number, makeId: MakeId): Promise<Settled> {
  if (payment.paid === undefined) return "nothing";
  const disputes = await disputesOf(tx, payment.id);
  const target = withheldWinc(quote.creditedWinc, payment.paid, payment.refunded, disputes);
  const more = target - quote.takenBackWinc;
  if (more === 0n) return "nothing";
  const isDispute = disputes.some(({ status }) => status === "open" || status === "lost");
  await transfer(tx, {
    id: makeId(),
    kind: more > 0n && isDispute ? "chargeback" : "reversal",
    at: now,
    changeId: quote.id,
    ...(more > 0n && !isDispute ? { note: await refundNote(tx, quote.id) } : {}),
    legs: holdingLegs(quote, target, await holderOf(tx, quote)),
  });
  await tx.run("UPDATE quotes SET taken_back_winc = ? WHERE id = ?", target, quote.id);
  return more > 0n ? "taken_back" : "given_back";
}

/** The promotional share is returned to the promotion account. */
function holdingLegs(quote: Quote, target: bigint, holder: Account): Leg[] {
  const { creditedWinc, promoWinc, takenBackWinc } = quote;
  const ofPromo = (winc: bigint) => (creditedWinc === 0n ? 0n : (promoWinc * winc) / creditedWinc);
  const more = target - takenBackWinc;
  const promoMore = ofPromo(target) - ofPromo(takenBackWinc);
  return [
    { account: holder, amount: -more },
    { account: promo, amount: promoMore },
    { account: cards, amount: more - promoMore },
  ];
}

/** The account that holds the credits of a quote now. */
export async function holderOf(tx: Tx, quote: Quote): Promise<Account> {
  if (quote.address !== undefined) return user(quote.address);
  const row = await tx.get<{ id: string; redeemed_by: string | null }>(
    "SELECT id, redeemed_by FROM gifts WHERE id = ?",
    quote.giftId ?? "",
  );
  if (row === undefined) throw new Error(`the gift of the quote ${quote.id} is missing`);
  return row.redeemed_by === null ? gift(row.id) : user(row.redeemed_by);
}

// Events of the card provider: each is processed once, with all its effects in one
// transaction, durable before the response.
// Source: docs/reference/payment.md#card-payments; docs/reference/threats.md (L3).

type CardEventParts = SettlementParts & Readonly<{ ledger: LedgerDatabase; clock: Clock; log: Log }>;

/** Processes events and reports of the provider. */
export type CardEvents = Readonly<{
  /** Processes an event; a repeated or irrelevant event changes nothing. */
  take: (event: StripeEvent) => Promise<Settled>;
  /** The relevant events of a page that were not processed yet. */
  unseen: (events: readonly StripeEvent[]) => Promise<StripeEvent[]>;
  /** Settles a report from the provider's response to a request. */
  learn: (report: CardReport) => Promise<Settled>;
}>;

/** The source of claimed events. */
const source = "stripe";

/** Creates the event processing. Its calls reject as the ledger's `write` does. */
export function createCardEvents({ ledger, clock, log, ...parts }: CardEventParts): CardEvents {
  const logged = (settled: Settled, reports: Readonly<Record<string, unknown>>): Settled => {
    if (settled === "rejected") log.warn("card payment rejected and to be refunded", reports);
    else if (settled === "refund_failed")
      log.warn("the refund of a rejected card payment failed; refund it at the provider", reports);
    else if (settled !== "nothing") log.info("card payment settled", { ...reports, settled });
    return settled;
  };
  return {
    take: async (event) => {
      const report = reportOf(event);
      if (report === undefined) return "nothing";
      const now = clock();
      const settled = await ledger.write(async (tx) => {
        if (!(await claimEvent(tx, source, event.id, now))) return "nothing";
        return await settleReport(tx, report, now, parts);
      });
      return logged(settled, { event: event.id, type: event.type, ...namesOf(report) });
    },
    unseen: async (events) => {
      const relevant = events.filter((event) => reportOf(event) !== undefined);
      if (relevant.length === 0) return [];
      const marks = relevant.map(() => "?").join(", ");
      const ids = relevant.map(({ id }) => id);
      const seen = await ledger.read((tx) =>
        tx.all<{ event_id: string }>(
          `SELECT event_id FROM events WHERE source = ? AND event_id IN (${marks})`,
          source,
          ...ids,
        ),
      );
      const known = new Set(seen.map((row) => row.event_id));
      return relevant.filter(({ id }) => !known.has(id));
    },
    learn: async (report) => {
      const now = clock();
      return logged(await ledger.write((tx) => settleReport(tx, report, now, parts)), namesOf(report));
    },
  };
}

/** Identifiers for a log line. */
function namesOf(report: CardReport): Readonly<Record<string, unknown>> {
  return report.kind === "ended" ? { quoteId: report.quoteId } : { paymentId: report.paymentId };
}
