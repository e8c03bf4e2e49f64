/**
 * JSON-RPC 2.0 over HTTP: typed calls with limits of time and size, and exact numbers.
 *
 * A JSON-RPC error is a result. A server that is unreachable, late, or does not send JSON-RPC is a fault.
 * The URL often contains a key, so messages contain only its host.
 * Source: https://www.jsonrpc.org/specification.
 * @module
 */
import { type Fault, fault, type HttpTimeouts, openHttp } from "../../lib/http-client.ts";
import { isJsonObject, type JsonValue, readJson, writeJson } from "../../lib/json.ts";

/** The response of a server. */
export type RpcResponse =
  | Readonly<{ kind: "ok"; value: JsonValue }>
  | Readonly<{ kind: "error"; code: number; message: string; data: JsonValue | undefined }>
  | Fault;

/** A client of one server. Calls reject only with the signal's reason. */
export type JsonRpc = Readonly<{
  /** The URL's host, without secrets. */
  host: string;
  /**
   * Sends one call.
   * @param params - `bigint`s are written as integers; EVM quantities are texts (`writeQuantity`).
   */
  call: (method: string, params: readonly JsonValue[], signal: AbortSignal) => Promise<RpcResponse>;
  /**
   * Calls a method and parses its result.
   * @param read - Parses the result; `undefined` becomes the fault `malformed`.
   */
  ask: <Value>(question: Question<Value>, signal: AbortSignal) => Promise<Asked<Value>>;
  /** Aborts all running calls. */
  close: () => void;
}>;

/** A call with a parser for its result. */
export type Question<Value> = Readonly<{
  method: string;
  params: readonly JsonValue[];
  read: (value: JsonValue) => Value | undefined;
}>;

/** A value or a fault; a server's error is a fault. */
export type Asked<Value> = Readonly<{ kind: "ok"; value: Value }> | Fault;

export type JsonRpcOptions = Readonly<{
  timeouts?: HttpTimeouts;
  /** Largest response. Bytes. */
  responseBytesMax?: number;
}>;

/** A block with all its transactions is one response, from a server that may be busy. */
const timeoutsDefault: HttpTimeouts = { firstByteMs: 10_000, stallMs: 5_000, totalMs: 20_000 };

/** A full block of a busy chain has about 1 MiB. */
const responseBytesMaxDefault = 8 * 2 ** 20;

const errorTextMax = 500;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Opens a client. @param url - `http:` or `https:`, with any path and query. */
export function openJsonRpc(url: string, options: JsonRpcOptions = {}): JsonRpc {
  const http = openHttp(options.timeouts ?? timeoutsDefault);
  const responseBytesMax = options.responseBytesMax ?? responseBytesMaxDefault;
  let lastId = 0;

  async function call(method: string, params: readonly JsonValue[], signal: AbortSignal): Promise<RpcResponse> {
    lastId += 1;
    const id = lastId;
    const body = encoder.encode(writeJson({ jsonrpc: "2.0", id, method, params }));
    const headers = { "content-type": "application/json", accept: "application/json" };
    const response = await http.whole({ method: "POST", url, headers, body }, responseBytesMax, signal);
    if (response.kind === "fault") return response;
    // The status of an error differs between servers; the body is authoritative.
    return readResponse(readJson(decoder.decode(response.body)), id, response.status);
  }

  return {
    host: new URL(url).host,
    call,
    ask: async ({ method, params, read }, signal) => {
      const response = await call(method, params, signal);
      if (response.kind === "fault") return response;
      if (response.kind === "error") return fault("status", `${method}: ${response.code} ${response.message}`);
      const value = read(response.value);
      return value === undefined ? fault("malformed", `${method}: invalid response`) : { kind: "ok", value };
    },
    close: http.close,
  };
}

function readResponse(response: JsonValue | undefined, id: number, status: number): RpcResponse {
  if (!isJsonObject(response)) return fault("status", `status ${status} without JSON-RPC`, status);
  const { error, result } = response;
  if (isJsonObject(error)) return readError(error);
  if (response["id"] !== id || result === undefined) return fault("malformed", "the response has another id", status);
  return { kind: "ok", value: result };
}

function readError(error: Readonly<Record<string, JsonValue>>): RpcResponse {
  const { code, message, data } = error;
  return {
    kind: "error",
    code: typeof code === "number" ? code : 0,
    message: typeof message === "string" ? message.slice(0, errorTextMax) : "no message",
    data,
  };
}
