/**
 * Payments by x402 at work: quotes, settlements that requests ask for, and the watch over what they leave open.
 * @module
 */

import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { sleep } from "../../lib/stop.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";
import { createAuthorizationChain } from "../evm/authorization-chain.ts";
import type { EvmChain, EvmClient } from "../evm/evm-chain.ts";
import type { Prices } from "../prices/price-types.ts";
import { domainOf, type X402, type X402Terms } from "./x402.ts";
import { createX402Offers, createX402Quotes } from "./x402-offers.ts";
import { dueX402, removeRejectedX402, takeX402, type X402Stored } from "./x402-payment-store.ts";
import type { Settler } from "./x402-settlers.ts";
import { createX402Following, type FollowX402, openX402Settling, type Patience } from "./x402-settling.ts";
import { inHandMs } from "./x402-steps.ts";

/** x402, open. */
export type OpenX402 = X402 &
  Readonly<{
    /** Why payments cannot be followed; undefined when they can. */
    fault: () => string | undefined;
    /** Follows what is due now, beside the watch's own pace. @throws Failure of the ledger. */
    look: (signal: AbortSignal) => Promise<void>;
    close: () => Promise<void>;
  }>;

export type X402Options = Readonly<{
  terms: X402Terms;
  ledger: LedgerDatabase;
  prices: Pick<Prices, "bytes" | "token" | "tokenFor">;
  /** The chain of the terms. */
  client: Pick<EvmClient, "ask" | "call">;
  evm: Pick<EvmChain, "receipt">;
  settle: Settler;
  /** Confirmations from which on the chain never goes back. */
  finalConfirmations: number;
  /** Blocked payers, canonical addresses. */
  excluded: ReadonlySet<string>;
  clock: Clock;
  makeId: MakeId;
  log: Log;
  patience?: Patience;
  /** Between two looks of the watch. Milliseconds. */
  watchMs?: number;
  /** Longest wait of a request for its payment. Milliseconds. */
  responseMs?: number;
}>;

const watchMsDefault = 2_000;

/** A price is held a little longer than a payment for it may take. Milliseconds. */
const heldSlackMs = 30_000;

/** Opens x402 payments. The caller closes the clients that it passed. */
export function openX402(options: X402Options): OpenX402 {
  const { terms, ledger, clock, log } = options;
  const chain = createAuthorizationChain({ ...options, domain: domainOf(terms) });
  const quotes = createX402Quotes({
    prices: options.prices,
    token: terms.network.asset.token,
    heldMs: terms.timeoutSeconds * 1_000 + heldSlackMs,
    clock,
  });
  const follow = createX402Following({ ...options, chain });
  const offer = createX402Offers({ ...options, quotes, chain });
  const settling = openX402Settling({ ...options, offer, follow });
  const watch = runX402Watch({ terms, ledger, follow, clock, log }, options.watchMs ?? watchMsDefault);
  return {
    terms,
    quote: quotes.quote,
    settle: settling.settle,
    fault: watch.fault,
    look: watch.look,
    close: async () => {
      await Promise.all([settling.close(), watch.close()]);
    },
  };
}

// The watch over payments by x402: brings to an end what requests have left open, and looks after those that are
// settled until their blocks are final.
//
// A disconnected request, a killed process, a facilitator that does not respond: each leaves a row that is
// due. Pauses grow with its age.
// Source: docs/reference/payment.md#x402; docs/reference/threats.md (L4).

type X402WatchOptions = Readonly<{
  /** Whose chain is asked: payments of other terms wait for them. */
  terms: X402Terms;
  ledger: LedgerDatabase;
  follow: FollowX402;
  clock: Clock;
  log: Log;
}>;

/** A watch whose caller starts each round. */
type X402Watch = Readonly<{
  /** Follows what is due. Nothing that happens to one payment ends it. @throws Failure of the ledger. */
  look: (signal: AbortSignal) => Promise<void>;
  /** Why payments of the last look could not be followed; undefined when all could. */
  fault: () => string | undefined;
}>;

/** A watch at work. */
type RunningX402Watch = X402Watch & Readonly<{ close: () => Promise<void> }>;

/** Payments followed in one look, and of these at once: each may wait for a facilitator. */
const followedPerLook = 100;
const followedAtOnce = 10;

/** Rejected payments are stored for this time. Milliseconds. */
const rejectedStoredMs = 7 * 86_400_000;
const removedPerLook = 100;
const removeEveryMs = 3_600_000;

function createX402Watch({ terms, ledger, follow, clock, log }: X402WatchOptions): X402Watch {
  const { name: network, asset } = terms.network;
  const whose = { network, asset: asset.address };
  let fault: string | undefined;
  let removedAt: number | undefined;

  /** @returns Why it could not be followed. */
  async function followOne(payment: X402Stored, signal: AbortSignal): Promise<string | undefined> {
    try {
      const taken = await ledger.write((tx) => takeX402(tx, payment, clock() + inHandMs));
      return taken ? await follow(payment, signal) : undefined;
    } catch (error) {
      signal.throwIfAborted();
      const isExpected = error instanceof Failure;
      if (isExpected) log.warn("an x402 payment cannot be followed", { payment: payment.id, error });
      else log.error("defect in following an x402 payment", { payment: payment.id, error });
      return isExpected ? error.message : "a defect";
    }
  }

  async function removeSome(): Promise<void> {
    const now = clock();
    if (removedAt !== undefined && now - removedAt < removeEveryMs) return;
    const removed = await ledger.write((tx) => removeRejectedX402(tx, now - rejectedStoredMs, removedPerLook));
    if (removed < removedPerLook) removedAt = now;
  }

  return {
    fault: () => fault,
    look: async (signal) => {
      const due = await ledger.read((tx) => dueX402(tx, whose, clock(), followedPerLook));
      let found: string | undefined;
      for (let first = 0; first < due.length; first += followedAtOnce) {
        const some = due.slice(first, first + followedAtOnce);
        const reasons = await Promise.all(some.map((payment) => followOne(payment, signal)));
        found ??= reasons.find((reason) => reason !== undefined);
      }
      if (due.length > 0 && found !== undefined) log.warn("x402 payments are in trouble", { reason: found });
      fault = found ?? (due.length > 0 ? undefined : fault);
      await removeSome();
    },
  };
}

/** Looks again and again. @param pauseMs - Between two looks. */
function runX402Watch(options: X402WatchOptions, pauseMs: number): RunningX402Watch {
  const watch = createX402Watch(options);
  const life = new AbortController();
  const lookOrSay = async (): Promise<void> => {
    try {
      await watch.look(life.signal);
    } catch (error) {
      if (!life.signal.aborted) options.log.warn("the watch over x402 payments was interrupted", { error });
    }
  };
  const isRested = (): Promise<boolean> =>
    sleep(pauseMs, life.signal).then(
      () => true,
      () => false, // closed
    );
  const run = async (): Promise<void> => {
    do await lookOrSay();
    while (await isRested());
  };
  const running = run();
  return {
    ...watch,
    close: async () => {
      life.abort(new DOMException("the watch was closed", "AbortError"));
      await running;
    },
  };
}
