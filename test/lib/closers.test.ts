/**
 * Shutdown in reverse order, once, of every part.
 * @module
 */
import { expect, test } from "bun:test";
import { createClosers } from "../../src/lib/closers.ts";
import { yieldToEventLoop } from "../../src/lib/event-loop.ts";

test("the part opened last is closed first, and each close waits for the one before it", async () => {
  const closed: string[] = [];
  const closers = createClosers(() => undefined);
  closers.add("first", () => void closed.push("first"));
  closers.add("slow", async () => {
    await yieldToEventLoop();
    closed.push("slow");
  });
  closers.add("last", () => void closed.push("last"));
  await closers.closeAll();
  expect(closed).toEqual(["last", "slow", "first"]);
});

test("a part that fails to close is reported, and the others are closed", async () => {
  const [closed, faults]: [string[], string[]] = [[], []];
  const closers = createClosers((name, error) => faults.push(`${name}: ${error}`));
  closers.add("first", () => void closed.push("first"));
  closers.add("throws", () => {
    throw new Error("no");
  });
  closers.add("rejects", () => Promise.reject(new Error("never")));
  await closers.closeAll();
  expect([closed, faults]).toEqual([["first"], ["rejects: Error: never", "throws: Error: no"]]);
});

test("a second call waits for the first, and closes nothing twice", async () => {
  let count = 0;
  const closers = createClosers(() => undefined);
  closers.add("slow", async () => {
    await yieldToEventLoop();
    count += 1;
  });
  const first = closers.closeAll();
  await closers.closeAll();
  expect(count).toBe(1);
  await first;
});
