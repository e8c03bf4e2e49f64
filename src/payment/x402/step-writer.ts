/**
 * Steps of payments, written to the ledger: each in one transaction, by the row as it is then.
 * @module
 */
import { atLeast, atMost } from "../../lib/bounds.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { LedgerDatabase, Tx } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";
import type { X402Step } from "./steps.ts";
import {
  beginX402,
  findX402,
  laterX402,
  placeX402,
  rejectX402,
  reverseX402,
  settleX402,
  type X402Stored,
  type X402Time,
} from "./x402-payment-store.ts";

/** What it needs. */
export type StepWriterOptions = Readonly<{ ledger: LedgerDatabase; clock: Clock; makeId: MakeId; log: Log }>;

/** Writes steps. @throws Failure of the ledger. */
export type StepWriter = Readonly<{
  /**
   * Takes the step that the row asks for; that a payment is to be sent is the caller's to do.
   * @param decide - Gets the row as it is in this transaction.
   */
  take: (payment: X402Stored, decide: (stored: X402Stored) => X402Step) => Promise<X402Step>;
  /** Lets it be looked at again later. @param transaction - By which it may have been carried out. */
  putOff: (payment: X402Stored, transaction?: string) => Promise<void>;
  /** Notes that it is about to be sent. @returns False when it must not be: it has ended meanwhile. */
  begin: (payment: X402Stored, transaction: string | undefined) => Promise<boolean>;
}>;

/** Longer than a payment is ever in one's hands: a facilitator's time-out, and the patience after it. Milliseconds. */
export const inHandMs = 60_000;

/** Creates it. */
export function createStepWriter({ ledger, clock, makeId, log }: StepWriterOptions): StepWriter {
  return {
    take: async (payment, decide) => {
      const now = clock();
      const taken = await ledger.write(async (tx) => {
        const stored = (await findX402(tx, payment.id)) ?? payment;
        const step = decide(stored);
        await writeStep(tx, stored, step, { now, dueAt: lookAgainAt(stored, step, now), makeId });
        return step;
      });
      announce(log, payment, taken);
      return taken;
    },
    putOff: async (payment, transaction) => {
      const dueAt = lookAgainAt(payment, { kind: "wait" }, clock());
      await ledger.write((tx) => laterX402(tx, payment, dueAt, transaction));
    },
    begin: (payment, transaction) => ledger.write((tx) => beginX402(tx, payment.id, transaction, clock() + inHandMs)),
  };
}

/** Open payments are somebody's wait; those that have an answer are only watched. Milliseconds. */
const openPauses = { ageDivisor: 10, leastMs: 2_000, mostMs: 60_000 };
const watchedPauses = { ageDivisor: 2, leastMs: 30_000, mostMs: 10 * 60_000 };

/** When a payment is worth another look after a step: the older it is, the less often. */
function lookAgainAt({ state, seenAt }: X402Stored, step: X402Step, now: number): number | undefined {
  const isOver = step.kind === "rest" || step.kind === "reverse" || ("isFinal" in step && step.isFinal);
  if (isOver) return undefined;
  const isOpen = (state === "seen" || state === "settling") && (step.kind === "wait" || step.kind === "send");
  const { ageDivisor, leastMs, mostMs } = isOpen ? openPauses : watchedPauses;
  const age = atLeast(now - seenAt, 0);
  const wait = (age - (age % ageDivisor)) / ageDivisor;
  return now + atLeast(atMost(wait, mostMs), leastMs);
}

async function writeStep(tx: Tx, payment: X402Stored, step: X402Step, time: X402Time): Promise<void> {
  switch (step.kind) {
    case "credit":
      return await settleX402(tx, payment, step.end, time);
    case "place":
      return await placeX402(tx, payment, step.end, time.dueAt);
    case "reject":
      return await rejectX402(tx, payment, step.reason, time);
    case "reverse":
      return await reverseX402(tx, payment, step.reason, time);
    case "wait":
    case "rest":
      return await laterX402(tx, payment, time.dueAt);
    case "send":
      return; // it stays in the caller's hands
  }
}

/** Every change of a state is worth a line. */
function announce(log: Log, { id, winc, authorization }: X402Stored, step: X402Step): void {
  const facts = { payment: id, account: authorization.from, winc };
  if (step.kind === "credit") log.info("an x402 payment is settled", { ...facts, ...step.end });
  if (step.kind === "reject") log.info("an x402 payment is rejected", { ...facts, reason: step.reason });
  if (step.kind === "reverse") log.warn("an x402 payment was reversed", { ...facts, reason: step.reason });
}
