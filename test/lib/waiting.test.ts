/**
 * Waits, semaphores and retries: lib/stop.ts, lib/semaphore.ts, lib/retry.ts.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { yieldToEventLoop } from "../../src/lib/event-loop.ts";
import { retry, retryWaitMs } from "../../src/lib/retry.ts";
import { createSemaphore } from "../../src/lib/semaphore.ts";
import { isTimeout, linkedController, sleep, untilStopped, withDeadline } from "../../src/lib/stop.ts";

const none = new AbortController().signal;

describe("stop", () => {
  test("a sleep ends with its signal, and at once if the signal was aborted before", async () => {
    const controller = new AbortController();
    const long = sleep(60_000, controller.signal).catch(String);
    controller.abort("enough");
    expect(await long).toBe("enough");
    expect(await sleep(60_000, controller.signal).catch(String)).toBe("enough");
    await sleep(0, none);
  });

  test("a deadline aborts the work with a time-out; the parent aborts it with its own reason", async () => {
    const untilAborted = (signal: AbortSignal) => untilStopped(new Promise<never>(() => undefined), signal);
    const late: unknown = await withDeadline(none, 5, untilAborted).catch((error: unknown) => error);
    expect(isTimeout(late)).toBe(true);
    const controller = new AbortController();
    const stopped = withDeadline(controller.signal, 60_000, untilAborted).catch(String);
    controller.abort("stopped");
    expect(await stopped).toBe("stopped");
    expect(await withDeadline(none, 60_000, async () => 5)).toBe(5);
    expect(isTimeout(new Error("TimeoutError"))).toBe(false);
  });

  test("a linked controller follows the first of its parents, until it is unlinked", () => {
    const [one, two] = [new AbortController(), new AbortController()];
    const linked = linkedController(one.signal, two.signal);
    const loose = linkedController(one.signal, two.signal);
    loose.unlink();
    two.abort("two");
    one.abort("one");
    expect(linked.controller.signal.reason).toBe("two");
    expect(loose.controller.signal.aborted).toBe(false);
    expect(linkedController(one.signal).controller.signal.reason).toBe("one");
  });

  test("an aborted wait ignores a later rejection of its promise", async () => {
    const gone = AbortSignal.abort("gone");
    const failing = Promise.reject(new Error("late"));
    expect(await untilStopped(failing, gone).catch(String)).toBe("gone");
    await Bun.sleep(1); // an unhandled rejection would end the test here
  });
});

describe("a semaphore", () => {
  test("has a maximum of permits and of waiting callers in order; the next caller fails at once", async () => {
    const semaphore = createSemaphore(2, 2);
    const order: string[] = [];
    const endFirst = await semaphore.take(none);
    const endSecond = await semaphore.take(none);
    const third = semaphore.take(none)?.then((end) => {
      order.push("third");
      return end;
    });
    const fourth = semaphore.take(none)?.then((end) => {
      order.push("fourth");
      return end;
    });
    expect(semaphore.take(none)).toBeUndefined();
    expect([semaphore.atWork(), semaphore.waiting()]).toEqual([2, 2]);
    endFirst?.();
    endFirst?.(); // a second release has no effect
    (await third)?.();
    (await fourth)?.();
    endSecond?.();
    expect(order).toEqual(["third", "fourth"]);
    expect([semaphore.atWork(), semaphore.waiting()]).toEqual([0, 0]);
  });

  test("skips a caller that has left the queue", async () => {
    const semaphore = createSemaphore(1, 5);
    const end = await semaphore.take(none);
    const leaving = new AbortController();
    const left = semaphore.take(leaving.signal)?.catch(String);
    const next = semaphore.take(none);
    leaving.abort("left");
    expect(await left).toBe("left");
    end?.();
    (await next)?.();
    expect([semaphore.atWork(), semaphore.waiting()]).toEqual([0, 0]);
    expect(await semaphore.take(AbortSignal.abort("gone"))?.catch(String)).toBe("gone");
  });
});

describe("retry", () => {
  const plan = { attempts: 4, firstMs: 100, longestMs: 250 };

  test("waits double up to a limit, with a random part of up to a half", () => {
    const waits = (random: number) => [1, 2, 3, 60].map((made) => retryWaitMs(plan, made, () => random));
    expect(waits(0)).toEqual([50, 100, 125, 125]);
    expect(waits(0.999_999)).toEqual([100, 200, 250, 250]);
  });

  test("attempts end with the first final result, or with the last result", async () => {
    const quick = { attempts: 4, firstMs: 1, longestMs: 1 };
    const run = (isFinal: (made: number) => boolean) =>
      retry(
        quick,
        none,
        () => 0,
        async (made) => made,
        isFinal,
      );
    expect(await run((made) => made === 0)).toBe(0);
    expect(await run((made) => made === 2)).toBe(2);
    expect(await run(() => false)).toBe(3);
  });

  test("an error is final, and an aborted signal ends the wait", async () => {
    const throwing = retry(
      plan,
      none,
      Math.random,
      () => Promise.reject(new Error("no")),
      () => false,
    );
    expect(await throwing.catch(String)).toBe("Error: no");
    const controller = new AbortController();
    const waiting = retry(
      { ...plan, firstMs: 60_000, longestMs: 60_000 },
      controller.signal,
      () => 0,
      async () => 1,
      () => false,
    );
    await yieldToEventLoop();
    controller.abort("stopped");
    expect(await waiting.catch(String)).toBe("stopped");
  });
});
