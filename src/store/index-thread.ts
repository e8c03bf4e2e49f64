/**
 * The index's writer as other threads see it: the same calls, carried out in order by the one thread that holds it.
 * @module
 */
import type { IndexWriter } from "./index-writer.ts";

/** A call of the writer. */
export type WriterCall = Exclude<keyof IndexWriter, "close">;

/** The writer's calls, each answered by a promise. */
export type IndexWriterCalls = {
  readonly [Name in WriterCall]: (
    ...parts: Parameters<IndexWriter[Name]>
  ) => Promise<ReturnType<IndexWriter[Name]>>;
};

/** One call on its way to the thread (workers/index.ts, function `write`). */
export type WriteJob = Readonly<{ path: string; call: WriterCall; parts: readonly unknown[] }>;

/**
 * Makes the calls of a writer that another thread holds.
 *
 * @param path - The index file.
 * @param run - Hands a job to function `write` of workers/index.ts; its pool has one thread.
 */
export function createIndexWriterCalls(
  path: string,
  run: <Answer>(job: WriteJob) => Promise<Answer>,
): IndexWriterCalls {
  const calling =
    <Name extends WriterCall>(call: Name) =>
    (...parts: Parameters<IndexWriter[Name]>): Promise<ReturnType<IndexWriter[Name]>> =>
      run({ path, call, parts });
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
    takeBundle: calling("takeBundle"),
    takeBundles: calling("takeBundles"),
    skipBundle: calling("skipBundle"),
    finishBundle: calling("finishBundle"),
    failBundle: calling("failBundle"),
    pruneItems: calling("pruneItems"),
    checkpoint: calling("checkpoint"),
  };
}
