/**
 * Checks card payments in the background: finds events without a webhook, ends expired quotes, and refunds payments
 * without a quote.
 *
 * The watch requests the status of each open quote, and reads the provider's list of events in spans of time. A lost
 * webhook is therefore found within minutes. All steps are idempotent.
 * Source: docs/reference/payment.md#card-payments.
 * @module
 */
import { Failure, type FailureCode } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { openBackgroundLoop } from "../../lib/loop.ts";
import { type LedgerDatabase, readTime, type Tx } from "../../store/ledger/ledger-database.ts";
import { waitingActions } from "../operator/operator-actions.ts";
import { carryOut } from "../operator/operator-refunds.ts";
import { endQuote, lookAgainAt, type Quote, quotesToLookAt, removeEndedQuotes } from "../top-ups/quotes.ts";
import { doubtEnded, refundRequested, refundsInDoubt, refundsWanted } from "./card-event-store.ts";
import type { CardProvider, PaymentStatus } from "./card-provider.ts";
import type { CardEvents } from "./card-settlement.ts";

type CardWatchParts = Readonly<{
  ledger: LedgerDatabase;
  provider: CardProvider;
  events: CardEvents;
  clock: Clock;
  log: Log;
}>;

export type CardWatch = Readonly<{
  /** Processes all due work once. Rejects only when `signal` is aborted or the ledger fails. */
  look: (signal: AbortSignal) => Promise<void>;
  /** Time since the provider's list of events became unreadable, ms; 0 when the last look read it. */
  blindMs: () => number;
}>;

/** A watch in the background. */
type RunningCardWatch = Pick<CardWatch, "blindMs"> & Readonly<{ close: () => Promise<void> }>;

/** Quotes, refunds and doubts that one look processes; the rest is due at the next look. */
const quotesPerLook = 50;
const refundsPerLook = 20;

/** Ended quotes that one look removes, and the time for which they are stored. */
const removedPerLook = 500;
const endedTtlMs = 90 * 24 * 60 * 60_000;

/** The list of events is read in spans of at most this length, each completely before the next. */
const spanMs = 60 * 60_000;

/** The list may show an event late: this much of it is read again. */
const overlapMs = 10 * 60_000;

/** Rarer than looks: an older mark only causes more events to be read again. */
const markEveryMs = 60_000;

/** Pause between removals of ended quotes. */
const removeEveryMs = 60 * 60_000;

/** The provider keeps events for 30 days. */
const eventTtlMs = 29 * 24 * 60 * 60_000;

/** Pages of one span; more events in an hour belong to other programs. */
const pagesPerSpanMax = 200;

/** Spans of one look: one look catches up with two missed days. */
const spansPerLookMax = 48;

/** First and longest pause between status requests for an open quote. */
const firstPauseMs = 60_000;
const longestPauseMs = 60 * 60_000;

/** A quote without a known session is ended this long after it expired. */
const sessionlessMs = 5 * 60_000;

const ledgerFaults: readonly FailureCode[] = ["database_unavailable", "busy"];

/** The mark up to which the list was read. */
const mark = "events";

/**
 * Marks of hours in which an event could not be processed, each with the start of its hour: they are read again until
 * all of their events are processed, because the mark of the list passes them.
 */
const failedMark = "failed";

/** Failed hours that one look reads again. */
const failedHoursPerLook = 4;

/** Creates a watch. The caller starts each look. */
export function createCardWatch(parts: CardWatchParts): CardWatch {
  const { ledger, clock } = parts;
  let blindSince: number | undefined;
  let removedAt = 0;
  /** The last payment that the look before refunded: repeated failures do not block other refunds. */
  let refundedTo = "";
  /** The last failed hour that the look before read again. */
  let readAgainTo = 0;
  return {
    blindMs: () => (blindSince === undefined ? 0 : clock() - blindSince),
    look: async (signal) => {
      blindSince = (await readEvents(parts, signal)) ? undefined : (blindSince ?? clock());
      readAgainTo = await readFailedHours(parts, readAgainTo, signal);
      const quotes = await ledger.read((tx) => quotesToLookAt(tx, clock(), quotesPerLook));
      for (const quote of quotes)
        if (!(await attempt(parts, signal, { quoteId: quote.id }, () => askFor(parts, quote, signal))))
          await lookLater(parts, quote, clock());
      refundedTo = await refundWanted(parts, refundedTo, signal);
      await resumeRefunds(parts, signal);
      await endDoubts(parts, signal);
      if (clock() - removedAt < removeEveryMs) return;
      removedAt = clock();
      await ledger.write((tx) => removeEndedQuotes(tx, removedAt - endedTtlMs, removedPerLook));
    },
  };
}

/** Runs the watch in the background. @param pauseMs - Pause between two looks. */
export function runCardWatch(parts: CardWatchParts, pauseMs: number): RunningCardWatch {
  const watch = createCardWatch(parts);
  const look = async (signal: AbortSignal): Promise<number> => {
    await watch.look(signal);
    return pauseMs;
  };
  const loop = openBackgroundLoop("card watch", look, (error) => {
    parts.log.warn("card watch interrupted", { error });
    return pauseMs;
  });
  return { blindMs: watch.blindMs, close: loop.close };
}

/**
 * One step. Its errors are logged and do not stop the other steps; the next round tries again. An unreachable ledger
 * ends the round.
 */
async function attempt(
  { log }: CardWatchParts,
  signal: AbortSignal,
  reports: Readonly<Record<string, unknown>>,
  work: () => Promise<void>,
): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Failure && ledgerFaults.includes(error.code)) throw error;
    const isFault = error instanceof Failure && error.code === "payment_session_failed";
    if (isFault) log.warn("request to the card provider failed", { ...reports, error });
    else log.error("step of the card watch failed", { ...reports, error });
    return false;
  }
}

/** Requests the status of an open quote. An expired one is ended at the provider first, so that it cannot be paid. */
async function askFor(parts: CardWatchParts, quote: Quote, signal: AbortSignal): Promise<void> {
  const { ledger, events, clock } = parts;
  const now = clock();
  if (quote.sessionId === undefined) {
    if (now < quote.expiresAt + sessionlessMs) return await lookLater(parts, quote, now);
    await ledger.write((tx) => endQuote(tx, quote.id, "expired", "no session was made"));
    return;
  }
  const status = await statusOf(parts, quote, quote.sessionId, now >= quote.expiresAt, signal);
  if (status === "gone") await events.learn({ kind: "ended", quoteId: quote.id, state: "expired" });
  else if (status === undefined || status.paidAt === undefined) await lookLater(parts, quote, now);
  else await learnPaid(parts, quote, status, status.paidAt);
}

/** @returns The payment; undefined without a payment; `gone` when the quote can no longer be paid. */
async function statusOf(
  { provider }: CardWatchParts,
  quote: Quote,
  sessionId: string,
  isOver: boolean,
  signal: AbortSignal,
): Promise<PaymentStatus | "gone" | undefined> {
  if (quote.method === "payment-intent") {
    const ask = isOver ? provider.endPayment : provider.findPayment;
    const payment = await ask(sessionId, signal);
    return payment === undefined || payment.state === "canceled" ? "gone" : payment;
  }
  const ask = isOver ? provider.endCheckout : provider.findCheckout;
  const checkout = await ask(sessionId, signal);
  if (checkout === undefined || checkout.state === "expired") return "gone";
  if (checkout.state === "open" || checkout.paymentId === undefined) return undefined;
  return await provider.findPayment(checkout.paymentId, signal);
}

async function learnPaid(
  { events }: CardWatchParts,
  quote: Quote,
  payment: PaymentStatus,
  paidAt: number,
): Promise<void> {
  const { paymentId, amountReceived: amount, amountRefunded, currency } = payment;
  await events.learn({ kind: "paid", paymentId, quoteId: quote.id, amount, currency, paidAt });
  // Any message about a refund is newer than the payment.
  if (amountRefunded > 0n) await events.learn({ kind: "refunded", paymentId, amount: amountRefunded, asOf: paidAt });
}

/** Pauses grow with the quote's age; the first look after it expired comes at once. */
async function lookLater({ ledger }: CardWatchParts, quote: Quote, now: number): Promise<void> {
  const next = now + pauseOf(now - quote.createdAt);
  const passesExpiry = now < quote.expiresAt && next > quote.expiresAt;
  await ledger.write((tx) => lookAgainAt(tx, quote.id, passesExpiry ? quote.expiresAt : next));
}

function pauseOf(ageMs: number): number {
  if (ageMs < firstPauseMs) return firstPauseMs;
  return Math.min(ageMs, longestPauseMs);
}

/**
 * Requests the refunds of rejected payments; the provider ignores repeated requests.
 *
 * @param after - Only payments after this id; "" starts from the first.
 * @returns The `after` of the next look.
 */
async function refundWanted(parts: CardWatchParts, after: string, signal: AbortSignal): Promise<string> {
  const { ledger, provider } = parts;
  const wanted = await ledger.read((tx) => refundsWanted(tx, after, refundsPerLook));
  await ledger.confirmed(); // before money is sent
  for (const paymentId of wanted) {
    await attempt(parts, signal, { paymentId }, async () => {
      await provider.refund(paymentId, "rejected", signal);
      await ledger.write((tx) => refundRequested(tx, paymentId));
    });
  }
  return wanted.length < refundsPerLook ? "" : (wanted.at(-1) ?? "");
}

/** Carries on with refunds of operators that a crash or a fault of the provider interrupted. */
async function resumeRefunds(parts: CardWatchParts, signal: AbortSignal): Promise<void> {
  const waiting = await parts.ledger.read((tx) => waitingActions(tx, refundsPerLook));
  await parts.ledger.confirmed(); // before money is sent
  for (const action of waiting)
    await attempt(parts, signal, { quoteId: action.subject }, async () => {
      await carryOut(parts, action, signal);
    });
}

/** Requests sums of refunds that are in doubt after a failed refund. */
async function endDoubts(parts: CardWatchParts, signal: AbortSignal): Promise<void> {
  const { ledger, provider, events } = parts;
  for (const { paymentId, asOf } of await ledger.read((tx) => refundsInDoubt(tx, refundsPerLook))) {
    await attempt(parts, signal, { paymentId }, async () => {
      const payment = await provider.findPayment(paymentId, signal);
      if (payment !== undefined)
        await events.learn({ kind: "refunded", paymentId, amount: payment.amountRefunded, asOf });
      await ledger.write((tx) => doubtEnded(tx, paymentId, asOf));
    });
  }
}

/** Reads the list of events from its mark. @returns False when a request failed. */
async function readEvents(parts: CardWatchParts, signal: AbortSignal): Promise<boolean> {
  const { ledger, clock } = parts;
  for (let spans = 0; spans < spansPerLookMax; spans += 1) {
    const now = clock();
    const at = await ledger.read(readMark);
    const from = Math.max((at ?? now) - overlapMs, now - eventTtlMs);
    const to = from + spanMs < now ? from + spanMs : now + 1_000;
    let isWhole = true;
    const isRead = await attempt(parts, signal, { from, to }, async () => {
      isWhole = await readSpan(parts, from, to, signal);
    });
    if (!isRead) return false;
    if (!isWhole) await ledger.write((tx) => markFailed(tx, from - (from % spanMs)));
    const reached = Math.min(to, now);
    if (at === undefined || reached - at >= markEveryMs) await ledger.write((tx) => setMark(tx, reached));
    if (to >= now) break;
  }
  return true;
}

/**
 * Reads failed hours again, oldest first.
 *
 * @param after - Only hours after this one; 0 starts from the first.
 * @returns The `after` of the next look.
 */
async function readFailedHours(parts: CardWatchParts, after: number, signal: AbortSignal): Promise<number> {
  const { ledger, clock, log } = parts;
  const hours = await ledger.read((tx) => failedHours(tx, after));
  for (const hour of hours) {
    const isGone = hour < clock() - eventTtlMs;
    if (isGone) log.error("events of the card provider could not be processed, and are no longer listed", { hour });
    await attempt(parts, signal, { hour }, async () => {
      // A span that begins in this hour ends in the next one.
      if (isGone || (await readSpan(parts, hour, hour + 2 * spanMs, signal)))
        await ledger.write((tx) => unmarkFailed(tx, hour));
    });
  }
  return hours.length < failedHoursPerLook ? 0 : (hours.at(-1) ?? 0);
}

/** Processes the events of a span. @returns Whether all could be processed. */
async function readSpan(parts: CardWatchParts, from: number, to: number, signal: AbortSignal): Promise<boolean> {
  const { provider, events, log } = parts;
  let isWhole = true;
  let after: string | undefined;
  for (let pages = 0; pages < pagesPerSpanMax; pages += 1) {
    const page = await provider.events(from, to, after, signal);
    for (const event of await events.unseen(page.events)) {
      const isTaken = await attempt(parts, signal, { event: event.id }, async () => {
        await events.take(event);
      });
      if (!isTaken) isWhole = false;
    }
    after = page.next;
    if (after === undefined) return isWhole;
  }
  log.error("the card provider lists more events than one span may have", { from, to, pagesPerSpanMax });
  return isWhole;
}

async function markFailed(tx: Tx, hour: number): Promise<void> {
  const sql = "INSERT INTO card_marks (name, at) VALUES (?, ?) ON CONFLICT (name) DO NOTHING";
  await tx.run(sql, `${failedMark} ${hour}`, BigInt(hour));
}

async function unmarkFailed(tx: Tx, hour: number): Promise<void> {
  await tx.run("DELETE FROM card_marks WHERE name = ?", `${failedMark} ${hour}`);
}

async function failedHours(tx: Tx, after: number): Promise<number[]> {
  const rows = await tx.all<{ at: bigint }>(
    "SELECT at FROM card_marks WHERE name LIKE ? AND at > ? ORDER BY at LIMIT ?",
    ...[`${failedMark} %`, BigInt(after), BigInt(failedHoursPerLook)],
  );
  return rows.map(({ at }) => readTime(at));
}

/** The time up to which the list was read, Unix ms; undefined before the first look. */
async function readMark(tx: Tx): Promise<number | undefined> {
  const row = await tx.get<{ at: bigint }>("SELECT at FROM card_marks WHERE name = ?", mark);
  return row === undefined ? undefined : readTime(row.at);
}

async function setMark(tx: Tx, at: number): Promise<void> {
  await tx.run(
    "INSERT INTO card_marks (name, at) VALUES (?, ?) " +
      "ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE card_marks.at < excluded.at",
    mark,
    BigInt(at),
  );
}
