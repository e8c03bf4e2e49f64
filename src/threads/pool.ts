/**
 * Threads that run jobs: batches in, answers out, a dead or hung thread replaced. The only file that knows piscina.
 *
 * A job costs about 20 µs to hand over and one RSA check about 60 µs, so a job is a batch (32 to 1,000 items).
 * Source: docs/decisions/002-threads.md.
 * @module
 */
import { pathToFileURL } from "node:url";
import type { MessagePort, StructuredSerializeOptions } from "node:worker_threads";
import { Piscina } from "piscina";
import { Failure } from "../failures.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import { untilStopped } from "../lib/stop.ts";

/** What a pool is made of. */
export type PoolOptions = Readonly<{
  /** Name of the file in `workers/`, without its ending, or a file of its own; the exported functions are the jobs. */
  entry: WorkerEntry | URL;
  /** Most threads that run at once. One thread carries jobs out in the order in which they were handed over. */
  threads: number;
  /** Most jobs that wait; one more is refused with Failure `busy`. */
  queueMax: number;
  /** A job that has been at work for this long is ended with its thread. Milliseconds. */
  timeoutMs: number;
  /** A thread without work for this long ends. Milliseconds; Infinity keeps it. */
  idleMs: number;
}>;

/** Every thread entry of the program; the binary embeds exactly these (build.ts). */
export const workerEntries = [
  "bodies",
  "bundles",
  "graphql",
  "index",
  "intake",
  "manifests",
  "receipts",
  "sign",
  "unbundle",
  "verify",
  "walk",
] as const;

/** The name of one thread entry. */
export type WorkerEntry = (typeof workerEntries)[number];

/** How a job is handed over. */
export type JobOptions = Readonly<{
  /**
   * Ends the caller's wait. A job that waits for a thread is taken out; one that runs is carried out for
   * nobody: ending its thread would cost more than the rest of it, and callers could end threads at will.
   */
  signal?: AbortSignal;
  /** Taken for hung after so long at work, where the pool's own limit is another. Milliseconds. */
  timeoutMs?: number;
  /** Buffers that move to the thread instead of being copied, and are empty here afterwards; ports. */
  transfer?: readonly (ArrayBuffer | MessagePort)[];
}>;

/** Threads of one entry. */
export type Pool = Readonly<{
  /**
   * Runs one exported function of the entry with one job.
   *
   * @param job - The job, or a function that makes it when a thread is ready. The function is given the milliseconds
   *   since the call in which threads were starting: a deadline in the job leaves them out.
   * @throws Failure `busy` when the queue is full, `worker_failed` when the thread died or hung; the signal's
   *   reason; else whatever the job threw.
   */
  run: <Result>(exportName: string, job: unknown, options?: JobOptions) => Promise<Result>;
  /** Starts all threads; resolves when each has started, or ended while it did. */
  warm: () => Promise<void>;
  /** Jobs that wait or run, and threads that live. */
  load: () => Readonly<{ open: number; threads: number }>;
  /** Ends the threads after the jobs that run have answered, at the latest after two seconds. */
  close: () => Promise<void>;
}>;

const closeTimeoutMs = 2_000;

/** A thread loads its modules when it starts: 0.2 s on a free machine, 12 s have been seen on a busy one. */
const startTimeoutMs = 60_000;

/** Opens threads for one entry; they start with the first job. */
export function openPool(options: PoolOptions): Pool {
  const piscina = new Piscina({
    filename: workerFile(options.entry),
    minThreads: options.idleMs === Number.POSITIVE_INFINITY ? options.threads : 0,
    maxThreads: options.threads,
    idleTimeout: options.idleMs,
    concurrentTasksPerWorker: 1,
    closeTimeout: closeTimeoutMs,
    recordTiming: false,
  });

  // Handed over one a thread: piscina puts a job that finds no thread behind later ones (seen: a block handed
  // to the writer before the one below it), and a job's time must not begin while it waits.
  const semaphore = createSemaphore(options.threads, options.queueMax);
  let lastThreadError: unknown;
  // A thread that fails without a job (it could not load, say) has nobody else to tell.
  piscina.on("error", (error: unknown) => {
    lastThreadError = error;
  });

  const starts = createStartClock();
  let running = 0;

  /** Waits until there is a thread for each job that runs: the time of a job is for its work. */
  const startThread = async (): Promise<void> => {
    if (piscina.threads.length >= running) return;
    starts.begin();
    try {
      await piscina.run(undefined, { name: "ping", signal: AbortSignal.timeout(startTimeoutMs) });
    } catch {
      // The thread is up, but has no such function; or it did not start, which the job itself finds out.
    } finally {
      starts.end();
    }
  };

  const work = async <Result>(name: string, makeJob: () => unknown, jobOptions: JobOptions): Promise<Result> => {
    running += 1;
    let timer: Timer | undefined;
    const hung = new AbortController();
    const transfer = transferList(jobOptions.transfer ?? []);
    try {
      await startThread();
      timer = setTimeout(() => hung.abort(), jobOptions.timeoutMs ?? options.timeoutMs);
      return await piscina.run(makeJob(), { name, signal: hung.signal, transferList: transfer });
    } catch (error) {
      const facts = { entry: String(options.entry), name, hung: hung.signal.aborted, lastThreadError };
      throw explain(error, facts);
    } finally {
      running -= 1;
      clearTimeout(timer);
    }
  };

  const run = async <Result>(name: string, job: unknown, jobOptions: JobOptions = {}): Promise<Result> => {
    const signal = jobOptions.signal ?? nobody;
    const startedBefore = starts.read();
    const turn = semaphore.take(signal);
    if (turn === undefined) throw new Failure("busy", { entry: String(options.entry), name });
    const release = await turn;
    const makeJob = () => (typeof job === "function" ? job(starts.read() - startedBefore) : job);
    return await untilStopped(work<Result>(name, makeJob, jobOptions).finally(release), signal);
  };

  const warm = async (): Promise<void> => {
    const pings = Array.from({ length: options.threads }, () => run("ping", undefined, { timeoutMs: startTimeoutMs }));
    await Promise.allSettled(pings);
  };

  return {
    run,
    warm,
    load: () => ({ open: semaphore.atWork() + semaphore.waiting(), threads: piscina.threads.length }),
    close: () => piscina.close({ force: false }),
  };
}

/** Measures for how long at least one thread has been starting. Milliseconds. */
function createStartClock() {
  let count = 0;
  let since = 0;
  let total = 0;
  return {
    begin: () => {
      if (count === 0) since = performance.now();
      count += 1;
    },
    end: () => {
      count -= 1;
      if (count === 0) total += performance.now() - since;
    },
    read: () => total + (count > 0 ? performance.now() - since : 0),
  };
}

/** The signal of nobody, who never leaves. */
const nobody = new AbortController().signal;

/** piscina takes the list itself; its type follows bun-types, where `postMessage` also takes options. */
function transferList(buffers: readonly (ArrayBuffer | MessagePort)[]): StructuredSerializeOptions {
  return [...buffers] as StructuredSerializeOptions;
}

const embeddedRoot = "/$bunfs/";

/** Where a thread's entry lies: beside `src/` when run from source, inside the binary when compiled. */
function workerFile(entry: WorkerEntry | URL): string {
  if (entry instanceof URL) return entry.href;
  // `import.meta.url` is no guide under `--bytecode`; `Bun.main` is (measured).
  return Bun.main.startsWith(embeddedRoot)
    ? new URL(`./workers/${entry}.js`, pathToFileURL(Bun.main)).href
    : new URL(`../../workers/${entry}.ts`, import.meta.url).href;
}

/** What piscina says to the job of a thread that ended. */
const threadEnded = /worker exited|worker stopped|terminating worker|task has been aborted/i;

function explain(error: unknown, facts: Readonly<Record<string, unknown>>): unknown {
  const text = error instanceof Error ? error.message : String(error);
  if (threadEnded.test(text)) return new Failure("worker_failed", facts, error);
  return error;
}
