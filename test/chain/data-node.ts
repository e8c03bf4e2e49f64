/**
 * A node that has the chunks of data made up by a test, and the transactions that commit to them.
 * @module
 */
import { admitChunk, servedChunkBytes, servedChunkFields } from "../../src/arweave/chunk.ts";
import { type Id, idFromBytes } from "../../src/arweave/id.ts";
import { buildTree, chunkSpans, type TailRule } from "../../src/arweave/merkle.ts";
import type { CheckChunk } from "../../src/chain/chunks.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { sha256 } from "../../src/lib/hash.ts";
import type { ByteSpan } from "../../src/lib/range.ts";
import type { RootSpec } from "../../src/store/root-spec.ts";
import { type FaultServer, type FaultyRequest, openFaultServer, type Result } from "./fault-server.ts";

/** Checks a chunk on the calling thread. */
export const checkChunkAtOnce: CheckChunk = async (claim) => admitChunk(claim);

/** Data with its tree. */
export type MadeData = Readonly<{
  root: RootSpec;
  bytes: Uint8Array;
  spans: readonly ByteSpan[];
  path: (chunk: number) => Uint8Array;
}>;

/** A node with data. */
export type DataNode = FaultServer &
  Readonly<{
    add: (...data: MadeData[]) => void;
    /** Bodies that `GET /raw/{id}` serves, with Range, as a gateway does. */
    addRaw: (id: string, body: Uint8Array, headers?: Readonly<Record<string, string>>) => void;
    /** Responses to other paths, by `METHOD path`. */
    responses: Map<string, Result>;
    chunkRequests: () => number;
  }>;

/** Bytes in which every place looks different, by seed. */
export function madeBytes(seed: number, size: number): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(size / 4) * 4);
  const words = new Uint32Array(bytes.buffer);
  for (let at = 0; at < words.length; at++) words[at] = Math.imul(at + 1, 2_654_435_761) ^ Math.imul(seed + 1, 40_503);
  return bytes.subarray(0, size);
}

/** The id made from a number. */
export function madeId(seed: number): Id {
  return idFromBytes(sha256(Buffer.from(`id ${seed}`)));
}

/** Cuts data and builds its tree. @param cuts - where chunks end, or the rule by which they do. */
export function makeData(
  seed: number,
  size: number,
  cuts: TailRule | readonly number[] = "halved",
  bytes = madeBytes(seed, size),
): MadeData {
  const spans = typeof cuts === "string" ? chunkSpans(size, cuts) : spansOf(cuts);
  const tree = buildTree(spans.map(({ start, end }) => ({ hash: sha256(bytes.subarray(start, end)), end })));
  const weaveStart = 10_000_000_000_000n * BigInt(seed + 1);
  const root = { id: madeId(seed), dataRoot: encodeBase64url(tree.root), size, weaveStart };
  return { root, bytes, spans, path: (chunk) => tree.path(chunk) };
}

function spansOf(cuts: readonly number[]): ByteSpan[] {
  return cuts.map((end, index) => ({ start: cuts[index - 1] ?? 0, end }));
}

/** Opens a node. It knows what is added to it. */
export async function openDataNode(...data: MadeData[]): Promise<DataNode> {
  const all = [...data];
  const raw = new Map<string, Readonly<{ body: Uint8Array; headers: Readonly<Record<string, string>> }>>();
  const responses = new Map<string, Result>();
  const server = await openFaultServer((request) => {
    const known = responses.get(`${request.method} ${request.path}`);
    if (known !== undefined) return known;
    const [, kind = "", name = "", field] = request.path.split("/");
    if (kind === "chunk" || kind === "chunk2") return chunkResponse(all, BigInt(name), kind);
    if (kind === "tx" && field === "offset") return offsetResponse(all, name);
    const found = kind === "raw" ? raw.get(name) : undefined;
    return found === undefined ? { status: 404, body: "Not Found." } : rawResponse(request, found);
  });
  return {
    ...server,
    add: (...more) => all.push(...more),
    addRaw: (id, body, headers = {}) => raw.set(id, { body, headers }),
    responses,
    chunkRequests: () => server.requests.filter(isChunkRequest).length,
  };
}

/** Whether a request, as `METHOD path` or as a path, is for a chunk, in JSON or in binary. */
export function isChunkRequest(line: string): boolean {
  return /^(GET )?\/chunk2?\//.test(line);
}

function chunkResponse(all: readonly MadeData[], offset: bigint, kind: "chunk" | "chunk2"): Result {
  for (const { root, bytes, spans, path } of all) {
    const at = Number(offset - 1n - (root.weaveStart ?? 0n));
    const chunk = at < 0 ? -1 : spans.findIndex(({ start, end }) => start <= at && at < end);
    const span = spans[chunk];
    if (span === undefined) continue;
    const served = { chunk: bytes.subarray(span.start, span.end), dataPath: path(chunk), txPath: new Uint8Array(0) };
    if (kind === "chunk2") return { status: 200, body: servedChunkBytes(served) };
    return { status: 200, body: JSON.stringify(servedChunkFields(served, (root.weaveStart ?? 0n) + BigInt(span.end))) };
  }
  return { status: 404 };
}

function offsetResponse(all: readonly MadeData[], id: string): Result {
  const found = all.find(({ root }) => root.id === id);
  if (found === undefined) return { status: 404 };
  const { size, weaveStart = 0n } = found.root;
  return {
    status: 200,
    body: JSON.stringify({ offset: String(weaveStart + BigInt(size)), size: String(size) }),
  };
}

function rawResponse(
  request: FaultyRequest,
  { body, headers }: Readonly<{ body: Uint8Array; headers: Readonly<Record<string, string>> }>,
): Result {
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "");
  const length = { "content-length": String(body.length) };
  if (request.method === "HEAD") return { status: 200, headers: { ...length, ...headers } };
  if (range === null) return { status: 200, headers, body };
  const [start, end] = [Number(range[1]), Number(range[2]) + 1];
  const contentRange = { "content-range": `bytes ${start}-${end - 1}/${body.length}` };
  return { status: 206, headers: { ...headers, ...contentRange }, body: body.subarray(start, end) };
}
