/**
 * Following payments that are kept: those that wait for confirmations, and those that the chain may still take back.
 * @module
 */
import type { Fault } from "../../lib/http-client.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import { nextLookAt, type Settle, type SettlingOptions } from "./settling.ts";
import type { BlockRef, Standing, TokenChain } from "./sight.ts";
import { dueTransactions, paymentsOf, placePayment, type TokenPayment } from "./token-payment-store.ts";

/**
 * Looks again at payments of a chain that are due, at most `limit` transactions. What cannot be looked at is due
 * later.
 *
 * @returns Why the last of these could not be looked at.
 * @throws Failure of the prices or the ledger.
 */
export type Follow = (chain: TokenChain, limit: number, signal: AbortSignal) => Promise<Fault | undefined>;

/** Transactions looked at at once. */
const slots = 4;

/** Creates the following. */
export function createFollowing(options: SettlingOptions, settle: Settle): Follow {
  const { ledger, clock, lookAgainMs } = options;

  /** Looks at one transaction. @returns Why it could not be looked at. */
  async function followOne(
    chain: TokenChain,
    transactionId: string,
    standingOf: StandingOf,
    signal: AbortSignal,
  ): Promise<Fault | undefined> {
    const payments = await ledger.read((tx) => paymentsOf(tx, chain.token, transactionId));
    const block = payments.find(isCreditedAndDue)?.block;
    const standing = block === undefined ? undefined : await standingOf(block);
    const problem = standing?.kind === "trouble" ? standing : undefined;
    if (problem !== undefined || standing?.kind === "unknown") {
      await postpone(payments);
      return problem;
    }
    if (standing?.kind === "stands" && !payments.some(isWaiting)) {
      await stay(payments, standing.confirmations >= chain.finalConfirmations);
      return undefined;
    }
    const sight = await chain.look(transactionId, signal);
    if (sight.kind === "trouble") {
      await postpone(payments);
      return sight;
    }
    const isReplaced = standing?.kind === "replaced" && standing.confirmations >= chain.confirmations;
    await settle(chain, transactionId, { sight, isReplaced }, signal);
    return undefined;
  }

  async function stay(payments: readonly TokenPayment[], isFinal: boolean): Promise<void> {
    const now = clock();
    await setDue(ledger, payments.filter(isCreditedAndDue), (payment) =>
      isFinal ? undefined : nextLookAt(payment, now, lookAgainMs),
    );
  }

  async function postpone(payments: readonly TokenPayment[]): Promise<void> {
    const now = clock();
    const isDue = ({ dueAt }: TokenPayment) => dueAt !== undefined;
    await setDue(ledger, payments.filter(isDue), (payment) => nextLookAt(payment, now, lookAgainMs));
  }

  return async (chain, limit, signal) => {
    const standingOf = createStandings(chain, signal);
    const due = await ledger.read((tx) => dueTransactions(tx, chain.token, clock(), limit));
    let fault: Fault | undefined;
    for (let index = 0; index < due.length; index += slots) {
      signal.throwIfAborted();
      const some = due.slice(index, index + slots);
      const problems = await Promise.all(some.map((id) => followOne(chain, id, standingOf, signal)));
      fault = problems.find((problem) => problem !== undefined) ?? fault;
    }
    return fault;
  };
}

type StandingOf = (block: BlockRef) => Promise<Standing | Fault>;

/** Payments of one block are asked for together, once a pass. */
function createStandings(chain: TokenChain, signal: AbortSignal): StandingOf {
  const asked = new Map<string, Promise<Standing | Fault>>();
  return (block) => {
    const standing = asked.get(block.hash) ?? chain.standing(block, signal);
    asked.set(block.hash, standing);
    return standing;
  };
}

function isCreditedAndDue({ state, dueAt }: TokenPayment): boolean {
  return state === "credited" && dueAt !== undefined;
}

function isWaiting({ state, dueAt }: TokenPayment): boolean {
  return state !== "credited" && dueAt !== undefined;
}

function standsAlike(one: TokenPayment, other: TokenPayment): boolean {
  return one.state === other.state && one.credits === other.credits && one.block?.hash === other.block?.hash;
}

/** A payment that changed meanwhile has had its look. */
async function setDue(
  ledger: LedgerDatabase,
  payments: readonly TokenPayment[],
  dueAtOf: (payment: TokenPayment) => number | undefined,
): Promise<void> {
  if (payments.length === 0) return;
  await ledger.write(async (tx) => {
    for (const seen of payments) {
      const stored = await paymentsOf(tx, seen.token, seen.transactionId);
      const payment = stored.find((each) => each.id === seen.id && standsAlike(each, seen));
      if (payment !== undefined) await placePayment(tx, payment, payment.block, dueAtOf(payment));
    }
  });
}
