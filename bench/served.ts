/**
 * Servers under measurement: each in its own process on one core, with its CPU time.
 * @module
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** What a server notes of each request: nothing, as the program never does; metrics; a span of all, or of some too. */
export type Observed = "nothing" | "metrics" | "all traces" | "some traces";

/** The configuration of bench/http-served.ts. */
export type ServedFixture = Readonly<{
  /** Folder of the bodies, whose names are ids. */
  bodies: string;
  /** Folder of the cache. */
  cache: string;
  ids: readonly string[];
  /** Chunks of 256 KiB in a separate transaction; 0 creates none. */
  chunks: number;
  /** Whether clients have a limit, which they do not reach. */
  isLimited: boolean;
  /** An index file, for /graphql. */
  indexPath: string | undefined;
  /** Notes of each request. */
  observes: Observed;
  /** The URL of a collector, for traces. */
  collector: string | undefined;
  /** A node with the chunks of content that is not in the cache. */
  node: Readonly<{ url: string; roots: readonly NodeRoot[] }> | undefined;
}>;

/** The data of a transaction that a node has. */
export type NodeRoot = Readonly<{
  id: string;
  dataRoot: string;
  size: number;
  weaveStart: string;
  /** SHA-256 of the data, hex. */
  digest: string;
}>;

/** The delay of the server's event loop since the last question, with the timer of 1 ms. Milliseconds. */
export type LoopDelay = Readonly<{ p99: number; longest: number }>;

/** The line that it prints when it listens. */
export type ServedLine = Readonly<{
  port: number;
  /** A manifest in which each id is a path. */
  manifest: string;
  /** Offsets of the chunks' last bytes. */
  chunkEnds: readonly string[];
}>;

/** Starts the server. @param folder - For its configuration. @param before - Prefix of the command. */
export async function startServed(folder: string, fixture: Partial<ServedFixture>, before = pinned(0)) {
  const whole: ServedFixture = {
    bodies: join(folder, "bodies"),
    cache: join(folder, "cache"),
    ids: [],
    chunks: 0,
    isLimited: false,
    indexPath: undefined,
    observes: "metrics",
    collector: undefined,
    node: undefined,
    ...fixture,
  };
  const path = join(folder, `served-${crypto.randomUUID()}.json`);
  writeFileSync(path, JSON.stringify(whole));
  const program = resolve(import.meta.dir, "http-served.ts");
  let onDelay = (_delay: LoopDelay) => {};
  const ipc = (delay: LoopDelay) => onDelay(delay);
  const child = Bun.spawn([...before, process.execPath, program, path], { stdout: "pipe", ipc });
  const { value } = await child.stdout.getReader().read();
  const line: ServedLine = JSON.parse(Buffer.from(value ?? []).toString());
  const stop = async () => {
    child.kill();
    await child.exited;
  };
  const loopDelay = () =>
    new Promise<LoopDelay>((resolve) => {
      onDelay = resolve;
      child.send("delay");
    });
  return { ...line, pid: child.pid, stop, loopDelay };
}

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
 * CPU time of the threads of a process that run now, in nanoseconds: finer than {@link cpuSeconds}, for short rounds.
 * Threads that have ended are not in it.
 */
export function cpuNanos(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.reduce((sum, thread) => sum + threadNanos(pid, thread), 0);
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
