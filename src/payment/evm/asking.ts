/**
 * How one EVM chain is asked: nothing before its server has shown that it is of the chain that is meant.
 *
 * Coins of a test network look like any others, and a transaction sent to another chain may be carried out there.
 * @module
 */
import { type Fault, fault } from "../../lib/http-client.ts";
import type { JsonValue } from "../../lib/json.ts";
import type { Asked, JsonRpc, RpcResponse } from "./json-rpc.ts";
import { readQuantity } from "./values.ts";

/** Asks for what must be there. */
export type Ask = <Value>(
  method: string,
  params: readonly JsonValue[],
  read: (value: JsonValue) => Value | undefined,
  signal: AbortSignal,
) => Promise<Asked<Value>>;

/** Questions to one chain. */
export type Asking = Readonly<{
  ask: Ask;
  /** Asks for what may be absent (`null`). */
  find: <Value>(
    method: string,
    params: readonly JsonValue[],
    read: (value: JsonValue) => Value | undefined,
    signal: AbortSignal,
  ) => Promise<Asked<Value | undefined>>;
  /** Asks where a server's error is an answer. */
  call: (method: string, params: readonly JsonValue[], signal: AbortSignal) => Promise<RpcResponse>;
}>;

/** Creates the questions. @param chainId - Of the chain that is meant. */
export function createAsking(rpc: JsonRpc, chainId: bigint): Asking {
  let isProven = false;

  async function prove(signal: AbortSignal): Promise<Fault | undefined> {
    if (isProven) return undefined;
    const found = await rpc.ask({ method: "eth_chainId", params: [], read: readQuantity }, signal);
    if (found.kind === "trouble") return found;
    if (found.value !== chainId)
      return fault("wrong", `${rpc.host} is of chain ${found.value}, and ${chainId} is meant`);
    isProven = true;
    return undefined;
  }

  const ask: Ask = async (method, params, read, signal) =>
    (await prove(signal)) ?? (await rpc.ask({ method, params, read }, signal));

  async function find<Value>(
    method: string,
    params: readonly JsonValue[],
    read: (value: JsonValue) => Value | undefined,
    signal: AbortSignal,
  ): Promise<Asked<Value | undefined>> {
    const readOrNone = (value: JsonValue) => {
      if (value === null) return { found: undefined };
      const found = read(value);
      return found === undefined ? undefined : { found };
    };
    const response = await ask(method, params, readOrNone, signal);
    return response.kind === "trouble" ? response : { kind: "ok", value: response.value.found };
  }

  return {
    ask,
    find,
    call: async (method, params, signal) => (await prove(signal)) ?? (await rpc.call(method, params, signal)),
  };
}
