/**
 * Settling a payment after a look at the chain: what is new is priced and kept, then every payment of the transaction
 * takes its step, in one transaction of the ledger.
 * @module
 */

import type { Failure } from "../../failures.ts";
import { atLeast, atMost } from "../../lib/bounds.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import type { LedgerDatabase, Tx } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";
import type { Offering } from "./offers.ts";
import type { TokenChain } from "./sight.ts";
import { type Look, newTransfers, stepOf } from "./steps.ts";
import {
  type ChangeTime,
  creditPayment,
  failPayment,
  keepOffer,
  paymentsOf,
  placePayment,
  reversePayment,
  type TokenPayment,
} from "./token-payment-store.ts";

/** What was seen of a transaction. */
export type Seen = Pick<Look, "sight" | "isReplaced">;

/** Payments of one transaction after a look. */
export type Settled = Readonly<{
  payments: readonly TokenPayment[];
  /** Why the first of what is not credited is not. */
  refusal: Failure | undefined;
}>;

/** Writes what a look means. @throws Failure of the prices or the ledger. */
export type Settle = (chain: TokenChain, transactionId: string, seen: Seen, signal: AbortSignal) => Promise<Settled>;

/** What settling needs. */
export type SettlingOptions = Readonly<{
  ledger: LedgerDatabase;
  clock: Clock;
  makeId: MakeId;
  /** The shortest time between two looks at a payment that nobody reports. Milliseconds. */
  lookAgainMs: number;
  log: Log;
}>;

/** The longest time between two looks at one payment. Milliseconds. */
const lookAgainMsMax = 10 * 60_000;

/** A payment is looked at again when it is this part older. */
const ageDivisor = 10;

/** Creates the settling. */
export function createSettling(options: SettlingOptions, offersOf: Offering): Settle {
  const { ledger, clock, makeId, lookAgainMs } = options;
  return async (chain, transactionId, seen, signal) => {
    const before = await ledger.read((tx) => paymentsOf(tx, chain.token, transactionId));
    const wanted = newTransfers(seen.sight, before, clock());
    const { offers, refusal } = await offersOf(chain, transactionId, wanted, signal);
    const now = clock();
    const payments = await ledger.write(async (tx) => {
      // Another process may have kept some meanwhile; what it priced first stays.
      const fresh = newTransfers(seen.sight, await paymentsOf(tx, chain.token, transactionId), now);
      for (const offer of offers)
        if (fresh.some(({ part }) => part === offer.part))
          await keepOffer(tx, offer, { now, dueAt: now + lookAgainMs, makeId });
      for (const payment of await paymentsOf(tx, chain.token, transactionId)) {
        const dueAt = nextLookAt(payment, now, lookAgainMs);
        await takeStep(tx, payment, { ...seen, chain, now }, { now, dueAt, makeId });
      }
      return await paymentsOf(tx, chain.token, transactionId);
    });
    announce(options.log, before, payments);
    return { payments, refusal };
  };
}

/** When a payment is worth another look: the longer it stands as it does, the less often. */
export function nextLookAt(payment: TokenPayment, now: number, lookAgainMs: number): number {
  const since = payment.endedAt ?? payment.creditedAt ?? payment.seenAt;
  const age = atLeast(now - since, 0);
  const wait = (age - (age % ageDivisor)) / ageDivisor;
  return now + atLeast(atMost(wait, lookAgainMsMax), lookAgainMs);
}

async function takeStep(tx: Tx, payment: TokenPayment, look: Look, time: ChangeTime): Promise<void> {
  const step = stepOf(payment, look);
  switch (step.kind) {
    case "rest":
      return;
    case "reverse":
      return await reversePayment(tx, payment, time);
    case "fail":
      return await failPayment(tx, payment, step.reason, time);
    case "place":
      return await placePayment(tx, payment, step.block, step.isFinal ? undefined : time.dueAt);
    case "credit": {
      const dueAt = step.isFinal ? undefined : time.dueAt;
      const obstacle = await creditPayment(tx, payment, step.block, { ...time, dueAt });
      if (obstacle === undefined) return;
      if (payment.state === "pending") await failPayment(tx, payment, obstacle, time);
      else await placePayment(tx, payment, step.block, undefined);
    }
  }
}

/** Every change of a state is worth a line. */
function announce(log: Log, before: readonly TokenPayment[], after: readonly TokenPayment[]): void {
  for (const payment of after) {
    const { id, state, destination, winc, failureReason } = payment;
    if (before.find((each) => each.id === id)?.state === state) continue;
    const facts = { payment: id, account: destination, winc, ...(failureReason && { failureReason }) };
    if (state === "reversed") log.warn("a token payment was reversed", facts);
    else log.info(`a token payment is ${state}`, facts);
  }
}
