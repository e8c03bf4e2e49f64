/**
 * What the main thread hands to a query thread.
 * @module
 */
import type { QueryRequest } from "./execute.ts";

/** One request, and where its answer is found. */
export type QueryJob = Readonly<{
  request: QueryRequest;
  /** The index file. */
  indexPath: string;
  /** The folder of cached content. */
  contentFolder: string;
  /** When the request must have ended, its wait for a thread included. Unix milliseconds. */
  endsAtMs: number;
}>;
