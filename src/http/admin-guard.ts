/**
 * The bearer key of administration. Keys are compared as hashes in constant time, and wrong keys slow an address down.
 *
 * The response to each wrong key is delayed longer. While responses to an address are pending, further keys are not
 * compared once their delays exceed a limit, so parallel guessing gains nothing. A correct key is never delayed.
 * Source: docs/reference/gateway.md#administration; docs/reference/threats.md (S2).
 * @module
 */
import { LRUCache } from "lru-cache";
import { Failure } from "../failures.ts";
import type { Clock } from "../lib/clock.ts";
import { entryLimit } from "../lib/entry-limit.ts";
import { sha256 } from "../lib/hash.ts";
import { addressBlock } from "./client-address.ts";

export type AdminGuard = Readonly<{
  /**
   * Rejects with Failure `unauthorized`; `too_many_requests` when the address has sent too many wrong keys.
   *
   * @param authorization - The header's value, or null.
   * @param address - Address of the client.
   */
  admit: (authorization: string | null, address: string, signal: AbortSignal) => Promise<void>;
}>;

export type AdminGuardOptions = Readonly<{
  key: string;
  clock: Clock;
  /** Waits; rejects with the signal's reason when it is aborted. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Compares two hashes in constant time; `crypto.timingSafeEqual` unless given. */
  isSame?: (one: Uint8Array, other: Uint8Array) => boolean;
}>;

/** Wrong keys of an address without a delay: a script with an old key, a typing error, a test suite. */
export const freeGuesses = 100;

/** Delay of the next wrong key; doubles with each one, up to the maximum. Milliseconds. */
const firstWaitMs = 100;
const longestWaitMs = 5_000;

/** Pending delay of one address; beyond it, its keys are not compared. Milliseconds. */
const dueMsMax = 10_000;

/** An address without wrong keys for this long is forgotten. Milliseconds. */
const rememberedMs = 60 * 60_000;

/** Remembered addresses, the most recent ones: 2 MiB. */
const addressesMax = 10_000;

/** Longest key. Characters. */
const keyLengthMax = 4_096;

type Guesses = Readonly<{ wrong: number; respondedAt: number }>;

/** A call, because the function needs its object. */
const equalInConstantTime = (one: Uint8Array, other: Uint8Array): boolean => crypto.timingSafeEqual(one, other);

export function createAdminGuard(options: AdminGuardOptions): AdminGuard {
  const { key, clock, sleep, isSame = equalInConstantTime } = options;
  const expected = hashOf(key);
  const guesses = new LRUCache<string, Guesses>({
    ...entryLimit(addressesMax),
    ttl: rememberedMs,
    ttlResolution: 0,
    perf: { now: clock },
  });

  return {
    admit: async (authorization, address, signal) => {
      const given = bearerKey(authorization);
      if (given === undefined) throw new Failure("unauthorized", { address }); // no key was sent
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
