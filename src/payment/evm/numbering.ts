/**
 * Which number the next transaction of an account has, and at what fee.
 *
 * Numbers leave no gap and are used in order, so one transaction that no block takes up holds up all after it. It is
 * replaced by the next one, at a higher fee.
 * @module
 */
import type { Clock } from "../../lib/clock.ts";

/** Wei for a unit of gas. */
export type Fees = Readonly<{
  /** The most that is paid, the tip included. */
  feeMax: bigint;
  /** What of it may go to the block's maker. */
  tipMax: bigint;
}>;

/** A number, and the fees of its transaction. */
export type Numbered = Fees & Readonly<{ nonce: bigint }>;

/** How many transactions of an account a server knows of. */
export type Counts = Readonly<{
  /** In blocks. */
  mined: bigint;
  /** Those that wait for a block, too. */
  known: bigint;
}>;

/** Numbers for one account, one at a time. */
export type Numbering = Readonly<{
  /** The number after the last, or that of one that is stuck, at fees for which servers replace it. */
  next: (fees: Fees, counts: Counts) => Numbered;
  /** Notes that a transaction is sent. */
  sent: (numbered: Numbered) => void;
}>;

/** A transaction that no block has taken up for so long is stuck. Milliseconds. */
export const stuckMs = 60_000;

type Sent = Fees & Readonly<{ at: number }>;

/** Creates numbers. */
export function createNumbering(clock: Clock): Numbering {
  const waiting = new Map<bigint, Sent>();
  // What waits first may be another process's: then only that it stays so tells that it is stuck.
  let front: Readonly<{ nonce: bigint; since: number }> | undefined;

  function waitingSince(mined: bigint): number {
    const own = waiting.get(mined);
    if (own !== undefined) return own.at;
    if (front?.nonce !== mined) front = { nonce: mined, since: clock() };
    return front.since;
  }

  return {
    next: (fees, { mined, known }) => {
      for (const nonce of waiting.keys()) if (nonce < mined) waiting.delete(nonce);
      const first = waiting.get(mined);
      if (first === undefined && known <= mined) return { ...fees, nonce: mined };
      if (clock() - waitingSince(mined) > stuckMs) return { ...raised(fees, first), nonce: mined };
      // Servers forget what waits, and do not all know the same: the number is after all that anybody knows.
      const after = [...waiting.keys()].map((nonce) => nonce + 1n);
      return { ...fees, nonce: after.reduce(larger, known) };
    },
    sent: ({ nonce, feeMax, tipMax }) => {
      waiting.set(nonce, { feeMax, tipMax, at: clock() });
    },
  };
}

/** Servers replace a transaction for a tenth more of both; one whose fees are not known is met with twice today's. */
function raised({ feeMax, tipMax }: Fees, before: Fees | undefined): Fees {
  if (before === undefined) return { feeMax: feeMax * 2n + 1n, tipMax: tipMax * 2n + 1n };
  const tip = larger(tipMax, (before.tipMax * 5n) / 4n + 1n);
  const fee = larger(feeMax, (before.feeMax * 5n) / 4n + 1n);
  return { tipMax: tip, feeMax: larger(fee, tip) };
}

function larger(left: bigint, right: bigint): bigint {
  return left > right ? left : right;
}
