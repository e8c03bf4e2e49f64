/**
 * The pool: responses come back, and a dead, hung or throwing job harms only itself.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Failure } from "../../src/failures.ts";
import { openPool } from "../../src/threads/pool.ts";
import { until } from "../support/until.ts";

const pool = openPool<typeof import("./jobs.ts")>({
  entry: new URL("./jobs.ts", import.meta.url),
  threads: 2,
  queueMax: 4,
  timeoutMs: 4_000, // a thread may take a while to start on a busy machine, and its first job waits for that
  idleMs: 10_000,
});

const ofOneThread = {
  entry: new URL("./jobs.ts", import.meta.url),
  threads: 1,
  queueMax: 1_000,
  idleMs: 10_000,
} as const;

const ofSlowStart = {
  entry: new URL("./slow-start-jobs.ts", import.meta.url),
  queueMax: 10,
  timeoutMs: 1_000, // shorter than the start
  idleMs: 10_000,
} as const;

afterAll(() => pool.close());

async function failureOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return error instanceof Failure ? error.code : String(error);
  }
  return "responded";
}

describe("pool", () => {
  test("a job's result comes back", async () => {
    expect(await pool.run("add", { a: 2, b: 3 })).toBe(5);
  });

  test("what a job throws reaches the caller as it is", async () => {
    expect(await failureOf(pool.run("reject", { reason: "not today" }))).toBe("Error: not today");
  });

  test("an error of a job that reads like the end of a thread is still the job's own", async () => {
    const text = "worker exited with code: 1";
    expect(await failureOf(pool.run("reject", { reason: text }))).toBe(`Error: ${text}`);
  });

  test("B5: a thread that dies fails its job once, and the next job succeeds", async () => {
    expect(await failureOf(pool.run("die", {}))).toBe("worker_failed");
    expect(await pool.run("add", { a: 1, b: 1 })).toBe(2);
  });

  test("B5: a thread that hangs is ended, and the next job succeeds", async () => {
    expect(await failureOf(pool.run("hang", {}))).toBe("worker_failed");
    expect(await pool.run("add", { a: 4, b: 4 })).toBe(8);
  });

  test("a thread without a job runs its timers: the runtime collects its garbage by them", async () => {
    const shared = new SharedArrayBuffer(1);
    await pool.run("markLater", { shared });
    await until(() => new Uint8Array(shared)[0] === 1);
  });

  test("a caller who leaves gets its own reason, and the thread that works for it lives on", async () => {
    const single = openPool<typeof import("./jobs.ts")>({ ...ofOneThread, timeoutMs: 10_000 });
    const leave = new AbortController();
    const thread = await single.run("threadNumber", {});
    const began = new Int32Array(new SharedArrayBuffer(8));
    const job = single.run("workUntilNotified", { began }, { signal: leave.signal });
    await until(() => Atomics.load(began, 0) !== 0);
    leave.abort(new Error("left"));
    expect(await failureOf(job)).toBe("Error: left");
    Atomics.store(began, 1, 1);
    expect(await single.run("threadNumber", {})).toBe(thread);
    expect(single.load()).toEqual({ open: 0, threads: 1 });
    await single.close();
  });

  test("a job whose caller left before it began is not carried out, and one that only waits is not hung", async () => {
    const single = openPool<typeof import("./jobs.ts")>({ ...ofOneThread, timeoutMs: 60_000 });
    const first = await single.run("next", {});
    const began = new Int32Array(new SharedArrayBuffer(8));
    const long = single.run("workUntilNotified", { began });
    await until(() => Atomics.load(began, 0) !== 0);
    const leave = new AbortController();
    const left = single.run("next", {}, { signal: leave.signal });
    const waits = single.run("next", {}, { timeoutMs: 1_000 });
    leave.abort(new Error("left"));
    expect(await failureOf(left)).toBe("Error: left");
    await Bun.sleep(1_100); // longer than `waits` may be at work
    Atomics.store(began, 1, 1);
    await long;
    expect(await waits).toBe(first + 1);
    await single.close();
  });

  test("one thread carries jobs out in the order in which they were passed on", async () => {
    const single = openPool<typeof import("./jobs.ts")>({ ...ofOneThread, timeoutMs: 10_000 });
    const count = 500;
    const numbers = await Promise.all(Array.from({ length: count }, () => single.run("next", {})));
    await single.close();
    expect(numbers).toEqual(Array.from({ length: count }, (_, index) => index + 1));
  });

  test("jobs that overlap shortly need no second thread, however long the first one takes to start", async () => {
    // On a busy machine the jobs may take so long that another thread starts.
    let threads = 2;
    for (let attempt = 0; attempt < 10 && threads > 1; attempt += 1) {
      const double = openPool<typeof import("./slow-start-jobs.ts")>({ ...ofSlowStart, threads: 2 });
      await Promise.all([double.run("echo", { ms: 1 }), double.run("echo", { ms: 2 }), double.run("echo", { ms: 3 })]);
      ({ threads } = double.load());
      await double.close();
    }
    expect(threads).toBe(1);
  });

  test("a job that waits for long starts another thread", async () => {
    const double = openPool<typeof import("./jobs.ts")>({ ...ofOneThread, threads: 2, timeoutMs: 10_000 });
    const began = new Int32Array(new SharedArrayBuffer(8));
    const long = double.run("workUntilNotified", { began });
    expect(await double.run("next", {})).toBe(1);
    expect(double.load()).toEqual({ open: 1, threads: 2 });
    Atomics.store(began, 1, 1);
    await long;
    expect(await Promise.all([double.run("next", {}), double.run("next", {})])).toContain(2);
    await double.close();
  });

  test("transferred bytes arrive whole and are gone here", async () => {
    const bytes = new Uint8Array(1 << 20);
    expect(await pool.run("size", { bytes }, { transfer: [bytes.buffer] })).toBe(1 << 20);
    expect(bytes.length).toBe(0);
  });

  test("a full queue rejects, and queued jobs succeed", async () => {
    const jobs = Array.from({ length: 20 }, () => failureOf(pool.run("add", { a: 1, b: 2 })));
    const outcomes = await Promise.all(jobs);
    expect(outcomes.filter((outcome) => outcome === "busy").length).toBeGreaterThan(0);
    expect(outcomes.every((outcome) => outcome === "busy" || outcome === "responded")).toBe(true);
    expect(await pool.run("add", { a: 1, b: 2 })).toBe(3);
  });

  test("B5: the start of a thread counts for no deadline: not for the pool's, not for one within a job", async () => {
    const slow = openPool<typeof import("./slow-start-jobs.ts")>({ ...ofSlowStart, threads: 1 });
    const startMs = (ms: number) => ({ ms });
    const [first, second] = await Promise.all([slow.run("echo", startMs), slow.run("echo", startMs)]);
    expect(first.ms).toBeGreaterThan(1_000);
    // It waited for its permit, and so for the start.
    expect(second.ms).toBeGreaterThanOrEqual(first.ms);
    expect(await slow.run("echo", startMs)).toEqual({ ms: 0 });
    await slow.close();
  });
});
