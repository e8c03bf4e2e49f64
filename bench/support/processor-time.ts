/**
 * The CPU time of processes and threads, and the core that one runs on.
 * @module
 */
import { readdirSync, readFileSync } from "node:fs";

/** The prefix that pins a server to one core, if possible, so that the client has another. */
export function pinned(core: number): string[] {
  return Bun.which("taskset") === null || navigator.hardwareConcurrency < 2 ? [] : ["taskset", "-c", String(core)];
}

/** Clock ticks per second of CPU time in /proc. */
const ticksPerSecond = 100;

/** User and system time of a process and its threads, in seconds. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/**
 * Starts to count the CPU time of a process in nanoseconds: finer than {@link cpuSeconds}, for short rounds. A thread
 * that ends before the result is read is not counted at all.
 *
 * @returns A function that returns the CPU time since the start.
 */
export function startCpuNanos(pid: number): () => number {
  const before = threadTimes(pid);
  return () => {
    // The time of a thread that ends while it is read is 0.
    const passed = [...threadTimes(pid)].map(([thread, nanos]) => Math.max(0, nanos - (before.get(thread) ?? 0)));
    return passed.reduce((sum, nanos) => sum + nanos, 0);
  };
}

function threadTimes(pid: number): ReadonlyMap<string, number> {
  return new Map(readdirSync(`/proc/${pid}/task`).map((thread) => [thread, threadNanos(pid, thread)]));
}

/** CPU time of one thread, in nanoseconds; the main thread has the id of the process. */
export function threadNanos(pid: number, thread: number | string): number {
  return nanosOf(`/proc/${pid}/task/${thread}/schedstat`);
}

function nanosOf(path: string): number {
  try {
    return Number(readFileSync(path, "utf8").split(" ")[0]);
  } catch {
    return 0; // the thread has ended since the list was read
  }
}
