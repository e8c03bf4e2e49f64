/**
 * A development chain for tests: wallets that do not change within a run, a clock that only tests move, and clients'
 * posts made by the formats' own writers.
 * @module
 */
import { chunkSpans, dataTreeOf, type TailRule } from "../../../src/arweave/merkle.ts";
import type { Transaction } from "../../../src/arweave/transaction.ts";
import { signTransaction, type UnsignedTransaction } from "../../../src/arweave/transaction-sign.ts";
import { ecdsaWallet, readWallet, type Wallet } from "../../../src/arweave/wallet.ts";
import { devnetFee } from "../../../src/dev/devnet/chain-rules.ts";
import { type Devnet, type DevnetOptions, openDevnet } from "../../../src/dev/devnet/devnet.ts";
import { createDevnetRoutes } from "../../../src/dev/devnet-routes/node-routes.ts";
import { encodeBase64url } from "../../../src/lib/base64url.ts";
import type { JsonObject } from "../../../src/lib/json.ts";
import { rsaKeys } from "../../support/rsa-keys.ts";

/** The key of the funded RSA wallet, as clients load it. */
export const rsaJwk: JsonObject = rsaKeys["2048"];

/** The key of the funded ECDSA wallet. */
export const ecdsaJwk: JsonObject = {
  kty: "EC",
  crv: "secp256k1",
  d: encodeBase64url(new Uint8Array(32).fill(7)),
};

/** The funded RSA wallet; its signatures repeat. */
export const rsa = readWallet(rsaJwk, 0);

/** The funded ECDSA wallet. */
export const ecdsa = readWallet(ecdsaJwk);

/** A wallet without an account. */
export const stranger = ecdsaWallet(new Uint8Array(32).fill(9));

/** A clock that only the test moves. */
export type TestClock = (() => number) & { now: number };

/** Creates a clock that advances only on request. */
export function createTestClock(now = 1_700_000_000_000): TestClock {
  const clock = Object.assign(() => clock.now, { now });
  return clock;
}

/** Opens a chain in memory that mines when it is asked, with both wallets funded. */
export async function openTestDevnet(options: Partial<DevnetOptions> = {}): Promise<Devnet> {
  return await openDevnet({
    dir: undefined,
    seed: "test",
    clock: createTestClock(),
    mining: "manual",
    wallets: [
      { name: "rsa", jwk: rsaJwk },
      { name: "ecdsa", jwk: ecdsaJwk },
    ],
    ...options,
  });
}

/** Signs a transaction that the chain should take; what is given replaces what is usual. */
export function sign(devnet: Devnet, wallet: Wallet, fields: Partial<UnsignedTransaction> = {}): Transaction {
  const size = BigInt(fields.data?.length ?? fields.stated?.dataSize ?? 0);
  return signTransaction(
    { format: 2, lastTx: devnet.suggestedAnchor(), reward: devnetFee(size, "none"), ...fields },
    wallet,
  );
}

/** Signs and posts, and expects the chain to take it. */
export async function post(devnet: Devnet, wallet: Wallet, fields: Partial<UnsignedTransaction> = {}) {
  const transaction = sign(devnet, wallet, fields);
  const outcome = await devnet.postTransaction(transaction.text);
  if (outcome.kind !== "accepted") throw new Error(`the chain rejected it: ${JSON.stringify(outcome)}`);
  return transaction;
}

/** Size and root of data, for a transaction whose data comes in chunks. */
export function statedOf(data: Uint8Array, rule: TailRule = "halved") {
  return { dataSize: data.length, dataRoot: dataTreeOf(data, rule).root };
}

/** The bodies of `POST /chunk` for data, in order; an empty last chunk is not posted. */
export function chunkPosts(data: Uint8Array, rule: TailRule = "halved"): string[] {
  const tree = dataTreeOf(data, rule);
  return chunkSpans(data.length, rule).flatMap(({ start, end }, index) => {
    if (start === end) return [];
    const body = {
      data_root: encodeBase64url(tree.root),
      data_size: `${data.length}`,
      data_path: encodeBase64url(tree.path(index)),
      offset: `${end - 1}`,
      chunk: encodeBase64url(data.subarray(start, end)),
    };
    return [JSON.stringify(body)];
  });
}

/** Another text of the same 32 bytes: its last character has bits set that the canonical text leaves zero. */
export function respelled(address: string): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return address.slice(0, -1) + alphabet[alphabet.indexOf(address.slice(-1)) + 1];
}

/** Bytes that repeat nowhere, from a number. */
export function testBytes(size: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(size);
  let state = seed;
  for (let index = 0; index < size; index += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[index] = state >>> 24;
  }
  return bytes;
}

/** A node on a free port. */
export type TestNode = Readonly<{
  port: number;
  get: (path: string, headers?: Record<string, string>) => Promise<Response>;
  post: (path: string, body?: string, headers?: Record<string, string>) => Promise<Response>;
  close: () => Promise<void>;
}>;

/** Puts a chain behind a socket. */
export function serve(devnet: Devnet): TestNode {
  const server = Bun.serve({ port: 0, fetch: createDevnetRoutes(devnet).fetch });
  const at = (path: string) => `http://127.0.0.1:${server.port}${path}`;
  return {
    port: server.port ?? 0,
    get: (path, headers = {}) => fetch(at(path), { headers }),
    post: (path, body = "", headers = {}) => fetch(at(path), { method: "POST", body, headers }),
    close: () => server.stop(true),
  };
}
