/**
 * Threads that run jobs: batches in, answers out, a dead or hung thread replaced. The only file that knows piscina.
 *
 * A job costs about 20 µs to hand over and one RSA check about 60 µs, so a job is a batch (32 to 1,000 items).
 * Source: design.md §4; reference/runtime.md §4.
 * @module
 */
import { pathToFileURL } from "node:url";
import type { StructuredSerializeOptions } from "node:worker_threads";
import { Piscina } from "piscina";
import { Failure } from "../failures.ts";

/** What a pool is made of. */
export type PoolOptions = Readonly<{
  /** Name of the file in `workers/`, without its ending, or a file of its own; the exported functions are the jobs. */
  entry: WorkerEntry | URL;
  /** Most threads that run at once. One thread carries jobs out in the order in which they were handed over. */
  threads: number;
  /** Most jobs that wait; one more is refused with Failure `busy`. */
  queueMax: number;
  /** A job that has not answered after this long is ended with its thread. Milliseconds. */
  timeoutMs: number;
  /** A thread without work for this long ends. Milliseconds; Infinity keeps it. */
  idleMs: number;
}>;

/** Every thread entry of the program; the binary embeds exactly these (build.ts). */
export const workerEntries = ["index", "query", "unbundle", "verify"] as const;

/** The name of one thread entry. */
export type WorkerEntry = (typeof workerEntries)[number];

/** How a job is handed over. */
export type JobOptions = Readonly<{
  signal?: AbortSignal;
  /** Buffers that move to the thread instead of being copied; they are empty here afterwards. */
  transfer?: readonly ArrayBuffer[];
}>;

/** Threads of one entry. */
export type Pool = Readonly<{
  /**
   * Runs one exported function of the entry with one job.
   *
   * @throws Failure `busy` when the queue is full, `worker_failed` when the thread died or hung;
   * else whatever the job threw.
   */
  run: <Answer>(exportName: string, job: unknown, options?: JobOptions) => Promise<Answer>;
  /** Jobs that wait or run, and threads that live. */
  load: () => Readonly<{ open: number; threads: number }>;
  /** Ends the threads after the jobs that run have answered, at the latest after two seconds. */
  close: () => Promise<void>;
}>;

const closeTimeoutMs = 2_000;

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

  const inTurn = createTurnstile();
  let open = 0;
  let lastThreadError: unknown;
  // A thread that fails without a job (it could not load, say) has nobody else to tell.
  piscina.on("error", (error: unknown) => {
    lastThreadError = error;
  });
  const run = async <Answer>(name: string, job: unknown, jobOptions: JobOptions = {}): Promise<Answer> => {
    // Counted here: piscina's own bound grows with the threads that are starting.
    if (open >= options.threads + options.queueMax)
      throw new Failure("busy", { entry: String(options.entry), name });
    open += 1;
    let timeout: AbortSignal | undefined;
    const start = (): Promise<Answer> => {
      // The time of one thread's job begins when those before it have ended.
      timeout = AbortSignal.timeout(options.timeoutMs);
      const signal =
        jobOptions.signal === undefined ? timeout : AbortSignal.any([timeout, jobOptions.signal]);
      return piscina.run(job, { name, signal, transferList: transferList(jobOptions.transfer ?? []) });
    };
    try {
      return await (options.threads === 1 ? inTurn(start) : start());
    } catch (error) {
      if (jobOptions.signal?.aborted === true) throw jobOptions.signal.reason;
      const hung = timeout?.aborted ?? false;
      throw explain(error, { entry: String(options.entry), name, hung, lastThreadError });
    } finally {
      open -= 1;
    }
  };

  return {
    run,
    load: () => ({ open, threads: piscina.threads.length }),
    close: () => piscina.close({ force: false }),
  };
}

/**
 * Starts one job after the other has ended. piscina keeps jobs that can be aborted in a line of its own and may put
 * one that finds no thread behind the others (seen: a block handed to the writer before the one below it).
 */
function createTurnstile(): <Answer>(start: () => Promise<Answer>) => Promise<Answer> {
  let last: Promise<unknown> = Promise.resolve();
  return (start) => {
    const job = last.then(start, start);
    last = job;
    return job;
  };
}

/** piscina takes the list itself; its type follows bun-types, where `postMessage` also takes options. */
function transferList(buffers: readonly ArrayBuffer[]): StructuredSerializeOptions {
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
