/**
 * Pools of worker threads: typed calls, bounded queues, and a new thread for one that ended or hung. The only file
 * that imports piscina.
 *
 * Passing a job to a thread costs about 20 µs and one RSA check about 60 µs, so a job is a batch (32 to 1,000 items).
 * Source: docs/decisions/002-threads.md; docs/decisions/114-second-thread.md.
 * @module
 */
import { pathToFileURL } from "node:url";
import type { MessagePort, StructuredSerializeOptions } from "node:worker_threads";
import { Piscina } from "piscina";
import { Failure } from "../failures.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import { type Span, traced } from "../lib/spans.ts";
import { untilStopped } from "../lib/stop.ts";

/**
 * Every thread entry of the program and what it exports: a pool's calls are typed by them. Types only: the code of
 * an entry is loaded in its own thread. The binary embeds exactly these (build.ts).
 */
export type Workers = Readonly<{
  bodies: typeof import("../../workers/bodies.ts");
  bundles: typeof import("../../workers/bundles.ts");
  content: typeof import("../../workers/content.ts");
  export: typeof import("../../workers/export.ts");
  graphql: typeof import("../../workers/graphql.ts");
  index: typeof import("../../workers/index.ts");
  "index-merges": typeof import("../../workers/index-merges.ts");
  intake: typeof import("../../workers/intake.ts");
  "ledger-reports": typeof import("../../workers/ledger-reports.ts");
  manifests: typeof import("../../workers/manifests.ts");
  receipts: typeof import("../../workers/receipts.ts");
  sign: typeof import("../../workers/sign.ts");
  unbundle: typeof import("../../workers/unbundle.ts");
  verify: typeof import("../../workers/verify.ts");
  walk: typeof import("../../workers/walk.ts");
}>;

/** The name of one thread entry. */
export type WorkerEntry = keyof Workers;

/** The names of all thread entries. */
export const workerEntries = [
  "bodies",
  "bundles",
  "content",
  "export",
  "graphql",
  "index",
  "index-merges",
  "intake",
  "ledger-reports",
  "manifests",
  "receipts",
  "sign",
  "unbundle",
  "verify",
  "walk",
] as const satisfies readonly WorkerEntry[];

/** Limits of a pool. */
type PoolLimits = Readonly<{
  /** Most threads that run at once. One thread runs its jobs in the order of the calls. */
  threads: number;
  /** Most jobs that wait; one more is rejected with Failure `busy`. */
  queueMax: number;
  /** A job that has run for this long is ended with its thread. Milliseconds. */
  timeoutMs: number;
  /** An idle thread ends after this long. Milliseconds; Infinity: never. */
  idleMs: number;
}>;

/** Options of a pool. */
export type PoolOptions<Entry extends WorkerEntry | URL = WorkerEntry | URL> = PoolLimits &
  Readonly<{
    /** The name of a file in `workers/` without its extension, or the URL of another file. */
    entry: Entry;
  }>;

/** Options of one job. */
export type JobOptions = Readonly<{
  /**
   * Ends the caller's wait. A waiting job is removed from the queue. A running job goes on and its result is
   * dropped: ending its thread would cost more than the rest of the job, and clients could end threads at will.
   */
  signal?: AbortSignal;
  /** Overrides the pool's `timeoutMs`. Milliseconds. */
  timeoutMs?: number;
  /** Buffers and ports that move to the thread; the buffers are empty here afterwards. */
  transfer?: readonly (ArrayBuffer | MessagePort)[];
}>;

/** The names of the functions that a worker exports. */
type JobName<Worker> = {
  [Name in keyof Worker & string]: Worker[Name] extends (job: never) => unknown ? Name : never;
}[keyof Worker & string];

/** The argument of a worker's function. */
type JobOf<Worker, Name extends keyof Worker> = Worker[Name] extends (job: infer Job) => unknown ? Job : never;

/** The result of a worker's function. */
type ResultOf<Worker, Name extends keyof Worker> = Worker[Name] extends (job: never) => infer Result
  ? Awaited<Result>
  : never;

/** Threads of one worker. @template Worker - The type of its module, `typeof import("…")`. */
export type Pool<Worker> = Readonly<{
  /**
   * Calls one exported function of the worker in a thread.
   *
   * @param job - The function's argument, or a function that makes it when a thread is ready. It receives the
   *   milliseconds since the call in which threads were starting: a deadline in the job excludes them.
   * @throws Failure `busy` when the queue is full, `worker_failed` when the thread ended or the job timed out; the
   *   signal's reason; else the error that the function threw.
   */
  run: <Name extends JobName<Worker>>(
    name: Name,
    job: JobOf<Worker, Name> | ((startedMs: number) => JobOf<Worker, Name>),
    options?: JobOptions,
  ) => Promise<ResultOf<Worker, Name>>;
  /** Resolves to "ok" when a thread has responded. */
  ping: () => Promise<string>;
  /** Jobs that wait or run, and live threads. */
  load: () => Readonly<{ open: number; threads: number }>;
  /** Ends the threads when their running jobs have ended, after two seconds at the latest. */
  close: () => Promise<void>;
}>;

const closeTimeoutMs = 2_000;

/** A thread loads its modules when it starts: 0.2 s on a free machine, 12 s have been seen on a busy one. */
const startTimeoutMs = 60_000;

/** Opens a pool; its threads start with the first job. */
export function openPool<Entry extends WorkerEntry>(options: PoolOptions<Entry>): Pool<Workers[Entry]>;
export function openPool<Worker>(options: PoolOptions<URL>): Pool<Worker>;
export function openPool(options: PoolOptions): Pool<Readonly<Record<string, (job: unknown) => unknown>>> {
  const threads = openThreads(options);
  // One job for each thread: piscina puts a job that finds no thread behind later ones (seen: a block passed
  // to the writer before its parent), and the time of a job must not begin while it waits.
  const semaphore = createSemaphore(options.threads, options.queueMax);
  const starts = createStartClock();
  const waits = createThreadWaits(() => performance.now() - starts.read());
  let running = 0;

  /** Waits until a thread can take the job: the wait, and the start of a thread, do not count as work. */
  const takeThread = async (): Promise<void> => {
    const isFreed = running >= threads.count() && running > 0 && (await waits.wait());
    if (!isFreed) running += 1;
    if (threads.count() < running) await startThread();
  };

  const startThread = async (): Promise<void> => {
    starts.begin();
    try {
      await threads.post("ping", undefined, AbortSignal.timeout(startTimeoutMs));
    } catch {
      // The thread runs but has no such function; or it did not start, and the job itself fails.
    } finally {
      starts.end();
    }
  };

  /** Passes the thread of a job that has ended on to the next one. */
  const releaseThread = (): void => {
    if (!waits.pass()) running -= 1;
  };

  const work = async (name: string, makeJob: () => unknown, jobOptions: JobOptions): Promise<unknown> => {
    await takeThread();
    const hung = new AbortController();
    const timer = setTimeout(() => hung.abort(), jobOptions.timeoutMs ?? options.timeoutMs);
    try {
      return await threads.post(name, makeJob(), hung.signal, [...(jobOptions.transfer ?? [])]);
    } finally {
      clearTimeout(timer);
      releaseThread();
    }
  };

  const run = (name: string, job: unknown, jobOptions: JobOptions = {}): Promise<unknown> =>
    traced(`${options.entry}.${name}`, (span) => call(name, job, jobOptions, span));

  const call = async (name: string, job: unknown, jobOptions: JobOptions, span: Span | undefined): Promise<unknown> => {
    const calledMs = performance.now();
    const signal = jobOptions.signal ?? neverAborted;
    const startedBefore = starts.read();
    const permit = semaphore.take(signal);
    if (permit === undefined) throw new Failure("busy", { entry: String(options.entry), name });
    const release = await permit;
    const makeJob = (): unknown => {
      signal.throwIfAborted(); // the caller left while the job waited for a thread
      if (span !== undefined) span.attributes = { "cairn.thread.wait_ms": performance.now() - calledMs };
      return typeof job === "function" ? job(starts.read() - startedBefore) : job;
    };
    return await untilStopped(work(name, makeJob, jobOptions).finally(release), signal);
  };

  return {
    run,
    ping: async () => String(await run("ping", undefined)),
    load: () => ({ open: semaphore.atWork() + semaphore.waiting(), threads: threads.count() }),
    close: threads.close,
  };
}

/**
 * Opens piscina's threads. Its errors have no class and no code that tells a thread's end from an error of the job,
 * so each job notes its thread: a job fails with `worker_failed` when that thread is destroyed, or none was found.
 */
function openThreads(options: PoolOptions) {
  const threadOf = new Map<number, Readonly<{ destroyed: boolean }>>();
  let taskId: number | undefined;
  let lastThreadError: unknown;
  const piscina = new Piscina({
    filename: workerFile(options.entry),
    minThreads: 0,
    maxThreads: options.threads,
    idleTimeout: options.idleMs,
    concurrentTasksPerWorker: 1,
    // A thread that waits for its next job in `Atomics.wait` runs no timers, so that its garbage stays for hours.
    atomics: "disabled",
    closeTimeout: closeTimeoutMs,
    recordTiming: false,
    loadBalancer: (task, workers) => {
      ({ taskId } = task);
      const idle = workers.find(({ currentUsage }) => currentUsage === 0);
      if (idle !== undefined) threadOf.set(task.taskId, idle);
      return idle ?? null;
    },
  });
  // A thread that fails without a job (it could not load, say) reports its error here only.
  piscina.on("error", (error: unknown) => {
    lastThreadError = error;
  });
  const post = async (
    name: string,
    job: unknown,
    signal: AbortSignal,
    transfer: (ArrayBuffer | MessagePort)[] = [],
  ): Promise<unknown> => {
    taskId = undefined;
    // piscina takes the list itself; its type follows bun-types, where `postMessage` also takes options.
    const transferList = transfer as StructuredSerializeOptions;
    const response = piscina.run(job, { name, signal, transferList });
    // The balancer has run within that call, unless the pool is closing.
    const id = taskId ?? -1;
    try {
      return await response;
    } catch (error) {
      const thread = threadOf.get(id);
      if (thread !== undefined && !thread.destroyed) throw error;
      const context = { entry: String(options.entry), name, hung: signal.aborted, lastThreadError };
      throw new Failure("worker_failed", context, error);
    } finally {
      threadOf.delete(id);
    }
  };
  return { post, count: () => piscina.threads.length, close: () => piscina.close({ force: false }) };
}

/** Jobs may wait for busy threads so long, in sum, before another thread is started: a start takes about as long. */
const waitedMaxMs = 400;

/**
 * Jobs that wait for a thread that is busy, in order. A small load needs no second thread.
 *
 * @param clock - Milliseconds; it stops while a thread is starting.
 */
function createThreadWaits(clock: () => number) {
  const waiting: ((isFreed: boolean) => void)[] = [];
  let waitedMs = 0;
  return {
    /** Resolves to true when a thread was passed on, to false when the caller is to start another one. */
    wait: async (): Promise<boolean> => {
      const startedMs = clock();
      const { promise, resolve } = Promise.withResolvers<boolean>();
      waiting.push(resolve);
      let timer: Timer | undefined;
      const endWhenLong = (): void => {
        const leftMs = waitedMaxMs - waitedMs - (clock() - startedMs);
        if (leftMs > 0) {
          timer = setTimeout(endWhenLong, leftMs);
          return;
        }
        waiting.splice(waiting.indexOf(resolve), 1);
        resolve(false);
      };
      endWhenLong();
      const isFreed = await promise;
      clearTimeout(timer);
      waitedMs = isFreed ? waitedMs + clock() - startedMs : 0;
      return isFreed;
    },
    /** @returns Whether a job waits. */
    pass: (): boolean => {
      const next = waiting.shift();
      next?.(true);
      return next !== undefined;
    },
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

const neverAborted = new AbortController().signal;

const embeddedRoot = "/$bunfs/";

/** The URL of a worker: beside `src/` when run from source, inside the binary when compiled. */
function workerFile(entry: WorkerEntry | URL): string {
  if (entry instanceof URL) return entry.href;
  // Under `--bytecode`, `import.meta.url` names the build machine's file; `Bun.main` does not (measured).
  return Bun.main.startsWith(embeddedRoot)
    ? new URL(`./workers/${entry}.js`, pathToFileURL(Bun.main)).href
    : new URL(`../../workers/${entry}.ts`, import.meta.url).href;
}
