/**
 * Concurrent work: each thing once, a maximum of concurrent things, and an end at the first failure.
 * @module
 */
import { expect, test } from "bun:test";
import { eachAtOnce } from "../../../src/cli/upload/item-sender.ts";
import { yieldToEventLoop } from "../../../src/lib/event-loop.ts";

test("each thing is processed once, up to the maximum at a time", async () => {
  const things = Array.from({ length: 20 }, (_, index) => index);
  const begun: number[] = [];
  let atWork = 0;
  let most = 0;
  await eachAtOnce(things.values(), 3, new AbortController(), async (thing) => {
    begun.push(thing);
    atWork += 1;
    most = Math.max(most, atWork);
    await yieldToEventLoop();
    atWork -= 1;
  });
  expect([begun, most]).toEqual([things, 3]);
});

test("the first failure aborts the others, and is thrown when they have ended", async () => {
  const stop = new AbortController();
  const ended: number[] = [];
  const work = async (thing: number) => {
    if (thing === 1) throw new Error("the first");
    await new Promise((resolve) => stop.signal.addEventListener("abort", resolve));
    ended.push(thing);
    throw new Error("aborted");
  };
  await expect(eachAtOnce([0, 1, 2, 3, 4].values(), 3, stop, work)).rejects.toThrow("the first");
  expect([ended, stop.signal.aborted]).toEqual([[0, 2], true]);
});
