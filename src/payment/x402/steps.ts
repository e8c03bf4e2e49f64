/**
 * What is to be done with a payment, from where it stands in the ledger and on the chain.
 * @module
 */
import type { AuthorizationStanding, EndPlace } from "../evm/authorization-chain.ts";
import type { X402Stored } from "./x402-payment-store.ts";

/** What is to be done. */
export type X402Step =
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

export const expiredReason = "The authorization has expired";
export const otherwiseReason = "The authorization was cancelled or used for something else";

/** Decides. @param finalConfirmations - From here on the chain never goes back. */
export function stepOf(
  payment: Pick<X402Stored, "state" | "authorization">,
  standing: AuthorizationStanding,
  finalConfirmations: number,
): X402Step {
  const { state, authorization } = payment;
  if (state === "reversed") return { kind: "rest" };
  switch (standing.kind) {
    case "moved": {
      const isFinal = standing.confirmations >= finalConfirmations;
      return { kind: state === "settled" ? "place" : "credit", end: standing, isFinal };
    }
    case "otherwise":
      return endedStep(state, otherwiseReason, standing.confirmations >= finalConfirmations);
    case "unused": {
      const { time } = standing;
      if (time >= authorization.validBefore + overSlack) return endedStep(state, expiredReason, true);
      const canSend = state !== "rejected" && time + sendSlack < authorization.validBefore;
      return { kind: canSend ? "send" : "wait" };
    }
  }
}

/**
 * Decides after a refusal to carry a payment out.
 *
 * It ends the payment when this was the first attempt. After another, whose outcome nobody knew, the refusal may be of
 * what that one has sent.
 * @param step - What the chain asks for.
 * @param attemptsBefore - How often it had been sent before this attempt began.
 */
export function refusedStep(
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
