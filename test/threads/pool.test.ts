/**
 * The pool: answers come back, and a dead, hung or throwing job harms only itself.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Failure } from "../../src/failures.ts";
import { openPool } from "../../src/threads/pool.ts";

const pool = openPool({
  entry: new URL("./jobs.ts", import.meta.url),
  threads: 2,
  queueMax: 4,
  timeoutMs: 4_000, // a thread may take a while to start on a busy machine, and its first job waits for that
  idleMs: 10_000,
});

afterAll(() => pool.close());

async function failureOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return error instanceof Failure ? error.code : String(error);
  }
  return "answered";
}

describe("pool", () => {
  test("a job's answer comes back", async () => {
    expect(await pool.run<number>("add", { a: 2, b: 3 })).toBe(5);
  });

  test("what a job throws reaches the caller as it is", async () => {
    expect(await failureOf(pool.run("refuse", { reason: "not today" }))).toBe("Error: not today");
  });

  test("a thread that dies fails its job once, and the next job is answered", async () => {
    expect(await failureOf(pool.run("die", {}))).toBe("worker_failed");
    expect(await pool.run<number>("add", { a: 1, b: 1 })).toBe(2);
  });

  test("a thread that hangs is ended, and the next job is answered", async () => {
    expect(await failureOf(pool.run("hang", {}))).toBe("worker_failed");
    expect(await pool.run<number>("add", { a: 4, b: 4 })).toBe(8);
  });

  test("a caller who leaves gets its own reason", async () => {
    const leave = new AbortController();
    const job = pool.run("hang", {}, { signal: leave.signal });
    leave.abort(new Error("left"));
    expect(await failureOf(job)).toBe("Error: left");
  });

  test("one thread carries jobs out in the order in which they were handed over", async () => {
    const single = openPool({
      entry: new URL("./jobs.ts", import.meta.url),
      threads: 1,
      queueMax: 1_000,
      timeoutMs: 10_000,
      idleMs: 10_000,
    });
    const count = 500;
    const numbers = await Promise.all(Array.from({ length: count }, () => single.run<number>("next", {})));
    await single.close();
    expect(numbers).toEqual(Array.from({ length: count }, (_, index) => index + 1));
  });

  test("transferred bytes arrive whole and are gone here", async () => {
    const bytes = new Uint8Array(1 << 20);
    expect(await pool.run<number>("size", { bytes }, { transfer: [bytes.buffer] })).toBe(1 << 20);
    expect(bytes.length).toBe(0);
  });

  test("a full queue refuses, and what was queued is answered", async () => {
    const jobs = Array.from({ length: 20 }, () => failureOf(pool.run("add", { a: 1, b: 2 })));
    const outcomes = await Promise.all(jobs);
    expect(outcomes.filter((outcome) => outcome === "busy").length).toBeGreaterThan(0);
    expect(outcomes.every((outcome) => outcome === "busy" || outcome === "answered")).toBe(true);
    expect(await pool.run<number>("add", { a: 1, b: 2 })).toBe(3);
  });
});
