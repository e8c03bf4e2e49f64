/**
 * The index's writer as the main thread sees it: the same calls, answered later by the one thread that may write.
 *
 * Calls are carried out in the order in which they are made: the writer's pool has one thread.
 * @module
 */
import type { IndexWriter, ItemBatch, ItemsAdded } from "../store/index-writer.ts";

/** Calls that are the writer's own. */
type PlainName = Exclude<keyof IndexWriter, "close" | "addBlock" | "addStrayBlock" | "addItems">;

type PlainCalls = {
  readonly [Name in PlainName]: (
    ...parts: Parameters<IndexWriter[Name]>
  ) => Promise<ReturnType<IndexWriter[Name]>>;
};

/** Rows as another thread serialised them (`bun:jsc`), not to be looked into here. */
export type SerialisedRows = SharedArrayBuffer;

/** The writer's calls, each answered by a promise. */
export type IndexCalls = PlainCalls &
  Readonly<{
    /** @param rows - Serialised `BlockRows`. */
    addBlock: (rows: SerialisedRows) => Promise<void>;
    /** `rows`: serialised `ItemRow[]`. */
    addItems: (batch: Omit<ItemBatch, "rows"> & Readonly<{ rows: SerialisedRows }>) => Promise<ItemsAdded>;
  }>;
