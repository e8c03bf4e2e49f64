/**
 * The beginning of a trace: ids, the `traceparent` header, and the decision whether a trace is recorded.
 * Source: W3C Trace Context, "traceparent Header"; OpenTelemetry, "Environment Variable Specification" (samplers) and
 *   "TraceState: Probability Sampling" (randomness of trace ids).
 * @module
 */

/** The caller's part of a trace. */
export type RemoteParent = Readonly<{
  /** 32 lower-case hexadecimal digits. */
  traceId: string;
  /** 16 lower-case hexadecimal digits. */
  spanId: string;
  isSampled: boolean;
}>;

/** Version, trace id, parent id and flags; the ids are not all zero. */
const traceparentPattern = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?=-|$)/;

/** Length of version 00. A later version may be longer; only these characters of it are read. */
const traceparentLength = 55;

/** Longer headers are not read at all. */
const traceparentLengthMax = 256;

/** Reads the header of a request. @returns `undefined` for an absent or invalid one: the request begins a trace. */
export function readTraceparent(header: string | null): RemoteParent | undefined {
  if (header === null || header.length < traceparentLength || header.length > traceparentLengthMax) return undefined;
  if (header.startsWith("00-") && header.length !== traceparentLength) return undefined;
  const [, traceId, spanId, flags] = traceparentPattern.exec(header) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & sampledFlag) !== 0 };
}

const sampledFlag = 1;

export function writeTraceparent({ traceId, spanId, isSampled }: RemoteParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** The samplers of `OTEL_TRACES_SAMPLER`. */
export const samplerNames = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;
export type SamplerName = (typeof samplerNames)[number];

/** Whether a trace is recorded. */
export type Sampler = (traceId: string, parent: RemoteParent | undefined) => boolean;

/** @param share - Of `traceidratio`: the share of traces that is recorded, 0 to 1. */
export function createSampler(name: SamplerName, share: number): Sampler {
  const isParentBased = name.startsWith("parentbased_");
  const own = ownSampler(name, share);
  return (traceId, parent) => (isParentBased && parent !== undefined ? parent.isSampled : own(traceId));
}

function ownSampler(name: SamplerName, share: number): (traceId: string) => boolean {
  if (name.endsWith("always_off")) return () => false;
  if (name.endsWith("always_on")) return () => true;
  const threshold = (1 - share) * 2 ** randomBits;
  return (traceId) => Number.parseInt(traceId.slice(-randomDigits), 16) >= threshold;
}

/**
 * The last digits of a trace id decide, so that all programs of a trace decide alike. The standard uses 56 bits; these
 * 52 are exact in a double.
 */
const randomDigits = 13;
const randomBits = randomDigits * 4;

/** Digits of a trace id and of a span id. */
const traceIdDigits = 32;
const spanIdDigits = 16;

/** Generates ids from blocks of random bytes: a call for each id costs twice as much. */
export function createIds(fill: (bytes: Uint8Array<ArrayBuffer>) => void = fillRandom) {
  const bytes = new Uint8Array(randomBlockBytes);
  let digits = "";
  let at = 0;
  const take = (count: number): string => {
    if (at + count > digits.length) {
      fill(bytes);
      digits = bytes.toHex();
      at = 0;
    }
    at += count;
    return digits.slice(at - count, at);
  };
  return { traceId: () => take(traceIdDigits), spanId: () => take(spanIdDigits) };
}

const randomBlockBytes = 4_096;

function fillRandom(bytes: Uint8Array<ArrayBuffer>): void {
  crypto.getRandomValues(bytes);
}
