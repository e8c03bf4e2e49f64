/**
 * Token buckets by key: each fills at a steady rate up to its capacity, and requests take tokens.
 *
 * The cost of a request is often known only afterwards, so a bucket may go below zero, by at most its capacity: the
 * wait of a client is bounded.
 * @module
 */
import { LRUCache } from "lru-cache";
import { assert } from "./assert.ts";
import type { Clock } from "./clock.ts";
import { entryLimit } from "./entry-limit.ts";

/** Beyond `countMax`, the least recently used bucket is dropped, which makes it full. */
export type TokenBuckets = Readonly<{
  /** Milliseconds until the bucket has a token; 0 when it has one. */
  waitMs: (key: string) => number;
  /** Takes tokens, also from an empty bucket. @param tokens - 0 or more. */
  take: (key: string, tokens: number) => void;
  /** Puts tokens back, up to the capacity. @param tokens - 0 or more. */
  give: (key: string, tokens: number) => void;
  count: () => number;
}>;

export type TokenBucketsOptions = Readonly<{
  /** Tokens of a full bucket, 1 or more. */
  capacity: number;
  /** Tokens a second, above 0. */
  refillPerSecond: number;
  /** Maximum number of buckets. */
  countMax: number;
  /** Seeds the hash of the keys with a secret, so that no client can choose a key that shares another's bucket. */
  seed: number;
  clock: Clock;
}>;

type Bucket = { tokens: number; at: number };

export function createTokenBuckets(options: TokenBucketsOptions): TokenBuckets {
  const { capacity, refillPerSecond, countMax, seed, clock } = options;
  assert(capacity >= 1 && refillPerSecond > 0, "a bucket can hold a token and gets new ones");
  // Clients choose the length of a key; a hash bounds it.
  const buckets = new LRUCache<bigint, Bucket>(entryLimit(countMax));
  const hashOf = (key: string) => BigInt(Bun.hash(key, seed));

  const filled = (bucket: Bucket | undefined): number => {
    if (bucket === undefined) return capacity;
    const elapsedMs = Math.max(0, clock() - bucket.at); // a clock that was set back adds no tokens
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
    give: (key, tokens) => {
      const hash = hashOf(key);
      buckets.set(hash, { tokens: Math.min(capacity, filled(buckets.get(hash)) + tokens), at: clock() });
    },
    count: () => buckets.size,
  };
}
