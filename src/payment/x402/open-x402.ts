/**
 * The x402 service: quotes, settlements of requests, and the watch over open payments.
 * @module
 */

import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { type BackgroundLoop, openBackgroundLoop } from "../../lib/loop.ts";
import { createSemaphore } from "../../lib/semaphore.ts";
import { ignoreRejection, sleep, untilStopped, withDeadline } from "../../lib/stop.ts";
import { type LedgerDatabase, readDurably } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";
import {
  type AuthorizationChain,
  type AuthorizationStatus,
  createAuthorizationChain,
} from "../evm/authorization-chain.ts";
import type { EvmChain, EvmClient } from "../evm/evm-chain.ts";
import type { Asked } from "../evm/json-rpc.ts";
import { isSignedByWallet } from "../evm/wallet-signature.ts";
import type { Prices } from "../prices/price-types.ts";
import {
  domainOf,
  faultOf,
  isSignedByKey,
  type X402,
  type X402Payment,
  type X402Request,
  type X402Settled,
  type X402Terms,
} from "./x402.ts";
import { createX402Offers, createX402Quotes, type OfferX402, x402Rejection } from "./x402-offers.ts";
import {
  createStepWriter,
  dueX402,
  findX402,
  keepX402,
  leaseMs,
  rejectedStep,
  removeRejectedX402,
  type StepWriterOptions,
  stepOf,
  takeX402,
  type X402Stored,
  x402IdOf,
} from "./x402-payment-store.ts";
import type { Settler } from "./x402-settlers.ts";

export type OpenX402 = X402 &
  Readonly<{
    /** Why payments cannot be followed; undefined when they can. */
    fault: () => string | undefined;
    /** Follows the due payments now, independently of the watch. @throws Failure of the ledger. */
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
  /** Confirmations at which a block is final. */
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

// The watch over payments by x402: finishes the payments that requests left open, and follows settled payments until
// their blocks are final.
//
// A disconnected request, a killed process and an unresponsive facilitator each leave a due row. Pauses grow with its
// age.
// Source: docs/reference/payment.md#x402; docs/reference/threats.md (L4).

type X402WatchOptions = Readonly<{
  /** The terms of the followed payments; payments of other terms wait. */
  terms: X402Terms;
  ledger: LedgerDatabase;
  follow: FollowX402;
  clock: Clock;
  log: Log;
}>;

/** A watch. The caller starts each look. */
type X402Watch = Readonly<{
  /** Follows the due payments. A fault of one payment does not stop the look. @throws Failure of the ledger. */
  look: (signal: AbortSignal) => Promise<void>;
  /** Why payments of the last look could not be followed; undefined when all could. */
  fault: () => string | undefined;
}>;

/** Payments of one look, and the number followed at once: each may wait for a facilitator. */
const followedPerLook = 100;
const followedAtOnce = 10;

/** Time for which rejected payments are stored. Milliseconds. */
const rejectedTtlMs = 7 * 86_400_000;
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
      const taken = await ledger.write((tx) => takeX402(tx, payment, clock() + leaseMs));
      return taken ? await follow(payment, signal) : undefined;
    } catch (error) {
      signal.throwIfAborted();
      const isExpected = error instanceof Failure;
      if (isExpected) log.warn("check of an x402 payment failed", { payment: payment.id, error });
      else log.error("defect in the check of an x402 payment", { payment: payment.id, error });
      return isExpected ? error.message : "a defect";
    }
  }

  async function removeSome(): Promise<void> {
    const now = clock();
    if (removedAt !== undefined && now - removedAt < removeEveryMs) return;
    const removed = await ledger.write((tx) => removeRejectedX402(tx, now - rejectedTtlMs, removedPerLook));
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
      if (due.length > 0 && found !== undefined) log.warn("x402 payments cannot be checked", { reason: found });
      fault = found ?? (due.length > 0 ? undefined : fault);
      await removeSome();
    },
  };
}

/** Runs the watch in the background. @param pauseMs - Pause between two looks. */
function runX402Watch(options: X402WatchOptions, pauseMs: number): X402Watch & Pick<BackgroundLoop, "close"> {
  const watch = createX402Watch(options);
  const look = async (signal: AbortSignal): Promise<number> => {
    await watch.look(signal);
    return pauseMs;
  };
  const loop = openBackgroundLoop("x402 watch", look, (error) => {
    options.log.warn("x402 watch interrupted", { error });
    return pauseMs;
  });
  return { ...watch, close: loop.close };
}

// Settling a payment for a request: validate, try on the chain, store, send, credit.
//
// The stored row separates the steps: before it no money moves, and after it the payment is never lost. A request that
// times out, or whose process ends, leaves the row to the watch.
// Source: docs/reference/payment.md#x402.

type X402SettlingOptions = Readonly<{
  terms: X402Terms;
  client: Pick<EvmClient, "call">;
  ledger: LedgerDatabase;
  offer: OfferX402;
  follow: FollowX402;
  clock: Clock;
  makeId: MakeId;
  log: Log;
  /** Longest wait of a request for its payment. Milliseconds. */
  responseMs?: number;
}>;

type X402Settling = Readonly<{
  settle: X402["settle"];
  /** Aborts the running settlements and waits for their end; the watch continues from the ledger. */
  close: () => Promise<void>;
}>;

/** A facilitator's timeout and the wait after it; below the idle timeout of connections. */
const responseMsDefault = 45_000;

/** Concurrent payments: each holds a connection to the chain or the facilitator. */
const underWayMax = 256;

/** Concurrent signature checks: a wallet's signature needs a call to the chain. */
const checksMax = 16;
const checksWaitingMax = 256;

export function openX402Settling(options: X402SettlingOptions): X402Settling {
  const { terms, ledger, offer, follow, clock, log } = options;
  const responseMs = options.responseMs ?? responseMsDefault;
  const life = new AbortController();
  const underWay = new Set<Promise<void>>();
  const checks = createSemaphore(checksMax, checksWaitingMax);

  /** Follows a payment, also after its request has ended. */
  function begin(payment: X402Stored): Promise<void> {
    const work = follow(payment, life.signal).then(
      (reason) => {
        if (reason !== undefined) log.warn("x402 payment waits", { payment: payment.id, reason });
      },
      (error: unknown) => {
        // The watch continues with the stored row, after a defect and after a fault of the ledger.
        if (!life.signal.aborted) log.error("x402 payment left to the watch", { payment: payment.id, error });
      },
    );
    underWay.add(work);
    ignoreRejection(work.finally(() => underWay.delete(work)));
    return work;
  }

  /** @throws Failure `invalid_signature`; `settlement_unknown` when the wallet's check fails; `busy`. */
  async function checkSignature(payment: X402Payment, signal: AbortSignal): Promise<void> {
    if (isSignedByKey(terms, payment)) return;
    const invalid = new Failure("invalid_signature", { payer: payment.authorization.from });
    // An otherwise invalid payment needs no call to the chain.
    if (faultOf(terms, payment, BigInt(clock()) / 1_000n) !== undefined) throw invalid;
    const waiting = checks.take(signal);
    if (waiting === undefined) throw new Failure("busy", { checks: checksWaitingMax });
    const end = await waiting;
    try {
      const isSigned = await isSignedByWallet(options.client, domainOf(terms), payment, signal);
      if (isSigned.kind === "fault") throw new Failure("settlement_unknown", { ...isSigned });
      if (!isSigned.value) throw invalid;
    } finally {
      end();
    }
  }

  async function settleNew(request: X402Request, id: string, signal: AbortSignal): Promise<X402Settled> {
    if (underWay.size >= underWayMax) throw new Failure("busy", { underWay: underWay.size });
    const offered = await offer(request, signal);
    const now = clock();
    const [isNew, stored] = await ledger.write(async (tx) => {
      const time = { now, dueAt: now + leaseMs, makeId: options.makeId };
      return [await keepX402(tx, offered, time), await findX402(tx, id)] as const;
    });
    assert(stored !== undefined, "an offer that was just written is stored");
    if (!isNew) return responseOf(stored, request, true);
    const work = begin(stored);
    await waitFor(work, signal);
    const after = await readDurably(ledger, (tx) => findX402(tx, id));
    return responseOf(after ?? stored, request, false);
  }

  /** Waits at most `responseMs`; the work continues afterwards. */
  async function waitFor(work: Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await withDeadline(signal, responseMs, (own) => untilStopped(work, own));
    } catch {
      // After a timeout the ledger has the state. A disconnected client gets no response.
      signal.throwIfAborted();
    }
  }

  return {
    settle: async (request, signal) => {
      const { payment } = request;
      const id = x402IdOf(terms.network.name, terms.network.asset.address, payment.authorization);
      const stored = await readDurably(ledger, (tx) => findX402(tx, id));
      // The signature of a stored payment is already checked.
      if (stored?.signature.toHex() !== payment.signature.toHex() || !isSame(stored, payment))
        await checkSignature(payment, signal);
      return stored === undefined ? await settleNew(request, id, signal) : responseOf(stored, request, true);
    },
    close: async () => {
      life.abort(new DOMException("x402 was closed", "AbortError"));
      await Promise.all(underWay);
    },
  };
}

/** The response to a request, from the state of its payment. */
function responseOf(stored: X402Stored, { payment, purpose }: X402Request, isReplay: boolean): X402Settled {
  // Anyone can send a payment again that is public on the chain, but not for another purpose.
  if (!isSame(stored, payment)) throw x402Rejection("the nonce was used for another payment");
  if (stored.purpose !== purpose) throw x402Rejection("the payment was made for something else");
  switch (stored.state) {
    case "seen":
    case "settling":
      throw new Failure("settlement_unknown", { payment: stored.id });
    case "rejected":
    case "reversed":
      throw x402Rejection(stored.reason ?? "");
    case "settled": {
      const { transaction, balance } = stored;
      assert(transaction !== undefined && balance !== undefined, "a settled payment has its transaction");
      return {
        payer: stored.authorization.from,
        creditedWinc: stored.winc,
        quotedWinc: stored.quotedWinc,
        paid: stored.authorization.value,
        balance,
        transaction,
        isReplay,
      };
    }
  }
}

function isSame({ authorization: stored }: X402Stored, { authorization: sent }: X402Payment): boolean {
  return (
    stored.to === sent.to &&
    stored.value === sent.value &&
    stored.validAfter === sent.validAfter &&
    stored.validBefore === sent.validBefore
  );
}

// Following a payment to its end: read the chain, send the authorization, credit the payer.
//
// A follower decides by the ledger's row within the transaction that changes the row, so several may run at once: two
// requests, the watch, another process. A facilitator's response is a hint; only the chain is trusted.

type FollowingOptions = StepWriterOptions &
  Readonly<{
    chain: Pick<AuthorizationChain, "look">;
    settle: Settler;
    /** Confirmations at which a block is final. */
    finalConfirmations: number;
    patience?: Patience;
  }>;

/** Waits for a sent payment. Milliseconds. */
export type Patience = Readonly<{
  /** After a confirmed sending. */
  sentMs: number;
  /** After an unknown outcome. */
  unknownMs: number;
  /** Between two requests to the chain. */
  pauseMs: number;
}>;

/**
 * Follows a payment that the caller has leased (`takeX402`) or just stored: reads the chain, takes the next step, and
 * sets the time of the next check.
 *
 * @returns Why no step was possible; `undefined` after a step or while the payment waits.
 * @throws Failure of the ledger; the signal's reason.
 */
export type FollowX402 = (payment: X402Stored, signal: AbortSignal) => Promise<string | undefined>;

const patienceDefault: Patience = { sentMs: 12_000, unknownMs: 3_000, pauseMs: 250 };

export function createX402Following(options: FollowingOptions): FollowX402 {
  const { chain } = options;
  const { take, putOff, begin } = createStepWriter(options);
  const patience = options.patience ?? patienceDefault;

  const look = (
    { authorization, fromHeight }: X402Stored,
    transaction: string | undefined,
    signal: AbortSignal,
  ): Promise<Asked<AuthorizationStatus>> => chain.look(authorization, { transaction, fromHeight }, signal);

  const byChain = (status: AuthorizationStatus) => (stored: X402Stored) =>
    stepOf(stored, status, options.finalConfirmations);

  /** Its status on the chain, or the fault of the request: then the check is postponed. */
  async function statusOf(payment: X402Stored, signal: AbortSignal) {
    const status = await look(payment, payment.transaction, signal);
    if (status.kind === "ok") return status.value;
    await putOff(payment);
    return status.detail;
  }

  async function send(payment: X402Stored, signal: AbortSignal): Promise<string | undefined> {
    const carried = await options.settle(payment, (transaction) => begin(payment, transaction), signal);
    switch (carried.kind) {
      case "withheld":
        return undefined;
      case "untried":
        await putOff(payment);
        return carried.reason;
      case "rejected":
        return await rejected(payment, carried.reason, signal);
      case "sent":
        return await waitFor(payment, carried.transaction, patience.sentMs, signal);
      case "unknown":
        options.log.warn("outcome of an x402 payment unknown", { payment: payment.id, reason: carried.reason });
        return await waitFor(payment, carried.transaction, patience.unknownMs, signal);
    }
  }

  /** Records a rejection, unless the chain or an earlier attempt contradicts it. */
  async function rejected(payment: X402Stored, reason: string, signal: AbortSignal): Promise<string | undefined> {
    const status = await statusOf(payment, signal);
    if (typeof status === "string") return status;
    const decide = byChain(status);
    await take(payment, (stored) => rejectedStep(stored, decide(stored), reason, payment.attempts));
    return undefined;
  }

  async function waitFor(
    payment: X402Stored,
    transaction: string | undefined,
    ms: number,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const until = performance.now() + ms;
    for (;;) {
      const status = await look(payment, transaction, signal);
      if (status.kind === "ok" && status.value.kind !== "unused") {
        await take(payment, byChain(status.value));
        return undefined;
      }
      if (performance.now() >= until) {
        await putOff(payment, transaction);
        return status.kind === "fault" ? status.detail : undefined;
      }
      await sleep(patience.pauseMs, signal);
    }
  }

  return async (payment, signal) => {
    const status = await statusOf(payment, signal);
    if (typeof status === "string") return status;
    const step = await take(payment, byChain(status));
    return step.kind === "send" ? await send(payment, signal) : undefined;
  };
}
