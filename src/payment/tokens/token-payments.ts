/**
 * Payments in tokens: reported by their payers or found on the chain, priced when first seen, credited when confirmed,
 * reversed after a reorg.
 *
 * The chain is read first, then one transaction of the ledger decides by the stored rows. Any number of concurrent
 * requests and processes credits a payment once.
 * Source: docs/reference/payment.md#token-payments.
 * @module
 */
import { LRUCache } from "lru-cache";
import { Failure, type FailureCode } from "../../failures.ts";
import { entryLimit } from "../../lib/entry-limit.ts";
import { type Fault, fault } from "../../lib/http-client.ts";
import { type RetryPlan, retry } from "../../lib/retry.ts";
import { createSingleFlight } from "../../lib/single-flight.ts";
import { chainOf, readTransactionId, type Token } from "../addresses.ts";
import type { Prices } from "../prices/price-types.ts";
import type { Observation, TokenChain } from "./token-chain.ts";
import { knownTransactions, markOf, notFoundReason, paymentsOf, type TokenPayment } from "./token-payment-store.ts";
import {
  createFollowing,
  createOffering,
  createSettling,
  earlyRejection,
  type Follow,
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
   *   `sender_excluded`; `transaction_fault` when the chain, the prices or the ledger is unreachable.
   */
  submit: (token: Token, text: string, signal: AbortSignal) => Promise<Submitted>;
  /**
   * Processes transactions that were found on the chain; transactions without a creditable payment are skipped.
   *
   * @returns A temporary fault: then some transactions were not processed. A transaction that the chain does not show
   *   is skipped after an hour.
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

/** Permanent faults: the transaction is skipped, because it would block the scan for ever. */
const lastingFaults: ReadonlySet<Fault["reason"]> = new Set(["malformed", "too_large"]);

/** Failures caused by the report; all others are faults of the gateway. */
const reportFailures: ReadonlySet<FailureCode> = new Set([
  "token_not_supported",
  "transaction_not_found",
  "payment_rejected",
  "sender_excluded",
]);

export function createTokenPayments(options: TokenPaymentsOptions): TokenPayments {
  const { ledger, chains, random, log } = options;
  const settle = createSettling(options, createOffering(options));
  const flights = createSingleFlight<Submitted>();
  const unshown = createUnshown(options);
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
    if (first === undefined && isEarly(chain, observation, mark)) throw earlyRejection(id);
    const { payments, rejection } = await settle(chain, id, { observation, isReplaced: false }, signal);
    const [payment] = payments;
    if (payment === undefined) throw rejection ?? rejectionOf(id, observation);
    return { payment, isKnown: first?.state === payment.state };
  }

  /** @returns A temporary fault; `unshown`: the scan must find the transaction again. */
  async function takeOne(chain: TokenChain, id: string, signal: AbortSignal): Promise<Fault | "unshown" | undefined> {
    const observation = await chain.look(id, signal);
    if (observation.kind !== "fault") {
      const settled = await settle(chain, id, { observation, isReplaced: false }, signal);
      return unshown.isAwaited(`${chain.token}:${id}`, observation, settled) ? "unshown" : undefined;
    }
    if (!lastingFaults.has(observation.reason)) return observation;
    log.error("token payment cannot be read", { id, ...observation });
    return undefined;
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
      const known = await ledger.read((tx) => knownTransactions(tx, chain.token, ids));
      let waiting: Fault | undefined;
      for (const id of ids) {
        const taken = known.has(id) ? undefined : await takeOne(chain, id, signal);
        // The other payments do not wait for a server that is behind.
        if (taken === "unshown") waiting ??= fault("wrong", `the server listed ${id}, and does not show it`);
        else if (taken !== undefined) return taken;
      }
      return waiting;
    },
    follow: createFollowing(options, settle),
  };
}

/** Time in which the servers of a chain show a transaction that one of them has listed. Milliseconds. */
const unshownMsMax = 60 * 60_000;

/** Unshown transactions whose time is known; a step of a scan finds a few at once. */
const unshownMax = 10_000;

/**
 * Found transactions that the next of several servers does not show yet: without a wait, the scan would pass their
 * payments for good. The wait has a limit, because a transaction that no server shows would block the scan for ever.
 */
function createUnshown({ clock, log }: Pick<TokenPaymentsOptions, "clock" | "log">) {
  const since = new LRUCache<string, number>(entryLimit(unshownMax));
  return {
    /** Whether the scan must find the transaction again. @param key - Of the transaction and its token. */
    isAwaited: (key: string, { kind }: Observation, { payments, rejection }: Settled): boolean => {
      const isFollowed = payments.some(({ dueAt }) => dueAt !== undefined);
      if (kind === "mined" || isFollowed || rejection !== undefined) {
        since.delete(key);
        return false;
      }
      const at = since.get(key) ?? clock();
      since.set(key, at);
      const isAwaited = clock() - at <= unshownMsMax;
      if (!isAwaited) log.error("token payment cannot be read", { id: key, detail: "no server shows it" });
      return isAwaited;
    },
  };
}

/** Whether a check of the chain can change the payment's state; the watcher follows credited payments. */
function isOpen({ state, failureReason }: TokenPayment): boolean {
  if (state === "failed") return failureReason === notFoundReason;
  return state === "pending" || state === "reversed";
}

/**
 * Whether a transaction is below the height at which the watch over the address began: earlier payments to the address
 * had another purpose. Blocks that a reorg may still replace count as later blocks.
 */
function isEarly(chain: TokenChain, observation: Observation, mark: string | undefined): boolean {
  const begin = mark === undefined ? undefined : chain.beginsAt(mark);
  return observation.kind === "mined" && begin !== undefined && observation.block.height < begin - chain.confirmations;
}

function rejectionOf(id: string, observation: Observation): Failure {
  if (observation.kind === "absent") return new Failure("transaction_not_found", { id });
  return observation.transfers === undefined ? unminedRejection(id) : strayRejection(id, observation.outline);
}
