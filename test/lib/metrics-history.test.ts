/**
 * The history of metrics: samples of an hour and of a day, in a fixed memory.
 */
import { describe, expect, test } from "bun:test";
import { createMetricsHistory, type HistoryMetric, sampleMs } from "../../src/lib/metrics-history.ts";

let now = 0;
let value: number | undefined = 0;
const metric = (kind: HistoryMetric["kind"], fold: HistoryMetric["fold"] = "mean"): HistoryMetric => ({
  name: "a",
  unit: "things",
  kind,
  fold,
  read: () => value,
});

function record(metrics: readonly HistoryMetric[], values: readonly (number | undefined)[]) {
  now = 0;
  const history = createMetricsHistory(metrics, () => now);
  for (const each of values) {
    now += sampleMs;
    value = each;
    history.sample();
  }
  return history.record();
}

describe("a sample", () => {
  test.each<[HistoryMetric["kind"], (number | undefined)[], (number | null)[]]>([
    ["gauge", [1, 2, 0], [1, 2, 0]],
    ["gauge", [1, undefined, 3], [1, null, 3]],
    ["total", [100, 150, 150], [null, 5, 0]],
    // A total that has shrunk belongs to another run.
    ["total", [100, 50, 60], [null, null, 1]],
    ["total", [100, undefined, 60, 70], [null, null, null, 1]],
  ])("of a %s with the values %j is %j", (kind, values, stored) => {
    expect(record([metric(kind)], values).hour.values["a"]).toEqual(stored);
  });

  test("has no value if the metric cannot be read", () => {
    const broken = { ...metric("gauge"), read: () => assertUnreadable() };
    expect(record([broken, { ...metric("gauge"), name: "b" }], [1]).hour.values).toEqual({ a: [null], b: [1] });
  });
});

function assertUnreadable(): number {
  throw new Error("unreadable");
}

describe("the hour and the day", () => {
  test("before the first sample both are empty", () => {
    expect(record([metric("gauge")], [])).toEqual({
      metrics: [{ name: "a", unit: "things" }],
      hour: { stepSeconds: 10, endsAt: null, values: { a: [] } },
      day: { stepSeconds: 300, endsAt: null, values: { a: [] } },
    });
  });

  test.each([
    [359, 359],
    [360, 360],
    [361, 360],
    [10_000, 360],
  ])("after %i samples the hour has the last %i", (count, length) => {
    const values = Array.from({ length: count }, (_, at) => at + 1);
    const { hour } = record([metric("gauge")], values);
    expect(hour.values["a"]).toHaveLength(length);
    expect(hour.values["a"]?.at(-1)).toBe(count);
    expect(hour.endsAt).toBe(count * sampleMs);
  });

  test.each([
    ["mean", 15.5],
    ["max", 30],
    ["last", 30],
  ] as const)("30 samples from 1 to 30 are one sample of the day: %s is %p", (fold, folded) => {
    const values = Array.from({ length: 30 }, (_, at) => at + 1);
    expect(record([metric("gauge", fold)], values.slice(0, 29)).day.values["a"]).toEqual([]);
    expect(record([metric("gauge", fold)], values).day.values["a"]).toEqual([folded]);
  });

  test("the day has at most 288 samples, also after two days", () => {
    const values = Array.from({ length: 2 * 8_640 }, () => 1);
    expect(record([metric("gauge")], values).day.values["a"]).toHaveLength(288);
  });
});

test("a history of more than 100 metrics is a defect", () => {
  const metrics = Array.from({ length: 101 }, (_, at) => ({ ...metric("gauge"), name: `m${at}` }));
  expect(() => createMetricsHistory(metrics, () => 0)).toThrow("bounded");
});
