/**
 * Chunks that readers posted, kept on this disk: what was uploaded through this gateway is read from it without asking
 * anybody.
 *
 * Only what a node has taken is kept: a node takes chunks of transactions that it knows and that are paid for, so that
 * nobody can push others' content out of the cache for nothing.
 * @module
 */
import type { PostedChunk } from "../arweave/chunk.ts";
import { idFromBytes } from "../arweave/id.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import type { Log } from "../lib/log.ts";
import type { Extents } from "../store/extents/extents.ts";

/** Keeps a chunk that was proven; `start` is its first byte in the data. */
export type KeepChunk = (chunk: PostedChunk, start: number) => void;

/** Creates the keeper. A chunk for which there is no room is not kept; it can be had from nodes. */
export function createChunkKeeper(extents: Pick<Extents, "write">, log: Log): KeepChunk {
  return ({ dataRoot, dataSize, chunk }, start) => {
    // Data with a root is filed under it; which transaction brings it is not known yet, and not asked.
    const root = { id: idFromBytes(dataRoot), dataRoot: encodeBase64url(dataRoot), size: dataSize };
    extents.write(root, start, chunk).catch((error: unknown) => {
      log.warn("a posted chunk could not be kept", { dataRoot: root.dataRoot, start, error });
    });
  };
}
