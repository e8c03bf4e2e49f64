/**
 * Words of 32 bytes, as contracts take arguments and as typed data is hashed: big-endian, values at the right.
 * Source: the contract ABI specification; EIP-712 "Definition of encodeData".
 * @module
 */
import { assert } from "../../lib/assert.ts";
import type { UserAddress } from "../addresses.ts";

export const wordSize = 32;

/** A whole number as a word. @param value - 0 to 2^256 − 1. */
export function wordOfNumber(value: bigint): Uint8Array {
  assert(value >= 0n && value < 2n ** 256n, "a word holds a number below 2^256");
  return Uint8Array.fromHex(value.toString(16).padStart(2 * wordSize, "0"));
}

/** An address as a word. */
export function wordOfAddress(address: UserAddress): Uint8Array {
  return Uint8Array.fromHex(address.slice(2).padStart(2 * wordSize, "0"));
}

/** A hash, or any other 32 bytes, as a word. @param hash - `0x` and 64 digits. */
export function wordOfHash(hash: string): Uint8Array {
  const word = Uint8Array.fromHex(hash.slice(2));
  assert(word.length === wordSize, "a hash has 32 bytes");
  return word;
}

/** Up to 32 bytes at the left of a word, as contracts take fixed bytes. */
export function wordOfBytes(bytes: Uint8Array): Uint8Array {
  assert(bytes.length <= wordSize, "a word holds 32 bytes");
  const word = new Uint8Array(wordSize);
  word.set(bytes);
  return word;
}

/** Bytes as an argument's tail: their size, and themselves up to a whole word. */
export function tailOfBytes(bytes: Uint8Array): Uint8Array {
  const padding = new Uint8Array((wordSize - (bytes.length % wordSize)) % wordSize);
  return joinBytes([wordOfNumber(BigInt(bytes.length)), bytes, padding]);
}

/** Joins bytes. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(Buffer.concat(parts));
}

/** Bytes as JSON-RPC takes them. */
export function writeHexBytes(bytes: Uint8Array): string {
  return `0x${bytes.toHex()}`;
}
