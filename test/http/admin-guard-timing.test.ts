/**
 * The time in which a wrong key of administration is rejected tells nothing of how much of it is right. SAMPLES sets
 * how many rejections are timed.
 * Source: docs/reference/threats.md (S2) (|t| below 4.5); Reparaz et al., "Dude, is my code constant time?", 2017.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createAdminGuard } from "../../src/http/admin-guard.ts";
import { createRandom } from "../support/random.ts";

const samples = Number(process.env["SAMPLES"] ?? 20_000);
const tMax = 4.5;
const never = new AbortController().signal;

/** Times of one kind of key, nanoseconds. */
type Times = number[];

/** Welch's t of two kinds, without the slowest twentieth: that is the collector's and the neighbours' time. */
function welch(first: Times, second: Times): number {
  const sorted = [...first, ...second].toSorted((a, b) => a - b);
  const most = sorted[Math.floor(sorted.length * 0.95)] ?? 0;
  const [a, b] = [first, second].map((times) => momentsOf(times.filter((time) => time <= most)));
  if (a === undefined || b === undefined) throw new Error("there are two kinds");
  return (a.mean - b.mean) / Math.sqrt(a.variance / a.count + b.variance / b.count);
}

function momentsOf(times: Times) {
  const count = times.length;
  const mean = times.reduce((sum, time) => sum + time, 0) / count;
  const variance = times.reduce((sum, time) => sum + (time - mean) ** 2, 0) / (count - 1);
  return { count, mean, variance };
}

describe("S2: the time of a rejection", () => {
  test("is the same for a key whose first character is wrong and for one whose last character is wrong", async () => {
    const key = "k".repeat(43);
    const guard = createAdminGuard({ key, clock: () => 0, sleep: async () => undefined });
    const keys = [`x${key.slice(1)}`, `${key.slice(0, -1)}x`].map((wrong) => `Bearer ${wrong}`);
    const times: readonly Times[] = [[], []];
    const random = createRandom(1);
    for (let sample = -2_000; sample < samples; sample++) {
      // Mixed by chance, so that what else the machine does falls on both alike.
      const kind = random.below(2);
      const address = `2001:db8:${(sample & 0xffff).toString(16)}::1`;
      const startedAt = Bun.nanoseconds();
      await guard.admit(keys[kind] ?? "", address, never).catch(() => "rejected");
      if (sample >= 0) times[kind]?.push(Bun.nanoseconds() - startedAt);
    }
    const t = welch(times[0] ?? [], times[1] ?? []);
    console.log(`t = ${t.toFixed(2)} over ${samples} rejections`);
    expect(Math.abs(t)).toBeLessThan(tMax);
  }, 120_000);

  test("would be distinguished if one kind took one per cent longer", () => {
    const random = createRandom(2);
    const times = (more: number) => Array.from({ length: 20_000 }, () => 1_000 + more + random.below(200));
    expect(Math.abs(welch(times(0), times(0)))).toBeLessThan(tMax);
    expect(Math.abs(welch(times(0), times(10)))).toBeGreaterThan(tMax);
  });
});
