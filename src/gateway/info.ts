/**
 * The gateway's information record.
 * Source: docs/reference/gateway.md#information-and-health.
 * @module
 */
import { manifestVersions } from "../arweave/manifest.ts";
import type { JsonValue } from "../lib/json.ts";

export type InfoOptions = Readonly<{
  /** Address of the gateway's wallet. */
  wallet: string | undefined;
  processId: string | undefined;
  /** The configured filters, parsed JSON. */
  unbundleFilter: JsonValue;
  indexFilter: JsonValue;
  release: string;
  /** Enabled services of this program, and their addresses. */
  services: Readonly<Record<string, JsonValue>>;
  /** Names of enabled features. */
  features: readonly string[];
  /** Limits of clients and resources; undefined without limits. */
  limits: RateLimits | undefined;
}>;

/** Limits in tokens of 1 KiB. */
export type RateLimits = Readonly<{ ip: BucketLimit; resource: BucketLimit }>;

type BucketLimit = Readonly<{ capacity: number; refillPerSecond: number }>;

/** Bytes of a token. */
const tokenBytes = 1_024;

/** The information record: six fields always, then the enabled features. */
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

/** The limits in the format of other gateways. */
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
