/**
 * Rate limits of clients and resources: a token is a kibibyte of response, and every request costs at least one.
 *
 * A client is an address as trusted proxies report it (of IPv6 the first 64 bits); a resource is method, host and path.
 * The tokens of a body are taken when its length is known, so a large body is served once and the client waits
 * afterwards. Administration has its own guard, and monitoring is not limited.
 * Source: docs/reference/gateway.md#rate-limits.
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics.ts";
import { createTokenBuckets } from "../lib/token-buckets.ts";
import { addressBlock } from "./client-address.ts";
import { isAdministration } from "./cors.ts";
import type { RequestSummary } from "./request-context.ts";
import { bodySizeOf, jsonResponse, noStore } from "./responses.ts";

/** Tokens of one kind of bucket. */
export type BucketSize = Readonly<{ capacity: number; refillPerSecond: number }>;

export type RateLimiterOptions = Readonly<{
  client: BucketSize;
  resource: BucketSize;
  /** Whether an address has no limit. */
  isExempt: (address: string) => boolean;
  seed: number;
  clock: Clock;
  metrics: Metrics;
}>;

export type RateLimiter = Readonly<{
  /**
   * The same limits at a listener that has hosts of content, where no path is without a limit.
   *
   * @param isOwnHost - Whether a host is not one of content.
   */
  at: (isOwnHost: (host: string) => boolean) => RateLimiter;
  /** Takes a token, or returns false when none is left; the caller then calls `reject` or has asked `wouldAdmit`. */
  admits: (method: string, summary: RequestSummary) => boolean;
  /** Whether `admits` would take a token. */
  wouldAdmit: (method: string, summary: RequestSummary) => boolean;
  /** Takes a token, or returns the response when none is left. */
  reject: (method: string, summary: RequestSummary) => Response | undefined;
  /** Takes a token, or returns the bucket that is empty. */
  takeOrEmptyBucket: (method: string, summary: RequestSummary) => EmptyBucket | undefined;
  /** Takes tokens of a client, also below zero. @param tokens - 0 or more. */
  debit: (client: string, tokens: number) => void;
  /** Takes the cost of the response's body beyond the first token. */
  charge: (method: string, summary: RequestSummary, response: Response) => void;
}>;

/** Buckets of each kind: about 10 MiB. */
const bucketsMax = 100_000;

/** Load balancers request these paths to decide whether the gateway gets requests. Metrics cost more, and count. */
const monitoringPaths: ReadonlySet<string> = new Set(["/health", "/ready", "/svc/healthcheck", "/ar-io/healthcheck"]);

/** Bytes of a response for which a token is taken. */
export const tokenBytes = 2 ** 10;

export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  return limiterAt(createBuckets(options), options.isExempt, () => true);
}

/** @param isOwnHost - Whether paths of a host may be those of monitoring and administration. */
function limiterAt(
  buckets: Buckets,
  isExempt: RateLimiterOptions["isExempt"],
  isOwnHost: (host: string) => boolean,
): RateLimiter {
  const { stats } = buckets;
  const keysOf = (method: string, { target, clientAddress }: RequestSummary): Keys | undefined => {
    const { host, path } = target;
    if ((isAdministration(path) || monitoringPaths.has(path)) && isOwnHost(host)) return undefined;
    const address = clientAddress();
    if (isExempt(address)) return undefined;
    return { client: addressBlock(address), resource: `${method} ${host} ${path}` };
  };
  const emptyBucketOf = (method: string, summary: RequestSummary): EmptyBucket | undefined => {
    const keys = keysOf(method, summary);
    const empty = keys && buckets.takeOne(keys);
    if (empty === undefined) return undefined;
    stats.requests.inc();
    stats.exceeded.inc({ limit_type: empty.of });
    return empty;
  };
  return {
    at: (isOwn) => limiterAt(buckets, isExempt, isOwn),
    admits: (method, summary) => {
      const keys = keysOf(method, summary);
      return keys === undefined || buckets.takeOne(keys) === undefined;
    },
    wouldAdmit: (method, summary) => {
      const keys = keysOf(method, summary);
      return keys === undefined || buckets.emptyOf(keys) === undefined;
    },
    reject: (method, summary) => {
      const empty = emptyBucketOf(method, summary);
      return empty && rateLimitedResponse(empty);
    },
    takeOrEmptyBucket: emptyBucketOf,
    debit: buckets.debit,
    charge: (method, summary, response) => {
      const more = tokensOf(summary, response) - 1;
      const keys = more > 0 ? keysOf(method, summary) : undefined;
      if (keys !== undefined) buckets.take(keys, more);
    },
  };
}

type Buckets = ReturnType<typeof createBuckets>;

function createBuckets(options: Omit<RateLimiterOptions, "isExempt">) {
  const { clock, seed, metrics } = options;
  const clients = createTokenBuckets({ ...options.client, countMax: bucketsMax, seed, clock });
  const resources = createTokenBuckets({ ...options.resource, countMax: bucketsMax, seed, clock });
  const stats = metricsIn(metrics);

  const take = (keys: Keys, tokens: number): void => {
    clients.take(keys.client, tokens);
    resources.take(keys.resource, tokens);
    stats.tokens.inc(tokens);
  };
  const emptyOf = ({ client, resource }: Keys): EmptyBucket | undefined => {
    const clientMs = clients.waitMs(client);
    if (clientMs > 0) return { of: "ip", waitMs: clientMs, client };
    const resourceMs = resources.waitMs(resource);
    return resourceMs > 0 ? { of: "resource", waitMs: resourceMs, client } : undefined;
  };
  return {
    stats,
    take,
    emptyOf,
    /** Takes a token of each bucket, or returns the empty bucket. */
    takeOne: (keys: Keys): EmptyBucket | undefined => {
      const empty = emptyOf(keys);
      if (empty !== undefined) return empty;
      take(keys, 1);
      stats.requests.inc();
      return undefined;
    },
    debit: (client: string, tokens: number): void => {
      if (tokens === 0) return;
      clients.take(client, tokens);
      stats.tokens.inc(tokens);
    },
  };
}

type Keys = Readonly<{ client: string; resource: string }>;

/** An empty bucket, the time until it has a token, and the client. */
export type EmptyBucket = Readonly<{ of: "ip" | "resource"; waitMs: number; client: string }>;

function metricsIn(metrics: Metrics) {
  return {
    requests: metrics.counter({
      name: "rate_limit_requests_total",
      help: "Requests that limits were applied to.",
    }),
    exceeded: metrics.counter({
      name: "rate_limit_exceeded_total",
      help: "Requests that were rejected, by whose limit was reached.",
      labels: { limit_type: ["ip", "resource"] },
    }),
    tokens: metrics.counter({ name: "rate_limit_tokens_consumed_total", help: "Tokens that were taken." }),
  };
}

/** A response without a noted size is short, or a GraphQL response, which has its own limits. */
export function tokensOf({ headOnly }: RequestSummary, response: Response): number {
  return headOnly ? 1 : Math.ceil(bodySizeOf(response) / tokenBytes);
}

/** The response when a limit is reached. */
export function rateLimitedResponse({ of, waitMs }: EmptyBucket): Response {
  const message = `${of === "ip" ? "IP" : "Resource"} rate limit exceeded`;
  const headers = { ...noStore, "Retry-After": String(Math.ceil(waitMs / 1_000)) };
  return jsonResponse({ error: "Too Many Requests", message }, 429, headers);
}
