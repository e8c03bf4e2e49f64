/**
 * What the main thread hands to a query thread.
 * @module
 */
import type { SentRequest } from "./graphql-response.ts";

/** One request, and where its answer is found. */
export type QueryJob = Readonly<{
  request: SentRequest;
  /** The index file. */
  indexPath: string;
  /** The folder of cached content. */
  contentFolder: string;
  /** When the request must have ended, its wait for a thread included. Unix milliseconds. */
  endsAtMs: number;
}>;
