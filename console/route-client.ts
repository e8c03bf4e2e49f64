/**
 * Requests of the pages that use a wallet, to routes of their own origin.
 * @module
 */

const timeoutMs = 30_000;

/** The URL of a route. @param path - Without a leading slash: a proxy may have put the gateway below a prefix. */
export function routeUrl(path: string): URL {
  return new URL(`../${path}`, document.baseURI);
}

/** Fetches a route. Rejects when there is no response in time. */
export async function fetchRoute(path: string, signal: AbortSignal, options: RequestInit = {}): Promise<Response> {
  return await fetch(routeUrl(path), {
    ...options,
    credentials: "omit",
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
}

/** A nonce or an idempotency key: 128 random bits as hex. `crypto.randomUUID` needs https. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The text of a rejection: some wallets reject with a text. */
export function faultText(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

/** Fields of a JSON object; none for any other text. */
export function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    // A response that is not JSON has no fields; its status says what happened.
    return {};
  }
}

/** The credits of an address, winc; undefined if the payment service is elsewhere. */
export async function readCredits(address: string, signal: AbortSignal): Promise<bigint | undefined> {
  const response = await fetchRoute(`payment/v1/account/balance?address=${encodeURIComponent(address)}`, signal);
  if (response.status === 404) return (await response.text()).includes("User") ? 0n : undefined;
  if (!response.ok) throw new Error(`The credits cannot be read: status ${response.status}.`);
  const { winc } = await response.json();
  return BigInt(winc);
}
