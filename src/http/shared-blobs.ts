/**
 * Bodies that the response cache shares among responses, counted once in the memory of bodies.
 * @module
 */
import type { ByteBudget } from "../lib/byte-budget.ts";

/** Blobs that several responses send: each is counted once, for one of the clients that read it. */
export type SharedBlobs = Readonly<{
  /** Joins those that send a blob already; false when nobody does. */
  join: (client: string, blob: Blob) => boolean;
  /** Begins with a blob whose bytes were taken. */
  took: (client: string, blob: Blob) => void;
  /** Begins with a blob that is being sent, whether there are bytes for it or not. */
  add: (client: string, blob: Blob) => void;
  /** Ends a response to a client. While others read the blob, one of them has it counted. */
  leave: (client: string, blob: Blob) => void;
}>;

/** Responses that send one blob: how many by client, and the client for which it is counted. */
type Readers = { readonly counts: Map<string, number>; counted: string };

/** Creates the count, within the budget of responses. */
export function createSharedBlobs(responses: ByteBudget): SharedBlobs {
  const blobs = new Map<Blob, Readers>();
  const join = (client: string, blob: Blob): boolean => {
    const readers = blobs.get(blob);
    if (readers === undefined) return false;
    readers.counts.set(client, (readers.counts.get(client) ?? 0) + 1);
    return true;
  };
  const took = (client: string, blob: Blob): void => {
    // Another response may have begun with it during the wait for its bytes.
    if (join(client, blob)) responses.release(client, blob.size);
    else blobs.set(blob, { counts: new Map([[client, 1]]), counted: client });
  };
  return {
    join,
    took,
    add: (client, blob) => {
      responses.add(client, blob.size);
      took(client, blob);
    },
    leave: (client, blob) => {
      const readers = blobs.get(blob);
      const count = readers?.counts.get(client);
      if (readers === undefined || count === undefined) return;
      if (count > 1) {
        readers.counts.set(client, count - 1);
        return;
      }
      readers.counts.delete(client);
      if (readers.counted !== client) return;
      const [next] = readers.counts.keys();
      if (next === undefined) blobs.delete(blob);
      else {
        readers.counted = next;
        responses.add(next, blob.size); // before the release, which would give the bytes to a request that waits
      }
      responses.release(client, blob.size);
    },
  };
}
