/**
 * Passes over older bundles: newest first, bounded, and continued after a restart.
 * @module
 */
import { expect, test } from "bun:test";
import type { BundleJob } from "../../../../src/store/index/index-types.ts";
import { openIndexWriter } from "../../../../src/store/index/index-writer.ts";
import { createRandom } from "../../../support/random.ts";
import { growingChain } from "../growing-chain.ts";
import { type IndexFile, indexFile } from "../index-file.ts";
import { bundleOf, ownerOf } from "../rows-of.ts";

const random = createRandom(5);
const filtersOf = (name: string) => ({
  unbundleFilter: `{"unbundle":"${name}"}`,
  indexFilter: `{"always":true}`,
});
const count = 40;
const bounds = { waitingMax: 8, readMax: 5 };

/** An index with `count` skipped bundles, one in each block. */
function skippedBundles(file: IndexFile): void {
  const chain = growingChain(file.writer, random, ownerOf(random));
  for (let at = 0; at < count; at += 1)
    chain.add({
      transactions: [{ dataSize: 1_000 }],
      bundles: (height, rows) =>
        rows.map(({ txIndex, id, dataSize }) => bundleOf({ height, txIndex, offset: -1 }, id, dataSize)),
    });
  skipAll(file, "old");
}

function skipAll(file: IndexFile, filter: string): number[] {
  const heights: number[] = [];
  for (;;) {
    file.nowMs += 1_000;
    const job: BundleJob | undefined = file.writer.takeBundle();
    if (job === undefined) return heights;
    heights.push(job.place.height);
    file.writer.skipBundle({ ...job.place, id: job.id }, filtersOf(filter));
  }
}

test("a pass queues each bundle once, newest first, and no more than may wait", () => {
  using file = indexFile();
  expect(file.writer.bundleFiltersChanged(filtersOf("old"))).toBe(false);
  skippedBundles(file);
  expect(file.writer.bundleFiltersChanged(filtersOf("old"))).toBe(false);
  expect(file.writer.bundleFiltersChanged(filtersOf("new"))).toBe(true);
  expect(file.writer.bundleFiltersChanged(filtersOf("new"))).toBe(false);
  const heights: number[] = [];
  for (let step = 0; step < 100 && file.reader.bundlePasses().length > 0; step += 1) {
    const { queued, hasMore } = file.writer.stepBundlePass(filtersOf("new"), bounds);
    const { bundlesQueued } = file.reader.counts();
    expect(bundlesQueued).toBeLessThanOrEqual(8);
    expect(queued).toBeLessThanOrEqual(5);
    if (hasMore) continue;
    expect(bundlesQueued).toBe(8);
    heights.push(...skipAll(file, "new"));
  }
  heights.push(...skipAll(file, "new"));
  expect(heights).toEqual(Array.from({ length: count }, (_, at) => 10 + count - 1 - at));
  expect(file.faults()).toEqual([]);
});

test("a pass continues after a restart, and another change of filters begins a new pass", () => {
  using file = indexFile();
  skippedBundles(file);
  file.writer.bundleFiltersChanged(filtersOf("new"));
  file.writer.stepBundlePass(filtersOf("new"), bounds);
  const [before] = file.reader.bundlePasses();
  expect(before).toMatchObject({
    reason: "filters changed",
    nextHeight: 10 + count - 6,
    bypassFilter: false,
  });
  file.writer.close();
  const second = openIndexWriter(file.path, { clock: () => file.nowMs });
  expect(file.reader.bundlePasses()).toEqual([before ?? expect.anything()]);
  expect(second.bundleFiltersChanged(filtersOf("new"))).toBe(false);
  expect(second.bundleFiltersChanged(filtersOf("newer"))).toBe(true);
  expect(file.reader.bundlePasses()).toMatchObject([{ nextHeight: expect.any(Number) }]);
  second.close();
});

test("an operator's pass evaluates only its range of heights, and too many ranges are rejected", () => {
  using file = indexFile();
  skippedBundles(file);
  expect(file.writer.addBundleRange({ startHeight: 12, endHeight: 14, bypassFilter: true })).toBe(true);
  while (file.reader.bundlePasses().length > 0) file.writer.stepBundlePass(filtersOf("old"), bounds);
  expect(file.reader.counts().bundlesQueued).toBe(3);
  file.nowMs += 1_000;
  expect([1, 2, 3].map(() => file.writer.takeBundle()?.bypassFilter)).toEqual([true, true, true]);
  const range = { startHeight: 0, endHeight: Number.MAX_SAFE_INTEGER, bypassFilter: false };
  for (let at = 0; at < 100; at += 1) expect(file.writer.addBundleRange(range)).toBe(true);
  expect(file.writer.addBundleRange(range)).toBe(false);
  expect(file.faults()).toEqual([]);
});
