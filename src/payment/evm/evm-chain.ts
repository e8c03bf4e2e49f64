/**
 * Reads of one EVM chain. Each response is parsed and checked against its request.
 *
 * No read succeeds before the server has proven its chain id: coins of a test network look the same.
 * Source: the Ethereum JSON-RPC API (execution-apis).
 * @module
 */
import { type Fault, fault } from "../../lib/http-client.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../lib/json.ts";
import type { UserAddress } from "../addresses.ts";
import { addressTopic, readTransferLogs, type TransferLog, transferTopic } from "./authorization.ts";
import { readEvmAddress, readHash, readHeight, readHexBytes, readQuantity, writeQuantity } from "./evm-values.ts";
import type { Asked, JsonRpc, RpcResponse } from "./json-rpc.ts";

/** A transaction, mined or not. */
export type EvmTransaction = Readonly<{
  from: UserAddress;
  /** Undefined for the creation of a contract. */
  to: UserAddress | undefined;
  value: bigint;
  input: Uint8Array;
}>;

/** The receipt of a mined transaction. */
export type EvmReceipt = Readonly<{
  height: number;
  blockHash: string;
  /** Whether it succeeded; a reverted transaction moved nothing. */
  succeeded: boolean;
  /** The raw logs, for `readTransferLogs`. */
  logs: JsonValue;
}>;

/** Transactions of a block that pay an address coins, by their hashes. */
type EvmPayments = Readonly<{ hash: string; transactions: readonly string[] }>;

/** The state of an account that payments change. */
export type EvmAccount = Readonly<{ balance: bigint; nonce: bigint; hasCode: boolean }>;

/** One chain. Calls reject only with the signal's reason. */
export type EvmChain = Readonly<{
  /** The newest block's height. */
  latest: (signal: AbortSignal) => Promise<Asked<number>>;
  /** Undefined for a height that the chain does not have. */
  blockHash: (height: number, signal: AbortSignal) => Promise<Asked<string | undefined>>;
  paymentsTo: (address: UserAddress, height: number, signal: AbortSignal) => Promise<Asked<EvmPayments | undefined>>;
  transaction: (hash: string, signal: AbortSignal) => Promise<Asked<EvmTransaction | undefined>>;
  receipt: (hash: string, signal: AbortSignal) => Promise<Asked<EvmReceipt | undefined>>;
  /** Transfers of a token to the address `to`. `first` and `last` are heights, inclusive. */
  transfersTo: (
    filter: Readonly<{ contract: UserAddress; to: UserAddress; first: number; last: number }>,
    signal: AbortSignal,
  ) => Promise<Asked<readonly TransferLog[]>>;
  /** The state of an account after a block; a fault when the server no longer has that state. */
  account: (address: UserAddress, height: number, signal: AbortSignal) => Promise<Asked<EvmAccount>>;
}>;

/** @param chainId - The expected chain. */
export function createEvmChain(rpc: JsonRpc, chainId: bigint): EvmChain {
  const { ask, find } = createEvmClient(rpc, chainId);

  const blockAt = <Value>(
    height: number,
    isWhole: boolean,
    read: (block: JsonObject) => Value | undefined,
    signal: AbortSignal,
  ) =>
    find(
      "eth_getBlockByNumber",
      [writeQuantity(height), isWhole],
      (value) => (isJsonObject(value) && readHeight(value["number"]) === height ? read(value) : undefined),
      signal,
    );

  return {
    latest: (signal) => ask("eth_blockNumber", [], readHeight, signal),
    blockHash: (height, signal) => blockAt(height, false, (block) => readHash(block["hash"]), signal),
    paymentsTo: (address, height, signal) => blockAt(height, true, (block) => readPayments(block, address), signal),
    transaction: (hash, signal) =>
      find("eth_getTransactionByHash", [hash], (value) => readTransaction(value, hash), signal),
    receipt: (hash, signal) => find("eth_getTransactionReceipt", [hash], (value) => readReceipt(value, hash), signal),
    transfersTo: ({ contract, to, first, last }, signal) => {
      const range = { fromBlock: writeQuantity(first), toBlock: writeQuantity(last) };
      const filter = { ...range, address: contract, topics: [transferTopic, null, addressTopic(to)] };
      const read = (value: JsonValue) =>
        readTransferLogs(value, contract)?.filter((log) => log.to === to && !log.isRemoved);
      return ask("eth_getLogs", [filter], read, signal);
    },
    account: (address, height, signal) => askAccount(ask, address, height, signal),
  };
}

async function askAccount(
  ask: Ask,
  address: UserAddress,
  height: number,
  signal: AbortSignal,
): Promise<Asked<EvmAccount>> {
  const at = [address, writeQuantity(height)];
  const [balance, nonce, code] = await Promise.all([
    ask("eth_getBalance", at, readQuantity, signal),
    ask("eth_getTransactionCount", at, readQuantity, signal),
    ask("eth_getCode", at, readHexBytes, signal),
  ]);
  if (balance.kind === "fault") return balance;
  if (nonce.kind === "fault") return nonce;
  if (code.kind === "fault") return code;
  const hasCode = code.value.length > 0;
  return { kind: "ok", value: { balance: balance.value, nonce: nonce.value, hasCode } };
}

/** A response with another transaction is malformed. */
function readTransaction(value: JsonValue, hash: string): EvmTransaction | undefined {
  if (!isJsonObject(value) || readHash(value["hash"]) !== hash) return undefined;
  const from = readEvmAddress(value["from"]);
  const to = readEvmAddress(value["to"]);
  const amount = readQuantity(value["value"]);
  const input = readHexBytes(value["input"]);
  return from === undefined || amount === undefined || input === undefined
    ? undefined
    : { from, to, value: amount, input };
}

function readReceipt(value: JsonValue, hash: string): EvmReceipt | undefined {
  if (!isJsonObject(value) || readHash(value["transactionHash"]) !== hash) return undefined;
  const height = readHeight(value["blockNumber"]);
  const blockHash = readHash(value["blockHash"]);
  const status = readQuantity(value["status"]);
  const logs = value["logs"];
  if (height === undefined || blockHash === undefined || status === undefined || logs === undefined) return undefined;
  return { height, blockHash, succeeded: status === 1n, logs };
}

function readPayments(block: JsonObject, address: UserAddress): EvmPayments | undefined {
  const hash = readHash(block["hash"]);
  const list = block["transactions"];
  if (hash === undefined || !isJsonArray(list)) return undefined;
  const lowerAddress = address.toLowerCase();
  const transactions = list.flatMap((each) => {
    // Most transactions pay other addresses; a canonical address costs a hash.
    const isOurs = isJsonObject(each) && lowerText(each["to"]) === lowerAddress;
    const id = isOurs && (readQuantity(each["value"]) ?? 0n) > 0n ? readHash(each["hash"]) : undefined;
    return id ?? [];
  });
  return { hash, transactions };
}

function lowerText(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" ? value.toLowerCase() : undefined;
}

// The first call proves the server's chain id: a transaction sent to another chain may succeed there.

/** Requests a value that must exist. */
type Ask = <Value>(
  method: string,
  params: readonly JsonValue[],
  read: (value: JsonValue) => Value | undefined,
  signal: AbortSignal,
) => Promise<Asked<Value>>;

/** Requests to one chain. */
export type EvmClient = Readonly<{
  ask: Ask;
  /** Requests a value that may be absent (`null`). */
  find: <Value>(
    method: string,
    params: readonly JsonValue[],
    read: (value: JsonValue) => Value | undefined,
    signal: AbortSignal,
  ) => Promise<Asked<Value | undefined>>;
  /** Calls a method whose JSON-RPC error is a result. */
  call: (method: string, params: readonly JsonValue[], signal: AbortSignal) => Promise<RpcResponse>;
}>;

/** @param chainId - The expected chain. */
export function createEvmClient(rpc: JsonRpc, chainId: bigint): EvmClient {
  let isProven = false;

  async function prove(signal: AbortSignal): Promise<Fault | undefined> {
    if (isProven) return undefined;
    const found = await rpc.ask({ method: "eth_chainId", params: [], read: readQuantity }, signal);
    if (found.kind === "fault") return found;
    if (found.value !== chainId) return fault("wrong", `${rpc.host} follows chain ${found.value}, expected ${chainId}`);
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
    return response.kind === "fault" ? response : { kind: "ok", value: response.value.found };
  }

  return {
    ask,
    find,
    call: async (method, params, signal) => (await prove(signal)) ?? (await rpc.call(method, params, signal)),
  };
}
