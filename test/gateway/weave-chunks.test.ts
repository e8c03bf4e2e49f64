/**
 * Chunks of the weave by their proofs: of irregularly split data, of data that left the disk, and while other data of
 * the block is awaited.
 * @module
 */
import { expect, test } from "bun:test";
import { buildTree, type MerkleLeaf } from "../../src/arweave/merkle.ts";
import type { Chunks as ProvenChunks } from "../../src/chain/chunks.ts";
import type { OpenContent } from "../../src/content/opened-content.ts";
import type { ChunkProofs, TxProof } from "../../src/gateway/chunk-proofs.ts";
import { createChunks } from "../../src/gateway/weave-chunks.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { createSingleFlight } from "../../src/lib/single-flight.ts";
import { untilStopped } from "../../src/lib/stop.ts";
import type { WeaveSpan } from "../../src/store/index/index-types.ts";
import { createMemoryContent, patternBytes } from "../support/memory-content.ts";
import { until } from "../support/until.ts";

const never = new AbortController().signal;
const start = 5_000n;
/** Of data that was split before strict rules: the first two chunks share 256 KiB. */
const ends = [135_000, 262_144, 524_288, 700_000];
const data = patternBytes(700_000);
const leaves: MerkleLeaf[] = ends.map((end, index) => ({
  hash: sha256(data.subarray(ends[index - 1] ?? 0, end)),
  end,
}));
const tree = buildTree(leaves);

/** Nodes that have the data. */
function nodesWithData(): ProvenChunks & { fetched: number } {
  const source = {
    fetched: 0,
    fetch: async (_data: unknown, at: number) => {
      source.fetched += 1;
      const index = ends.findIndex((end) => at < end);
      const span = { start: ends[index - 1] ?? 0, end: ends[index] ?? 0 };
      return { ...span, bytes: data.subarray(span.start, span.end), dataPath: tree.path(index) };
    },
  };
  return source;
}

async function open(proofs: Partial<ChunkProofs> = {}) {
  const content = createMemoryContent();
  const id = content.put("data", { body: data });
  const found = await content.open(id, never);
  const disk = { hasData: true, reads: 0 };
  const opened: OpenContent = {
    ...found,
    cached: () => disk.hasData,
    bytes: async (span, signal) => {
      disk.reads += 1;
      return await found.bytes(span, signal);
    },
  };
  const transaction: WeaveSpan = {
    id,
    dataRoot: encodeBase64url(tree.root),
    format: 2,
    start,
    end: start + BigInt(data.length),
    place: { height: 1, txIndex: 0, offset: -1 },
  };
  const [all, own] = [nodesWithData(), nodesWithData()];
  const unused = async (): Promise<never> => {
    throw new Error("nothing is relayed");
  };
  const chunks = createChunks({
    reader: { transactionAt: () => transaction, tip: () => undefined },
    content: { open: async () => opened },
    provenChunks: all,
    ownChunks: own,
    relay: { get: unused } as never,
    proofs: { txProof: async () => undefined, dataProof: async () => undefined, ...proofs },
    relayedData: {} as never,
    keep: () => undefined,
  });
  const at = async (byte: number, ask: "at" | "atForGateway" = "at") => {
    const { dataStart, served, verified } = await chunks[ask](start + BigInt(byte) + 1n, never);
    expect(Buffer.compare(served.chunk, data.subarray(dataStart, dataStart + served.chunk.length))).toBe(0);
    return { first: dataStart, end: dataStart + served.chunk.length, verified, hasTxPath: served.txPath.length > 0 };
  };
  return { at, all, own, disk, close: content.close };
}

test("the chunk of a byte contains it, also where two chunks share the place of one", async () => {
  const { at, close } = await open();
  for (let round = 0; round < 2; round += 1)
    for (const byte of [11, 134_999, 135_000, 200_000, 262_143, 262_144, 699_999]) {
      const { first, end } = await at(byte);
      expect([byte, first <= byte && byte < end]).toEqual([byte, true]);
    }
  await close();
});

test("a proof without its bytes does not make a gateway's request one of other gateways", async () => {
  const dataProof: ChunkProofs["dataProof"] = async () => ({ span: { start: 0, end: 135_000 }, path: tree.path(0) });
  const { at, all, own, disk, close } = await open({ dataProof });
  await at(11, "atForGateway");
  expect([disk.reads, own.fetched]).toEqual([1, 0]);
  disk.hasData = false;
  await at(11, "atForGateway");
  expect([disk.reads, own.fetched, all.fetched]).toEqual([1, 1, 0]);
  await close();
});

test("a chunk does not wait for the data of other transactions, from which a later one has its path", async () => {
  const data = Promise.withResolvers<void>();
  const flights = createSingleFlight<TxProof>();
  let asked = 0;
  let begun = 0;
  const txProof: ChunkProofs["txProof"] = (_transaction, signal) => {
    asked += 1;
    return flights.run("block", signal, async (own) => {
      begun += 1;
      await untilStopped(data.promise, own);
      return { path: new Uint8Array(64), dataRoot: encodeBase64url(tree.root) };
    });
  };
  const { at, close } = await open({ txProof });
  expect(await at(11)).toMatchObject({ first: 0, verified: true, hasTxPath: false });
  const later = at(11);
  await until(() => asked === 2);
  data.resolve();
  expect(await later).toMatchObject({ first: 0, verified: true, hasTxPath: true });
  expect(begun).toBe(1);
  await close();
});
