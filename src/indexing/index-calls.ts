/**
 * The index's writer as the main thread sees it: the same calls, answered later by the one thread that may write.
 *
 * Calls are made in order and carried out in order: the writer's pool has one thread.
 * @module
 */
import type { IndexWriter } from "../store/index-writer.ts";

/** Calls of the writer that indexing makes. */
type CallName = Exclude<keyof IndexWriter, "close">;

/** The writer's calls, each answered by a promise. */
export type IndexCalls = {
  readonly [Name in CallName]: (
    ...parts: Parameters<IndexWriter[Name]>
  ) => Promise<ReturnType<IndexWriter[Name]>>;
};
