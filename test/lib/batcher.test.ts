/**
 * The batching queue: jobs of one iteration of the event loop share a batch, batches grow while workers are busy, and the queue is bounded.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { type BatchJob, createBatcher } from "../../src/lib/batcher.ts";
import { yieldToEventLoop } from "../../src/lib/event-loop.ts";

type NumberJob = BatchJob<number, string>;

/** A batcher of numbers whose batches are recorded and end when the test says so. */
function recorded(workers: readonly string[], most = 3, waitingMax = 100) {
  const batches: Readonly<{ worker: string; inputs: readonly number[]; end: () => void }>[] = [];
  const batcher = createBatcher<number, string, string>({
    name: "test",
    workers,
    waitingMax,
    batchSize: (waiting) => Math.min(most, waiting.length),
    run: async (batch: readonly NumberJob[], worker) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      batches.push({ worker, inputs: batch.map(({ input }) => input), end: resolve });
      await promise;
      for (const job of batch) {
        if (job.input < 0) job.reject(new Error(`negative ${job.input}`));
        else job.resolve(`${worker} ${job.input}`);
      }
    },
  });
  return { batches, batcher };
}

describe("createBatcher", () => {
  test("sends the jobs of one iteration together, at most a batch to each idle worker", async () => {
    const { batches, batcher } = recorded(["a", "b"]);
    const responses = [1, 2, 3, 4, 5, 6, 7].map((input) => batcher.add(input));
    expect(batches).toEqual([]);
    await yieldToEventLoop();
    expect(batches).toMatchObject([
      { worker: "a", inputs: [1, 2, 3] },
      { worker: "b", inputs: [4, 5, 6] },
    ]);
    expect(batcher.waiting()).toBe(1);
    batches[1]?.end();
    await yieldToEventLoop();
    expect(batches[2]).toMatchObject({ worker: "b", inputs: [7] });
    for (const { end } of batches) end();
    expect(await Promise.all(responses)).toEqual(["a 1", "a 2", "a 3", "b 4", "b 5", "b 6", "b 7"]);
  });

  test("gathers jobs while all workers are busy", async () => {
    const { batches, batcher } = recorded(["a"]);
    const first = batcher.add(1);
    await yieldToEventLoop();
    const second = batcher.add(2);
    await yieldToEventLoop();
    const third = batcher.add(3);
    batches[0]?.end();
    expect(await first).toBe("a 1");
    await yieldToEventLoop();
    batches[1]?.end();
    expect(await Promise.all([second, third])).toEqual(["a 2", "a 3"]);
    expect(batches.map(({ inputs }) => inputs)).toEqual([[1], [2, 3]]);
  });

  test("settles each job separately", async () => {
    const { batches, batcher } = recorded(["a"]);
    const responses = [1, -2].map((input) => batcher.add(input) ?? Promise.resolve("full"));
    await yieldToEventLoop();
    batches[0]?.end();
    expect(await Promise.allSettled(responses)).toEqual([
      { status: "fulfilled", value: "a 1" },
      { status: "rejected", reason: new Error("negative -2") },
    ]);
  });

  test("accepts no job beyond its limit", async () => {
    const { batches, batcher } = recorded(["a"], 3, 2);
    const responses = [1, 2, 3].map((input) => batcher.add(input));
    expect(responses[2]).toBeUndefined();
    await yieldToEventLoop();
    batches[0]?.end();
    expect(await Promise.all(responses)).toEqual(["a 1", "a 2", undefined]);
  });
});
