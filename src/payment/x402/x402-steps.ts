/**
 * The next step of a payment, from its state in the ledger and on the chain.
 * @module
 */

import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { LedgerDatabase, Tx } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";
import type { AuthorizationStatus, EndPlace } from "../evm/authorization-chain.ts";
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

/** The next step. */
type X402Step =
  /** The chain has moved the dollars: credit the payer. */
  | Readonly<{ kind: "credit"; end: EndPlace; isFinal: boolean }>
  /** It was credited, and the chain still has it. */
  | Readonly<{ kind: "place"; end: EndPlace; isFinal: boolean }>
  /** Nobody has carried it out yet: do. */
  | Readonly<{ kind: "send" }>
  /** It will not be carried out; not final while the chain might still do it. */
  | Readonly<{ kind: "reject"; reason: string; isFinal: boolean }>
  /** It was credited, and the chain took it back for good. */
  | Readonly<{ kind: "reverse"; reason: string }>
  /** Look again later. */
  | Readonly<{ kind: "wait" }>
  /** Nothing more, ever. */
  | Readonly<{ kind: "rest" }>;

/** A chain that goes back gives its blocks other times; so much later none lets an authorization in again. Seconds. */
const overSlack = 120n;

/** A transaction that is sent now is in a block some seconds later. */
const sendSlack = 6n;

const expiredReason = "The authorization has expired";
const otherwiseReason = "The authorization was cancelled or used for something else";

/** Decides. @param finalConfirmations - From here on the chain never goes back. */
export function stepOf(
  payment: Pick<X402Stored, "state" | "authorization">,
  status: AuthorizationStatus,
  finalConfirmations: number,
): X402Step {
  const { state, authorization } = payment;
  if (state === "reversed") return { kind: "rest" };
  switch (status.kind) {
    case "moved": {
      const isFinal = status.confirmations >= finalConfirmations;
      return { kind: state === "settled" ? "place" : "credit", end: status, isFinal };
    }
    case "otherwise":
      return endedStep(state, otherwiseReason, status.confirmations >= finalConfirmations);
    case "unused": {
      const { time } = status;
      if (time >= authorization.validBefore + overSlack) return endedStep(state, expiredReason, true);
      const canSend = state !== "rejected" && time + sendSlack < authorization.validBefore;
      return { kind: canSend ? "send" : "wait" };
    }
  }
}

/**
 * Decides after a rejection to carry a payment out.
 *
 * It ends the payment when this was the first attempt. After another, whose outcome nobody knew, the rejection may
 * be of what that one has sent.
 * @param step - What the chain asks for.
 * @param attemptsBefore - How often it had been sent before this attempt began.
 */
export function rejectedStep(
  { state, attempts }: Pick<X402Stored, "state" | "attempts">,
  step: X402Step,
  reason: string,
  attemptsBefore: number,
): X402Step {
  if (step.kind !== "send") return step;
  const isFirst = attemptsBefore === 0 && attempts <= 1;
  const isSure = isFirst && (state === "seen" || state === "settling");
  return isSure ? { kind: "reject", reason, isFinal: false } : { kind: "wait" };
}

/** It did not pay, and, where that is final, never will. */
function endedStep(state: X402Stored["state"], reason: string, isFinal: boolean): X402Step {
  if (state === "seen" || state === "settling") return { kind: "reject", reason, isFinal };
  if (!isFinal) return { kind: "wait" };
  return state === "settled" ? { kind: "reverse", reason } : { kind: "rest" };
}

// Steps of payments, written to the ledger: each in one transaction, by the row as it is then.

export type StepWriterOptions = Readonly<{ ledger: LedgerDatabase; clock: Clock; makeId: MakeId; log: Log }>;

/** Writes steps. @throws Failure of the ledger. */
type StepWriter = Readonly<{
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

/** A client waits for an open payment; others are only watched. Milliseconds. */
const openPauses = { ageDivisor: 10, leastMs: 2_000, mostMs: 60_000 };
const watchedPauses = { ageDivisor: 2, leastMs: 30_000, mostMs: 10 * 60_000 };

/** When a payment is worth another look after a step: the older it is, the less often. */
function lookAgainAt({ state, seenAt }: X402Stored, step: X402Step, now: number): number | undefined {
  const isOver = step.kind === "rest" || step.kind === "reverse" || ("isFinal" in step && step.isFinal);
  if (isOver) return undefined;
  const isOpen = (state === "seen" || state === "settling") && (step.kind === "wait" || step.kind === "send");
  const { ageDivisor, leastMs, mostMs } = isOpen ? openPauses : watchedPauses;
  const age = Math.max(now - seenAt, 0);
  const wait = (age - (age % ageDivisor)) / ageDivisor;
  return now + Math.max(Math.min(wait, mostMs), leastMs);
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
  const reports = { payment: id, account: authorization.from, winc };
  if (step.kind === "credit") log.info("an x402 payment is settled", { ...reports, ...step.end });
  if (step.kind === "reject") log.info("an x402 payment is rejected", { ...reports, reason: step.reason });
  if (step.kind === "reverse") log.warn("an x402 payment was reversed", { ...reports, reason: step.reason });
}
