/**
 * Work that runs once for all concurrent callers.
 * @module
 */
import { expect, test } from "bun:test";
import { yieldToEventLoop } from "../../src/lib/event-loop.ts";
import { createSingleFlight } from "../../src/lib/single-flight.ts";

const none = new AbortController().signal;

test("concurrent calls of one key share the work, and a later call repeats it", async () => {
  const flights = createSingleFlight<number>();
  let runs = 0;
  const work = async () => {
    await yieldToEventLoop();
    return ++runs;
  };
  const together = await Promise.all([1, 2, 3].map(() => flights.run("key", none, work)));
  expect(together).toEqual([1, 1, 1]);
  expect(await flights.run("key", none, work)).toBe(2);
  expect(await flights.run("other", none, work)).toBe(3);
  expect(flights.size()).toBe(0);
});

test("a failure reaches all waiting callers, and is not stored", async () => {
  const flights = createSingleFlight<number>();
  const fail = () => Promise.reject(new Error("no"));
  const outcomes = await Promise.allSettled([1, 2].map(() => flights.run("key", none, fail)));
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await flights.run("key", none, async () => 7)).toBe(7);
});

test("work that throws at once rejects", async () => {
  const flights = createSingleFlight<number>();
  const run = flights.run("key", none, () => {
    throw new Error("at once");
  });
  await expect(run).rejects.toThrow("at once");
});

test("a caller that leaves ends only its own wait; the last caller that leaves aborts the work", async () => {
  const flights = createSingleFlight<string>();
  const [first, second] = [new AbortController(), new AbortController()];
  let stopped = false;
  const work = (signal: AbortSignal) =>
    new Promise<string>((_, reject) => {
      signal.addEventListener("abort", () => {
        stopped = true;
        reject(signal.reason);
      });
    });
  const waits = [first, second].map(({ signal }) => flights.run("key", signal, work).catch(String));
  await yieldToEventLoop();
  first.abort("first left");
  expect(await waits[0]).toBe("first left");
  expect(stopped).toBe(false);
  second.abort("second left");
  expect(await waits[1]).toBe("second left");
  expect(stopped).toBe(true);
  expect(flights.size()).toBe(0);
});

test("a caller after all others have left starts new work, and does not join the aborted work", async () => {
  const flights = createSingleFlight<string>();
  const leaving = new AbortController();
  const never = () => new Promise<string>(() => undefined); // does not heed its signal
  const left = flights.run("key", leaving.signal, never).catch(String);
  leaving.abort("left");
  expect(await left).toBe("left");
  expect(await flights.run("key", none, async () => "fresh")).toBe("fresh");
});

test("a caller with an aborted signal starts nothing", async () => {
  const flights = createSingleFlight<string>();
  const gone = AbortSignal.abort("gone");
  let started = false;
  const run = flights.run("key", gone, async () => {
    started = true;
    return "";
  });
  expect(await run.catch(String)).toBe("gone");
  expect(started).toBe(false);
});
