/**
 * A brake on guessing promo codes: a client that asks for codes that do not exist soon has to wait.
 *
 * Codes that exist cost nothing, and neither do prices without codes.
 * Source: docs/reference/threats.md (L5).
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import { createTokenBuckets } from "../../lib/token-buckets.ts";
import { addressBlock } from "../client-address.ts";
import { contextOf } from "../request-context.ts";

/** Holds clients to their guesses. */
export type PromoGuard = Readonly<{
  /**
   * Does work that looks codes up.
   * @throws Failure `too_many_requests` where the client has guessed too often; what the work throws.
   */
  guarded: <Result>(request: Request, work: () => Promise<Result>) => Promise<Result>;
}>;

/** Somebody who mistypes has enough of these; of a million codes a client finds out two thousand in ten hours. */
const guessesAtOnce = 20;
const guessesPerSecond = 1 / 20;

/** Clients that are remembered, about 10 MiB. */
const clientsMax = 100_000;

/** Creates a guard. @param seed - Nobody outside knows it. */
export function createPromoGuard(clock: Clock, seed: number): PromoGuard {
  const guesses = createTokenBuckets({
    capacity: guessesAtOnce,
    refillPerSecond: guessesPerSecond,
    countMax: clientsMax,
    seed,
    clock,
  });
  return {
    guarded: async (request, work) => {
      const client = addressBlock(contextOf(request).clientAddress());
      if (guesses.waitMs(client) > 0) throw new Failure("too_many_requests", { client });
      try {
        return await work();
      } catch (error) {
        if (error instanceof Failure && error.context["isUnknownCode"] === true) guesses.take(client, 1);
        throw error;
      }
    },
  };
}
