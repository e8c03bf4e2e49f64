/**
 * The watch over payments by x402: finishes the payments that requests left open, and follows settled payments until
 * their blocks are final.
 *
 * A disconnected request, a killed process and an unresponsive facilitator each leave a due row. Pauses grow with its
 * age.
 * Source: docs/reference/payment.md#x402; docs/reference/threats.md (L4).
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../lib/log.ts";
import { type BackgroundLoop, openBackgroundLoop } from "../../lib/loop.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import type { X402Terms } from "./x402.ts";
import type { FollowX402 } from "./x402-following.ts";
import { dueX402, leaseMs, removeRejectedX402, takeX402, type X402Stored } from "./x402-payment-store.ts";

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
export function runX402Watch(options: X402WatchOptions, pauseMs: number): X402Watch & Pick<BackgroundLoop, "close"> {
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
