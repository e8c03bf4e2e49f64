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

/** Decides which traces are recorded. */
export type Sampler = Readonly<{
  /** Whether the trace of a caller is recorded here. */
  continues: (parent: RemoteParent) => boolean;
  /** The id of a new trace; `undefined` for one that is not recorded. */
  begin: () => string | undefined;
}>;

/** @param share - Of `traceidratio`: the share of traces that is recorded, 0 to 1. */
export function createSampler(name: SamplerName, share: number, random: () => number = Math.random): Sampler {
  const own = name.endsWith("always_off") ? 0 : name.endsWith("always_on") ? 1 : share;
  const threshold = (1 - own) * randomEnd;
  const isParentBased = name.startsWith("parentbased_");
  const isNext = createDraw(own, random);
  return {
    continues: ({ traceId, isSampled }) => {
      return isParentBased ? isSampled : own > 0 && Number.parseInt(traceId.slice(-randomDigits), 16) >= threshold;
    },
    // The decision comes before the id, which most requests of a small share then do not need.
    begin: () => (isNext() ? idAbove(threshold, random) : undefined),
  };
}

/** Draws with a chance. The number of misses up to the next hit is drawn at once, so that a miss only counts. */
function createDraw(chance: number, random: () => number): () => boolean {
  if (chance <= 0) return () => false;
  if (chance >= 1) return () => true;
  const scale = Math.log1p(-chance);
  let misses = -1;
  return () => {
    if (misses < 0) misses = Math.floor(Math.log1p(-random()) / scale);
    misses -= 1;
    return misses < 0;
  };
}

/**
 * The last digits of a trace id decide, so that all programs of a trace decide alike. The standard uses 56 bits; these
 * 52 are exact in a double.
 */
const randomDigits = 13;
const randomEnd = 2 ** (randomDigits * 4);

/** An id whose last digits are at a random place between the threshold and the end. */
function idAbove(threshold: number, random: () => number): string {
  if (threshold === 0) return ids.digits(traceIdDigits);
  const last = Math.min(Math.ceil(threshold + random() * (randomEnd - threshold)), randomEnd - 1);
  return ids.digits(traceIdDigits - randomDigits) + last.toString(16).padStart(randomDigits, "0");
}

/** Digits of a trace id and of a span id. */
const traceIdDigits = 32;
const spanIdDigits = 16;

const randomBlockBytes = 4_096;

/** Generates random digits in blocks: a call for each id costs twice as much. */
function createDigits() {
  const bytes = new Uint8Array(randomBlockBytes);
  let digits = "";
  let at = 0;
  /** The index of the next digits. */
  const take = (count: number): number => {
    if (at + count > digits.length) {
      crypto.getRandomValues(bytes);
      digits = bytes.toHex();
      at = 0;
    }
    at += count;
    return at - count;
  };
  return {
    digits: (count: number): string => {
      const from = take(count);
      return digits.slice(from, from + count);
    },
    write: (target: Uint8Array, to: number, count: number): void => {
      const from = take(count);
      const text = digits;
      for (let each = 0; each < count; each += 1) target[to + each] = text.charCodeAt(from + each);
    },
  };
}

const ids = createDigits();

/** Generates the id of a span. */
export function newSpanId(): string {
  return ids.digits(spanIdDigits);
}

/** Writes the digits of a new span's id. */
export function writeSpanId(target: Uint8Array, at: number): void {
  ids.write(target, at, spanIdDigits);
}
