/**
 * One signature is one request: no part of a signed request can be moved so that its signature counts again, and no
 * signature that its owner published for something else opens an account.
 * Source: docs/decisions/071-signed-requests.md.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createDataItem } from "../../../src/arweave/data-item.ts";
import type { Signer } from "../../../src/arweave/signers/scheme.ts";
import { createBalanceRoutes } from "../../../src/http/payment/account-routes.ts";
import { createWalletAccess, createWalletTokens } from "../../../src/payment/access/wallet-access.ts";
import { readAddress } from "../../../src/payment/addresses.ts";
import { freeAllowance } from "../../../src/payment/prices/price-types.ts";
import { openTestPayment, type TestPayment } from "../../support/payment.ts";
import { openPaymentServer, type PaymentServer } from "../../support/payment-server.ts";
import { seedOr } from "../../support/seed.ts";
import {
  arweaveWallet,
  ethereumWallet,
  type RequestWallet,
  rawSolanaWallet,
  signedHeaders,
  solanaWallet,
} from "../../support/signed-headers.ts";
import { rsaKey, signers, testKey } from "../../support/signers.ts";

const wallets: readonly (readonly [string, RequestWallet])[] = [
  ["arweave", arweaveWallet(rsaKey)],
  ["ethereum", ethereumWallet(testKey(0x11))],
  ["solana", solanaWallet(testKey(0x07))],
  ["solana, raw", rawSolanaWallet(testKey(0x07))],
];

let payment: TestPayment;
let server: PaymentServer;

beforeAll(async () => {
  payment = await openTestPayment();
  const { database, clock, credits } = payment;
  const tokens = createWalletTokens(testKey(99), clock.now);
  const access = createWalletAccess({ database, tokens, clock: clock.now });
  server = openPaymentServer(() => [createBalanceRoutes({ credits, access, free: () => freeAllowance(0) })]);
});

afterAll(async () => {
  await server.close();
  await payment.close();
});

async function ask(path: string, headers: Record<string, string>) {
  const response = await fetch(`${server.url}${path}`, { headers });
  await response.text();
  return { status: response.status, token: response.headers.get("authorization") };
}

async function credit({ address }: RequestWallet): Promise<void> {
  const account = readAddress(address)?.address;
  if (account === undefined) throw new Error(`${address} is not a valid address`);
  await payment.credit(account, 1_000n);
}

/** Requests that carry the same signature as a request whose message was `text`: the split is moved, or left out. */
function otherSplits(text: string): { path: string; nonce: string }[] {
  const start = "GET /balance";
  const splits = [{ path: "/balance", nonce: text }];
  for (let at = start.length; at < text.length; at += 1)
    splits.push({ path: text.slice("GET ".length, at), nonce: text.slice(at) });
  return splits;
}

const isOfAccount = ({ path }: { path: string }) => path === "/balance" || path.startsWith("/balance?");

describe.each(wallets)("S3: a signature of a wallet of %s", (name, wallet) => {
  test("over method, path and nonce counts once, wherever the nonce is said to begin", async () => {
    await credit(wallet);
    const path = "/balance?a=bc";
    const nonce = `of one request of ${name}`;
    const text = `GET ${path}${nonce}`;
    const headers = signedHeaders(wallet, nonce, Buffer.from(text));
    expect((await ask(path, headers)).status).toBe(200);
    const again = otherSplits(text).filter(isOfAccount);
    expect(again.length).toBeGreaterThan(10);
    for (const split of again) {
      const { status, token } = await ask(split.path, { ...headers, "x-nonce": split.nonce });
      expect({ split, status, token }).toEqual({ split, status: 403, token: null });
    }
  });

  test("over a bare nonce that begins like a request counts once too", async () => {
    await credit(wallet);
    const text = `GET /balance?and a nonce of ${name}`;
    const headers = signedHeaders(wallet, text);
    expect((await ask("/balance", headers)).status).toBe(200);
    const split = { "x-nonce": text.slice("GET /balance?and".length) };
    expect((await ask("/balance?and", { ...headers, ...split })).status).toBe(403);
    expect((await ask("/balance", { ...headers, "x-nonce": Buffer.from(text).toString("hex") })).status).toBe(403);
  });
});

test("S3: the signature over a hexadecimal text counts once, as a nonce and as the hexadecimal text of a nonce", async () => {
  const wallet = solanaWallet(testKey(0x07));
  await credit(wallet);
  for (const [first, second] of [
    ["0a nonce, then its text", Buffer.from("0a nonce, then its text").toString("hex")],
    [Buffer.from("1a text, then its nonce").toString("hex"), "1a text, then its nonce"],
  ] as const) {
    const bare = first.startsWith("0a") ? first : second;
    const headers = signedHeaders(wallet, bare);
    expect((await ask("/balance", { ...headers, "x-nonce": first })).status).toBe(200);
    expect((await ask("/balance", { ...headers, "x-nonce": second })).status).toBe(403);
  }
});

describe("S3: the public signature of a data item", () => {
  const seed = seedOr(20_261_122);
  const typeOf: Readonly<Record<number, string>> = { 1: "1", 2: "4", 3: "3", 4: "4", 5: "4", 101: "3" };

  test("opens no account, whatever is said to be its nonce", async () => {
    let asked = 0;
    for (const signer of signers) {
      const way = typeOf[signer.scheme.type];
      if (way === undefined) continue;
      const account = readAddress(signer.scheme.nativeAddress(signer.owner));
      if (account !== undefined) await payment.credit(account.address, 1_000n);
      for (let round = 0; round < 8; round += 1) {
        const { signature, message } = signItem(signer, `item ${seed} ${round}`);
        for (const nonce of noncesOf(message)) {
          const headers = {
            "x-signature": Buffer.from(signature).toString("base64url"),
            "x-public-key": Buffer.from(signer.owner).toString("base64url"),
            "x-signature-type": way,
            "x-nonce": nonce,
          };
          const { status, token } = await ask("/balance", headers);
          expect({ type: signer.scheme.type, nonce, status, token }).toMatchObject({
            status: 403,
            token: null,
          });
          asked += 1;
        }
      }
    }
    expect(asked).toBeGreaterThan(150);
  });

  test("while a wallet that signs bytes may have a nonce in hexadecimal", async () => {
    const wallet = rawSolanaWallet(testKey(0x07));
    await credit(wallet);
    for (const bytes of [16, 32]) {
      const nonce = new Uint8Array(bytes).fill(0xab).toHex();
      expect((await ask("/balance", signedHeaders(wallet, nonce))).status).toBe(200);
    }
  });
});

/** Texts that a header can carry and that could represents the deep hash. */
function noncesOf(message: Uint8Array): string[] {
  const hex = message.toHex();
  return [
    hex,
    hex.toUpperCase(),
    `0x${hex}`,
    Buffer.from(hex, "latin1").toString("hex"),
    Buffer.from(message).toString("base64url"),
  ];
}

function signItem(signer: Signer, data: string): { signature: Uint8Array; message: Uint8Array } {
  let signed: { signature: Uint8Array; message: Uint8Array } | undefined;
  const noting: Signer = {
    ...signer,
    sign: (message) => {
      const signature = signer.sign(message);
      signed = { signature, message };
      return signature;
    },
  };
  createDataItem({ data }, noting);
  if (signed === undefined) throw new Error("an item is signed");
  return signed;
}
