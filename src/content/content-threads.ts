/**
 * The threads of content: checks of fetched chunks, and hashes of complete data, without work on the calling thread.
 *
 * A chunk moves to a thread and back, so that it is neither copied nor hashed on the thread that serves requests.
 * Chunks that arrive while the threads are busy wait for a batch: passing one costs 40 µs, and hashing a chunk 140.
 * Source: docs/decisions/104-cold-content.md.
 * @module
 */
import type { CheckChunksJob, HashPieceJob } from "../../workers/content.ts";
import { admitChunk, type PostedChunk } from "../arweave/chunk.ts";
import type { CheckChunk, CheckedChunk } from "../chain/chunks.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { type BatchJob, createBatcher } from "../lib/batcher.ts";
import { untilStopped } from "../lib/stop.ts";
import { hotSpanMax } from "../store/extents/extent-reads.ts";
import { openParcel } from "../threads/parcel.ts";
import type { Pool, Workers } from "../threads/pool.ts";

/** One thread. */
type ContentThread = Pick<Pool<Workers["content"]>, "run">;

/** A smaller chunk is checked at once, on the calling thread: hashing it costs less than passing it. Bytes. */
const passedBytesMin = 32 * 2 ** 10;

/** Chunks of one batch: more would wait for each other, about 0.6 ms. */
const chunksPerBatchMax = 4;

/** Chunks that may wait for a thread; fetches are bounded far below (fill.ts). */
const chunksWaitingMax = 256;

type Waiting = BatchJob<PostedChunk, CheckedChunk>;

/** Checks chunks in threads. The buffer of a chunk is empty afterwards; the result has its bytes. */
export function createChunkCheck(threads: readonly ContentThread[]): CheckChunk {
  const batcher = createBatcher<PostedChunk, CheckedChunk, ContentThread>({
    name: "content.check_chunk",
    workers: threads,
    waitingMax: chunksWaitingMax,
    batchSize: (waiting) => Math.min(waiting.length, chunksPerBatchMax),
    run: settleBatch,
  });
  return async (claim, signal) => {
    if (claim.chunk.length < passedBytesMin) return await checkChunkAtOnce(claim, signal);
    const checked = batcher.add(claim);
    if (checked === undefined) throw new Failure("busy", { waiting: chunksWaitingMax });
    return await untilStopped(checked, signal);
  };
}

/** Checks a chunk on the calling thread. */
export const checkChunkAtOnce: CheckChunk = async (claim) => {
  const verdict = admitChunk(claim);
  return verdict.kind === "rejected" ? verdict : { ...verdict, bytes: claim.chunk };
};

async function settleBatch(batch: readonly Waiting[], thread: ContentThread): Promise<void> {
  try {
    const checked = await checkBatch(
      batch.map(({ input }) => input),
      thread,
    );
    for (const [index, { resolve }] of batch.entries()) {
      const result = checked[index];
      assert(result !== undefined, "every chunk of a batch gets a result");
      resolve(result);
    }
  } catch (error) {
    for (const { reject } of batch) reject(error); // the thread failed: nothing of the batch is checked
  }
}

async function checkBatch(claims: readonly PostedChunk[], thread: ContentThread): Promise<readonly CheckedChunk[]> {
  const parcel = openParcel();
  const { port } = parcel;
  try {
    const job: CheckChunksJob = { claims: claims.map(movable), port };
    const transfer = [port, ...job.claims.map(({ chunk }) => chunk.buffer)];
    const verdicts = await thread.run("checkChunks", job, { transfer });
    const pieces = parcel.take();
    assert(pieces?.length === verdicts.length, "every checked chunk comes back");
    return verdicts.map((verdict, index) => {
      const bytes = pieces[index];
      assert(bytes !== undefined, "every checked chunk comes back");
      return verdict.kind === "rejected" ? verdict : { ...verdict, bytes };
    });
  } finally {
    parcel.close();
  }
}

/** A claim whose buffers hold nothing else: a view is passed with all of its buffer. */
function movable(claim: PostedChunk): CheckChunksJob["claims"][number] {
  const { chunk, dataPath, dataRoot } = claim;
  const { buffer, byteOffset, byteLength } = chunk;
  // The body of a response has the chunk and its paths, of which the paths are copied here.
  const isOwn = buffer instanceof ArrayBuffer && byteLength > buffer.byteLength / 2;
  const own = isOwn ? new Uint8Array(buffer, byteOffset, byteLength) : new Uint8Array(chunk);
  return { ...claim, chunk: own, dataPath: new Uint8Array(dataPath), dataRoot: new Uint8Array(dataRoot) };
}

/** Adds the next piece of data to its hash. The buffer of the piece may be empty afterwards. */
export type HashPiece = (job: HashPieceJob, signal: AbortSignal) => Promise<Uint8Array | undefined>;

/** Hashes pieces that were read from the content cache, in the first thread, since it has the earlier pieces. */
export function createPieceHash([thread]: readonly ContentThread[]): HashPiece {
  assert(thread !== undefined, "there is a thread of content");
  return (job, signal) => {
    const { buffer, length } = job.bytes;
    // The cache may hold the buffer of a small span.
    const isOwn = length > hotSpanMax && buffer instanceof ArrayBuffer;
    return thread.run("hashPiece", job, { signal, transfer: isOwn ? [buffer] : [] });
  };
}
