/**
 * The budget of entries under one root: what is given out, what comes back, and who waits for it.
 * @module
 */
import { expect, test } from "bun:test";
import { readId } from "../../src/arweave/id.ts";
import { createEntryBudget } from "../../src/indexing/entry-budget.ts";
import type { BundleJob } from "../../src/store/index/index-types.ts";

function jobOf(delivery: string): BundleJob {
  const id = readId(delivery.repeat(43));
  if (id === undefined) throw new Error(`${delivery} makes an id`);
  return {
    id,
    rootId: id,
    place: { height: 1, txIndex: 0, offset: -1 },
    parentOffset: null,
    headerSize: 0,
    size: 1_000,
    depth: 0,
    bypassFilter: false,
    nextEntry: 0,
    attempts: 0,
    matchedCount: 0,
  };
}

const job = jobOf("A");
const { signal } = new AbortController();
const indexHas = (entries: number) => ({ entriesUnder: () => entries });

test("is given out to the last entry, of each root its own, and is then spent", async () => {
  const budget = createEntryBudget(10, indexHas(0));
  const sizes: (number | undefined)[] = [];
  for (const wanted of [4, 4, 4, 4]) {
    const grant = await budget.take(job, wanted, signal);
    sizes.push(grant?.entries);
    grant?.settle(grant.entries);
  }
  expect([sizes, budget.isSpent(job), budget.isSpent(jobOf("E"))]).toEqual([[4, 4, 2, undefined], true, false]);
});

test("goes on where the index says that it was, unless the root is begun anew", async () => {
  const budget = createEntryBudget(10, indexHas(7));
  expect((await budget.take(job, 9, signal))?.entries).toBe(3);
  budget.begin(job.rootId);
  expect((await budget.take(job, 9, signal))?.entries).toBe(9);
});

test("who finds all of it given out waits for what comes back, and is rejected only when nothing does", async () => {
  const budget = createEntryBudget(10, indexHas(0));
  const first = await budget.take(job, 10, signal);
  const second = budget.take(job, 10, signal);
  expect(budget.isSpent(job)).toBe(false);
  first?.settle(4);
  const got = await second;
  expect(got?.entries).toBe(6);
  const third = budget.take(job, 10, signal);
  got?.settle(6);
  expect(await third).toBeUndefined();
  got?.giveBack(1);
  expect((await budget.take(job, 10, signal))?.entries).toBe(1);
});

test("entries that come back after their root left the memory are not subtracted from the count of the index", async () => {
  const budget = createEntryBudget(10, indexHas(7));
  const grant = await budget.take(job, 3, signal);
  grant?.settle(3);
  const rootOf = (number: number) => readId(Buffer.alloc(32, `${number}`.padStart(32)).toString("base64url"));
  for (let number = 0; number < 10_000; number += 1) budget.begin(rootOf(number) ?? job.rootId);
  grant?.giveBack(3);
  expect((await budget.take(job, 10, signal))?.entries).toBe(3);
});

test("a stopped waiter is released", async () => {
  const budget = createEntryBudget(10, indexHas(0));
  await budget.take(job, 10, signal);
  const stop = new AbortController();
  const waiting = budget.take(job, 10, stop.signal);
  stop.abort(new Error("stopped"));
  await expect(waiting).rejects.toThrow("stopped");
});
