/**
 * Wallets of the pages: the one of the browser, and under `cairn dev` the funded test wallet.
 * @module
 */
import { fetchRoute } from "./route-client.ts";
import type { Tag } from "./upload/data-item.ts";
import { type Bytes, fromBase64url, sha256, toBase64url } from "./verify/bytes.ts";

/** What the common wallets of Arweave put into a page. */
export type InjectedWallet = Readonly<{
  connect: (permissions: readonly string[]) => Promise<void>;
  getActiveAddress: () => Promise<string>;
  getActivePublicKey: () => Promise<string>;
  signDataItem: (item: Readonly<{ data: Uint8Array; tags: readonly Tag[] }>) => Promise<ArrayBuffer | Uint8Array>;
  /** RSA-PSS over the SHA-256 of the message. */
  signMessage: (message: Uint8Array) => Promise<ArrayBuffer | Uint8Array>;
}>;

declare global {
  interface Window {
    arweaveWallet?: InjectedWallet;
  }
}

export function hasInjectedWallet(): boolean {
  return window.arweaveWallet !== undefined;
}

/** Connects the wallet of the browser, which asks its user. Rejects when the user declines. */
export async function connectInjectedWallet(permissions: readonly string[]): Promise<InjectedWallet> {
  const wallet = window.arweaveWallet;
  if (wallet === undefined) throw new Error("This browser has no Arweave wallet.");
  await wallet.connect(permissions);
  return wallet;
}

/** The test wallet of `cairn dev`. */
export type TestWallet = Readonly<{
  address: string;
  owner: Bytes;
  /** RSA-PSS. */
  sign: (message: Bytes) => Promise<Bytes>;
}>;

type TestKey = JsonWebKey & { n: string };

/** The test wallet of `cairn dev`; undefined elsewhere. @param page - Name of the page that uses it. */
export async function findTestWallet(page: string, signal: AbortSignal): Promise<TestWallet | undefined> {
  const response = await fetchRoute(`svc/${page}/test-wallet`, signal);
  if (!response.ok) throw new Error(`The test wallet cannot be read: status ${response.status}.`);
  const jwk: TestKey | null = await response.json();
  if (jwk === null) return undefined;
  const algorithm = { name: "RSA-PSS", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("jwk", jwk, algorithm, false, ["sign"]);
  const owner = fromBase64url(jwk.n);
  return {
    address: toBase64url(await sha256(owner)),
    owner,
    sign: async (message) =>
      new Uint8Array(await crypto.subtle.sign({ name: "RSA-PSS", saltLength: 32 }, key, message)),
  };
}
