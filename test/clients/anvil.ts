/**
 * An Ethereum chain on this machine: anvil, at a port of its own, with the dollar coin of contracts/ on it.
 *
 * Its accounts are those of every development chain; it signs for them, and their keys are known.
 * @module
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Need } from "../support/helpers.ts";
import { eventually } from "../support/until.ts";
import dollar from "./contracts/dollar.json";

const binary = join(import.meta.dir, "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil");

/** Whether it can be run here. */
export const anvilNeed: Need = { there: existsSync(binary), what: "anvil (bun install --cwd test/clients)" };

/** The first accounts and their keys; each begins with 10,000 coins. */
export const anvilAccounts = [
  {
    address: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
    key: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  },
  {
    address: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
    key: "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  },
  {
    address: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
    key: "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
  },
  {
    address: "0x90F79bf6EB2c4f870365E785982E1f101E93b906",
    key: "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
  },
] as const;

/** How a chain is started. */
export type AnvilOptions = Readonly<{
  chainId?: number;
  /** Mines only on request. */
  isManual?: boolean;
}>;

/** A transaction as it is sent. */
export type AnvilTransaction = Readonly<{ from: string; to?: string; value?: bigint; data?: string }>;

/** A chain that runs. */
export type Anvil = Readonly<{
  url: string;
  chainId: number;
  rpc: <Value>(method: string, ...params: unknown[]) => Promise<Value>;
  /** Sends a transaction, and waits for its block unless mining is manual. @returns its hash. */
  send: (transaction: AnvilTransaction) => Promise<string>;
  mine: (blocks?: number) => Promise<void>;
  /** Puts a contract on the chain. @returns its address, lower case. */
  deploy: (bytecode: string) => Promise<string>;
  /** Puts the dollar coin on the chain. @param domain - Name and version of its signatures. */
  deployDollar: (domain?: Readonly<{ name: string; version: string }>) => Promise<string>;
  height: () => Promise<number>;
  close: () => Promise<void>;
}>;

/** Starts a chain. */
export async function openAnvil({ chainId = 8_453, isManual = false }: AnvilOptions = {}): Promise<Anvil> {
  const command = [binary, "--port", "0", "--host", "127.0.0.1", "--chain-id", String(chainId)];
  const child = Bun.spawn([...command, ...(isManual ? ["--no-mining"] : [])], {
    stdout: "pipe",
    stderr: "inherit",
    env: { ...process.env, RUST_LOG: "off" },
  });
  const url = `http://${await listeningAt(child.stdout)}`;
  let id = 0;

  async function rpc<Value>(method: string, ...params: unknown[]): Promise<Value> {
    id += 1;
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    const { result, error } = await response.json();
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  }

  const receiptOf = (hash: string) =>
    eventually(
      () => rpc<{ contractAddress: string } | null>("eth_getTransactionReceipt", hash),
      (found) => found !== null,
    );

  async function send({ value = 0n, ...transaction }: AnvilTransaction): Promise<string> {
    const fields = { ...transaction, value: `0x${value.toString(16)}`, gas: "0x4c4b40" };
    const hash = await rpc<string>("eth_sendTransaction", fields);
    // It responds before its block is mined.
    if (!isManual) await receiptOf(hash);
    return hash;
  }

  async function deploy(bytecode: string): Promise<string> {
    const hash = await send({ from: anvilAccounts[0].address, data: bytecode });
    if (isManual) await rpc("anvil_mine", "0x1");
    return (await receiptOf(hash))?.contractAddress ?? "";
  }

  return {
    url,
    chainId,
    rpc,
    send,
    deploy,
    mine: (blocks = 1) => rpc("anvil_mine", `0x${blocks.toString(16)}`),
    deployDollar: ({ name, version } = { name: "USD Coin", version: "2" }) =>
      deploy(`${dollar.Dollar.bytecode}${wordsOfTexts(name, version)}`),
    height: async () => Number(await rpc<string>("eth_blockNumber")),
    close: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/** Calldata of a call whose arguments are words. @param selector - Four bytes, hex. */
export function callOf(selector: string, ...words: readonly (string | bigint)[]): string {
  return `0x${selector}${words.map(wordOf).join("")}`;
}

/** Selectors of the dollar coin. */
export const selectors = {
  mint: "40c10f19",
  transfer: "a9059cbb",
  approve: "095ea7b3",
  transferFrom: "23b872dd",
  transferFromMany: "0305c74f",
  reject: "10773d14",
} as const;

/** 32 bytes of an address or a number, hex. */
export function wordOf(value: string | bigint): string {
  return (typeof value === "bigint" ? value.toString(16) : value.slice(2).toLowerCase()).padStart(64, "0");
}

/** Two short texts as a constructor takes them. */
function wordsOfTexts(...texts: readonly [string, string]): string {
  const tails = texts.map((text) => {
    const bytes = new TextEncoder().encode(text);
    return wordOf(BigInt(bytes.length)) + bytes.toHex().padEnd(64, "0");
  });
  return wordOf(64n) + wordOf(128n) + tails.join("");
}

async function listeningAt(output: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  const reader = output.getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`anvil ended: ${text}`);
    text += decoder.decode(value, { stream: true });
    const address = /Listening on (127\.0\.0\.1:\d+)/.exec(text)?.[1];
    if (address === undefined) continue;
    void drain(reader);
    return address;
  }
}

/** What it prints afterwards is read, so that it never waits for a reader. */
async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
}
