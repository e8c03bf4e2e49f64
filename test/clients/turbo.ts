/**
 * The published SDK for credits, as its users open it: with a key of each chain, against a program that runs.
 * @module
 */
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { ed25519 } from "@noble/curves/ed25519.js";
import { encodeBase58 } from "../../src/lib/base-encodings.ts";
import type { RunningProgram } from "../support/program.ts";
import { testKey } from "../support/signers.ts";

/** A key as the SDK takes it, the token that it goes with, and its address, which was worked out without the SDK. */
export type TurboKey = Readonly<{
  token: string;
  privateKey: unknown;
  address: string;
  /** What it begins with under `dev`. */
  winc: bigint;
}>;

const ethereum = {
  winc: 0n,
  privateKey: `0x${"11".repeat(32)}`,
  address: "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A",
};

const seed = testKey(0x07);
const solana = {
  winc: 0n,
  privateKey: encodeBase58(Buffer.concat([seed, ed25519.getPublicKey(seed)])),
  address: "GmaDrppBC7P5ARKV8g3djiwP89vz1jLK23V2GBjuAEGB",
};

/** The funded RSA wallet of a program under `dev`. */
export function arweaveKey({ line }: RunningProgram): TurboKey {
  const wallet = line.wallets.find(({ name }) => name === "rsa");
  if (wallet?.file === undefined) throw new Error("the program has no RSA wallet in a file");
  return {
    token: "arweave",
    privateKey: JSON.parse(readFileSync(wallet.file, "utf8")),
    address: wallet.address,
    winc: 10n ** 14n,
  };
}

/** A key of every kind of chain, and the same keys with the other tokens that go with them. */
export function turboKeys(program: RunningProgram): TurboKey[] {
  return [
    arweaveKey(program),
    { token: "ethereum", ...ethereum },
    { token: "base-usdc", ...ethereum },
    { token: "pol", ...ethereum },
    { token: "solana", ...solana },
  ];
}

/** How often the SDK looks for its own transaction: by default it waits 15 seconds before it looks at all. */
const pollingOptions = { initialBackoffMs: 50, pollingIntervalMs: 100, maxAttempts: 600 };

/** Opens the SDK with a key. */
export async function openTurbo({ line }: RunningProgram, { token, privateKey }: TurboKey) {
  const { ArweaveToken, TurboFactory } = await import("@ardrive/turbo-sdk");
  const arweave = new ArweaveToken({ gatewayUrl: line.gateway, pollingOptions });
  return TurboFactory.authenticated({
    privateKey: privateKey as string,
    token: token as "arweave",
    gatewayUrl: line.gateway,
    paymentServiceConfig: { url: line.payment },
    uploadServiceConfig: { url: line.upload },
    ...(token === "arweave" ? { tokenTools: arweave } : {}),
  });
}

/** Opens the SDK without a key. */
export async function openAnonymousTurbo({ line }: RunningProgram, token = "arweave") {
  const { TurboFactory } = await import("@ardrive/turbo-sdk");
  return TurboFactory.unauthenticated({
    token: token as "arweave",
    paymentServiceConfig: { url: line.payment },
    uploadServiceConfig: { url: line.upload },
  });
}

/** Presses the pay button of the sandbox's page. */
export async function payCheckout(url: string): Promise<void> {
  const body = new URLSearchParams({ cardNumber: "4242424242424242" });
  const response = await fetch(url, { method: "POST", body, redirect: "manual" });
  expect(response.status).toBe(303);
}
