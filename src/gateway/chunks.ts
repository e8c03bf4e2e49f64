/**
 * Chunks of the weave by absolute offset, each checked against the data root of a transaction that was followed.
 *
 * Both proofs are made from what is here where that is possible; then a chunk is served also with every node stopped.
 * Source: reference/chain.md §1 (`GET /chunk`); contract.md §3.
 * @module
 */
import { admitChunk, readServedChunk, type ServedChunk } from "../arweave/chunk.ts";
import type { Trouble } from "../chain/http.ts";
import type { Node } from "../chain/node.ts";
import type { Content } from "../content/content.ts";
import { Failure } from "../failures.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import type { IndexReader, WeaveSpan } from "../store/index-reader.ts";
import type { ChunkProofs } from "./chunk-proofs.ts";
import { noAnswer, type Relay } from "./relay.ts";

/** A chunk with its proofs. */
export type FoundChunk = Readonly<{
  served: ServedChunk;
  /** Weave offset after the chunk's last byte. */
  end: bigint;
  /** Whether the chunk was proven against a transaction that was followed; else only a node vouches for it. */
  verified: boolean;
  /** The transaction in whose data it lies, when it was followed. */
  transaction: WeaveSpan | undefined;
  /** Bytes of the data before the chunk. */
  dataStart: number;
}>;

/** Finds chunks. */
export type Chunks = Readonly<{
  /**
   * @param offset - Absolute, counted from 1 as on the wire: any byte of the chunk.
   * @throws Failure `not_found`, `blocked`, `source_failed`, `source_timeout`, `busy`.
   */
  at: (offset: bigint, signal: AbortSignal) => Promise<FoundChunk>;
}>;

/** What chunks are found with. */
export type ChunksOptions = Readonly<{
  reader: Pick<IndexReader, "transactionAt" | "tip">;
  content: Pick<Content, "open">;
  nodes: readonly Node[];
  relay: Relay;
  proofs: ChunkProofs;
}>;

/** How long a node's chunk that cannot be checked is given again. Milliseconds. */
const keptMs = 10_000;

/** Creates the finder of chunks. */
export function createChunks(options: ChunksOptions): Chunks {
  const { reader, content, nodes, relay, proofs } = options;

  const followed = async (
    transaction: WeaveSpan,
    offset: bigint,
    signal: AbortSignal,
  ): Promise<FoundChunk> => {
    const at = Number(offset - 1n - transaction.start);
    // Opening refuses what is blocked, and knows what lies on this disk.
    const data = await content.open(transaction.id, signal);
    const made = await proofs.dataProof(transaction, data, at, signal);
    if (made !== undefined) {
      const chunk = await data.bytes(made.span, signal);
      return found(transaction, { chunk, dataPath: made.path, txPath: new Uint8Array(0) }, made.span.start);
    }
    const troubles: Trouble[] = [];
    for (const node of nodes) {
      const answer = await node.chunk(offset, signal);
      if (answer.kind === "trouble") troubles.push(answer);
      if (answer.kind !== "ok") continue;
      const start = provenStart(transaction, answer.value, at);
      if (start !== undefined) return found(transaction, answer.value, start);
      troubles.push({
        kind: "trouble",
        reason: "wrong",
        detail: `${node.url} gave a chunk that proves nothing`,
      });
    }
    // The block says that the data exists: nobody having it is trouble, not absence.
    throw noAnswer(`/chunk/${offset}`, troubles);
  };

  const found = (transaction: WeaveSpan, served: ServedChunk, dataStart: number): FoundChunk => ({
    served: { ...served, txPath: proofs.txPath(transaction) ?? served.txPath },
    end: transaction.start + BigInt(dataStart + served.chunk.byteLength),
    verified: true,
    transaction,
    dataStart,
  });

  const relayed = async (offset: bigint, signal: AbortSignal): Promise<FoundChunk> => {
    const answer = await relay.get(`/chunk/${offset}`, keptMs, signal);
    if (answer.status !== 200) throw new Failure("not_found", { offset, status: answer.status });
    const text = new TextDecoder().decode(answer.body);
    return { ...readUnfollowed(text, offset), verified: false, transaction: undefined, dataStart: 0 };
  };

  return {
    at: async (offset, signal) => {
      if (offset === 0n) throw new Failure("not_found", { offset });
      const transaction = reader.transactionAt(offset - 1n);
      return transaction === undefined
        ? await relayed(offset, signal)
        : await followed(transaction, offset, signal);
    },
  };
}

/** Where in the data a node's chunk begins; `undefined` when it is not proven to hold the byte asked for. */
function provenStart(
  { dataRoot, start, end }: WeaveSpan,
  served: ServedChunk,
  at: number,
): number | undefined {
  const root = decodeBase64url(dataRoot);
  if (root === undefined || root.byteLength === 0) return undefined;
  const { chunk, dataPath } = served;
  const verdict = admitChunk({ dataRoot: root, dataSize: Number(end - start), dataPath, offset: at, chunk });
  return verdict.kind === "proven" ? verdict.start : undefined;
}

/** A node's chunk whose transaction was not followed: read, but vouched for by the node alone. */
function readUnfollowed(text: string, offset: bigint): Readonly<{ served: ServedChunk; end: bigint }> {
  try {
    const served = readServedChunk(text);
    const named = /"absolute_end_offset"\s*:\s*"(\d{1,19})"/.exec(text)?.[1];
    return { served, end: named === undefined ? offset : BigInt(named) };
  } catch (error) {
    throw new Failure("source_failed", { offset }, error);
  }
}
