/**
 * The index's writer as other threads see it: the same calls, carried out in order by the one thread that holds it.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { IndexWriter } from "./writer.ts";

/** A call of the writer. */
export type WriterCall = Exclude<keyof IndexWriter, "close">;

/** The writer's calls, each with a promise of its result. */
export type IndexWriterCalls = {
  readonly [Name in WriterCall]: (...parts: Parameters<IndexWriter[Name]>) => Promise<ReturnType<IndexWriter[Name]>>;
};

/** One call on its way to the thread (workers/index.ts, function `write`). */
export type WriteJob = Readonly<{ path: string; call: WriterCall; parts: readonly unknown[] }>;

/** Calls that may wait for the thread; callers wait for their results, so this many mean that it does not respond. */
const callsWaitingMax = 10_000;

/**
 * Makes the calls of a writer that another thread holds. They are carried out in the order in which they are made:
 * each is passed on after the previous result, because a pool does not keep the order of its jobs.
 *
 * @param path - The index file.
 * @param run - Hands a job to function `write` of workers/index.ts; its pool has one thread.
 * @throws Failure `busy` (a call) when too many wait; whatever the writer threw.
 */
export function createIndexWriterCalls(path: string, run: (job: WriteJob) => Promise<unknown>): IndexWriterCalls {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  const inOrder = async <Result>(job: WriteJob): Promise<Result> => {
    if (waiting >= callsWaitingMax) throw new Failure("busy", { call: job.call, waiting });
    waiting += 1;
    const response = last.then(() => run(job) as Promise<Result>);
    // How a call ends is its caller's business; the next one only waits for it.
    last = response.then(
      () => undefined,
      () => undefined,
    );
    try {
      return await response;
    } finally {
      waiting -= 1;
    }
  };
  const calling =
    <Name extends WriterCall>(call: Name) =>
    (...parts: Parameters<IndexWriter[Name]>): Promise<ReturnType<IndexWriter[Name]>> =>
      inOrder({ path, call, parts });
  return {
    addBlock: calling("addBlock"),
    addStrayBlock: calling("addStrayBlock"),
    rollback: calling("rollback"),
    addMissingTransaction: calling("addMissingTransaction"),
    setWeaveLayout: calling("setWeaveLayout"),
    postponeMissing: calling("postponeMissing"),
    addItems: calling("addItems"),
    addPending: calling("addPending"),
    removePending: calling("removePending"),
    expirePending: calling("expirePending"),
    expireAnnounced: calling("expireAnnounced"),
    queueBundles: calling("queueBundles"),
    requestBundle: calling("requestBundle"),
    takeBundle: calling("takeBundle"),
    takeBundles: calling("takeBundles"),
    skipBundle: calling("skipBundle"),
    finishBundle: calling("finishBundle"),
    failBundle: calling("failBundle"),
    bundleFiltersChanged: calling("bundleFiltersChanged"),
    addBundleRange: calling("addBundleRange"),
    stepBundlePass: calling("stepBundlePass"),
    pruneItems: calling("pruneItems"),
    checkpoint: calling("checkpoint"),
  };
}
