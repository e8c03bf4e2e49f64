/**
 * Bodies that the response cache shares among responses, counted once in the memory of bodies.
 * @module
 */
import type { ByteBudget } from "../lib/byte-budget.ts";

/** Blobs that several responses send: counted once, for the client that was first. */
export type SharedBlobs = Readonly<{
  /** Joins those that send a blob already; false when nobody does. */
  join: (blob: Blob) => boolean;
  /** Begins with a blob whose bytes were taken. */
  took: (client: string, blob: Blob) => void;
  /** Begins with a blob that is being sent, whether there are bytes for it or not. */
  add: (client: string, blob: Blob) => void;
  leave: (blob: Blob) => void;
}>;

/** Creates the count, within the budget of responses. */
export function createSharedBlobs(responses: ByteBudget): SharedBlobs {
  const counts = new Map<Blob, { readonly client: string; count: number }>();
  const join = (blob: Blob): boolean => {
    const entry = counts.get(blob);
    if (entry === undefined) return false;
    entry.count += 1;
    return true;
  };
  const took = (client: string, blob: Blob): void => {
    // Another response may have begun with it during the wait for its bytes.
    if (join(blob)) responses.release(client, blob.size);
    else counts.set(blob, { client, count: 1 });
  };
  return {
    join,
    took,
    add: (client, blob) => {
      responses.add(client, blob.size);
      took(client, blob);
    },
    leave: (blob) => {
      const entry = counts.get(blob);
      if (entry === undefined) return;
      entry.count -= 1;
      if (entry.count > 0) return;
      counts.delete(blob);
      responses.release(entry.client, blob.size);
    },
  };
}
