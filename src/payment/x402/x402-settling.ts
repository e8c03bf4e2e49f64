/**
 * Settling a payment for a request: checked by its own words, tried on the chain as if, stored, carried out, credited.
 *
 * The row is the line before which nothing moves and after which nothing is forgotten: a request that gives up, or
 * whose process ends, leaves it to the watch.
 * Source: docs/reference/payment.md#x402.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { createSemaphore } from "../../lib/semaphore.ts";
import { ignoreRejection, sleep, untilStopped, withDeadline } from "../../lib/stop.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";
import type { AuthorizationChain, AuthorizationStatus } from "../evm/authorization-chain.ts";
import type { EvmClient } from "../evm/evm-chain.ts";
import type { Asked } from "../evm/json-rpc.ts";
import { isSignedByWallet } from "../evm/wallet-signature.ts";
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
import { type OfferX402, x402Rejection } from "./x402-offers.ts";
import { findX402, keepX402, type X402Stored, x402IdOf } from "./x402-payment-store.ts";
import type { Settler } from "./x402-settlers.ts";
import { createStepWriter, inHandMs, rejectedStep, type StepWriterOptions, stepOf } from "./x402-steps.ts";

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

/** Settling, open. */
type X402Settling = Readonly<{
  settle: X402["settle"];
  /** Ends what is under way, and waits for it; the ledger knows the rest. */
  close: () => Promise<void>;
}>;

/** A facilitator's time-out and the patience after it; below the silence after which connections are closed. */
const responseMsDefault = 45_000;

/** Payments under way at once: each holds a connection to the chain or the facilitator. */
const underWayMax = 256;

/** Signatures that are checked at once: one of a wallet is a call of the chain. */
const checksMax = 16;
const checksWaitingMax = 256;

export function openX402Settling(options: X402SettlingOptions): X402Settling {
  const { terms, ledger, offer, follow, clock, log } = options;
  const responseMs = options.responseMs ?? responseMsDefault;
  const life = new AbortController();
  const underWay = new Set<Promise<void>>();
  const checks = createSemaphore(checksMax, checksWaitingMax);

  /** Follows a payment whether its request waits or not. */
  function begin(payment: X402Stored): Promise<void> {
    const work = follow(payment, life.signal).then(
      (reason) => {
        if (reason !== undefined) log.warn("an x402 payment waits", { payment: payment.id, reason });
      },
      (error: unknown) => {
        // The watch takes it up; whether that is a defect or the ledger's trouble, the money is accounted for there.
        if (!life.signal.aborted) log.error("an x402 payment was left to the watch", { payment: payment.id, error });
      },
    );
    underWay.add(work);
    ignoreRejection(work.finally(() => underWay.delete(work)));
    return work;
  }

  /** @throws Failure `invalid_signature`; `settlement_unknown` when the payer's wallet cannot be asked; `busy`. */
  async function checkSignature(payment: X402Payment, signal: AbortSignal): Promise<void> {
    if (isSignedByKey(terms, payment)) return;
    const invalid = new Failure("invalid_signature", { payer: payment.authorization.from });
    // The chain is not asked about a payment that is rejected whoever has signed it.
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
      const time = { now, dueAt: now + inHandMs, makeId: options.makeId };
      return [await keepX402(tx, offered, time), await findX402(tx, id)] as const;
    });
    assert(stored !== undefined, "what was just stored is there");
    if (!isNew) return responseOf(stored, request, true);
    const work = begin(stored);
    await waitFor(work, signal);
    const after = await ledger.read((tx) => findX402(tx, id));
    return responseOf(after ?? stored, request, false);
  }

  /** Waits for as long as a request may; what is not done by then goes on without it. */
  async function waitFor(work: Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await withDeadline(signal, responseMs, (own) => untilStopped(work, own));
    } catch {
      // The time is up: the ledger says how far it is. A disconnected client gets nothing either way.
      signal.throwIfAborted();
    }
  }

  return {
    settle: async (request, signal) => {
      const { payment } = request;
      const id = x402IdOf(terms.network.name, terms.network.asset.address, payment.authorization);
      const stored = await ledger.read((tx) => findX402(tx, id));
      // What was stored was checked: then the chain need not be asked.
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
  // A payment seen on the chain can be sent again by anyone, but not for another purpose.
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
      assert(transaction !== undefined && balance !== undefined, "what is settled has its transaction");
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

// Following a payment to its end: client the chain, carrying the authorization out, crediting the payer.
//
// A follower decides by the ledger's row within the transaction that changes it, so several may run: two
// requests, the loop, another process. What a facilitator says is a hint; what the chain says counts.

type FollowingOptions = StepWriterOptions &
  Readonly<{
    chain: Pick<AuthorizationChain, "look">;
    settle: Settler;
    /** From here on the chain never goes back. */
    finalConfirmations: number;
    patience?: Patience;
  }>;

/** Waits for a payment on its way. Milliseconds. */
export type Patience = Readonly<{
  /** When it is said to be sent. */
  sentMs: number;
  /** When its outcome is unknown. */
  unknownMs: number;
  /** Between two questions to the chain. */
  pauseMs: number;
}>;

/**
 * Follows a payment that its caller has taken (`takeX402`) or just stored: asks the chain, does what is to be done, and
 * notes when it is to be looked at again.
 *
 * @returns Why it could not be brought on; `undefined` when it was, or has to wait.
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

  /** Its status on the chain, or why the chain could not be asked: then the check is postponed. */
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
        options.log.warn("it is not known whether a payment was carried out", {
          payment: payment.id,
          reason: carried.reason,
        });
        return await waitFor(payment, carried.transaction, patience.unknownMs, signal);
    }
  }

  /** A rejection counts unless the chain, or an attempt before, says otherwise. */
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
