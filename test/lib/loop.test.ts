/**
 * Background loops: they continue after every failure, report it, wake early, and end when they are closed.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { explainError, Failure } from "../../src/failures.ts";
import { yieldToEventLoop } from "../../src/lib/event-loop.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createIdleWait, type LoopOptions, openBackgroundLoop, openLoop } from "../../src/lib/loop.ts";
import { sleep } from "../../src/lib/stop.ts";
import { until } from "../support/until.ts";

const never = 2 ** 30;

const usual = {
  name: "the loop",
  intervalMs: never,
  backoff: { firstMs: 1, longestMs: 2 },
  stepTimeoutMs: 10_000,
  clock: () => 77,
  random: () => 0,
  log: silentLog,
} satisfies Omit<LoopOptions, "step">;

describe("openLoop", () => {
  test("continues after every failure, and reports the last failure until a step succeeds", async () => {
    let steps = 0;
    const { promise: recovered, resolve } = Promise.withResolvers<void>();
    const seen: (string | undefined)[] = [];
    const loop = openLoop({
      ...usual,
      step: async () => {
        seen.push(loop.status().lastError);
        steps += 1;
        if (steps <= 5) throw new Failure("source_failed", { attempt: steps });
        resolve();
        return "rest";
      },
    });
    await recovered;
    await until(() => loop.status().lastSuccessAt !== undefined);
    expect(seen.slice(1)).toEqual(
      [1, 2, 3, 4, 5].map((attempt) => `No source could provide valid data {"attempt":${attempt}}`),
    );
    expect(loop.status()).toEqual({
      running: true,
      failures: 0,
      lastError: undefined,
      lastSuccessAt: 77,
      stepSince: undefined,
    });
    await loop.close();
    expect(loop.status().running).toBe(false);
  });

  test("runs the next step at once when it is woken, also when woken while a step runs", async () => {
    let steps = 0;
    const third = Promise.withResolvers<void>();
    const loop = openLoop({
      ...usual,
      step: async () => {
        steps += 1;
        if (steps === 2) loop.wake();
        if (steps === 3) third.resolve();
        return "rest";
      },
    });
    await until(() => loop.status().lastSuccessAt !== undefined);
    expect(steps).toBe(1);
    loop.wake();
    await third.promise;
    await loop.close();
    expect(steps).toBe(3);
  });

  test("ends a step that takes too long and counts it as a failure", async () => {
    const failed = Promise.withResolvers<void>();
    let steps = 0;
    const loop = openLoop({
      ...usual,
      stepTimeoutMs: 5,
      step: async (signal) => {
        steps += 1;
        if (steps === 2) {
          failed.resolve();
          return "rest";
        }
        await sleep(never, signal);
        return "again";
      },
    });
    await failed.promise;
    expect(loop.status().lastError).toBe("nothing within 5 ms");
    await loop.close();
  });

  test("close aborts the running step, waits for it, and does not count as a failure", async () => {
    let ended = false;
    const loop = openLoop({
      ...usual,
      step: async (signal) => {
        await sleep(never, signal).finally(() => {
          ended = true;
        });
        return "again";
      },
    });
    await until(() => loop.status().stepSince === 77);
    await loop.close();
    expect(ended).toBe(true);
    expect(loop.status()).toMatchObject({ running: false, failures: 0, lastError: undefined });
  });
});

describe("openBackgroundLoop", () => {
  test("runs rounds, waits as long as a round requests, and passes errors to onError", async () => {
    let rounds = 0;
    const errors: unknown[] = [];
    const third = Promise.withResolvers<void>();
    const loop = openBackgroundLoop(
      "test",
      async () => {
        rounds += 1;
        if (rounds === 2) throw new Error("second");
        if (rounds === 3) third.resolve();
        return rounds === 1 ? 0 : never;
      },
      (error) => errors.push(error),
    );
    await third.promise;
    await yieldToEventLoop();
    expect({ rounds, errors }).toEqual({ rounds: 3, errors: [new Error("second")] });
    loop.wake();
    await until(() => rounds === 4);
    await loop.close();
    expect(rounds).toBe(4);
  });

  test("close aborts the round, waits for it, and does not report its error", async () => {
    const errors: unknown[] = [];
    let reason: unknown;
    const begun = Promise.withResolvers<void>();
    const loop = openBackgroundLoop(
      "test",
      async (signal) => {
        begun.resolve();
        await sleep(never, signal).catch((error: unknown) => {
          reason = error;
          throw error;
        });
        return 0;
      },
      (error) => errors.push(error),
    );
    await begun.promise;
    await loop.close();
    expect(errors).toEqual([]);
    expect(reason).toEqual(new DOMException("test: closed", "AbortError"));
  });

  test("begins a moment after it was opened, and never after close", async () => {
    let rounds = 0;
    const open = () =>
      openBackgroundLoop(
        "test",
        async () => {
          rounds += 1;
          return never;
        },
        () => never,
      );
    await open().close();
    const loop = open();
    expect(rounds).toBe(0);
    await until(() => rounds === 1);
    await loop.close();
  });
});

describe("the wait between two rounds", () => {
  test("ends after its time", async () => {
    const wait = createIdleWait(new AbortController().signal)
      .wait(20)
      .then(() => "ended");
    expect(await Promise.race([wait, yieldToEventLoop().then(() => "lasts")])).toBe("lasts");
    expect(await wait).toBe("ended");
  });

  test("of more milliseconds than a timer can have does not end at once", async () => {
    const life = new AbortController();
    const wait = createIdleWait(life.signal)
      .wait(2 ** 31)
      .then(() => "ended");
    expect(await Promise.race([wait, Bun.sleep(50).then(() => "lasts")])).toBe("lasts");
    life.abort();
  });

  test("ends when it is woken; the next wait is complete again", async () => {
    const idle = createIdleWait(new AbortController().signal);
    const first = idle.wait(never);
    idle.end();
    await first;
    const second = idle.wait(never).then(() => "ended");
    expect(await Promise.race([second, yieldToEventLoop().then(() => "lasts")])).toBe("lasts");
    idle.end();
    expect(await second).toBe("ended");
  });

  test("does not start when it was woken before", async () => {
    const idle = createIdleWait(new AbortController().signal);
    idle.end();
    await idle.wait(never);
  });

  test("ends when the signal is aborted, and never starts again", async () => {
    const life = new AbortController();
    const idle = createIdleWait(life.signal);
    const waiting = idle.wait(never);
    life.abort();
    await waiting;
    await idle.wait(never);
  });
});

describe("explainError", () => {
  test("has the message, the context and the causes in one line", () => {
    const error = new Failure("busy", { waiting: 3 }, new Error("full", { cause: "a string" }));
    expect(explainError(error)).toBe('Service busy {"waiting":3} (full (a string))');
  });
});
