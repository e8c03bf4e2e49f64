/**
 * One node of the chain over HTTP: typed calls, each with its limits of time and size.
 *
 * It trusts nothing: the caller checks the response. What a node does not have, what it does not have yet, what it
 * rejects, and what merely failed are four different results; a failure is never taken for an absence.
 * Source: the node's HTTP interface (ArweaveTeam/arweave, ar_http_iface_middleware.erl).
 * @module
 */
import { chunkBytesMax, readServedChunkBytes, type ServedChunk } from "../arweave/chunk.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import {
  type Fault,
  type FaultReason,
  fault,
  type HttpRequest,
  type HttpResponse,
  type HttpTimeouts,
  openHttp,
  type Reach,
} from "../lib/http-client.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, readJson } from "../lib/json.ts";

/** Time-outs for a node across the Internet; blocks are small, chunks have 350 KB. */
export const nodeTimeoutsDefault: HttpTimeouts = { firstByteMs: 10_000, stallMs: 10_000, totalMs: 60_000 };

/** The response of a node. */
export type NodeResponse<Value> =
  | Readonly<{ kind: "ok"; value: Value }>
  | Readonly<{ kind: "pending" }> // 202: in the mempool, not in a block
  | Readonly<{ kind: "absent" }> // 404: the node does not have it
  | Readonly<{ kind: "rejected"; status: number; text: string }> // another 4xx without a hint to retry
  | Fault;

/** The place of a transaction's data in the weave: bytes `[end - size, end)`, absolute. */
export type DataPlace = Readonly<{ end: bigint; size: number }>;

/** The place of a mined transaction. */
export type TransactionStatus = Readonly<{ height: number; blockHash: string; confirmations: number }>;

/** A node's response unchanged, for relaying. */
export type RawResponse = Readonly<{ status: number; headers: Headers; body: Uint8Array }>;

/** A request that is relayed unchanged. */
export type RawRequest = Readonly<{
  method: "GET" | "HEAD" | "POST";
  path: string; // begins with "/", query included; sent as it is
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array<ArrayBuffer>;
  bodyBytesMax?: number; // of the response; 16 MiB by default
  hold?: HttpRequest["hold"]; // reserves memory for the response's bytes
}>;

/** A node's response to a relayed request: a whole response of any status, or a fault. */
export type Relayed = Readonly<{ kind: "ok"; value: RawResponse }> | Fault;

/** Questions about the chain. */
export type ChainCalls = Readonly<{
  height: (signal: AbortSignal) => Promise<NodeResponse<number>>;
  /** `/info` as JSON text. */
  info: (signal: AbortSignal) => Promise<NodeResponse<string>>;
  /** A block's JSON text, by height or by hash. */
  blockText: (at: number | string, signal: AbortSignal) => Promise<NodeResponse<string>>;
  currentBlockText: (signal: AbortSignal) => Promise<NodeResponse<string>>;
  /** The chunk that covers an absolute offset, 1-based as on the wire: byte `b` of the weave is asked as `b + 1`. */
  chunk: (offset: bigint, signal: AbortSignal) => Promise<NodeResponse<ServedChunk>>;
  /** An anchor for new transactions. */
  anchor: (signal: AbortSignal) => Promise<NodeResponse<string>>;
  /** The fee for data of a size, in winston. @param target - the recipient's address or undefined. */
  price: (sizeBytes: number, target: string | undefined, signal: AbortSignal) => Promise<NodeResponse<bigint>>;
  /** A wallet's balance, in winston. */
  balance: (address: string, signal: AbortSignal) => Promise<NodeResponse<bigint>>;
  /** The id of a wallet's last transaction; "" for a wallet without transactions. */
  lastTx: (address: string, signal: AbortSignal) => Promise<NodeResponse<string>>;
  /** Peers as `host:port`, at most {@link peersMax}; not checked for private addresses. */
  peers: (signal: AbortSignal) => Promise<NodeResponse<readonly string[]>>;
}>;

/** Questions about transactions. */
export type TransactionCalls = Readonly<{
  /** A mined transaction's JSON as bytes, up to 16 MiB; of format 1 with its data. Reading it is a thread's work. */
  txJson: (id: string, signal: AbortSignal) => Promise<NodeResponse<Uint8Array>>;
  /** Ids in the mempool, at most {@link pendingIdsMax}. */
  pendingIds: (signal: AbortSignal) => Promise<NodeResponse<readonly string[]>>;
  txStatus: (id: string, signal: AbortSignal) => Promise<NodeResponse<TransactionStatus>>;
  txOffset: (id: string, signal: AbortSignal) => Promise<NodeResponse<DataPlace>>;
  /** One field of a transaction as text; tags are a JSON array. */
  txField: (id: string, field: string, signal: AbortSignal) => Promise<NodeResponse<string>>;
  /** A transaction's whole data, decoded, at most 12 MiB. */
  txData: (id: string, signal: AbortSignal) => Promise<NodeResponse<Uint8Array>>;
}>;

/** One node. Every call takes a signal; an aborted call rejects with the signal's reason, nothing else rejects. */
export type Node = ChainCalls &
  TransactionCalls &
  Readonly<{
    /** Its origin, without a final slash. */
    url: string;
    postTx: (json: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<NodeResponse<"accepted" | "known already">>;
    postChunk: (
      json: Uint8Array<ArrayBuffer>,
      signal: AbortSignal,
    ) => Promise<NodeResponse<"stored" | "stored for a time">>;
    relay: (request: RawRequest, signal: AbortSignal) => Promise<Relayed>;
    /** Ends every call under way. */
    close: () => void;
  }>;

const mebibyte = 2 ** 20;

/** Limits of bodies. A block has up to 1,000 ids and a chunk; a node accepts 15 MiB of a transaction's JSON. Bytes. */
const bodyBytesMax = {
  small: 64 * 1024,
  list: 8 * mebibyte,
  block: 4 * mebibyte,
  transaction: 16 * mebibyte, // 12 MiB of data are 16 MiB of base64url
  data: 16 * mebibyte + 64 * 1024,
  chunk: mebibyte, // 256 KiB and two paths as base64url
  relay: 16 * mebibyte,
} as const;

/** More pending ids than any mempool holds that we would follow. */
export const pendingIdsMax = 100_000;

/** More peers than anyone lists. */
export const peersMax = 10_000;

const decimalPattern = /^\d{1,30}$/;

type Read<Value> = (body: Uint8Array, status: number) => Value | undefined;

type GetBytes = (path: string, bytesMax: number, signal: AbortSignal) => Promise<NodeResponse<Uint8Array>>;

type Get = <Value>(
  path: string,
  bytesMax: number,
  read: (text: string) => Value | undefined,
  signal: AbortSignal,
) => Promise<NodeResponse<Value>>;

/** How a node is asked. */
export type NodeOptions = Readonly<{
  /** Asked before every connection; for nodes that an operator did not choose. */
  reach?: Reach;
  /** Sent with every question. */
  headers?: Readonly<Record<string, string>>;
}>;

/**
 * Makes a client of a node.
 *
 * @param url - Origin, `http://host:port` or `https://host`; a path prefix is used.
 */
export function openNode(url: string, timeouts: HttpTimeouts = nodeTimeoutsDefault, options: NodeOptions = {}): Node {
  const base = url.replace(/\/+$/, "");
  const http = openHttp(timeouts, options.reach);

  async function ask<Value>(
    request: Omit<HttpRequest, "url">,
    path: string,
    bytesMax: number,
    good: readonly number[],
    read: Read<Value>,
    signal: AbortSignal,
  ): Promise<NodeResponse<Value>> {
    const headers = { ...options.headers, ...request.headers };
    const response = await http.whole({ ...request, headers, url: base + path }, bytesMax, signal);
    return response.kind === "fault" ? response : readResponse(response, good, read);
  }

  const get: Get = (path, bytesMax, read, signal) =>
    ask({ method: "GET" }, path, bytesMax, [200], (body) => read(textOf(body)), signal);

  const getBytes: GetBytes = (path, bytesMax, signal) =>
    ask({ method: "GET" }, path, bytesMax, [200], (body) => body, signal);

  const post = <Value>(
    path: string,
    body: Uint8Array<ArrayBuffer>,
    meanings: ReadonlyMap<number, Value>,
    signal: AbortSignal,
  ): Promise<NodeResponse<Value>> => {
    const request = { method: "POST", headers: { "content-type": "application/json" }, body } as const;
    const read = (_body: Uint8Array, status: number) => meanings.get(status);
    return ask(request, path, bodyBytesMax.small, [...meanings.keys()], read, signal);
  };

  async function relay(request: RawRequest, signal: AbortSignal): Promise<Relayed> {
    const { method, path, headers, body, hold } = request;
    const more = { ...(headers && { headers }), ...(body && { body }), ...(hold && { hold }) };
    const asked = { method, url: base + path, ...more };
    const response = await http.whole(asked, request.bodyBytesMax ?? bodyBytesMax.relay, signal);
    return response.kind === "fault" ? response : { kind: "ok", value: response };
  }

  return {
    url: base,
    ...chainCalls(get),
    chunk: createChunkCall({
      json: (offset, signal) => get(`/chunk/${offset}`, bodyBytesMax.chunk, readChunk, signal),
      binary: (offset, signal) =>
        ask({ method: "GET" }, `/chunk2/${offset}`, chunkBytesMax, [200], readServedChunkBytes, signal),
    }),
    ...transactionCalls(get, getBytes),
    postTx: (json, signal) => post("/tx", json, postTxMeanings, signal),
    postChunk: (json, signal) => post("/chunk", json, postChunkMeanings, signal),
    relay,
    close: http.close,
  };
}

/** Requests a chunk by its absolute offset, in one format. */
type ChunkRequest = (offset: bigint, signal: AbortSignal) => Promise<NodeResponse<ServedChunk>>;

/** The binary format is requested again from a node that lacks it after this time. Milliseconds. */
const binaryRetryMs = 60_000;

/** Faults of the connection, which say nothing of the format. */
const connectionFaults: ReadonlySet<FaultReason> = new Set(["connect", "timeout", "cut", "busy"]);

/** Whether a node offers the binary format. */
type Offer = "unknown" | "requested" | "offered" | Readonly<{ notBeforeMs: number }>;

/**
 * Creates the request for chunks of one node: in binary where the node offers it, otherwise in JSON, which is a third
 * larger and takes more processor time.
 *
 * A node's first chunk is requested in binary, while concurrent requests use JSON. A node that has a chunk in JSON but
 * not in binary is asked in JSON for a while.
 */
function createChunkCall({ json, binary }: Readonly<{ json: ChunkRequest; binary: ChunkRequest }>): ChunkRequest {
  let offer: Offer = "unknown";

  function wantsBinary(): boolean {
    return typeof offer === "object" ? performance.now() >= offer.notBeforeMs : offer !== "requested";
  }

  async function inBinary(offset: bigint, signal: AbortSignal): Promise<NodeResponse<ServedChunk>> {
    const before: Offer = offer === "offered" ? "offered" : "unknown";
    let next: Offer = before;
    if (before === "unknown") offer = "requested";
    try {
      const response = await binary(offset, signal);
      if (response.kind === "ok") {
        next = "offered";
        return response;
      }
      if (isConnectionFault(response)) {
        if (before === "unknown") next = later();
        return response;
      }
      const other = await json(offset, signal);
      if (other.kind === "ok") next = later();
      return other;
    } finally {
      offer = next;
    }
  }

  return (offset, signal) => (wantsBinary() ? inBinary(offset, signal) : json(offset, signal));
}

function isConnectionFault(response: NodeResponse<ServedChunk>): boolean {
  return response.kind === "fault" && connectionFaults.has(response.reason);
}

function later(): Offer {
  return { notBeforeMs: performance.now() + binaryRetryMs };
}

function chainCalls(get: Get): Omit<ChainCalls, "chunk"> {
  const small = bodyBytesMax.small;
  const segment = encodeURIComponent;
  return {
    height: (signal) => get("/height", small, readCount, signal),
    info: (signal) => get("/info", small, readObjectText, signal),
    blockText(at, signal) {
      const path = typeof at === "number" ? `/block/height/${at}` : `/block/hash/${segment(at)}`;
      return get(path, bodyBytesMax.block, readObjectText, signal);
    },
    currentBlockText: (signal) => get("/block/current", bodyBytesMax.block, readObjectText, signal),
    anchor: (signal) => get("/tx_anchor", small, readToken, signal),
    price(sizeBytes, target, signal) {
      const path = target === undefined ? `/price/${sizeBytes}` : `/price/${sizeBytes}/${segment(target)}`;
      return get(path, small, readAmount, signal);
    },
    balance: (address, signal) => get(`/wallet/${segment(address)}/balance`, small, readAmount, signal),
    lastTx: (address, signal) => get(`/wallet/${segment(address)}/last_tx`, small, readTokenOrNone, signal),
    peers: (signal) => get("/peers", bodyBytesMax.list, (text) => readTexts(text, peersMax), signal),
  };
}

function transactionCalls(get: Get, getBytes: GetBytes): TransactionCalls {
  const small = bodyBytesMax.small;
  const at = (id: string) => `/tx/${encodeURIComponent(id)}`;
  return {
    txJson: (id, signal) => getBytes(at(id), bodyBytesMax.transaction, signal),
    pendingIds: (signal) => get("/tx/pending", bodyBytesMax.list, (text) => readTexts(text, pendingIdsMax), signal),
    txStatus: (id, signal) => get(`${at(id)}/status`, small, readStatus, signal),
    txOffset: (id, signal) => get(`${at(id)}/offset`, small, readPlace, signal),
    txField: (id, field, signal) =>
      get(`${at(id)}/${encodeURIComponent(field)}`, bodyBytesMax.transaction, (text) => text, signal),
    txData: (id, signal) => get(`${at(id)}/data`, bodyBytesMax.data, decodeBase64url, signal),
  };
}

const postTxMeanings: ReadonlyMap<number, "accepted" | "known already"> = new Map([
  [200, "accepted"],
  [208, "known already"],
]);

const postChunkMeanings: ReadonlyMap<number, "stored" | "stored for a time"> = new Map([
  [200, "stored"],
  [303, "stored for a time"],
]);

/** Statuses of 4xx that say nothing about the requested resource: too slow, too early, too many. */
export const laterStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

/** Statuses of 4xx that say no more than that this node, or a proxy before it, does not respond to us. */
export const policyStatuses: ReadonlySet<number> = new Set([401, 403, 407, 451]);

function readResponse<Value>(response: HttpResponse, good: readonly number[], read: Read<Value>): NodeResponse<Value> {
  const { status, body } = response;
  if (good.includes(status)) {
    const value = read(body, status);
    return value === undefined ? fault("malformed", "the body cannot be read", status) : { kind: "ok", value };
  }
  if (status === 202) return { kind: "pending" };
  if (status === 404) return { kind: "absent" };
  if (status >= 400 && status < 500 && !laterStatuses.has(status)) {
    return { kind: "rejected", status, text: textOf(body).slice(0, 1_000) };
  }
  return fault("status", `status ${status}`, status);
}

const decoder = new TextDecoder(); // 57 µs for a chunk's response, Buffer.toString 320 µs (measured)

function textOf(body: Uint8Array): string {
  return decoder.decode(body);
}

/** The text of an object that is all there; reading it whole is its user's work. */
function readObjectText(text: string): string | undefined {
  return /^\s*\{/.test(text) && /\}\s*$/.test(text.slice(-16)) ? text : undefined;
}

function readCount(text: string): number | undefined {
  return readWhole(text.trim());
}

function readAmount(text: string): bigint | undefined {
  const trimmed = text.trim();
  return decimalPattern.test(trimmed) ? BigInt(trimmed) : undefined;
}

function readToken(text: string): string | undefined {
  return /^[A-Za-z0-9_-]{1,128}$/.test(text.trim()) ? text.trim() : undefined;
}

function readTokenOrNone(text: string): string | undefined {
  return text.trim() === "" ? "" : readToken(text);
}

function readTexts(text: string, countMax: number): readonly string[] | undefined {
  const value = readJson(text);
  if (!isJsonArray(value) || value.length > countMax) return undefined;
  const texts = value.filter((part) => typeof part === "string");
  return texts.length === value.length ? texts : undefined;
}

function readObject(text: string): JsonObject | undefined {
  const value = readJson(text);
  return isJsonObject(value) ? value : undefined;
}

/** A whole number from 0 to 2^53 - 1, as an integer or as decimal text. */
function readWhole(value: JsonValue | undefined): number | undefined {
  const number = typeof value === "string" && decimalPattern.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

/** A whole number of any size, as an integer or as decimal text. */
function readLarge(value: JsonValue | undefined): bigint | undefined {
  if (typeof value === "bigint") return value;
  if (typeof value === "string") return decimalPattern.test(value) ? BigInt(value) : undefined;
  return typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : undefined;
}

function readStatus(text: string): TransactionStatus | undefined {
  const status = readObject(text);
  const height = readWhole(status?.["block_height"]);
  const blockHash = status?.["block_indep_hash"];
  const confirmations = readWhole(status?.["number_of_confirmations"]);
  if (height === undefined || typeof blockHash !== "string" || confirmations === undefined) return undefined;
  return { height, blockHash, confirmations };
}

function readPlace(text: string): DataPlace | undefined {
  const place = readObject(text);
  const end = readLarge(place?.["offset"]);
  const size = readWhole(place?.["size"]);
  return end === undefined || size === undefined || end < BigInt(size) ? undefined : { end, size };
}

function readChunk(text: string): ServedChunk | undefined {
  const response = readObject(text);
  const packing = response?.["packing"] ?? "unpacked";
  const chunk = readBytes(response?.["chunk"]);
  const dataPath = readBytes(response?.["data_path"]);
  const txPath = readBytes(response?.["tx_path"] ?? "");
  if (packing !== "unpacked" || chunk === undefined || dataPath === undefined || txPath === undefined) return undefined;
  return { chunk, dataPath, txPath };
}

/** The canonical spelling is not checked, which costs as much again: the caller proves the bytes of a chunk. */
function readBytes(value: JsonValue | undefined): Uint8Array | undefined {
  if (typeof value !== "string" || value.length % 4 === 1) return undefined;
  const bytes = Buffer.from(value, "base64url");
  return bytes.length === Math.floor((value.length * 3) / 4) ? bytes : undefined; // foreign characters are skipped
}
