/**
 * The signed-in wallet: its address, and the token of an hour that one signature obtained. They are stored for this tab
 * only, so that a payer who returns from the checkout is still signed in.
 * @module
 */
import { fetchRoute, objectOf, randomKey } from "../route-client.ts";
import { type Bytes, toBase64url, utf8 } from "../verify/bytes.ts";
import { connectInjectedWallet, findTestWallet } from "../wallets.ts";
import { faultOf, historyPath } from "./account-client.ts";

export type Session = Readonly<{
  /** For example "Test wallet". */
  name: string;
  address: string;
  token: string;
  /** Unix milliseconds. */
  expiresAt: number;
}>;

/** A wallet that signs texts. */
export type AccountWallet = Readonly<{
  name: string;
  address: string;
  /** The modulus of its key, base64url. */
  owner: string;
  sign: (text: Bytes) => Promise<Bytes>;
}>;

/** Connects the wallet of the browser. Rejects when its user declines. */
export async function connectAccountWallet(): Promise<AccountWallet> {
  const wallet = await connectInjectedWallet(["ACCESS_ADDRESS", "ACCESS_PUBLIC_KEY", "SIGNATURE"]);
  return {
    name: "Browser wallet",
    address: await wallet.getActiveAddress(),
    owner: await wallet.getActivePublicKey(),
    sign: async (text) => new Uint8Array(await wallet.signMessage(text)),
  };
}

/** The test wallet of `cairn dev`; undefined elsewhere. */
export async function findAccountTestWallet(signal: AbortSignal): Promise<AccountWallet | undefined> {
  const wallet = await findTestWallet("account", signal);
  return wallet && { ...wallet, name: "Test wallet", owner: toBase64url(wallet.owner) };
}

/** Time for the request after the signature. */
const signInMs = 60_000;

/** Signs in. Rejects when the user or the service declines. */
export async function signIn({ name, address, owner, sign }: AccountWallet): Promise<Session> {
  const nonce = randomKey();
  const signature = toBase64url(await sign(utf8(nonce)));
  const headers = { "x-nonce": nonce, "x-signature": signature, "x-public-key": owner };
  const signal = AbortSignal.timeout(signInMs);
  const response = await fetchRoute(`${historyPath}?limit=1`, signal, { headers });
  const authorization = response.headers.get("authorization");
  if (!response.ok) throw await faultOf(response);
  if (authorization === null) throw new Error("The payment service gave no token.");
  const session = { name, address, token: authorization, expiresAt: Date.now() + tokenMs };
  storeSession(session);
  return session;
}

/** Somewhat less than the hour of the token. */
const tokenMs = 55 * 60_000;

const storageKey = "cairn-account";

/** Stores the session for this tab; without effect where the browser lets pages store nothing. */
export function storeSession(session: Session | undefined): void {
  const storage = tabStorage();
  if (session === undefined) storage?.removeItem(storageKey);
  else storage?.setItem(storageKey, JSON.stringify(session));
}

/** The storage of this tab; undefined where its user has forbidden it, for which browsers throw. */
function tabStorage(): Storage | undefined {
  try {
    return sessionStorage;
  } catch {
    return undefined; // the page keeps the session itself, until it is left
  }
}

/** The stored session while its token is valid. */
export function storedSession(): Session | undefined {
  const text = tabStorage()?.getItem(storageKey) ?? null;
  if (text === null) return undefined;
  const { name, address, token, expiresAt } = objectOf(text);
  if (typeof name !== "string" || typeof address !== "string" || typeof token !== "string") return undefined;
  if (typeof expiresAt !== "number" || expiresAt <= Date.now()) return undefined;
  return { name, address, token, expiresAt };
}
