/**
 * The beginning of a trace: which `traceparent` is continued, and which traces each sampler records.
 * @module
 */
import { describe, expect, test } from "bun:test";
import {
  createSampler,
  newSpanId,
  readTraceparent,
  type SamplerName,
  writeTraceparent,
} from "../../src/lib/trace-context.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const spanId = "00f067aa0ba902b7";
const valid = `00-${traceId}-${spanId}-01`;

describe("traceparent", () => {
  test.each([
    ["sampled", valid, true],
    ["not sampled", `00-${traceId}-${spanId}-00`, false],
    ["other flags, not sampled", `00-${traceId}-${spanId}-fe`, false],
    ["other flags, sampled", `00-${traceId}-${spanId}-ff`, true],
    ["a later version", `cc-${traceId}-${spanId}-01`, true],
    ["a later version with more fields", `cc-${traceId}-${spanId}-01-what-the-future-adds`, true],
  ])("%s is continued", (_name, header, isSampled) => {
    expect(readTraceparent(header)).toEqual({ traceId, spanId, isSampled });
  });

  test.each([
    ["absent", null],
    ["empty", ""],
    ["the forbidden version", `ff-${traceId}-${spanId}-01`],
    ["version 00 with more fields", `${valid}-01`],
    ["version 00 with a space", `${valid} `],
    ["a trace id of zeros", `00-${"0".repeat(32)}-${spanId}-01`],
    ["a parent id of zeros", `00-${traceId}-${"0".repeat(16)}-01`],
    ["upper case", valid.toUpperCase()],
    ["upper case in a flag", `00-${traceId}-${spanId}-0A`],
    ["too short an id", `00-${traceId.slice(1)}-${spanId}-01`],
    ["too short an id, in the length of a valid header", `00-${traceId.slice(1)}-${spanId}-01-`],
    ["ids in the wrong order", `00-${spanId}-${traceId}-01`],
    ["other separators", valid.replaceAll("-", "_")],
    ["no hexadecimal digits", valid.replace("4", "g")],
    ["a quote, as if it ended JSON", valid.replace("4b", '"}')],
    ["two headers", `${valid}, ${valid}`],
    ["two headers of a later version", `cc${valid.slice(2)}, ${valid}`],
    ["a long header", `cc${valid.slice(2)}-${"a".repeat(300)}`],
    ["a long header without an end", "0".repeat(100_000)],
  ])("%s is ignored", (_name, header) => {
    expect(readTraceparent(header)).toBeUndefined();
  });

  test("what is written is read", () => {
    for (const isSampled of [true, false])
      expect(readTraceparent(writeTraceparent({ traceId, spanId, isSampled }))).toEqual({ traceId, spanId, isSampled });
  });
});

describe("samplers", () => {
  const parent = (isSampled: boolean) => ({ traceId, spanId, isSampled });
  type Row = readonly [name: SamplerName, share: number, alone: boolean, sampled: boolean, unsampled: boolean];
  const rows: readonly Row[] = [
    ["always_on", 1, true, true, true],
    ["always_off", 1, false, false, false],
    ["traceidratio", 0, false, false, false],
    ["traceidratio", 1, true, true, true],
    ["parentbased_always_on", 1, true, true, false],
    ["parentbased_always_off", 1, false, true, false],
    ["parentbased_traceidratio", 0, false, true, false],
    ["parentbased_traceidratio", 1, true, true, false],
  ];
  test.each(rows)(
    "%s of %p: alone %p, below a sampled caller %p, below another %p",
    (name, share, alone, sampled, unsampled) => {
      const sampler = createSampler(name, share);
      const decisions = [
        sampler.begin() !== undefined,
        sampler.continues(parent(true)),
        sampler.continues(parent(false)),
      ];
      expect(decisions).toEqual([alone, sampled, unsampled]);
    },
  );

  test("the last digits of the trace id decide, at the edge too", () => {
    const half = createSampler("traceidratio", 0.5);
    const of = (last: string) => ({ traceId: `${"a".repeat(19)}${last}`, spanId, isSampled: true });
    expect(half.continues(of("7ffffffffffff"))).toBe(false);
    expect(half.continues(of("8000000000000"))).toBe(true);
    expect(createSampler("traceidratio", 1).continues(of("0000000000000"))).toBe(true);
    expect(createSampler("traceidratio", 0).continues(of("fffffffffffff"))).toBe(false);
  });

  test.each([0.001, 0.25, 1])("another program with the share of %p records each trace that begins here", (share) => {
    for (const place of [0, 0.5, 1 - 2 ** -53]) {
      const draws = [0, place];
      const id = createSampler("traceidratio", share, () => draws.shift() ?? 0).begin() ?? "";
      expect(id).toMatch(/^[0-9a-f]{32}$/);
      const there = createSampler("traceidratio", share);
      expect(there.continues({ traceId: id, spanId, isSampled: false })).toBe(true);
    }
  });

  test("a share of requests begins a trace", () => {
    const sampler = createSampler("traceidratio", 0.25);
    const begun = Array.from({ length: 4_000 }, sampler.begin).filter((id) => id !== undefined).length;
    // Eight standard deviations.
    expect(Math.abs(begun - 1_000)).toBeLessThan(220);
  });
});

test("generated ids have their lengths and are distinct", () => {
  const { begin } = createSampler("always_on", 1);
  const traces = new Set(Array.from({ length: 1_000 }, begin));
  const spans = new Set(Array.from({ length: 1_000 }, newSpanId));
  expect([traces.size, spans.size]).toEqual([1_000, 1_000]);
  for (const id of traces) expect(id).toMatch(/^[0-9a-f]{32}$/);
  for (const id of spans) expect(id).toMatch(/^[0-9a-f]{16}$/);
});
