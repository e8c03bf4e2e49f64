/**
 * Checks card payments in the background: finds events without a webhook, ends expired quotes, and refunds payments
 * without a quote.
 *
 * Open quotes are asked for by themselves, and the provider's list of events is read in steps of time, so that a
 * lost message about anything is found within minutes. All of it is repeatable: what was known changes nothing.
 * Source: docs/reference/payment.md#card-payments.
 * @module
 */
import { Failure, type FailureCode } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { sleep } from "../../lib/stop.ts";
import { type LedgerDatabase, readTime, type Tx } from "../../store/ledger/ledger-database.ts";
import type { CardProvider, PaymentStatus } from "../providers/card-provider.ts";
import { endQuote, lookAgainAt, type Quote, quotesToLookAt, removeEndedQuotes } from "../top-ups/quotes.ts";
import { doubtEnded, refundRequested, refundsInDoubt, refundsWanted } from "./card-event-store.ts";
import type { CardEvents } from "./card-settlement.ts";

type CardWatchParts = Readonly<{
  ledger: LedgerDatabase;
  provider: CardProvider;
  events: CardEvents;
  clock: Clock;
  log: Log;
}>;

/** A watch. */
export type CardWatch = Readonly<{
  /** Looks once at all that is due. Rejects only when `signal` is aborted or the ledger fails. */
  look: (signal: AbortSignal) => Promise<void>;
  /** For how long the provider's list of events could not be read, ms; 0 when it could at the last look. */
  blindMs: () => number;
}>;

/** A watch that looks by itself. */
type RunningCardWatch = Pick<CardWatch, "blindMs"> & Readonly<{ close: () => Promise<void> }>;

/** Quotes, refunds and doubts that one look deals with; the rest is due at the next one. */
const quotesPerLook = 50;
const refundsPerLook = 20;

/** Ended quotes that one look removes, and how long they are stored for questions. */
const removedPerLook = 500;
const endedStoredMs = 90 * 24 * 60 * 60_000;

/** The list of events is read in spans of at most this, each whole before the next. */
const spanMs = 60 * 60_000;

/** The list may show an event later than others of its time: this much of it is read again. */
const overlapMs = 10 * 60_000;

/** Rarer than looks: a mark that is a little old only makes more be read again. */
const markEveryMs = 60_000;

/** Ended quotes are removed so often. */
const removeEveryMs = 60 * 60_000;

/** The provider keeps events for 30 days. */
const eventsStoredMs = 29 * 24 * 60 * 60_000;

/** Pages of one span; as many events in an hour are not ours. */
const pagesPerSpanMax = 200;

/** Spans of one look: a day that was missed is caught up with in one. */
const spansPerLookMax = 48;

/** First and longest pause before an open quote is asked for again. */
const firstPauseMs = 60_000;
const longestPauseMs = 60 * 60_000;

/** A quote whose session was never known is given up this long after it expired. */
const sessionlessMs = 5 * 60_000;

const ledgerFaults: readonly FailureCode[] = ["database_unavailable", "busy"];

/** The mark up to which the list was read. */
const mark = "events";

/** Creates a watch; its caller starts each round. */
export function createCardWatch(parts: CardWatchParts): CardWatch {
  const { ledger, clock } = parts;
  let blindSince: number | undefined;
  let removedAt = 0;
  /** The last payment that was to be given back in the look before: those that are rejected again hold up no others. */
  let givenBackTo = "";
  return {
    blindMs: () => (blindSince === undefined ? 0 : clock() - blindSince),
    look: async (signal) => {
      blindSince = (await readEvents(parts, signal)) ? undefined : (blindSince ?? clock());
      const quotes = await ledger.read((tx) => quotesToLookAt(tx, clock(), quotesPerLook));
      for (const quote of quotes)
        if (!(await attempt(parts, signal, { quoteId: quote.id }, () => askFor(parts, quote, signal))))
          await lookLater(parts, quote, clock());
      givenBackTo = await giveBack(parts, givenBackTo, signal);
      await endDoubts(parts, signal);
      if (clock() - removedAt < removeEveryMs) return;
      removedAt = clock();
      await ledger.write((tx) => removeEndedQuotes(tx, removedAt - endedStoredMs, removedPerLook));
    },
  };
}

/** Looks again and again. @param pauseMs - Between two looks. */
export function runCardWatch(parts: CardWatchParts, pauseMs: number): RunningCardWatch {
  const watch = createCardWatch(parts);
  const life = new AbortController();
  const lookOrSay = async (): Promise<void> => {
    try {
      await watch.look(life.signal);
    } catch (error) {
      if (!life.signal.aborted) parts.log.warn("the watch over card payments was interrupted", { error });
    }
  };
  const isRested = (): Promise<boolean> =>
    sleep(pauseMs, life.signal).then(
      () => true,
      () => false,
    );
  const run = async (): Promise<void> => {
    do await lookOrSay();
    while (await isRested());
  };
  const running = run();
  return {
    blindMs: watch.blindMs,
    close: async () => {
      life.abort(new DOMException("the watch was closed", "AbortError"));
      await running;
    },
  };
}

/**
 * One step. Its errors are logged and do not stop the other steps; the next round tries again. Where the
 * ledger cannot be reached there is nothing more to be done.
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
    if (isFault) log.warn("the card provider could not be asked", { ...reports, error });
    else log.error("a step of the watch over card payments failed", { ...reports, error });
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

/** @returns The payment; undefined while there is none; `gone` when none can follow. */
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
 * Gives back what was rejected; the provider knows a refund that it was asked for before.
 *
 * @param after - Only payments behind this one, by their ids; "" begins anew.
 * @returns Where the next look goes on.
 */
async function giveBack(parts: CardWatchParts, after: string, signal: AbortSignal): Promise<string> {
  const { ledger, provider } = parts;
  const wanted = await ledger.read((tx) => refundsWanted(tx, after, refundsPerLook));
  for (const paymentId of wanted) {
    await attempt(parts, signal, { paymentId }, async () => {
      await provider.refund(paymentId, signal);
      await ledger.write((tx) => refundRequested(tx, paymentId));
    });
  }
  return wanted.length < refundsPerLook ? "" : (wanted.at(-1) ?? "");
}

/** Asks for sums of refunds that are in doubt because one came to nothing. */
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

/** Reads the list of events on from where it was read to. @returns Whether the provider let it. */
async function readEvents(parts: CardWatchParts, signal: AbortSignal): Promise<boolean> {
  const { ledger, clock } = parts;
  for (let spans = 0; spans < spansPerLookMax; spans += 1) {
    const now = clock();
    const at = await ledger.read(readMark);
    const from = Math.max((at ?? now) - overlapMs, now - eventsStoredMs);
    const to = from + spanMs < now ? from + spanMs : now + 1_000;
    const isRead = await attempt(parts, signal, { from, to }, () => readSpan(parts, from, to, signal));
    if (!isRead) return false;
    const reached = Math.min(to, now);
    if (at === undefined || reached - at >= markEveryMs) await ledger.write((tx) => setMark(tx, reached));
    if (to >= now) break;
  }
  return true;
}

async function readSpan(parts: CardWatchParts, from: number, to: number, signal: AbortSignal): Promise<void> {
  const { provider, events, log } = parts;
  let after: string | undefined;
  for (let pages = 0; pages < pagesPerSpanMax; pages += 1) {
    const page = await provider.events(from, to, after, signal);
    for (const event of await events.unseen(page.events))
      await attempt(parts, signal, { event: event.id }, async () => {
        await events.take(event);
      });
    after = page.next;
    if (after === undefined) return;
  }
  log.error("the card provider lists more events than are read", { from, to, pagesPerSpanMax });
}

/** Up to where the list was read, Unix ms; undefined before the first look, when nothing was sold yet. */
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
