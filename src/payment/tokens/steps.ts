/**
 * What becomes of a payment after a look at the chain. Decides; writes nothing.
 *
 *   pending  → credited   enough blocks confirm it
 *   pending  → failed     the chain did not carry it out, or does not know it for a day
 *   credited → reversed   another block stands where it stood, and it stands nowhere else
 *   reversed → credited   the chain has it again
 * Source: docs/reference/payment.md#token-payments.
 * @module
 */

import type { BlockRef, Sight, TokenChain, TokenTransfer } from "./sight.ts";
import { notFoundReason, type TokenPayment } from "./token-payment-store.ts";

/** What to do with a payment. `isFinal`: the chain need not be asked again. */
export type Step =
  | Readonly<{ kind: "credit"; block: BlockRef; isFinal: boolean }>
  | Readonly<{ kind: "reverse" }>
  | Readonly<{ kind: "fail"; reason: string }>
  | Readonly<{ kind: "place"; block: BlockRef | undefined; isFinal: boolean }>
  | Readonly<{ kind: "rest" }>;

/** One look. */
export type Look = Readonly<{
  sight: Sight;
  /** Whether another block stands where a credited payment stood, with as many on top as confirm a payment. */
  isReplaced: boolean;
  chain: Pick<TokenChain, "confirmations" | "finalConfirmations">;
  /** Unix milliseconds. */
  now: number;
}>;

const revertedReason = "The chain did not carry the transaction out";
const elsewhereReason = "The transaction pays nothing to this address";

/** How long a transaction may be unknown to the chain before its payment is given up. Milliseconds. */
const absentMsMax = 24 * 60 * 60_000;

/** Decides. */
export function stepOf(payment: TokenPayment, look: Look): Step {
  switch (payment.state) {
    case "failed":
      return { kind: "rest" };
    case "credited":
      return creditedStep(payment, look);
    case "reversed":
      return reversedStep(payment, look);
    case "pending":
      return openStep(payment, look);
  }
}

/**
 * How long the price of a payment holds that is in no block. Longer, and whoever has sent one for a fee that nobody
 * takes could wait for a better price, and then either pay or send another. Milliseconds.
 */
export const priceHeldMs = 60 * 60_000;

/**
 * The transfers of a sight that have to be priced, with their parts: those that have no payment yet, or another one
 * than was seen before, and those that come into a block when their price holds no longer. What was credited once is
 * never replaced.
 *
 * @param now - Unix milliseconds.
 */
export function newTransfers(
  sight: Sight,
  payments: readonly TokenPayment[],
  now: number,
): readonly Readonly<{ part: number; transfer: TokenTransfer }>[] {
  const transfers = sight.kind === "absent" ? [] : (sight.transfers ?? []);
  return transfers
    .map((transfer, part) => ({ part, transfer }))
    .filter(({ part, transfer }) => {
      const stored = payments.find((payment) => payment.part === part);
      if (stored === undefined) return true;
      if (stored.credits > 0) return false;
      if (stored.state === "failed") return stored.failureReason === notFoundReason;
      const isLate = sight.kind === "mined" && stored.block === undefined && now - stored.seenAt > priceHeldMs;
      return isLate || !isSame(stored, transfer);
    });
}

function openStep(payment: TokenPayment, look: Look): Step {
  const { sight, chain, now } = look;
  switch (sight.kind) {
    case "absent":
      return now - (payment.endedAt ?? payment.seenAt) > absentMsMax
        ? { kind: "fail", reason: notFoundReason }
        : { kind: "place", block: undefined, isFinal: false };
    case "waiting":
      return { kind: "place", block: undefined, isFinal: false };
    case "mined": {
      const { block, confirmations, succeeded } = sight;
      if (confirmations < chain.confirmations) return { kind: "place", block, isFinal: false };
      if (!succeeded) return { kind: "fail", reason: revertedReason };
      if (!pays(sight, payment)) return { kind: "fail", reason: elsewhereReason };
      return { kind: "credit", block, isFinal: confirmations >= chain.finalConfirmations };
    }
  }
}

/** A payment that was taken back stays so, rather than fail. */
function reversedStep(payment: TokenPayment, look: Look): Step {
  const step = openStep(payment, look);
  return step.kind === "fail" ? { kind: "place", block: undefined, isFinal: true } : step;
}

function creditedStep(payment: TokenPayment, { sight, isReplaced, chain }: Look): Step {
  if (sight.kind === "mined" && sight.succeeded && pays(sight, payment)) {
    const isFinal = sight.confirmations >= chain.finalConfirmations;
    return { kind: "place", block: sight.block, isFinal };
  }
  // A server may simply not have it, or a block to come: only other blocks in its place show that it is gone.
  return isReplaced ? { kind: "reverse" } : { kind: "place", block: payment.block, isFinal: false };
}

function pays(sight: Extract<Sight, { kind: "mined" }>, payment: TokenPayment): boolean {
  const transfer = sight.transfers[payment.part];
  return transfer !== undefined && isSame(payment, transfer);
}

function isSame({ sender, quantity }: TokenPayment, transfer: TokenTransfer): boolean {
  return sender === transfer.sender && quantity === transfer.amount;
}
