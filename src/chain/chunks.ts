/**
 * Chunks of a transaction's data from the chain's nodes, each proven against the data root before it is given
 * on.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { ChunkVerdict, PostedChunk } from "../arweave/chunk.ts";
import type { Id } from "../arweave/id.ts";
import { assert } from "../lib/assert.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import { ownBytes } from "../lib/bytes.ts";
import { entryLimit } from "../lib/entry-limit.ts";
import { failureOf, fault } from "../lib/http-client.ts";
import { retry } from "../lib/retry.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import type { Node, NodeResponse } from "./node.ts";
import type { Nodes } from "./nodes.ts";

/** Data whose chunks are requested. */
export type ChunkedData = Readonly<{
  id: Id;
  dataRoot: string; // base64url of 32 bytes
  size: number; // bytes
  weaveStart?: bigint; // absolute offset of its first byte; asked of nodes when absent
}>;

/** A chunk that is what the data root commits to at this place: bytes `[start, end)` of the data. */
export type ProvenChunk = Readonly<{ start: number; end: number; bytes: Uint8Array; dataPath: Uint8Array }>;

/** Proven chunks. */
export type Chunks = Readonly<{
  /**
   * Gives the chunk that covers a byte of the data.
   * @throws Failure `source_failed` when no node gave it, `source_timeout` when none did in time, `busy`.
   */
  fetch: (data: ChunkedData, at: number, signal: AbortSignal) => Promise<ProvenChunk>;
}>;

/**
 * Checks a chunk of a node by `admitChunk`.
 * @throws Failure `busy`, `worker_failed`; the signal's reason.
 */
export type CheckChunk = (claim: PostedChunk, signal: AbortSignal) => Promise<ChunkVerdict>;

/** Places of transactions that the index lacks are requested once. */
const placesMax = 10_000;

/** A reader of a large body meets thousands of chances to fail; a connection that breaks once must not end it. */
const retryPlan = { attempts: 3, firstMs: 100, longestMs: 400 };

/**
 * Makes the chunks of nodes. Gateways that serve `/chunk` are nodes here.
 *
 * @param placeNodes - Asked for places of data. They cannot be proven; with a wrong one, honest nodes look dishonest.
 * @param checkChunk - Hashes each byte.
 */
export function createChunks(nodes: Nodes, placeNodes: Nodes, checkChunk: CheckChunk): Chunks {
  const places = new LRUCache<Id, bigint>(entryLimit(placesMax));
  const placeFlights = createSingleFlight<bigint>();

  async function weaveStart(data: ChunkedData, signal: AbortSignal): Promise<bigint> {
    const known = data.weaveStart ?? places.get(data.id);
    return known ?? placeFlights.run(data.id, signal, (own) => askPlace(data, own));
  }

  async function askPlace(data: ChunkedData, signal: AbortSignal): Promise<bigint> {
    const response = await placeNodes.ask(
      (node, own) => node.txOffset(data.id, own),
      signal,
      (place) => (place.size === data.size ? undefined : `${data.id} has ${place.size} bytes`),
    );
    if (response.kind !== "ok") throw failureFor(response, { id: data.id, asked: "offset" });
    const start = response.value.end - BigInt(data.size);
    places.set(data.id, start); // a hint: the bytes at this place are proven, or rejected
    return start;
  }

  return {
    async fetch(data, at, signal) {
      assert(at >= 0 && at < data.size, "a chunk is requested by a byte of its data");
      const dataRoot = decodeBase64url(data.dataRoot);
      assert(dataRoot?.length === 32, "a data root has 32 bytes");
      const offset = (await weaveStart(data, signal)) + BigInt(at) + 1n; // the wire counts from 1
      const provenFrom = async (node: Node, own: AbortSignal): Promise<NodeResponse<ProvenChunk>> => {
        const response = await node.chunk(offset, own);
        if (response.kind !== "ok") return response;
        // Both are views of one body, and stay in memory apart from each other.
        const [chunk, dataPath] = [ownBytes(response.value.chunk), new Uint8Array(response.value.dataPath)];
        const checked = await checkChunk({ dataRoot, dataSize: data.size, offset: at, dataPath, chunk }, own);
        if (checked.kind === "rejected") return fault("wrong", `chunk at ${offset}: ${checked.reason}`);
        return { kind: "ok", value: { start: checked.start, end: checked.end, bytes: chunk, dataPath } };
      };
      const response = await retry(
        retryPlan,
        signal,
        () => 1, // fetches are bounded, so retries need no jitter
        () => nodes.ask(provenFrom, signal),
        isLasting,
      );
      if (response.kind !== "ok") {
        places.delete(data.id);
        throw failureFor(response, { id: data.id, offset });
      }
      return response.value;
    },
  };
}

/** Whether asking again at once would be in vain: what broke on the way may go through, the rest is what it is. */
function isLasting(response: NodeResponse<ProvenChunk>): boolean {
  return response.kind !== "fault" || !["connect", "cut", "status"].includes(response.reason);
}

/**
 * Converts a response of the nodes about data to a failure. Data that a block names and no node has is a fault, never
 * absence. Only `isAbsent` reports absence, for data that no block has yet.
 */
function failureFor(response: NodeResponse<unknown>, context: Readonly<Record<string, unknown>>) {
  switch (response.kind) {
    case "fault":
      return failureOf(response, context);
    case "rejected":
      return failureOf(fault("status", response.text, response.status), context);
    case "pending":
    case "absent":
      return failureOf(fault("status", `nodes say: ${response.kind}`), { ...context, isAbsent: true });
    case "ok":
      return failureOf(fault("status", "nodes say: ok"), context);
  }
}
