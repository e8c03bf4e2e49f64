/**
 * Each bench runs in small to its end, finds the work that it measures correct, and prints numbers. How fast anything
 * is, `bun run bench` tells.
 * @module
 */
import { describe, expect } from "bun:test";
import type { Bench } from "../../bench/harness.ts";
import { benches } from "../../bench/list.ts";
import { clickhouseEngine, type Need, testWith } from "../support/helpers.ts";

const nothing: Need = { there: true, what: "nothing" };
const needs: Readonly<Record<string, Need>> = {
  clickhouse: clickhouseEngine,
  http: { there: Bun.which("nginx") !== null, what: "nginx" },
};
const timeoutMs = 120_000;

describe("a bench in small", () => {
  for (const bench of benches) {
    testWith(needs[bench.name] ?? nothing, `prints numbers: ${bench.name}`, () => expectNumbers(bench), timeoutMs);
  }
});

async function expectNumbers({ measure }: Bench): Promise<void> {
  const rows = await measure("small");
  expect(rows.length).toBeGreaterThan(0);
  // In small, a reference may take less than a tick of the processor's clock: ratios are not looked at.
  for (const { name, metric, reference = "" } of rows) {
    expect({ name, metric }).toEqual({ name, metric: expect.stringMatching(/\d/) });
    expect(`${name}: ${metric} ${reference}`).not.toMatch(/undefined|NaN/);
  }
}
