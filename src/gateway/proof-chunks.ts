/**
 * The chunks of a proof: those with the requested bytes, and those that prove the walk to an item.
 * @module
 */
import { type ProofChunk, proofChunksMax } from "../arweave/proof.ts";
import type { Chunks as ProvenChunks } from "../chain/chunks.ts";
import { likelyChunk } from "../content/fetch-to-cache.ts";
import type { OpenContent } from "../content/opened-content.ts";
import { Failure } from "../failures.ts";
import type { ByteSpan } from "../lib/range.ts";
import type { WeaveSpan } from "../store/index/index-types.ts";
import type { ChunkProofs } from "./chunk-proofs.ts";

export type ProofChunksParts = Readonly<{ chunkProofs: ChunkProofs; provenChunks: ProvenChunks }>;

/** Spans are of the root transaction's data. */
export type ProofChunksRequest = Readonly<{
  weaveSpan: WeaveSpan;
  /** The root transaction's data. */
  root: OpenContent;
  /** The requested bytes, which the client already has: chunks entirely within them are sent without bytes. */
  asked: ByteSpan;
  shown: readonly ByteSpan[];
}>;

/** Concurrent node requests of one proof. */
const chunksAtOnce = 4;

type FoundChunk = Readonly<{ start: number; end: number; path: Uint8Array }>;

/**
 * Finds the chunks and their paths, ascending.
 *
 * Chunks of format 1 whose data is not on this disk are omitted: no other source has their paths.
 *
 * @throws Failure `proof_too_large`, `source_failed`, `source_timeout`, `busy`.
 */
export async function collectChunks(
  parts: ProofChunksParts,
  request: ProofChunksRequest,
  signal: AbortSignal,
): Promise<readonly ProofChunk[]> {
  const { root, weaveSpan, asked } = request;
  const spans = [asked, ...request.shown];
  const found = new Map<number, FoundChunk>();
  const find = async (at: number) => {
    const chunk = await findChunk(parts, request, at, signal);
    if (chunk !== undefined) found.set(chunk.start, chunk);
    if (found.size > proofChunksMax) throw new Failure("proof_too_large", { id: weaveSpan.id });
    return chunk;
  };

  const starts = likelyStarts(spans, root.size);
  if (starts.length > proofChunksMax) throw new Failure("proof_too_large", { id: weaveSpan.id });
  const [first, ...others] = starts;
  // The first call builds the tree for the others, if the data is on this disk.
  if (first === undefined || (await find(first)) === undefined) return [];
  for (let index = 0; index < others.length; index += chunksAtOnce) {
    await Promise.all(others.slice(index, index + chunksAtOnce).map(find));
  }
  // Irregularly split data leaves gaps after the first pass.
  for (const { start, end } of spans) {
    for (let at = start; at < end; ) at = (holding(found, at) ?? (await find(at)))?.end ?? end;
  }

  const chunks = [...found.values()].sort((one, other) => one.start - other.start);
  const shown: ProofChunk[] = [];
  for (const { start, end, path } of chunks) {
    const isAsked = asked.start <= start && end <= asked.end;
    const bytes = isAsked ? undefined : await bytesUnlessBlocked(root, { start, end }, signal);
    shown.push({ start, end, absoluteEnd: weaveSpan.start + BigInt(end), dataPath: path, bytes });
  }
  return shown;
}

/** One byte of each chunk that the spans touch, for regularly split data. */
function likelyStarts(spans: readonly ByteSpan[], size: number): number[] {
  const starts = new Map<number, number>();
  for (const { start, end } of spans) {
    for (let at = start; at < end; ) {
      const chunk = likelyChunk(size, at);
      starts.set(chunk.start, at);
      at = chunk.end;
    }
  }
  return [...starts.values()];
}

function holding(found: ReadonlyMap<number, FoundChunk>, at: number): FoundChunk | undefined {
  for (const chunk of found.values()) if (chunk.start <= at && at < chunk.end) return chunk;
  return undefined;
}

async function findChunk(
  { chunkProofs, provenChunks }: ProofChunksParts,
  { weaveSpan, root }: ProofChunksRequest,
  at: number,
  signal: AbortSignal,
): Promise<FoundChunk | undefined> {
  const made = await chunkProofs.dataProof(weaveSpan, root, at, signal);
  if (made !== undefined) return { ...made.span, path: made.path };
  const { id, dataRoot, start: weaveStart } = weaveSpan;
  if (dataRoot === "") return undefined;
  const chunk = await provenChunks.fetch({ id, dataRoot, size: root.size, weaveStart }, at, signal);
  return { start: chunk.start, end: chunk.end, path: chunk.dataPath };
}

/** A chunk's bytes, unless it also contains blocked content. */
async function bytesUnlessBlocked(
  root: OpenContent,
  span: ByteSpan,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  try {
    return await root.bytes(span, signal);
  } catch (error) {
    // The proof omits these bytes and marks them as withheld.
    if (error instanceof Failure && error.code === "blocked") return undefined;
    throw error;
  }
}
