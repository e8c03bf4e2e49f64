/**
 * One node of the chain over HTTP: typed calls, each with its limits of time and size.
 * It believes nothing: whoever asks checks the answer. What a node does not have, what it does not have yet, what it
 * refuses, and what merely failed are four different answers; a failure is never taken for an absence.
 * Source: the node's HTTP interface (ArweaveTeam/arweave, ar_http_iface_middleware.erl).
 * @module
 */
import { openHttp } from "./http.ts";

/** How long each phase of a call may take, in milliseconds. */
export type NodeTimeouts = Readonly<{
  firstByteMs: number; // connecting, sending, and waiting for the answer's headers
  stallMs: number; // the longest pause between two pieces of a body
  totalMs: number; // the whole call
}>;

/** Time-outs for a node across the Internet; blocks are small, chunks 350 KB. */
export const nodeTimeoutsDefault: NodeTimeouts = { firstByteMs: 10_000, stallMs: 10_000, totalMs: 60_000 };

/** Why a call did not come to an answer. Every one may succeed when asked again or elsewhere. */
export type TroubleReason = "connect" | "timeout" | "status" | "too_large" | "malformed" | "cut" | "busy";

/** A call that came to no answer. */
export type Trouble = Readonly<{ kind: "trouble"; reason: TroubleReason; status?: number; detail: string }>;

/** What a node answered. */
export type NodeAnswer<Value> =
  | Readonly<{ kind: "ok"; value: Value }>
  | Readonly<{ kind: "pending" }> // 202: in the mempool, not in a block
  | Readonly<{ kind: "absent" }> // 404: the node does not have it
  | Readonly<{ kind: "refused"; status: number; text: string }> // another 4xx (but 408 and 429, which are trouble)
  | Trouble;

/** Where a transaction's data lies in the weave: bytes `[end - size, end)`, absolute. */
export type DataPlace = Readonly<{ end: bigint; size: number }>;

/** Where a mined transaction stands. */
export type TransactionStatus = Readonly<{ height: number; blockHash: string; confirmations: number }>;

/** A chunk as a node sent it, decoded and not yet checked. */
export type ChunkAnswer = Readonly<{ chunk: Uint8Array; dataPath: Uint8Array; txPath: Uint8Array }>;

/** A node's answer unchanged, for relaying. */
export type RawAnswer = Readonly<{ status: number; headers: Headers; body: Uint8Array }>;

/** What to relay. */
export type RawRequest = Readonly<{
  method: "GET" | "HEAD" | "POST";
  path: string; // begins with "/", query included, sent as it is
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array;
  bodyBytesMax?: number; // of the answer; 16 MiB unless told
}>;

/** One node. Every call takes a signal; an aborted call rejects with the signal's reason. */
export type Node = Readonly<{
  url: string; // origin without a final slash
  height: (signal: AbortSignal) => Promise<NodeAnswer<number>>;
  info: (signal: AbortSignal) => Promise<NodeAnswer<string>>; // the JSON text
  blockText: (at: number | string, signal: AbortSignal) => Promise<NodeAnswer<string>>; // by height or hash; the JSON text
  currentBlockText: (signal: AbortSignal) => Promise<NodeAnswer<string>>;
  txText: (id: string, signal: AbortSignal) => Promise<NodeAnswer<string>>;
  unconfirmedTxText: (id: string, signal: AbortSignal) => Promise<NodeAnswer<string>>;
  pendingIds: (signal: AbortSignal) => Promise<NodeAnswer<readonly string[]>>;
  txStatus: (id: string, signal: AbortSignal) => Promise<NodeAnswer<TransactionStatus>>;
  txOffset: (id: string, signal: AbortSignal) => Promise<NodeAnswer<DataPlace>>;
  txField: (id: string, field: string, signal: AbortSignal) => Promise<NodeAnswer<string>>;
  txData: (id: string, signal: AbortSignal) => Promise<NodeAnswer<Uint8Array>>; // at most 12 MiB, decoded
  chunk: (offset: bigint, signal: AbortSignal) => Promise<NodeAnswer<ChunkAnswer>>; // offset: absolute, 1-based as on the wire
  anchor: (signal: AbortSignal) => Promise<NodeAnswer<string>>;
  price: (sizeBytes: number, target: string | undefined, signal: AbortSignal) => Promise<NodeAnswer<bigint>>; // winston
  balance: (address: string, signal: AbortSignal) => Promise<NodeAnswer<bigint>>; // winston
  lastTx: (address: string, signal: AbortSignal) => Promise<NodeAnswer<string>>;
  peers: (signal: AbortSignal) => Promise<NodeAnswer<readonly string[]>>;
  postTx: (json: Uint8Array, signal: AbortSignal) => Promise<NodeAnswer<string>>;
  postChunk: (json: Uint8Array, signal: AbortSignal) => Promise<NodeAnswer<"kept" | "kept for a time">>;
  relay: (request: RawRequest, signal: AbortSignal) => Promise<Readonly<{ kind: "ok"; value: RawAnswer }> | Trouble>;
  close: () => void; // ends every call under way
}>;
