/**
 * What the gateway says of itself.
 * Source: docs/reference/gateway.md#information-and-health.
 * @module
 */
import { manifestVersions } from "../arweave/manifest.ts";
import type { JsonValue } from "../lib/json.ts";

/** What an operator set, and what is switched on. */
export type InfoOptions = Readonly<{
  /** Address of the gateway's wallet. */
  wallet: string | undefined;
  processId: string | undefined;
  /** The filters as they were set, parsed JSON. */
  unbundleFilter: JsonValue;
  indexFilter: JsonValue;
  release: string;
  /** Other services that this program offers, and where; only what is switched on. */
  services: Readonly<Record<string, JsonValue>>;
  /** What an operator switched on, by name. */
  features: readonly string[];
  /** Limits of clients and resources; undefined where there are none. */
  limits: RateLimits | undefined;
}>;

/** Limits in tokens of 1 KiB. */
export type RateLimits = Readonly<{ ip: BucketLimit; resource: BucketLimit }>;

type BucketLimit = Readonly<{ capacity: number; refillPerSecond: number }>;

/** Bytes of a token. */
const tokenBytes = 1_024;

/** The gateway information record: all six fields always, then what is switched on. */
export function gatewayInfo(options: InfoOptions): JsonValue {
  return {
    wallet: options.wallet ?? "",
    processId: options.processId ?? "",
    ans104UnbundleFilter: options.unbundleFilter,
    ans104IndexFilter: options.indexFilter,
    supportedManifestVersions: manifestVersions,
    release: options.release,
    services: options.services,
    ...(options.features.length === 0 ? {} : { features: options.features }),
    ...(options.limits === undefined ? {} : { rateLimiter: limiterRecord(options.limits) }),
  };
}

/** The limits in the form that clients of other gateways read. */
function limiterRecord({ ip, resource }: RateLimits): JsonValue {
  const buckets = { resource: bucketRecord(resource), ip: bucketRecord(ip) };
  return { enabled: true, dataEgress: { buckets } };
}

function bucketRecord({ capacity, refillPerSecond }: BucketLimit): JsonValue {
  return {
    capacity,
    refillRate: refillPerSecond,
    capacityBytes: capacity * tokenBytes,
    refillRateBytesPerSec: refillPerSecond * tokenBytes,
  };
}
