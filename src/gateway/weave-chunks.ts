/**
 * Chunks of the weave by absolute offset, each verified against the data root of a followed transaction.
 *
 * Where possible, both proofs are computed from local data, so chunks are served even when every node is down. A chunk
 * that must be fetched is fetched once for all concurrent requests, and stored.
 * Source: docs/reference/gateway.md#chunks; docs/reference/node-api.md#routes.
 * @module
 */
import { LRUCache } from "lru-cache";
import { type PostedChunk, readServedChunk, type ServedChunk } from "../arweave/chunk.ts";
import type { ChunkedData, ProvenChunk, Chunks as ProvenChunks } from "../chain/chunks.ts";
import type { Content } from "../content/content.ts";
import { likelyChunk } from "../content/fetch-to-cache.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import type { ByteSpan } from "../lib/range.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import { isTimeout, untilStopped, withDeadline } from "../lib/stop.ts";
import { type IndexReader, stableDepth, type WeaveSpan } from "../store/index/index-types.ts";
import type { ChunkProofs, DataProof, TxProof } from "./chunk-proofs.ts";
import type { Relay } from "./relay.ts";
import type { RelayGuard } from "./relayed-block-list.ts";

export type FoundChunk = Readonly<{
  served: ServedChunk;
  /** Weave offset after the chunk's last byte. */
  end: bigint;
  /**
   * Whether the chunk was verified against a followed transaction; otherwise a node's response is the only evidence.
   */
  verified: boolean;
  /** Whether the chunk is deep enough that no fork can replace it. */
  stable: boolean;
  /** The transaction that contains it, if followed. */
  transaction: WeaveSpan | undefined;
  /** Bytes of the data before the chunk. */
  dataStart: number;
}>;

export type Chunks = Readonly<{
  /**
   * @param offset - Absolute, counted from 1 as in the node API; of any byte of the chunk.
   * @throws Failure `not_found`, `blocked`, `source_failed`, `source_timeout`, `busy`.
   */
  at: (offset: bigint, signal: AbortSignal) => Promise<FoundChunk>;
  /** As `at`, for requests of gateways: no other gateway is asked, because it could ask this one. */
  atForGateway: (offset: bigint, signal: AbortSignal) => Promise<FoundChunk>;
}>;

export type ChunksOptions = Readonly<{
  reader: Pick<IndexReader, "transactionAt" | "tip">;
  content: Pick<Content, "open">;
  /** Chunks from nodes, proven under their data root. */
  provenChunks: ProvenChunks;
  /** The same from the chain's own nodes alone. */
  ownChunks: ProvenChunks;
  relay: Relay;
  proofs: ChunkProofs;
  relayedData: RelayGuard;
  /** Stores a chunk with a valid proof; `start` is its first byte in the data. */
  keep: (chunk: PostedChunk, start: number) => void;
}>;

/** Cached proofs of fetched chunks; each has a few hundred bytes. Bytes. */
const proofBytesMax = 16 * 2 ** 20;

/** Largest offset that the index and the nodes can represent. */
const offsetMax = 2n ** 63n - 1n;

/** Longest wait for the data of other transactions, from which the path of a transaction is computed. Milliseconds. */
const txProofMsMax = 2_000;

/** Longest time for that data itself. Milliseconds. */
const txProofWorkMsMax = 60_000;

const neverAborted = new AbortController().signal;

/** Time to live of a chunk that cannot be verified. Milliseconds. */
const retentionMs = 10_000;

export function createChunks(options: ChunksOptions): Chunks {
  const { reader, content, relay, proofs, relayedData } = options;
  const fetched = createFetched(options.keep);

  const followed = async (
    transaction: WeaveSpan,
    offset: bigint,
    source: ProvenChunks,
    signal: AbortSignal,
  ): Promise<FoundChunk> => {
    const at = Number(offset - 1n - transaction.start);
    // Opening rejects blocked content, and knows which bytes are on this disk.
    const data = await content.open(transaction.id, signal);
    const { id, dataRoot, start, end } = transaction;
    const chunked = { id, dataRoot, size: Number(end - start), weaveStart: start };
    const before = fetched.proof(chunked, at);
    const isStored = before !== undefined && data.cached(before.span);
    const made = isStored ? before : await proofs.dataProof(transaction, data, at, signal);
    // A proof may outlast its bytes. A chunk of format 1 without a root is in no other place than the content.
    if (made !== undefined && (dataRoot === "" || data.cached(made.span))) {
      const chunk = await data.bytes(made.span, signal);
      const served = { chunk, dataPath: made.path, txPath: new Uint8Array(0) };
      return await found(transaction, served, made.span.start, signal);
    }
    // Data of format 1 before 2.0 has no root that could verify it: a source could serve any bytes.
    if (dataRoot === "") return await relayed(offset, signal);
    const chunk = await fetched.fetch(source, chunked, at, signal);
    // The request for the span's file rejects blocked content within it.
    await data.file({ start: chunk.start, end: chunk.end }, signal);
    const served = { chunk: chunk.bytes, dataPath: chunk.dataPath, txPath: new Uint8Array(0) };
    return await found(transaction, served, chunk.start, signal);
  };

  const found = async (
    transaction: WeaveSpan,
    served: ServedChunk,
    dataStart: number,
    signal: AbortSignal,
  ): Promise<FoundChunk> => {
    const proof = await txProofSoon(proofs, transaction, signal);
    return {
      served: { ...served, txPath: proof?.path ?? served.txPath },
      end: transaction.start + BigInt(dataStart + served.chunk.byteLength),
      verified: true,
      stable: transaction.place.height <= (reader.tip()?.height ?? -1) - stableDepth,
      transaction: { ...transaction, dataRoot: proof?.dataRoot ?? transaction.dataRoot },
      dataStart,
    };
  };

  const relayed = async (offset: bigint, signal: AbortSignal): Promise<FoundChunk> => {
    const response = await relay.get(`/chunk/${offset}`, retentionMs, signal);
    const { status } = response;
    // Nodes respond 400 for an offset beyond their weave.
    if (status === 404 || status === 400) throw new Failure("not_found", { offset, status });
    if (status !== 200) throw new Failure("source_failed", { offset, sourceStatus: status });
    const text = new TextDecoder().decode(response.body);
    const read = readUnfollowed(text, offset);
    relayedData.checkChunk(read.served);
    return { ...read, verified: false, stable: false, transaction: undefined, dataStart: 0 };
  };

  const find = async (offset: bigint, source: ProvenChunks, signal: AbortSignal): Promise<FoundChunk> => {
    if (offset === 0n || offset > offsetMax) throw new Failure("not_found", { offset });
    const transaction = reader.transactionAt(offset - 1n);
    return transaction === undefined
      ? await relayed(offset, signal)
      : await followed(transaction, offset, source, signal);
  };

  return {
    at: (offset, signal) => find(offset, options.provenChunks, signal),
    atForGateway: (offset, signal) => find(offset, options.ownChunks, signal),
  };
}

/**
 * The path of a transaction; undefined also while data of its block is awaited: the chunk itself is at hand. The work
 * goes on for later requests.
 */
async function txProofSoon(
  proofs: ChunkProofs,
  transaction: WeaveSpan,
  signal: AbortSignal,
): Promise<TxProof | undefined> {
  const work = withDeadline(neverAborted, txProofWorkMsMax, (own) => proofs.txProof(transaction, own));
  try {
    return await withDeadline(signal, txProofMsMax, (own) => untilStopped(work, own));
  } catch (error) {
    if (signal.aborted || !isTimeout(error)) throw error;
    return undefined;
  }
}

/** Fetches each chunk once for all concurrent requests, caches its proofs and stores its bytes. */
function createFetched(keep: ChunksOptions["keep"]) {
  const proofs = new LRUCache<string, DataProof>({ maxSize: proofBytesMax });
  const flights = new Map<ProvenChunks, ReturnType<typeof createSingleFlight<ProvenChunk>>>();
  const keyOf = ({ dataRoot, size }: ChunkedData, start: number) => `${dataRoot}:${size}:${start}`;
  const flightsOf = (source: ProvenChunks) => {
    const known = flights.get(source) ?? createSingleFlight<ProvenChunk>();
    flights.set(source, known);
    return known;
  };

  const note = (data: ChunkedData, at: number, { start, end, bytes, dataPath }: ProvenChunk): void => {
    const dataRoot = decodeBase64url(data.dataRoot);
    assert(dataRoot !== undefined, "what was proven has a data root");
    keep({ dataRoot, dataSize: data.size, dataPath, offset: at, chunk: bytes }, start);
    proofs.set(keyOf(data, start), { span: { start, end }, path: dataPath }, { size: dataPath.length + 200 });
  };

  return {
    /** The cached proof of the chunk that contains a byte. */
    proof: (data: ChunkedData, at: number): DataProof | undefined => {
      const proof = proofs.get(keyOf(data, likelyChunk(data.size, at).start));
      // Of irregularly split data, the chunk that begins there may end before this byte.
      return proof !== undefined && contains(proof.span, at) ? proof : undefined;
    },
    fetch: async (source: ProvenChunks, data: ChunkedData, at: number, signal: AbortSignal) => {
      const key = `${data.id}:${likelyChunk(data.size, at).start}`;
      const chunk = await flightsOf(source).run(key, signal, async (own) => {
        const fetched = await source.fetch(data, at, own);
        note(data, at, fetched);
        return fetched;
      });
      // The same of the chunk of a concurrent request.
      return contains(chunk, at) ? chunk : await source.fetch(data, at, signal);
    },
  };
}

function contains({ start, end }: ByteSpan, at: number): boolean {
  return start <= at && at < end;
}

/** A node's chunk whose transaction was not followed: parsed, but not verified. */
function readUnfollowed(text: string, offset: bigint): Readonly<{ served: ServedChunk; end: bigint }> {
  try {
    const served = readServedChunk(text);
    const named = /"absolute_end_offset"\s*:\s*"(\d{1,19})"/.exec(text)?.[1];
    return { served, end: named === undefined ? offset : BigInt(named) };
  } catch (error) {
    throw new Failure("source_failed", { offset }, error);
  }
}
