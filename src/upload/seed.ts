/**
 * Seeding: handing the chunks of a bundle to the nodes. All of it may be done again: a node that has a chunk says so.
 * Source: reference/upload.md §2 "Seed"; reference/chain.md §1 (POST /chunk).
 * @module
 */
import { chunkSpans } from "../arweave/data-root.ts";
import { Failure } from "../failures.ts";
import { sleep } from "../lib/stop.ts";
import type { BundleChunksAnswer, BundleItem } from "../store/bundle-jobs.ts";
import type { Bundle } from "./bundles.ts";
import type { PipelineParts } from "./pipeline-parts.ts";

/** Chunks that are in memory at once, about 350 KB each, and on their way together. */
const chunksAtOnce = 8;

/** A chunk that nobody could be reached for is tried so often, after longer and longer pauses. */
const triesMax = 5;
const pauseMs = 200;

/** Posts every chunk. @throws Failure `source_failed` when one is not taken. */
export async function seedChunks(
  parts: PipelineParts,
  bundle: Bundle,
  items: readonly BundleItem[],
  signal: AbortSignal,
): Promise<void> {
  const { threads, folder } = parts;
  const { id: bundleId, dataSize } = bundle;
  const chunks = chunkSpans(dataSize, "halved").filter(({ start, end }) => start < end).length;
  for (let first = 0; first < chunks; first += chunksAtOnce) {
    const count = Math.min(chunksAtOnce, chunks - first);
    const job = { folder, bundleId, items, dataSize, first, count };
    const { bodies } = await threads.run<BundleChunksAnswer>("bundleChunks", job, { signal });
    await Promise.all(bodies.map((body) => postChunk(parts, body, signal)));
  }
}

async function postChunk(
  { chain }: PipelineParts,
  body: Uint8Array<ArrayBuffer>,
  signal: AbortSignal,
): Promise<void> {
  for (let tried = 1; ; tried += 1) {
    const posted = await chain.post("/chunk", body, signal);
    if (posted.kind === "taken") return;
    if (posted.kind === "refused" || tried === triesMax)
      throw new Failure("source_failed", { reason: `a chunk was not taken: ${posted.reason}` });
    await sleep(pauseMs * 2 ** (tried - 1), signal);
  }
}
