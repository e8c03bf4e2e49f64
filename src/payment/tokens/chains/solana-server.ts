/**
 * Questions to a Solana server, each answer read.
 *
 * Nothing is answered before the server has shown that it is of the cluster that is meant: coins of a test cluster look
 * like any others.
 * Source: https://solana.com/docs/rpc.
 * @module
 */
import { type Fault, fault } from "../../../lib/http-client.ts";
import { isJsonArray, isJsonObject, type JsonValue } from "../../../lib/json.ts";
import type { Asked, JsonRpc } from "../../evm/json-rpc.ts";
import { readSolanaTransaction, type SolanaTransaction } from "./solana-transaction.ts";

/** One transaction that an account has a part in. */
export type Entry = Readonly<{ signature: string; slot: number; succeeded: boolean }>;

/** A server. Calls reject with the signal's reason when aborted, with nothing else. */
export type SolanaServer = Readonly<{
  slot: (signal: AbortSignal) => Promise<Asked<number>>;
  /**
   * The transaction whose first signature this is. A transaction has one signature for each of its signers, and a
   * server may find it by any of them: asked by another one, it is not there, or it would be several payments.
   */
  transaction: (
    id: string,
    commitment: "finalized" | "confirmed",
    signal: AbortSignal,
  ) => Promise<Asked<SolanaTransaction | undefined>>;
  tokenAccounts: (owner: string, mint: string, signal: AbortSignal) => Promise<Asked<readonly string[]>>;
  /** Newest first. */
  entries: (
    account: string,
    bounds: Readonly<{ limit: number; before?: string; until?: string }>,
    signal: AbortSignal,
  ) => Promise<Asked<readonly Entry[]>>;
}>;

/** Accounts of one token that an owner may have; one is usual. */
const tokenAccountsMax = 16;

const finalized = { commitment: "finalized" } as const;

/** Creates the questions. @param genesisHash - Hash of the first block of the cluster that is meant. */
export function createSolanaServer(rpc: JsonRpc, genesisHash: string): SolanaServer {
  let isProven = false;

  async function prove(signal: AbortSignal): Promise<Fault | undefined> {
    if (isProven) return undefined;
    const read = (value: JsonValue) => (typeof value === "string" ? value : undefined);
    const found = await rpc.ask({ method: "getGenesisHash", params: [], read }, signal);
    if (found.kind === "trouble") return found;
    if (found.value !== genesisHash)
      return fault("wrong", `${rpc.host} is of the cluster ${found.value}, and ${genesisHash} is meant`);
    isProven = true;
    return undefined;
  }

  async function ask<Value>(
    method: string,
    params: readonly JsonValue[],
    read: (value: JsonValue) => Value | undefined,
    signal: AbortSignal,
  ): Promise<Asked<Value>> {
    return (await prove(signal)) ?? (await rpc.ask({ method, params, read }, signal));
  }

  return {
    slot: (signal) => ask("getSlot", [finalized], (value) => (typeof value === "number" ? value : undefined), signal),
    transaction: async (id, commitment, signal) => {
      const how = { commitment, encoding: "jsonParsed", maxSupportedTransactionVersion: 0 };
      const response = await ask("getTransaction", [id, how], readOrNone, signal);
      if (response.kind === "trouble") return response;
      const { found } = response.value;
      return { kind: "ok", value: found?.id === id ? found : undefined };
    },
    tokenAccounts: (owner, mint, signal) => {
      const params = [owner, { mint }, { ...finalized, encoding: "jsonParsed" }];
      return ask("getTokenAccountsByOwner", params, readTokenAccounts, signal);
    },
    entries: (account, bounds, signal) =>
      ask("getSignaturesForAddress", [account, { ...finalized, ...bounds }], readEntries, signal),
  };
}

function readOrNone(value: JsonValue): Readonly<{ found: SolanaTransaction | undefined }> | undefined {
  if (value === null) return { found: undefined };
  const found = readSolanaTransaction(value);
  return found === undefined ? undefined : { found };
}

function readTokenAccounts(value: JsonValue): readonly string[] | undefined {
  const list = isJsonObject(value) ? value["value"] : undefined;
  if (!isJsonArray(list)) return undefined;
  const accounts = list.flatMap((each) => {
    const account = isJsonObject(each) ? each["pubkey"] : undefined;
    return typeof account === "string" ? account : [];
  });
  return accounts.slice(0, tokenAccountsMax);
}

function readEntries(value: JsonValue): readonly Entry[] | undefined {
  if (!isJsonArray(value)) return undefined;
  const entries = value.filter(isJsonObject).flatMap(({ signature, slot, err }) => {
    if (typeof signature !== "string" || typeof slot !== "number") return [];
    return { signature, slot, succeeded: err === null };
  });
  return entries.length === value.length ? entries : undefined;
}
