/**
 * The status of authorizations for one coin on its chain: a trial of an authorization, and how it ended.
 *
 * A used nonce does not prove a payment: its owner may have cancelled it, or used it for another transfer. Only the
 * transfer event in the transaction that used the nonce counts.
 * @module
 */
import { type Fault, fault } from "../../lib/http-client.ts";
import { isJsonArray, isJsonObject, type JsonValue } from "../../lib/json.ts";
import {
  type Authorization,
  endTopics,
  readAuthorizationEnd,
  type TypedDomain,
  writeStateCall,
} from "./authorization.ts";
import type { EvmChain, EvmClient } from "./evm-chain.ts";
import {
  readHash,
  readHeight,
  readHexBytes,
  readQuantity,
  wordSize,
  writeHexBytes,
  writeQuantity,
} from "./evm-values.ts";
import type { Asked } from "./json-rpc.ts";
import { writeAuthorizationCall } from "./wallet-signature.ts";

/** The height and time of a block. */
export type ChainTime = Readonly<{
  height: number;
  /** Unix seconds. */
  time: bigint;
}>;

/** The transaction and block that ended an authorization. */
export type EndPlace = Readonly<{
  transaction: string;
  block: Readonly<{ height: number; hash: string }>;
  /** 1 in the newest block. */
  confirmations: number;
}>;

/** The status of an authorization on the chain. */
export type AuthorizationStatus =
  /** It moved the authorized coins. */
  | (Readonly<{ kind: "moved" }> & EndPlace)
  /** It was cancelled, or its nonce was used for another transfer. Final. */
  | (Readonly<{ kind: "otherwise" }> & EndPlace)
  /** It was unused up to this block. */
  | (Readonly<{ kind: "unused" }> & ChainTime);

/** Whether an authorization would succeed in the newest block. */
export type Trial = Readonly<{ kind: "fits" }> | Readonly<{ kind: "reverts"; reason: string }> | Fault;

/** Hints for finding the end of an authorization. */
export type Whereabouts = Readonly<{
  /** A transaction that may have used it. */
  transaction: string | undefined;
  /** A block below which it was not used. */
  fromHeight: number;
}>;

/** One coin's authorizations. Calls reject only with the signal's reason. */
export type AuthorizationChain = Readonly<{
  /** The newest block. */
  newest: (signal: AbortSignal) => Promise<Asked<ChainTime>>;
  /** Simulates an authorization on the newest block. */
  try: (authorization: Authorization, signature: Uint8Array, signal: AbortSignal) => Promise<Trial>;
  /** Reads its status. A fault also when the transaction that used it is not found. */
  look: (authorization: Authorization, where: Whereabouts, signal: AbortSignal) => Promise<Asked<AuthorizationStatus>>;
}>;

export type AuthorizationChainOptions = Readonly<{
  client: Pick<EvmClient, "ask" | "call">;
  evm: Pick<EvmChain, "receipt">;
  /** The EIP-712 domain of the coin. */
  domain: TypedDomain;
}>;

/** Blocks of one request for events; the limits of servers are found by trial. */
const blocksPerQueryMax = 1_000;

/** JSON-RPC's code of a call that the contract rejected. */
const revertedCode = 3;

export function createAuthorizationChain(options: AuthorizationChainOptions): AuthorizationChain {
  const { client, domain } = options;
  const newest = (signal: AbortSignal) => client.ask("eth_getBlockByNumber", ["latest", false], readChainTime, signal);
  return {
    newest,
    try: async (authorization, signature, signal) => {
      const { to, data, gasMax, hasResult } = writeAuthorizationCall(domain, authorization, signature);
      const gas = gasMax === undefined ? {} : { gas: writeQuantity(gasMax) };
      const request = { to, data: writeHexBytes(data), ...gas };
      const response = await client.call("eth_call", [request, "latest"], signal);
      // A call to an address without a contract succeeds with an empty result.
      const isEmpty = hasResult && response.kind === "ok" && response.value === "0x";
      if (isEmpty) return { kind: "reverts", reason: `the chain has no contract at ${to}` };
      if (response.kind === "ok") return { kind: "fits" };
      if (response.kind === "fault") return response;
      return isRevert(response.code, response.message)
        ? { kind: "reverts", reason: response.message }
        : fault("status", `eth_call: ${response.code} ${response.message}`);
    },
    look: async (authorization, where, signal) => {
      const hinted =
        where.transaction === undefined ? undefined : await endIn(options, authorization, where.transaction, signal);
      if (hinted?.kind === "fault") return hinted;
      const now = await newest(signal);
      if (now.kind === "fault") return now;
      if (hinted?.value !== undefined) return { kind: "ok", value: placed(hinted.value, now.value) };
      return await lookThrough(options, authorization, { ...where, now: now.value }, signal);
    },
  };
}

/** Whether a server's error is a rejection by the contract; the texts differ between servers. */
export function isRevert(code: number, message: string): boolean {
  return code === revertedCode || /revert/i.test(message);
}

type Found = Readonly<{ end: "moved" | "otherwise"; transaction: string; block: EndPlace["block"] }>;

/** The effect of one transaction on the authorization; undefined when it is not mined or has none. */
async function endIn(
  { evm, domain: { contract } }: AuthorizationChainOptions,
  authorization: Authorization,
  transaction: string,
  signal: AbortSignal,
): Promise<Asked<Found | undefined>> {
  const response = await evm.receipt(transaction, signal);
  if (response.kind === "fault") return response;
  const receipt = response.value;
  const end = receipt?.succeeded ? readAuthorizationEnd(receipt.logs, contract, authorization) : undefined;
  if (receipt === undefined || end === undefined) return { kind: "ok", value: undefined };
  const block = { height: receipt.height, hash: receipt.blockHash };
  return { kind: "ok", value: { end, transaction, block } };
}

/** Reads whether the nonce was used, and where. */
async function lookThrough(
  options: AuthorizationChainOptions,
  authorization: Authorization,
  { fromHeight, now }: Whereabouts & Readonly<{ now: ChainTime }>,
  signal: AbortSignal,
): Promise<Asked<AuthorizationStatus>> {
  const { client, domain } = options;
  const { contract } = domain;
  const call = { to: contract, data: writeHexBytes(writeStateCall(authorization)) };
  // The state of this block: another of several servers behind an address may be behind it.
  const used = await client.ask("eth_call", [call, writeQuantity(now.height)], readTruth, signal);
  if (used.kind === "fault") return used;
  if (!used.value) return { kind: "ok", value: { kind: "unused", ...now } };
  const ids = await findEnd(options, authorization, fromHeight, now.height, signal);
  if (ids.kind === "fault") return ids;
  for (const id of ids.value) {
    const found = await endIn(options, authorization, id, signal);
    if (found.kind === "fault") return found;
    if (found.value !== undefined) return { kind: "ok", value: placed(found.value, now) };
  }
  return fault("wrong", `the authorization was used, but no block from ${fromHeight} has its event`);
}

/** Transactions that ended the authorization, newest blocks first; a correct server has one. */
async function findEnd(
  { client, domain: { contract } }: AuthorizationChainOptions,
  authorization: Authorization,
  fromHeight: number,
  toHeight: number,
  signal: AbortSignal,
): Promise<Asked<readonly string[]>> {
  const topics = endTopics(authorization);
  let span = blocksPerQueryMax;
  let last = toHeight;
  while (last >= fromHeight) {
    const first = Math.max(last - span + 1, fromHeight);
    const range = { fromBlock: writeQuantity(first), toBlock: writeQuantity(last) };
    const asked = await client.ask(
      "eth_getLogs",
      [{ ...range, address: contract, topics }],
      readTransactionIds,
      signal,
    );
    if (asked.kind === "ok") {
      if (asked.value.length > 0) return asked;
      last = first - 1;
      span = Math.min(span * 2, blocksPerQueryMax);
      continue;
    }
    const isTooMuch = asked.reason === "status" || asked.reason === "too_large";
    if (!isTooMuch || span === 1) return asked;
    span = (span - (span % 2)) / 2;
  }
  return { kind: "ok", value: [] };
}

function placed({ end, transaction, block }: Found, now: ChainTime): AuthorizationStatus {
  return { kind: end, transaction, block, confirmations: Math.max(now.height - block.height + 1, 1) };
}

function readChainTime(value: JsonValue): ChainTime | undefined {
  if (!isJsonObject(value)) return undefined;
  const height = readHeight(value["number"]);
  const time = readQuantity(value["timestamp"]);
  return height === undefined || time === undefined ? undefined : { height, time };
}

/** A word that is 0 or 1. */
function readTruth(value: JsonValue): boolean | undefined {
  const word = readHexBytes(value);
  if (word?.length !== wordSize) return undefined;
  const number = BigInt(`0x${word.toHex()}`);
  return number <= 1n ? number === 1n : undefined;
}

function readTransactionIds(value: JsonValue): readonly string[] | undefined {
  if (!isJsonArray(value)) return undefined;
  const logs = value.filter((log) => !isJsonObject(log) || log["removed"] !== true);
  const ids = logs.map((log) => (isJsonObject(log) ? readHash(log["transactionHash"]) : undefined));
  const known = ids.filter((id) => id !== undefined);
  return known.length === ids.length ? known : undefined;
}
