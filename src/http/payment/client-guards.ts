/**
 * Limits on attempts of a client that cost the service more than a response: guesses of promo codes, reports of
 * payments that do not exist, and sessions at the card provider.
 *
 * They apply whether other rate limits are on or not (`ENABLE_RATE_LIMITER`). A client is an address block.
 * Source: docs/reference/threats.md (L5).
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { createTokenBuckets } from "../../lib/token-buckets.ts";
import { addressBlock } from "../client-address.ts";
import { contextOf } from "../request-context.ts";

/** Limits the failed attempts of each client. */
export type FailedAttemptGuard = Readonly<{
  /**
   * Runs `work`, and counts it if it fails in the way that the guard limits.
   * @throws Failure `too_many_requests` when the client has no attempt left; what `work` throws.
   */
  guarded: <Result>(request: Request, work: () => Promise<Result>) => Promise<Result>;
}>;

/** Limits the payment sessions that each client opens. */
export type SessionGuard = Readonly<{
  /** Counts a session that is about to be opened. @throws Failure `too_many_requests` when none is left. */
  admit: (request: Request) => void;
}>;

/** Attempts of one client: at once, and later. */
type AttemptLimit = Readonly<{ capacity: number; refillPerSecond: number }>;

/** Enough for typing errors. Of a million codes, a client tries two thousand in ten hours. */
const promoLimit: AttemptLimit = { capacity: 20, refillPerSecond: 1 / 20 };

/** A shop's server may report payments of its customers before the chain has them. */
const reportLimit: AttemptLimit = { capacity: 100, refillPerSecond: 1 };

/** A shop's server opens sessions for all its customers. One client has at most about 2,400 open sessions. */
const sessionLimit: AttemptLimit = { capacity: 300, refillPerSecond: 1 };

/** Clients that are remembered, about 10 MiB. */
const clientsMax = 100_000;

/** Counts uses of promo codes that do not exist. @param seed - Secret. */
export function createPromoGuard(clock: Clock, seed: number): FailedAttemptGuard {
  const attempts = createAttempts(promoLimit, clock, seed);
  return {
    guarded: async (request, work) => {
      const client = attempts.check(request);
      try {
        return await work();
      } catch (error) {
        if (error instanceof Failure && error.context["isUnknownCode"] === true) attempts.count(client);
        throw error;
      }
    },
  };
}

/** Failures of reports that cost as much as that of a payment, and leave nothing. */
const countedReports: ReadonlySet<string> = new Set(["transaction_not_found", "payment_rejected"]);

/**
 * Counts reports of payments that do not exist, or are none: each costs requests to a server of the chain. A report
 * counts while it is processed, and still when its client has left: else many at the same time would have no limit.
 * @param seed - Secret.
 */
export function createReportGuard(clock: Clock, seed: number): FailedAttemptGuard {
  const attempts = createAttempts(reportLimit, clock, seed);
  return {
    guarded: async (request, work) => {
      const client = attempts.check(request);
      attempts.count(client);
      let isCounted = false;
      try {
        return await work();
      } catch (error) {
        isCounted = request.signal.aborted || (error instanceof Failure && countedReports.has(error.code));
        throw error;
      } finally {
        if (!isCounted) attempts.giveBack(client);
      }
    },
  };
}

/**
 * Counts sessions: each is a row in the ledger and a call of the card provider, and needs no login.
 * @param seed - Secret.
 */
export function createSessionGuard(clock: Clock, seed: number): SessionGuard {
  const attempts = createAttempts(sessionLimit, clock, seed);
  return { admit: (request) => attempts.count(attempts.check(request)) };
}

function createAttempts(limit: AttemptLimit, clock: Clock, seed: number) {
  const buckets = createTokenBuckets({ ...limit, countMax: clientsMax, seed, clock });
  return {
    /** @returns The client. @throws Failure `too_many_requests` when it has no attempt left. */
    check: (request: Request): string => {
      const client = addressBlock(contextOf(request).clientAddress());
      if (buckets.waitMs(client) > 0) throw new Failure("too_many_requests", { client });
      return client;
    },
    count: (client: string): void => buckets.take(client, 1),
    giveBack: (client: string): void => buckets.give(client, 1),
  };
}
