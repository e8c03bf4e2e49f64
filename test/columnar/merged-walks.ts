/**
 * Reading all pages over the index and a columnar store, while the chain grows and forks, and heights are exported,
 * loaded and pruned. Each page is compared with a full scan of the chain.
 * @module
 */
import { expect } from "bun:test";
import { blockHashBytes } from "../../src/arweave/id.ts";
import type { ColumnStore } from "../../src/columnar/column-store.ts";
import { confirmItems, confirmPartition } from "../../src/columnar/confirm-items.ts";
import { exportPartition, readPartition } from "../../src/columnar/partition.ts";
import { openExportRows } from "../../src/store/index/export-rows.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { openIndexWriter } from "../../src/store/index/index-writer.ts";
import { temporaryFolder } from "../store/folder.ts";
import { createFixture } from "../store/index/index-fixture.ts";
import { fullScan } from "../store/index/model.ts";
import { walkPages } from "../store/index/pages/walk-pages.ts";
import { inspectIndex } from "../support/inspect-index.ts";
import { createRandom } from "../support/random.ts";
import { createTextPages } from "./text-pages.ts";

const stepsBefore = 120;
const signal = new AbortController().signal;

/** Compares random walks. @param openStore - Opens an empty store that loads from a folder. */
export async function walkMerged(
  seed: number,
  walks: number,
  openStore: (folder: string) => Promise<ColumnStore>,
): Promise<void> {
  using folder = temporaryFolder();
  const path = `${folder.path}/index.sqlite`;
  const random = createRandom(seed);
  let clock = () => 0;
  const writer = openIndexWriter(path, { clock: () => clock() });
  const reader = openIndexReader(path);
  const fixture = createFixture(
    random,
    (now) => {
      clock = now;
      return { writer, reader };
    },
    false,
  );
  const rows = openExportRows(path);
  const store = await openStore(folder.path);
  const pages = createTextPages(reader, store, () => signal);
  let pruned = 0;

  const exportSome = async (): Promise<void> => {
    const tip = reader.tip()?.height ?? 0;
    const first = Math.max(100, reader.storedPartitions.nextHeight());
    const last = first + random.below(6);
    if (last > tip) return;
    const block = reader.block(last);
    if (block === undefined) throw new Error("the chain has the block");
    const common = { folder: folder.path, start: first, end: last, maxFileRows: 0, runId: `run${first}` };
    await exportPartition({ ...common, skipL1Transactions: true, skipL1Tags: true }, rows);
    const partition = readPartition(folder.path, { start: first, end: last });
    await store.load(partition, signal);
    await confirmPartition(store, partition, signal);
    const lastBlock = blockHashBytes(block.hash);
    expect(writer.addStoredPartition({ first, last, lastBlock, foreignItems: 0 })).toBe(true);
  };
  const pruneSome = async (): Promise<void> => {
    const heights = reader.storedPartitions.heights();
    if (heights.length === 0) return;
    const { first, last } = random.pick(heights);
    const start = first + random.below(last - first + 1);
    const end = start + random.below(last - start + 1);
    const ingestedBefore = Math.floor(fixture.now() / 1_000) - random.below(600);
    const request = { heights: { start, end }, ingestedBefore };
    pruned += writer.pruneStoredItems(await confirmItems({ store, index: rows }, request, signal));
  };
  const change = async (): Promise<void> => {
    if (random.chance(0.3)) fixture.step();
    if (random.chance(0.1)) await exportSome();
    if (random.chance(0.1)) await pruneSome();
  };

  for (let step = 0; step < stepsBefore; step += 1) {
    fixture.step();
    await change();
  }
  for (let walk = 0; walk < walks; walk += 1) {
    const plan = fixture.plan();
    await walkPages(fixture, pages.page, plan, random.chance(0.6) ? change : () => undefined);
    const all = fullScan(fixture.rows(), plan).length;
    const { after: _after, ...whole } = plan;
    expect(await pages.count(whole, 100)).toBe(all > 100 ? undefined : all);
  }
  expect(pruned).toBeGreaterThan(50);
  await store.close();
  rows.close();
  reader.close();
  writer.close();
  expect(inspectIndex(path).faults).toEqual([]);
}
