/**
 * Checks fetched chunks against their proofs, without much work on the calling thread.
 *
 * SHA-256 of a chunk is made in threads of the runtime, of a copy: that costs the calling thread 0.1 ms, of which its
 * path takes a third. The hash takes 0.17 ms where the processor has instructions for it, and 1 ms elsewhere.
 * Source: docs/decisions/104-cold-content.md.
 * @module
 */
import { availableParallelism } from "node:os";
import { admitChunk, type ChunkVerdict, type PostedChunk } from "../arweave/chunk.ts";
import type { CheckChunk } from "../chain/chunks.ts";
import { Failure } from "../failures.ts";
import { unshared } from "../lib/bytes.ts";
import { createSemaphore } from "../lib/semaphore.ts";
import { traced } from "../lib/spans.ts";
import { untilStopped } from "../lib/stop.ts";
import type { Pool, Workers } from "../threads/pool.ts";

/** The thread of `workers/content.ts`. */
type ContentThread = Pick<Pool<Workers["content"]>, "run">;

/** A smaller chunk is hashed on the calling thread, which costs less than a copy and a wait. Bytes. */
const hashedInThreadMin = 32 * 2 ** 10;

/** A longer path is checked in the thread of content: the longest takes 10 ms, this one 0.2 ms. Bytes. */
const pathOnCallerMax = 4 * 2 ** 10;

/** Chunks that are hashed at once, each in a copy. Reads of files use the same threads, and wait for a processor. */
const hashesAtOnceMax = Math.max(1, Math.min(4, availableParallelism() - 1));

/** Chunks that may wait for a hash; fetches are bounded far below (fetch-to-cache.ts). */
const chunksWaitingMax = 256;

/** @param thread - Checks the chunks with long paths. */
export function createChunkCheck(thread: ContentThread): CheckChunk {
  const semaphore = createSemaphore(hashesAtOnceMax, chunksWaitingMax);
  return async (claim, signal) => {
    const { chunk, dataPath } = claim;
    if (dataPath.length > pathOnCallerMax) return await checkInThread(thread, claim, signal);
    if (chunk.length < hashedInThreadMin) return admitChunk(claim);
    const permit = semaphore.take(signal);
    if (permit === undefined) throw new Failure("busy", { waiting: chunksWaitingMax });
    const release = await permit;
    // A caller may leave before the hash is made; the next chunk waits for it nevertheless.
    const digest = traced("content.check_chunk", () => digestOf(chunk)).finally(release);
    return admitChunk(claim, await untilStopped(digest, signal));
  };
}

async function checkInThread(thread: ContentThread, claim: PostedChunk, signal: AbortSignal): Promise<ChunkVerdict> {
  const chunk = new Uint8Array(claim.chunk); // moves to the thread; the claim's is used afterwards
  return await thread.run("checkPostedChunk", { ...claim, chunk }, { signal, transfer: [chunk.buffer] });
}

async function digestOf(bytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", unshared(bytes)));
}
