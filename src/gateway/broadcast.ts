/**
 * Posts the transactions and chunks of clients to the nodes, and combines the nodes' responses.
 * Source: docs/reference/node-api.md#posting-transactions.
 * @module
 */
import { admitChunk, type PostedChunk, readPostedChunk } from "../arweave/chunk.ts";
import { readTransaction, type Transaction } from "../arweave/transaction.ts";
import { Failure } from "../failures.ts";
import { isJsonArray, isJsonObject, type JsonValue, readJson } from "../lib/json.ts";
import { type ChainResponse, jsonOf, relayed } from "./chain-response.ts";
import { noResponse, type RelayResponse } from "./relay.ts";
import { isTaken, type PostResult, type Spread } from "./spread.ts";

export type Broadcast = Readonly<{
  /** @param accept - The media type that the client accepts, if it accepts only one. */
  transaction: (body: Uint8Array<ArrayBuffer>, signal: AbortSignal, accept?: string) => Promise<ChainResponse>;
  chunk: (body: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<ChainResponse>;
}>;

/** Callbacks after a node has accepted a post. */
export type BroadcastListeners = Readonly<{
  /** A transaction that a node accepted, and its JSON. The response waits for this callback, which must not reject. */
  onTransaction: (transaction: Transaction, body: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<void>;
  /** A chunk with a valid proof that a node accepted; `start` is its first byte in the data. */
  onChunk: (chunk: PostedChunk, start: number) => void;
}>;

export function createBroadcast(spread: Spread, listeners: BroadcastListeners): Broadcast {
  return {
    transaction: async (body, signal, accept) => {
      const text = new TextDecoder().decode(body);
      const results = await spread.post("/tx", body, signal, accept);
      const response = bestResponse("/tx", results);
      const transaction = isTaken(response) ? readPostedTransaction(text) : undefined;
      if (transaction !== undefined) await listeners.onTransaction(transaction, body, signal);
      return withBoundedReasons(relayed(response));
    },
    chunk: async (body, signal) => {
      const posted = readPosted(new TextDecoder().decode(body));
      if (typeof posted === "string") return nodeError(posted);
      const verdict = admitChunk(posted);
      if (verdict.kind === "rejected") return nodeError("invalid_proof");
      const results = await spread.post("/chunk", body, signal);
      const response = bestResponse("/chunk", results);
      const taken = isTaken(response);
      if (taken) listeners.onChunk(posted, verdict.start);
      const summary = summaryOf(results);
      if (taken) return jsonOf(JSON.stringify(summary));
      const { rejectReason } = response;
      const rejection = jsonOf(JSON.stringify({ error: errorOf(response), ...summary }), response.status);
      return rejectReason === undefined ? rejection : { ...rejection, rejectReason };
    },
  };
}

function nodeError(error: string): ChainResponse {
  return jsonOf(JSON.stringify({ error }), 400);
}

/** The response of a node that accepted; else the most frequent response, rejections before faults of nodes. */
function bestResponse(asked: string, results: readonly PostResult[]): RelayResponse {
  const responses = results.flatMap((result) => (result.kind === "response" ? [result.response] : []));
  const taken = responses.find(({ status }) => status === 200) ?? responses.find(isTaken);
  if (taken !== undefined) return taken;
  const rejections = responses.filter(({ status }) => status < 500);
  const commonest = rejections.toSorted(
    (a, b) => countOf(rejections, b) - countOf(rejections, a) || Number(isReasoned(b)) - Number(isReasoned(a)),
  )[0];
  if (commonest !== undefined) return commonest;
  const faults = results.flatMap((result) => (result.kind === "fault" ? [result.fault] : []));
  throw noResponse(asked, faults);
}

function isReasoned({ rejectReason }: RelayResponse): boolean {
  return rejectReason !== undefined;
}

/** Reasons of a rejection that are returned, and characters of each. */
const reasonsMax = 32;
const reasonTextMax = 500;

/** Reduces a rejection with reasons in its JSON to these reasons; returns other responses unchanged. */
function withBoundedReasons(response: ChainResponse): ChainResponse {
  const { status, form, body } = response;
  if (status < 400 || form !== "json" || !(body instanceof Uint8Array)) return response;
  const rejection = readJson(new TextDecoder().decode(body));
  if (!isJsonObject(rejection) || !isJsonArray(rejection["reasons"])) return response;
  const error = textOf(rejection["error"]);
  const reasons = rejection["reasons"]
    .slice(0, reasonsMax)
    .filter(isJsonObject)
    .map(({ code, detail }) => ({ code: textOf(code), detail: textOf(detail) }));
  return { ...response, body: JSON.stringify({ error, reasons }) };
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value.slice(0, reasonTextMax) : "";
}

function countOf(responses: readonly RelayResponse[], { status }: RelayResponse): number {
  return responses.filter((response) => response.status === status).length;
}

function summaryOf(results: readonly PostResult[]) {
  const each = results.map(recordOf);
  const successCount = each.filter(({ success }) => success).length;
  const skippedCount = results.filter(({ kind }) => kind === "skipped").length;
  return {
    successCount,
    preferredSuccessCount: successCount,
    failureCount: each.length - successCount - skippedCount,
    results: each,
  };
}

function recordOf(result: PostResult) {
  const { peer } = result;
  const unasked = { peer, success: false, statusCode: 0, canceled: false, timedOut: false };
  switch (result.kind) {
    case "response":
      return { ...unasked, success: isTaken(result.response), statusCode: result.response.status };
    case "fault": {
      const { status = 0, reason } = result.fault;
      return { ...unasked, statusCode: status, timedOut: reason === "timeout" };
    }
    case "skipped":
      return { ...unasked, skipped: true, skipReason: result.reason };
  }
}

/** The node's own error code, which upload clients compare with. */
function errorOf({ body }: RelayResponse): string {
  const text = new TextDecoder().decode(body);
  const named = /"error"\s*:\s*"([a-z_0-9]{1,64})"/.exec(text)?.[1];
  return named ?? text.slice(0, 200);
}

/** The chunk, or the node's error code when it is invalid. */
function readPosted(text: string): PostedChunk | string {
  try {
    return readPostedChunk(text);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return typeof error.context["fault"] === "string" ? error.context["fault"] : "invalid_json";
  }
}

/** The transaction of an accepted body; undefined when only the node can parse it. */
function readPostedTransaction(text: string): Transaction | undefined {
  try {
    return readTransaction(text);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
