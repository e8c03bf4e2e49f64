/**
 * How a facilitator knows its customer: a bearer key, or a token of Coinbase's Developer Platform that is signed for
 * each request with the customer's Ed25519 key and holds for two minutes.
 * Source: RFC 6750; RFC 7519 and RFC 8037 (EdDSA); https://docs.cdp.coinbase.com/api-reference/v2/authentication.
 * @module
 */
import { ed25519 } from "@noble/curves/ed25519.js";
import { encodeBase64url } from "../../lib/base64url.ts";
import type { Clock } from "../../lib/clock.ts";
import { type JsonValue, writeJson } from "../../lib/json.ts";

/** What a facilitator wants with each request. */
export type FacilitatorAccess =
  | Readonly<{ kind: "bearer"; key: string }>
  /** @see readPlatformSecret */
  | Readonly<{ kind: "platform"; keyId: string; privateKey: Uint8Array }>;

/** How long a token holds. Seconds. */
const tokenSeconds = 120n;

const nonceSize = 16;

/** Reads the secret of a platform key: base64 of the private key and the public one, 32 bytes each. */
export function readPlatformSecret(text: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/]{86}==$/.test(text)) return undefined;
  const bytes = Uint8Array.fromBase64(text);
  const privateKey = bytes.subarray(0, 32);
  return ed25519.getPublicKey(privateKey).toHex() === bytes.subarray(32).toHex() ? privateKey : undefined;
}

/** Whether a text can be sent as a bearer key. */
export function isBearerKey(text: string): boolean {
  return /^[A-Za-z0-9._~+/-]{1,4096}=*$/.test(text);
}

/**
 * Writes the value of a request's `Authorization` header.
 *
 * @param random - Bytes for the token's nonce.
 */
export function authorizationFor(
  access: FacilitatorAccess,
  method: string,
  url: string,
  clock: Clock,
  random: (size: number) => Uint8Array,
): string {
  if (access.kind === "bearer") return `Bearer ${access.key}`;
  const { host, pathname } = new URL(url);
  const now = BigInt(clock()) / 1_000n;
  const header = { alg: "EdDSA", kid: access.keyId, typ: "JWT", nonce: random(nonceSize).toHex() };
  const claims = {
    sub: access.keyId,
    iss: "cdp",
    uris: [`${method} ${host}${pathname}`],
    iat: now,
    nbf: now,
    exp: now + tokenSeconds,
  };
  const content = `${encoded(header)}.${encoded(claims)}`;
  const signature = ed25519.sign(new TextEncoder().encode(content), access.privateKey);
  return `Bearer ${content}.${encodeBase64url(signature)}`;
}

function encoded(value: JsonValue): string {
  return encodeBase64url(new TextEncoder().encode(writeJson(value)));
}
