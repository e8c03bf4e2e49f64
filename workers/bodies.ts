/**
 * Thread entry: makes Blobs of composed bodies, which takes 10 ms for one of 16 MB.
 * @module
 */
import { blobOf } from "../src/lib/bytes.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

/** Makes a Blob. @returns Its object URL, by which another thread has the same bytes (a message would copy them). */
export function makeBlob({ bytes }: Readonly<{ bytes: Uint8Array<ArrayBuffer> }>): string {
  // What this thread still has of the Blobs before would keep all of their bytes.
  Bun.gc(true);
  return URL.createObjectURL(blobOf(bytes));
}
