/**
 * Payments in tokens: reported by their payers or found on the chain, priced when first seen, credited when confirmed,
 * reversed after a reorg.
 *
 * The chain is read first, then one transaction of the ledger decides by the stored rows. Any number of concurrent
 * requests and processes credits a payment once.
 * Source: docs/reference/payment.md#token-payments.
 * @module
 */
import { Failure, type FailureCode } from "../../failures.ts";
import { type Fault, fault } from "../../lib/http-client.ts";
import { type RetryPlan, retry } from "../../lib/retry.ts";
import { createSingleFlight } from "../../lib/single-flight.ts";
import { chainOf, readTransactionId, type Token } from "../addresses.ts";
import type { Prices } from "../prices/price-types.ts";
import type { MinedObservation, Observation, TokenChain } from "./token-chain.ts";
import {
  dropUnread,
  dueUnread,
  keepUnread,
  knownTransactions,
  markOf,
  notFoundReason,
  paymentsOf,
  type TokenPayment,
} from "./token-payment-store.ts";
import {
  createFollowing,
  createOffering,
  createSettling,
  earlyRejection,
  type Follow,
  nextPauseMs,
  type Settled,
  type SettlingOptions,
  strayRejection,
  unminedRejection,
} from "./token-settling.ts";

/** The result of a reported payment. */
export type Submitted = Readonly<{
  payment: TokenPayment;
  /** Whether it had this state before the report. */
  isKnown: boolean;
}>;

/** Payments in tokens. Calls that are aborted reject with the signal's reason. */
export type TokenPayments = Readonly<{
  /** The accepted tokens. */
  chains: readonly TokenChain[];
  /**
   * Processes a report of a payment: reads the chain, stores the payment, credits it when it is confirmed.
   *
   * @param text - The transaction's id in any spelling.
   * @throws Failure `token_not_supported`, `transaction_not_found`, `payment_rejected` with its reason,
   *   `sender_excluded`; `transaction_fault` when the chain, the prices or the ledger is unreachable, or
   *   when the watch over the address has not begun.
   */
  submit: (token: Token, text: string, signal: AbortSignal) => Promise<Submitted>;
  /**
   * Processes transactions that were found on the chain; transactions without a creditable payment are skipped. A
   * transaction that the server cannot give is stored, and tried again by later calls for 30 days.
   *
   * @returns A fault of the server: then some transactions were neither processed nor stored.
   * @throws Failure of the prices or the ledger.
   */
  take: (chain: TokenChain, ids: readonly string[], signal: AbortSignal) => Promise<Fault | undefined>;
  follow: Follow;
}>;

type TokenPaymentsOptions = SettlingOptions &
  Readonly<{
    prices: Pick<Prices, "token">;
    chains: readonly TokenChain[];
    /** Addresses whose payments are rejected, canonical. */
    excluded: ReadonlySet<string>;
    random: () => number;
    /** Retries for a transaction that no server has seen yet. */
    firstObservation?: RetryPlan;
  }>;

/** A report arrives moments after the payment; its propagation between nodes takes a little longer. */
const firstObservationDefault: RetryPlan = { attempts: 3, firstMs: 400, longestMs: 800 };

/** Faults that may concern one transaction alone, which must not hold up the scan. */
const faultsOfTransactions: ReadonlySet<Fault["reason"]> = new Set(["status", "malformed", "too_large"]);

/** Unread transactions that one step tries again. */
const unreadPerStep = 20;

/** Time after which an unread transaction is given up; a report of its payer is still credited. Milliseconds. */
const unreadMsMax = 30 * 24 * 60 * 60_000;

/** Failures caused by the report; all others are faults of the gateway. */
const reportFailures: ReadonlySet<FailureCode> = new Set([
  "token_not_supported",
  "transaction_not_found",
  "payment_rejected",
  "sender_excluded",
]);

export function createTokenPayments(options: TokenPaymentsOptions): TokenPayments {
  const { ledger, chains, clock, random, lookAgainMs, log } = options;
  const settle = createSettling(options, createOffering(options));
  const flights = createSingleFlight<Submitted>();
  const firstObservation = options.firstObservation ?? firstObservationDefault;

  async function submit(chain: TokenChain, id: string, signal: AbortSignal): Promise<Submitted> {
    const { known, mark } = await ledger.read(async (tx) => ({
      known: await paymentsOf(tx, chain.token, id),
      mark: await markOf(tx, chain.token, chain.address),
    }));
    const [first] = known;
    if (first !== undefined && !known.some(isOpen)) {
      await ledger.confirmed(); // the response says that it was credited
      return { payment: first, isKnown: true };
    }
    const observation = await retry(
      firstObservation,
      signal,
      random,
      () => chain.look(id, signal),
      ({ kind }) => kind !== "absent" || first !== undefined,
    );
    if (observation.kind === "fault") throw new Failure("transaction_fault", { ...observation, token: chain.token });
    if (first === undefined && observation.kind === "mined") checkNotEarly(chain, id, observation, mark);
    const { payments, rejection } = await settle(chain, id, { observation, isReplaced: false }, signal);
    const [payment] = payments;
    if (payment === undefined) throw rejection ?? rejectionOf(id, observation);
    return { payment, isKnown: first?.state === payment.state };
  }

  /** Processes a found transaction. @returns Why it has to be read again. */
  async function takeOne(chain: TokenChain, id: string, signal: AbortSignal): Promise<Fault | undefined> {
    const observation = await chain.look(id, signal);
    if (observation.kind === "fault") return observation;
    const settled = await settle(chain, id, { observation, isReplaced: false }, signal);
    return isShown(observation, settled) ? undefined : fault("status", "the server listed it, and does not show it");
  }

  /** Tries again to read due transactions, until the server is out of reach. */
  async function takeUnread(chain: TokenChain, signal: AbortSignal): Promise<void> {
    for (const { id, since } of await ledger.read((tx) => dueUnread(tx, chain, clock(), unreadPerStep))) {
      const problem = await takeOne(chain, id, signal);
      const now = clock();
      const dueAt = now + nextPauseMs(now - since, lookAgainMs);
      const isGivenUp = problem !== undefined && isOfTransaction(problem) && now - since > unreadMsMax;
      if (isGivenUp) log.error("token payment could not be read for 30 days", { id, token: chain.token, ...problem });
      if (problem === undefined || isGivenUp) await ledger.write((tx) => dropUnread(tx, chain, id));
      else await ledger.write((tx) => keepUnread(tx, chain, { id, since, dueAt }));
      if (problem !== undefined && !isOfTransaction(problem)) return;
    }
  }

  return {
    chains,
    submit: async (token, text, signal) => {
      const chain = chains.find((each) => each.token === token);
      if (chain === undefined) throw new Failure("token_not_supported", { token });
      const id = readTransactionId(text, chainOf(token));
      if (id === undefined) throw new Failure("transaction_not_found", { token });
      try {
        return await flights.run(`${token}:${id}`, signal, (own) => submit(chain, id, own));
      } catch (error) {
        if (!(error instanceof Failure) || reportFailures.has(error.code)) throw error;
        throw new Failure("transaction_fault", { ...error.context, token, id }, error);
      }
    },
    take: async (chain, ids, signal) => {
      const known = await ledger.read((tx) => knownTransactions(tx, chain, ids));
      for (const id of ids) {
        const problem = known.has(id) ? undefined : await takeOne(chain, id, signal);
        if (problem === undefined) continue;
        if (!isOfTransaction(problem)) return problem;
        const unread = { id, since: clock(), dueAt: clock() + lookAgainMs };
        if (!(await ledger.write((tx) => keepUnread(tx, chain, unread)))) return problem;
        log.warn("token payment cannot be read; it is tried again", { id, token: chain.token, ...problem });
      }
      await takeUnread(chain, signal);
      return undefined;
    },
    follow: createFollowing(options, settle),
  };
}

function isOfTransaction({ reason }: Fault): boolean {
  return faultsOfTransactions.has(reason);
}

/**
 * Whether the chain shows what a found transaction pays: the next of several servers may be behind the one that listed
 * it.
 */
function isShown({ kind }: Observation, { payments, rejection }: Settled): boolean {
  return kind === "mined" || rejection !== undefined || payments.some(({ dueAt }) => dueAt !== undefined);
}

/** Whether a check of the chain can change the payment's state; the watcher follows credited payments. */
function isOpen({ state, failureReason }: TokenPayment): boolean {
  if (state === "failed") return failureReason === notFoundReason;
  return state === "pending" || state === "reversed";
}

/**
 * Rejects a transaction below the height at which the watch over the address began: earlier payments to the address had
 * another purpose. Blocks that a reorg may still replace count as later blocks. Before the watch began, nothing shows
 * whether a payment in a block is earlier.
 */
function checkNotEarly(chain: TokenChain, id: string, { block }: MinedObservation, mark: string | undefined): void {
  const begin = mark === undefined ? undefined : chain.beginsAt(mark);
  if (begin === undefined)
    throw new Failure("transaction_fault", { reason: "the watch over the address has not begun" });
  if (block.height < begin - chain.confirmations) throw earlyRejection(id);
}

function rejectionOf(id: string, observation: Observation): Failure {
  if (observation.kind === "absent") return new Failure("transaction_not_found", { id });
  return observation.transfers === undefined ? unminedRejection(id) : strayRejection(id, observation.outline);
}
