/**
 * Bytes, texts and hashes in a browser.
 * @module
 */

export type Bytes = Uint8Array<ArrayBuffer>;

export async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

export async function sha384(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-384", bytes));
}

export function utf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

/** Big-endian. */
export function big(bytes: Bytes): bigint {
  return BigInt(`0x${hexText(bytes)}`);
}

/** Little-endian. */
export function little(bytes: Bytes): bigint {
  return big(bytes.slice().reverse());
}

export function hexText(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function equal(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

export function join(parts: readonly Uint8Array[]): Bytes {
  const joined = new Uint8Array(parts.reduce((size, { length }) => size + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** @throws DOMException for a text that is not base64. */
export function fromBase64url(text: string): Bytes {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

export function toBase64url(bytes: Bytes): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** What a deep hash is of: bytes, or a list of such. */
export type Deep = Bytes | readonly Deep[];

/** The hash that owners sign. Source: docs/reference/signatures.md. */
export async function deepHash(value: Deep): Promise<Bytes> {
  if (value instanceof Uint8Array)
    return await sha384(join([await sha384(utf8(`blob${value.length}`)), await sha384(value)]));
  let hash = await sha384(utf8(`list${value.length}`));
  for (const part of value) hash = await sha384(join([hash, await deepHash(part)]));
  return hash;
}
