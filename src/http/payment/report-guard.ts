/**
 * A brake on reports of payments that nobody made: each is some questions to a server of the chain, which operators pay
 * for, and a wait of a second.
 *
 * It holds whether clients have limits otherwise or not (`ENABLE_RATE_LIMITER`). Reports of payments that there are
 * cost nothing, however often they come.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { createTokenBuckets } from "../../lib/token-buckets.ts";
import { addressBlock } from "../client-address.ts";
import { contextOf } from "../request-context.ts";

/** Holds clients to their reports in vain. */
export type ReportGuard = Readonly<{
  /**
   * Does work that looks a payment up.
   * @throws Failure `too_many_requests` where the client has reported too much in vain; what the work throws.
   */
  guarded: <Result>(request: Request, work: () => Promise<Result>) => Promise<Result>;
}>;

/** A shop's server that reports what its customers have just sent may be early with some. */
const vainAtOnce = 100;
const vainPerSecond = 1;

/** Clients that are remembered, about 10 MiB. */
const clientsMax = 100_000;

/** Creates a guard. @param seed - Nobody outside knows it. */
export function createReportGuard(clock: Clock, seed: number): ReportGuard {
  const vain = createTokenBuckets({
    capacity: vainAtOnce,
    refillPerSecond: vainPerSecond,
    countMax: clientsMax,
    seed,
    clock,
  });
  return {
    guarded: async (request, work) => {
      const client = addressBlock(contextOf(request).clientAddress());
      if (vain.waitMs(client) > 0) throw new Failure("too_many_requests", { client });
      try {
        return await work();
      } catch (error) {
        if (error instanceof Failure && error.code === "transaction_not_found") vain.take(client, 1);
        throw error;
      }
    },
  };
}
