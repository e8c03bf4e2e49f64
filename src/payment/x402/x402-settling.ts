/**
 * Settling a payment for a request: validate, try on the chain, store, send, credit.
 *
 * The stored row separates the steps: before it no money moves, and after it the payment is never lost. A request that
 * times out, or whose process ends, leaves the row to the watch.
 * Source: docs/reference/payment.md#x402.
 * @module
 */
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { createSemaphore } from "../../lib/semaphore.ts";
import { ignoreRejection, untilStopped, withDeadline } from "../../lib/stop.ts";
import { type LedgerDatabase, readDurably } from "../../store/ledger/ledger-database.ts";
import type { MakeId } from "../../store/ledger/transfers.ts";
import type { EvmClient } from "../evm/evm-chain.ts";
import { isSignedByWallet } from "../evm/wallet-signature.ts";
import type { X402, X402Request, X402Settled, X402Terms } from "./x402.ts";
import type { FollowX402 } from "./x402-following.ts";
import { type OfferX402, x402Rejection } from "./x402-offers.ts";
import type { X402Payment } from "./x402-payment-reader.ts";
import { findX402, keepX402, leaseMs, type X402Stored, x402IdOf } from "./x402-payment-store.ts";
import { domainOf, faultOf, isSignedByKey } from "./x402-validation.ts";

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
