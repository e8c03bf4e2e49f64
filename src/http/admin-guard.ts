/**
 * The bearer key of administration. Keys are compared as hashes in constant time, and guessing slows down by
 * address.
 *
 * A wrong key is answered late, and later with each one; while such answers are due to an address, no further
 * key of it is looked at beyond what the waits allow, so that guessing in parallel gains nothing. A right key
 * waits for nothing.
 * Source: docs/reference/gateway.md#administration; docs/reference/threats.md (S2).
 * @module
 */
import { timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import { Failure } from "../failures.ts";
import type { Clock } from "../lib/clock.ts";
import { sha256 } from "../lib/hash.ts";
import { addressBlock } from "./client-address.ts";

/** Lets the owner of the key in. */
export type AdminGuard = Readonly<{
  /**
   * Rejects with Failure `unauthorized`; `too_many_requests` when the address has guessed too much to be
   * heard.
   *
   * @param authorization - The header's value, or null.
   * @param address - Of who asks.
   */
  admit: (authorization: string | null, address: string, signal: AbortSignal) => Promise<void>;
}>;

/** What a guard is made of. */
export type AdminGuardOptions = Readonly<{
  key: string;
  clock: Clock;
  /** Waits; rejects with the signal's reason when it is aborted. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Compares two hashes in constant time; `timingSafeEqual` unless given. */
  isSame?: (one: Uint8Array, other: Uint8Array) => boolean;
}>;

/** Wrong keys of an address that cost nothing: a script with an old key, a mistyped one, a suite of tests. */
export const freeGuesses = 100;

/** What the next wrong key costs, doubled by each one after it, up to the longest. Milliseconds. */
const firstWaitMs = 100;
const longestWaitMs = 5_000;

/** Answers that may be due to one address; beyond, its keys are not looked at. Milliseconds. */
const dueMsMax = 10_000;

/** An address that has not guessed for so long is forgotten. Milliseconds. */
const rememberedMs = 60 * 60_000;

/** Addresses that are remembered, those that guessed last: 2 MiB. */
const addressesMax = 10_000;

/** Longer keys are nobody's. Characters. */
const keyLengthMax = 4_096;

type Guesses = Readonly<{ wrong: number; respondedAt: number }>;

/** Creates a guard. */
export function createAdminGuard(options: AdminGuardOptions): AdminGuard {
  const { key, clock, sleep, isSame = timingSafeEqual } = options;
  const expected = hashOf(key);
  const guesses = new LRUCache<string, Guesses>({
    max: addressesMax,
    ttl: rememberedMs,
    ttlResolution: 0,
    perf: { now: clock },
  });

  return {
    admit: async (authorization, address, signal) => {
      const given = bearerKey(authorization);
      if (given === undefined) throw new Failure("unauthorized", { address }); // nothing was guessed
      const block = addressBlock(address);
      const before = guesses.get(block) ?? { wrong: 0, respondedAt: 0 };
      const now = clock();
      if (before.respondedAt - now > dueMsMax) throw new Failure("too_many_requests", { address });
      if (isSame(hashOf(given), expected)) {
        guesses.delete(block);
        return;
      }
      const wrong = before.wrong + 1;
      const respondedAt = Math.max(now, before.respondedAt) + waitMs(wrong);
      guesses.set(block, { wrong, respondedAt });
      if (respondedAt > now) await sleep(respondedAt - now, signal);
      throw new Failure("unauthorized", { address, wrong });
    },
  };
}

function waitMs(wrong: number): number {
  if (wrong <= freeGuesses) return 0;
  return Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(wrong - freeGuesses - 1, 30));
}

function bearerKey(authorization: string | null): string | undefined {
  const given = /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
  return given === undefined || given.length > keyLengthMax ? undefined : given;
}

function hashOf(key: string): Uint8Array {
  return sha256(new TextEncoder().encode(key));
}
