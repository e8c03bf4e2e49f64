/**
 * A node that has the recorded real chain: blocks and transactions of the public chain, served as a node serves
 * them, and failing as a test wants.
 *
 * What the records do not say is computed from them: offsets by the layout that reproduces the block's own tx_root, and
 * chunks of format 1 data by the tree that the tx_root commits to.
 * Source: docs/reference/node-api.md#routes.
 * @module
 */
import { readBlock } from "../../src/arweave/block.ts";
import type { Id } from "../../src/arweave/id.ts";
import { chunkSpans, dataTreeOf } from "../../src/arweave/merkle.ts";
import { readTransaction, type Transaction, treeRootOf } from "../../src/arweave/transaction.ts";
import { buildTxTree, layoutTransactions, type PlacedTransaction } from "../../src/arweave/tx-root.ts";
import { decodeBase64url, encodeBase64url } from "../../src/lib/base64url.ts";
import { vectorName, vectorsOf, vectorText } from "../support/vectors.ts";
import { type FaultServer, type FaultyRequest, openFaultServer, type Result } from "./fault-server.ts";

/**
 * Ranges that can be followed: every block and every transaction is recorded, but for the one of block 42.
 * Heights, inclusive.
 */
export const recordedRanges: readonly (readonly [number, number])[] = [
  [0, 53],
  [115, 137],
  [186, 200],
  [235_200, 235_201],
  [422_250, 422_251],
  [893_174, 893_174],
];

/** The node. Its faults and request counts are the server's. */
export type RecordedChain = FaultServer &
  Readonly<{
    /** Moves the tip; blocks above it are not found. */
    setTip: (height: number) => void;
    /** Serves another text for a height; undefined: the recorded one again. */
    replaceBlock: (height: number, text: string | undefined) => void;
    /** Ids that are not found. */
    missing: Set<string>;
    /** Ids that are pending: 202. */
    pending: Set<string>;
    /** What was posted, in order: path and body. */
    posted: Readonly<{ path: string; body: string }>[];
    /** Text of a recorded block. */
    blockText: (height: number) => string;
    /** Ids of the transactions of a recorded block that are recorded too, in the order of its `txs`. */
    idsOf: (height: number) => readonly string[];
    /** Text of a recorded transaction. */
    txText: (id: string) => string | undefined;
  }>;

type Recorded = Readonly<{
  blocks: ReadonlyMap<number, RecordedBlock>; // by height
  heights: ReadonlyMap<string, number>; // by hash
  txs: ReadonlyMap<string, string>; // files by id
  txHeights: ReadonlyMap<string, number>; // by id
  places: Map<number, readonly Placed[]>; // by height, made at the first request
}>;

type RecordedBlock = Readonly<{
  file: string;
  hash: string;
  txs: readonly string[];
  start: bigint;
  end: bigint;
}>;

/** Opens a node whose tip is a recorded height. */
export async function openRecordedChain(tip: number): Promise<RecordedChain> {
  const recorded = findRecords();
  const state = {
    tip,
    replaced: new Map<number, string>(),
    missing: new Set<string>(),
    pending: new Set<string>(),
  };
  const posted: { path: string; body: string }[] = [];
  const server = await openFaultServer((request) => {
    if (request.method === "POST") {
      posted.push({ path: request.path, body: new TextDecoder().decode(request.body) });
      return { status: 200, body: request.path === "/tx" ? "OK" : "" };
    }
    return responseOf(recorded, state, request);
  });
  return {
    ...server,
    setTip: (height) => {
      state.tip = height;
    },
    replaceBlock: (height, text) => {
      if (text === undefined) state.replaced.delete(height);
      else state.replaced.set(height, text);
    },
    missing: state.missing,
    pending: state.pending,
    posted,
    blockText: (height) => vectorText(recorded.blocks.get(height)?.file ?? ""),
    idsOf: (height) => (recorded.blocks.get(height)?.txs ?? []).filter((id) => recorded.txs.has(id)),
    txText: (id) => textOf(recorded.txs, id),
  };
}

type State = Readonly<{
  tip: number;
  replaced: ReadonlyMap<number, string>;
  missing: ReadonlySet<string>;
  pending: ReadonlySet<string>;
}>;

function findRecords(): Recorded {
  const blocks = new Map<number, RecordedBlock>();
  for (const { file, result, height } of vectorsOf("block")) {
    if (file.startsWith("blocks-docs/") || result === "expected-invalid") continue; // abbreviated for a manual
    const at = height ?? Number(vectorName(file).replace(/\D/g, ""));
    if (blocks.has(at)) continue;
    const { hash, txs, weaveSize, blockSize } = readBlock(vectorText(file));
    blocks.set(at, { file, hash, txs, start: weaveSize - blockSize, end: weaveSize });
  }
  const all = [...blocks];
  return {
    blocks,
    heights: new Map(all.map(([height, { hash }]) => [hash, height])),
    txs: new Map(vectorsOf("tx").map(({ file }) => [vectorName(file), file])),
    txHeights: new Map(all.flatMap(([height, { txs }]) => txs.map((id) => [id, height] as const))),
    places: new Map(),
  };
}

function textOf(files: ReadonlyMap<string, string>, id: string): string | undefined {
  const file = files.get(id);
  return file === undefined ? undefined : vectorText(file);
}

function responseOf(recorded: Recorded, state: State, { path }: FaultyRequest): Result {
  const [, first = "", second = "", third = ""] = path.split("/");
  switch (first) {
    case "height":
      return { status: 200, body: String(state.tip) };
    case "info":
      return { status: 200, body: infoText(recorded, state) };
    case "peers":
      return { status: 200, body: "[]" };
    case "tx_anchor":
      return { status: 200, body: hashAt(recorded, state.tip) };
    case "price":
      return { status: 200, body: "1000000000" };
    case "wallet":
      return { status: 200, body: third === "balance" ? "0" : "" };
    case "current_block":
      return blockResponse(recorded, state, state.tip);
    case "block":
      return blockResponse(recorded, state, heightOf(recorded, state, second, third));
    case "tx":
    case "unconfirmed_tx":
      return second === "pending" ? jsonResponse([...state.pending]) : txResponse(recorded, state, second, third);
    case "chunk":
      return chunkResponse(recorded, second);
    default:
      return { status: 400, body: "Request type not found." };
  }
}

function jsonResponse(value: unknown): Result {
  return { status: 200, body: JSON.stringify(value) };
}

function hashAt(recorded: Recorded, height: number): string {
  return recorded.blocks.get(height)?.hash ?? "";
}

function infoText(recorded: Recorded, { tip }: State): string {
  const current = hashAt(recorded, tip);
  return JSON.stringify({
    network: "arweave.N.1",
    version: 5,
    release: 92,
    height: tip,
    current,
    blocks: tip + 1,
    peers: 0,
  });
}

function heightOf(recorded: Recorded, state: State, kind: string, name: string): number | undefined {
  if (kind === "current") return state.tip;
  if (kind === "height") return /^\d+$/.test(name) ? Number(name) : undefined;
  return kind === "hash" ? recorded.heights.get(name) : undefined;
}

function blockResponse(recorded: Recorded, state: State, height: number | undefined): Result {
  const block = height === undefined || height > state.tip ? undefined : recorded.blocks.get(height);
  if (block === undefined || height === undefined) return { status: 404, body: "Block not found." };
  return { status: 200, body: state.replaced.get(height) ?? vectorText(block.file) };
}

function txResponse(recorded: Recorded, state: State, id: string, field: string): Result {
  if (state.pending.has(id)) return { status: 202, body: "Pending" };
  const text = state.missing.has(id) ? undefined : textOf(recorded.txs, id);
  if (text === undefined) return { status: 404, body: "Not Found." };
  if (field === "") return { status: 200, body: text };
  const tx = readTransaction(text);
  switch (field) {
    case "data":
      return { status: 200, body: tx.data };
    case "data_size":
      return { status: 200, body: String(tx.dataSize) };
    case "offset":
      return offsetResponse(recorded, tx);
    case "status":
      return statusResponse(recorded, state, tx.id);
    default:
      return fieldResponse(text, field);
  }
}

function fieldResponse(text: string, field: string): Result {
  const value: unknown = JSON.parse(text)[field];
  if (value === undefined) return { status: 400, body: '{"error":"invalid_field"}' };
  return { status: 200, body: typeof value === "string" ? value : JSON.stringify(value) };
}

function statusResponse(recorded: Recorded, { tip }: State, id: Id): Result {
  const height = recorded.txHeights.get(id);
  if (height === undefined || height > tip) return { status: 404, body: "Not Found." };
  return jsonResponse({
    block_height: height,
    block_indep_hash: hashAt(recorded, height),
    number_of_confirmations: tip - height + 1,
  });
}

type Placed = Readonly<{ tx: Transaction; start: bigint; end: bigint; txPath: () => Uint8Array }>;

/** The places of a block's data; empty when not all of its transactions are recorded or its root cannot be reproduced. */
function placesOf(recorded: Recorded, height: number): readonly Placed[] {
  const made = recorded.places.get(height) ?? makePlaces(recorded, height);
  recorded.places.set(height, made);
  return made;
}

function makePlaces({ blocks, txs }: Recorded, height: number): Placed[] {
  const block = readBlock(vectorText(blocks.get(height)?.file ?? ""));
  const texts = block.txs.map((id) => textOf(txs, id));
  if (block.txRoot === "" || texts.includes(undefined)) return [];
  const read = texts.map((text) => readTransaction(text ?? ""));
  const rows = read.map((tx): PlacedTransaction => {
    return { id: tx.id, format: tx.format, dataSize: tx.dataSize, dataRoot: treeRootOf(tx) };
  });
  const layout = layoutTransactions(block, rows);
  if (layout.kind !== "placed" || !layout.isProven) return [];
  const tree = buildTxTree(rows, layout.layout);
  return read.flatMap((tx) => {
    const place = layout.places.find(({ id }) => id === tx.id);
    const proof = tree.places.find(({ id }) => id === tx.id);
    return place && proof ? [{ tx, start: place.start, end: place.end, txPath: () => proof.path() }] : [];
  });
}

function offsetResponse(recorded: Recorded, tx: Transaction): Result {
  const height = recorded.txHeights.get(tx.id);
  const place = height === undefined ? undefined : placesOf(recorded, height).find((one) => one.tx.id === tx.id);
  if (place === undefined || tx.dataSize === 0) return { status: 404 };
  return jsonResponse({ offset: String(place.end), size: String(tx.dataSize) });
}

/** Chunks that are recorded as such, and those of format 1 data in blocks with a tx_root. */
function chunkResponse(recorded: Recorded, name: string): Result {
  const file = vectorsOf("chunk").find((entry) => vectorName(entry.file) === name)?.file;
  if (file !== undefined) return { status: 200, body: vectorText(file) };
  if (!/^\d{1,19}$/.test(name)) return { status: 400, body: '{"error":"invalid_offset"}' };
  const at = BigInt(name) - 1n;
  for (const [height, block] of recorded.blocks) {
    if (at < block.start || at >= block.end) continue;
    const place = placesOf(recorded, height).find(({ start, end }) => start <= at && at < end);
    if (place !== undefined) return madeChunk(place, Number(at - place.start));
  }
  return { status: 404 };
}

function madeChunk({ tx, txPath }: Placed, at: number): Result {
  const data = decodeBase64url(tx.data) ?? new Uint8Array(0);
  const spans = chunkSpans(data.length, "plain");
  const index = spans.findIndex(({ start, end }) => start <= at && at < end);
  const span = spans[index];
  if (span === undefined) return { status: 404 };
  return jsonResponse({
    chunk: encodeBase64url(data.subarray(span.start, span.end)),
    data_path: encodeBase64url(dataTreeOf(data, "plain").path(index)),
    tx_path: encodeBase64url(txPath()),
    packing: "unpacked",
  });
}
