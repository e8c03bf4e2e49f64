/**
 * JSON-RPC 2.0 over HTTP: typed calls with limits of time and size, and numbers that lose no digit.
 *
 * A server's own error is an answer; that it cannot be reached, is late, or answers what is no JSON-RPC is trouble.
 * The URL often carries a key, so nothing here writes more of it than its host.
 * Source: https://www.jsonrpc.org/specification.
 * @module
 */
import { type HttpTimeouts, openHttp, type Trouble, trouble } from "../../lib/http-client.ts";
import { isJsonObject, type JsonValue, readJson, writeJson } from "../../lib/json.ts";

/** What a server answered. */
export type RpcAnswer =
  | Readonly<{ kind: "ok"; value: JsonValue }>
  | Readonly<{ kind: "error"; code: number; message: string; data: JsonValue | undefined }>
  | Trouble;

/** A client of one server. An aborted call rejects with the signal's reason, nothing else rejects. */
export type JsonRpc = Readonly<{
  /** Where it is, without what may be secret. */
  host: string;
  /**
   * Asks.
   * @param params - `bigint`s are written as integers; EVM quantities are texts (`writeQuantity`).
   */
  call: (method: string, params: readonly JsonValue[], signal: AbortSignal) => Promise<RpcAnswer>;
  /**
   * Asks, and takes only an answer that can be read.
   * @param read - The answer's meaning; `undefined` when it has none, which is trouble `malformed`.
   */
  ask: <Value>(question: Question<Value>, signal: AbortSignal) => Promise<Asked<Value>>;
  /** Ends every call under way. */
  close: () => void;
}>;

/** A question whose answer is read. */
export type Question<Value> = Readonly<{
  method: string;
  params: readonly JsonValue[];
  read: (value: JsonValue) => Value | undefined;
}>;

/** A value, or why there is none; a server's error is trouble here. */
export type Asked<Value> = Readonly<{ kind: "ok"; value: Value }> | Trouble;

/** How a server is asked. */
export type JsonRpcOptions = Readonly<{
  timeouts?: HttpTimeouts;
  /** Largest answer. Bytes. */
  answerBytesMax?: number;
}>;

/** Blocks with all their transactions come in one piece, from servers that may be busy. */
const timeoutsDefault: HttpTimeouts = { firstByteMs: 10_000, stallMs: 5_000, totalMs: 20_000 };

/** A full block of a busy chain has about 1 MiB. */
const answerBytesMaxDefault = 8 * 2 ** 20;

const errorTextMax = 500;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Makes a client. @param url - `http:` or `https:`; a path and a query are kept. */
export function openJsonRpc(url: string, options: JsonRpcOptions = {}): JsonRpc {
  const http = openHttp(options.timeouts ?? timeoutsDefault);
  const answerBytesMax = options.answerBytesMax ?? answerBytesMaxDefault;
  let lastId = 0;

  async function call(method: string, params: readonly JsonValue[], signal: AbortSignal): Promise<RpcAnswer> {
    lastId += 1;
    const id = lastId;
    const body = encoder.encode(writeJson({ jsonrpc: "2.0", id, method, params }));
    const headers = { "content-type": "application/json", accept: "application/json" };
    const answer = await http.whole({ method: "POST", url, headers, body }, answerBytesMax, signal);
    if (answer.kind === "trouble") return answer;
    // Servers differ in the status that goes with an error; the body says what it is.
    return readAnswer(readJson(decoder.decode(answer.body)), id, answer.status);
  }

  return {
    host: new URL(url).host,
    call,
    ask: async ({ method, params, read }, signal) => {
      const answer = await call(method, params, signal);
      if (answer.kind === "trouble") return answer;
      if (answer.kind === "error") return trouble("status", `${method}: ${answer.code} ${answer.message}`);
      const value = read(answer.value);
      return value === undefined
        ? trouble("malformed", `${method}: the answer cannot be read`)
        : { kind: "ok", value };
    },
    close: http.close,
  };
}

function readAnswer(answer: JsonValue | undefined, id: number, status: number): RpcAnswer {
  if (!isJsonObject(answer)) return trouble("status", `status ${status}, and no JSON-RPC`, status);
  const { error, result } = answer;
  if (isJsonObject(error)) return readError(error);
  if (answer["id"] !== id || result === undefined)
    return trouble("malformed", "the answer is not to this question", status);
  return { kind: "ok", value: result };
}

function readError(error: Readonly<Record<string, JsonValue>>): RpcAnswer {
  const { code, message, data } = error;
  return {
    kind: "error",
    code: typeof code === "number" ? code : 0,
    message: typeof message === "string" ? message.slice(0, errorTextMax) : "no message",
    data,
  };
}
