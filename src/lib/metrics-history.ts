/**
 * A history of metrics in memory: the last hour in samples of 10 seconds, the last day in samples of 5 minutes.
 *
 * The memory is 5 KiB for each metric, allocated once. A sample without a value is null.
 * @module
 */
import { assert } from "./assert.ts";

/** One metric of the history. */
export type HistoryMetric = Readonly<{
  name: string;
  /** For people: "requests a second", "bytes". */
  unit: string;
  /** The value at each sample; of a total, the history stores the increase a second. */
  kind: "gauge" | "total";
  /** How the samples of 10 seconds form one of 5 minutes. */
  fold: "mean" | "max" | "last";
  /** Undefined: no value. A call that throws counts as no value. */
  read: () => number | undefined;
}>;

/** One resolution. */
export type HistoryRange = Readonly<{
  /** Seconds between two samples. */
  stepSeconds: number;
  /** Time of the last sample. Unix milliseconds; null before the first. */
  endsAt: number | null;
  /** Samples by metric, oldest first; each list has the same length. */
  values: Readonly<Record<string, readonly (number | null)[]>>;
}>;

export type MetricsHistory = Readonly<{
  /** Takes a sample; call it every {@link sampleMs}. */
  sample: () => void;
  record: () => Readonly<{
    metrics: readonly Readonly<{ name: string; unit: string }>[];
    hour: HistoryRange;
    day: HistoryRange;
  }>;
}>;

/** Time between two samples. Milliseconds. */
export const sampleMs = 10_000;
const samplesPerHour = 360;
/** Samples of one sample of the day: 5 minutes. */
const samplesPerFold = 30;
const foldsPerDay = 288;

/** Most metrics: 100 of them take half a MiB. */
const metricsMax = 100;

/**
 * Creates an empty history.
 *
 * @param clock - Unix milliseconds.
 * @throws AssertionError for more than {@link metricsMax} metrics.
 */
export function createMetricsHistory(metrics: readonly HistoryMetric[], clock: () => number): MetricsHistory {
  assert(metrics.length <= metricsMax, "a history has a bounded number of metrics");
  const names = metrics.map(({ name, unit }) => ({ name, unit }));
  const hour = createRing(metrics, samplesPerHour, sampleMs / 1_000);
  const day = createRing(metrics, foldsPerDay, (sampleMs / 1_000) * samplesPerFold);
  const before = new Map<string, number>();
  let sampledAt: number | undefined;
  return {
    sample: () => {
      const now = clock();
      const seconds = sampledAt === undefined ? 0 : (now - sampledAt) / 1_000;
      sampledAt = now;
      hour.add(
        now,
        metrics.map((metric) => sampleOf(metric, before, seconds)),
      );
      if (hour.count() % samplesPerFold > 0) return;
      day.add(
        now,
        metrics.map(({ name, fold }) => folded(hour.last(name, samplesPerFold), fold)),
      );
    },
    record: () => ({ metrics: names, hour: hour.range(), day: day.range() }),
  };
}

/** The value of one sample. NaN: no value, as for the first sample of a total and a total that has shrunk. */
function sampleOf({ name, kind, read }: HistoryMetric, before: Map<string, number>, seconds: number): number {
  const value = readOrNothing(read);
  if (kind === "gauge") return value;
  const last = before.get(name) ?? Number.NaN;
  before.set(name, value);
  const rate = (value - last) / seconds;
  return rate >= 0 && Number.isFinite(rate) ? rate : Number.NaN;
}

function readOrNothing(read: HistoryMetric["read"]): number {
  try {
    return read() ?? Number.NaN;
  } catch {
    return Number.NaN; // a metric that cannot be read has no value
  }
}

function folded(values: readonly number[], fold: HistoryMetric["fold"]): number {
  const known = values.filter((value) => !Number.isNaN(value));
  if (known.length === 0) return Number.NaN;
  if (fold === "max") return Math.max(...known);
  if (fold === "last") return known.at(-1) ?? Number.NaN;
  return known.reduce((sum, value) => sum + value, 0) / known.length;
}

function createRing(metrics: readonly HistoryMetric[], size: number, stepSeconds: number) {
  const rings = new Map(metrics.map(({ name }) => [name, new Float64Array(size).fill(Number.NaN)]));
  let added = 0;
  let endsAt: number | null = null;
  /** The last samples of one metric, oldest first. */
  const last = (name: string, wanted: number): number[] => {
    const ring = rings.get(name);
    const length = Math.min(wanted, size, added);
    return Array.from({ length }, (_, at) => ring?.[(added - length + at) % size] ?? Number.NaN);
  };
  return {
    add: (at: number, values: readonly number[]): void => {
      for (const [position, ring] of [...rings.values()].entries()) ring[added % size] = values[position] ?? Number.NaN;
      added += 1;
      endsAt = at;
    },
    /** Samples since the start. */
    count: () => added,
    last,
    range: (): HistoryRange => ({
      stepSeconds,
      endsAt,
      values: Object.fromEntries(
        [...rings.keys()].map((name) => [name, last(name, size).map((value) => (Number.isNaN(value) ? null : value))]),
      ),
    }),
  };
}
