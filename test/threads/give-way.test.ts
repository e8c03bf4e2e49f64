/**
 * Threads that response queries give way to the one that serves.
 * @module
 */
import { afterAll, expect } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { openPool } from "../../src/threads/pool.ts";
import { testWith } from "../support/helpers.ts";

const pool = openPool({ entry: "graphql", threads: 1, queueMax: 8, timeoutMs: 30_000, idleMs: 30_000 });
afterAll(() => pool.close());

/** How nice each thread of this process is, by its number. */
function niceness(): ReadonlyMap<number, number> {
  const threads = readdirSync("/proc/self/task").map(Number);
  return new Map(
    threads.map((thread) => {
      const stat = readFileSync(`/proc/self/task/${thread}/stat`, "utf8");
      // The name may hold spaces and parentheses; what follows its last parenthesis begins with the third field.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return [thread, Number(fields[16])];
    }),
  );
}

const linux = { there: process.platform === "linux", what: "Linux, which ranks threads one by one" };

testWith(linux, "query threads are nicer than the main thread, and only they", async () => {
  const before = niceness();
  await pool.ping();
  const own = before.get(process.pid) ?? Number.NaN;
  const after = niceness();
  expect(after.get(process.pid)).toBe(own);
  const added = [...after].filter(([thread, nice]) => !before.has(thread) && nice > own);
  expect(added.length).toBeGreaterThanOrEqual(1);
  expect(added.every(([, nice]) => nice === Math.min(19, own + 10))).toBe(true);
});
