/**
 * The index writer for other threads: the same calls, executed in order by the one thread that holds the writer.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { IndexWriter } from "./index-writer.ts";

type WriterCall = Exclude<keyof IndexWriter, "close">;

/** The writer's calls; each returns a promise of its result. */
export type IndexWriterCalls = {
  readonly [Name in WriterCall]: (...parts: Parameters<IndexWriter[Name]>) => Promise<ReturnType<IndexWriter[Name]>>;
};

/** One call, as a job of the thread (workers/index.ts, function `write`). */
export type WriteJob = Readonly<{ path: string; call: WriterCall; parts: readonly unknown[] }>;

/** Options of {@link createIndexWriterCalls}. */
type WriterCallsOptions = Readonly<{
  /** Called after each call that succeeded: the index may have changed. */
  onWritten?: () => void;
}>;

/** Limit of waiting calls. Callers wait for their results, so this many mean that the thread does not respond. */
const callsWaitingMax = 10_000;

/**
 * Creates the calls of a writer in another thread. Calls are executed in the order in which they are made: each is
 * sent after the previous result, because a pool does not preserve the order of its jobs.
 *
 * @param path - The index file.
 * @param run - Sends a job to function `write` of workers/index.ts; its pool has one thread.
 * @throws Failure `busy` (a call) when too many wait; errors of the writer.
 */
export function createIndexWriterCalls(
  path: string,
  run: (job: WriteJob) => Promise<unknown>,
  { onWritten = () => undefined }: WriterCallsOptions = {},
): IndexWriterCalls {
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  const inOrder = async <Result>(job: WriteJob): Promise<Result> => {
    if (waiting >= callsWaitingMax) throw new Failure("busy", { call: job.call, waiting });
    waiting += 1;
    const result = last.then(() => run(job) as Promise<Result>);
    // The caller handles the result's error; the next call only waits for the end of this one.
    last = result.then(
      () => undefined,
      () => undefined,
    );
    try {
      const returned = await result;
      onWritten();
      return returned;
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
    addBlocks: calling("addBlocks"),
    addStrayBlock: calling("addStrayBlock"),
    rollback: calling("rollback"),
    addMissingTransaction: calling("addMissingTransaction"),
    setWeaveLayout: calling("setWeaveLayout"),
    postponeMissing: calling("postponeMissing"),
    hurryMissing: calling("hurryMissing"),
    addItems: calling("addItems"),
    addImported: calling("addImported"),
    addPending: calling("addPending"),
    removePending: calling("removePending"),
    expirePending: calling("expirePending"),
    expireAnnounced: calling("expireAnnounced"),
    queueBundle: calling("queueBundle"),
    requestBundle: calling("requestBundle"),
    takeBundle: calling("takeBundle"),
    takeBundles: calling("takeBundles"),
    skipBundle: calling("skipBundle"),
    finishBundle: calling("finishBundle"),
    failBundle: calling("failBundle"),
    releaseBundle: calling("releaseBundle"),
    bundleFiltersChanged: calling("bundleFiltersChanged"),
    addBundleRange: calling("addBundleRange"),
    stepBundlePass: calling("stepBundlePass"),
    pruneItems: calling("pruneItems"),
    addStoredPartition: calling("addStoredPartition"),
    pruneStoredItems: calling("pruneStoredItems"),
    beginMerge: calling("beginMerge"),
    addMerged: calling("addMerged"),
    endMerge: calling("endMerge"),
    setFilter: calling("setFilter"),
    dropReplaced: calling("dropReplaced"),
    sweepPostings: calling("sweepPostings"),
    releaseSpace: calling("releaseSpace"),
    checkpoint: calling("checkpoint"),
  };
}
