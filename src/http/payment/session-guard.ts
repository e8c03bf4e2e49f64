/**
 * A brake on opening payment sessions: each is a row in the ledger and a call of the card provider, and needs no login.
 *
 * It holds whether clients have limits otherwise or not (`ENABLE_RATE_LIMITER`).
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { createTokenBuckets } from "../../lib/token-buckets.ts";
import { addressBlock } from "../client-address.ts";
import { contextOf } from "../request-context.ts";

/** Holds clients to their sessions. */
export type SessionGuard = Readonly<{
  /** Counts a session that is about to be opened. @throws Failure `too_many_requests` where there were too many. */
  admit: (request: Request) => void;
}>;

/** A shop's server opens sessions for all its customers; one client has about 2,400 of them open at the most. */
const sessionsAtOnce = 300;
const sessionsPerSecond = 1;

/** Clients that are remembered, about 10 MiB. */
const clientsMax = 100_000;

/** Creates a guard. @param seed - Nobody outside knows it. */
export function createSessionGuard(clock: Clock, seed: number): SessionGuard {
  const sessions = createTokenBuckets({
    capacity: sessionsAtOnce,
    refillPerSecond: sessionsPerSecond,
    countMax: clientsMax,
    seed,
    clock,
  });
  return {
    admit: (request) => {
      const client = addressBlock(contextOf(request).clientAddress());
      if (sessions.waitMs(client) > 0) throw new Failure("too_many_requests", { client });
      sessions.take(client, 1);
    },
  };
}
