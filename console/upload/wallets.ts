/**
 * Wallets that sign uploads: the one of the browser, and under `cairn dev` the funded test wallet.
 * @module
 */
import { type Bytes, fromBase64url, sha256, toBase64url } from "../verify/bytes.ts";
import { readSignedItem, type SignedItem, signItem, type Tag } from "./data-item.ts";
import { fetchRoute } from "./upload-client.ts";

export type PageWallet = Readonly<{
  /** For example "Test wallet". */
  name: string;
  address: string;
  sign: (data: Blob, tags: readonly Tag[]) => Promise<SignedItem>;
}>;

/** What the common wallets of Arweave put into a page. */
type InjectedWallet = Readonly<{
  connect: (permissions: readonly string[]) => Promise<void>;
  getActiveAddress: () => Promise<string>;
  signDataItem: (item: Readonly<{ data: Uint8Array; tags: readonly Tag[] }>) => Promise<ArrayBuffer | Uint8Array>;
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
export async function connectInjectedWallet(): Promise<PageWallet> {
  const wallet = window.arweaveWallet;
  if (wallet === undefined) throw new Error("This browser has no Arweave wallet.");
  await wallet.connect(["ACCESS_ADDRESS", "ACCESS_PUBLIC_KEY", "SIGN_TRANSACTION"]);
  return {
    name: "Browser wallet",
    address: await wallet.getActiveAddress(),
    sign: async (data, tags) => {
      const signed = await wallet.signDataItem({ data: new Uint8Array(await data.arrayBuffer()), tags });
      return await readSignedItem(new Uint8Array(signed));
    },
  };
}

type TestKey = JsonWebKey & { n: string };

/** The test wallet of `cairn dev`; undefined elsewhere. */
export async function findTestWallet(signal: AbortSignal): Promise<PageWallet | undefined> {
  const response = await fetchRoute("svc/upload/test-wallet", signal);
  if (!response.ok) throw new Error(`The test wallet cannot be read: status ${response.status}.`);
  const jwk: TestKey | null = await response.json();
  if (jwk === null) return undefined;
  const algorithm = { name: "RSA-PSS", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("jwk", jwk, algorithm, false, ["sign"]);
  const owner = fromBase64url(jwk.n);
  const sign = async (hash: Bytes) =>
    new Uint8Array(await crypto.subtle.sign({ name: "RSA-PSS", saltLength: 32 }, key, hash));
  return {
    name: "Test wallet",
    address: toBase64url(await sha256(owner)),
    sign: (data, tags) => signItem(data, tags, { owner, sign }),
  };
}
