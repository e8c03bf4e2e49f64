/**
 * Token buckets by key: each fills at a steady rate up to its capacity, and what is done costs tokens.
 *
 * What something costs is often known only when it is done, so a bucket may go below zero, by as much as it
 * holds: whoever took much waits long, but never for good.
 * @module
 */
import { LRUCache } from "lru-cache";
import { assert } from "./assert.ts";
import type { Clock } from "./clock.ts";

/** Buckets in memory; of more, those that were not used for longest are forgotten, which is to say full. */
export type TokenBuckets = Readonly<{
  /** Milliseconds until the bucket has a token; 0 when it has one. */
  waitMs: (key: string) => number;
  /** Takes tokens, also where there are none. @param tokens - 0 or more. */
  take: (key: string, tokens: number) => void;
  count: () => number;
}>;

/** How buckets behave. */
export type TokenBucketsOptions = Readonly<{
  /** Tokens of a full bucket, at least 1. */
  capacity: number;
  /** Tokens a second, above 0. */
  refillPerSecond: number;
  /** Buckets that are remembered. */
  countMax: number;
  /** Makes what keys are remembered by known to nobody, so that none can be made to share a bucket. */
  seed: number;
  clock: Clock;
}>;

type Bucket = { tokens: number; at: number };

/** Creates buckets, all of them full. */
export function createTokenBuckets(options: TokenBucketsOptions): TokenBuckets {
  const { capacity, refillPerSecond, countMax, seed, clock } = options;
  assert(capacity >= 1 && refillPerSecond > 0, "a bucket can hold a token and gets new ones");
  // Keys are as long as their senders like; a hash is not.
  const buckets = new LRUCache<bigint, Bucket>({ max: countMax });
  const hashOf = (key: string) => BigInt(Bun.hash(key, seed));

  const filled = (bucket: Bucket | undefined): number => {
    if (bucket === undefined) return capacity;
    const elapsedMs = Math.max(0, clock() - bucket.at); // a clock that was put back gives nothing and takes nothing
    return Math.min(capacity, bucket.tokens + (elapsedMs / 1_000) * refillPerSecond);
  };
  return {
    waitMs: (key) => {
      const tokens = filled(buckets.get(hashOf(key)));
      return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) / refillPerSecond) * 1_000);
    },
    take: (key, tokens) => {
      const hash = hashOf(key);
      const left = Math.max(-capacity, filled(buckets.get(hash)) - tokens);
      buckets.set(hash, { tokens: left, at: clock() });
    },
    count: () => buckets.size,
  };
}
