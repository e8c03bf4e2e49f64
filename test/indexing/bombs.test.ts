/**
 * Bundles that open into very many: what a root may make of itself ends, its memory has a bound, and what is
 * beside it and after it goes on.
 *
 * FAN says how many bundles of how many items each (60 by default).
 * Source: docs/reference/threats.md (B2).
 * @module
 */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { bundleLimitsDefault } from "../../src/indexing/unbundle.ts";
import type { BombReport } from "./bomb-child.ts";

const fan = Number(process.env["FAN"] ?? 60);
/** Of what is resident: batches on their way, the index's cache, and what the runtime has not given back yet. */
const growthMax = 512 * 2 ** 20;
const itemsBeside = 5 + 7;

async function explode(...words: (string | number)[]): Promise<BombReport> {
  const child = Bun.spawn([process.execPath, resolve(import.meta.dir, "bomb-child.ts"), ...words.map(String)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const report: BombReport = JSON.parse(await new Response(child.stdout).text());
  expect(await child.exited).toBe(0);
  const { others, faults, baseBytes, peakBytes } = report;
  expect([others, faults]).toEqual([[5, 7], []]);
  expect(peakBytes - baseBytes).toBeLessThan(growthMax);
  return report;
}

test("B2: ten thousand bundles one in another: ten are opened, the eleventh is rejected", async () => {
  const { items, bundles, rejected, warned } = await explode("chain", 10_000, 30);
  // Of the chain its eleven outermost, and what is beside it.
  expect(items - itemsBeside).toBe(11 + 1);
  expect([bundles, rejected]).toEqual([1 + 11 + 2, 1]);
  expect(warned).toEqual(["bundle rejected: bundles are nested deeper than 10"]);
}, 120_000);

test("B2: a bundle that contains itself by its id is not a valid item: its id is the hash of a signature that cannot exist", async () => {
  const { items, bundles, rejected, warned } = await explode("chain", 10_000, 0);
  expect([items - itemsBeside, bundles, rejected]).toEqual([1, 1 + 2, 0]);
  expect(warned).toEqual([expect.stringContaining("items of a bundle are invalid: ")]);
}, 120_000);

test("a bundle of bundles of items within the budget of its root is indexed to its last item", async () => {
  const { items, rejected, warned } = await explode("fan", fan, bundleLimitsDefault.entriesPerRootMax);
  expect([items - itemsBeside, rejected, warned]).toEqual([fan + fan * fan, 0, []]);
}, 3_600_000);

test("B2: beyond the budget of its root it is indexed up to there, and the rest is rejected with the reason", async () => {
  const budget = Math.floor((fan * fan) / 2);
  const { items, rejected, warned } = await explode("fan", fan, budget);
  expect(items - itemsBeside).toBe(budget);
  // The budget is the root's own entries, and bundles that were read whole or in part.
  expect(rejected).toBeGreaterThanOrEqual(fan - Math.floor((budget - fan) / fan));
  expect(warned).toEqual([`bundle rejected: more than ${budget} entries under one root`]);
}, 3_600_000);
