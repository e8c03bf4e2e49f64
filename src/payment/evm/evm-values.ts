/**
 * Values of EVM JSON-RPC: quantities, hashes, addresses and bytes, all as hexadecimal text.
 * Source: https://ethereum.org/en/developers/docs/apis/json-rpc/#conventions.
 * @module
 */
import { assert } from "../../lib/assert.ts";
import type { JsonValue } from "../../lib/json.ts";
import { readAddress, type UserAddress } from "../addresses.ts";

const quantityPattern = /^0x[0-9a-fA-F]{1,64}$/;
const hashPattern = /^0x[0-9a-fA-F]{64}$/;
const bytesPattern = /^0x(?:[0-9a-fA-F]{2})*$/;

/** Reads a whole number below 2^256. */
export function readQuantity(value: JsonValue | undefined): bigint | undefined {
  return typeof value === "string" && quantityPattern.test(value) ? BigInt(value) : undefined;
}

/** Reads a block's height, a safe integer. */
export function readHeight(value: JsonValue | undefined): number | undefined {
  if (typeof value !== "string" || !quantityPattern.test(value)) return undefined;
  const height = Number.parseInt(value, 16);
  return Number.isSafeInteger(height) ? height : undefined;
}

/** Writes a whole number, 0 or more. */
export function writeQuantity(value: bigint | number): string {
  return `0x${value.toString(16)}`;
}

/** Reads a hash of 32 bytes as lower-case text with `0x`. */
export function readHash(value: JsonValue | undefined): string | undefined {
  return typeof value === "string" && hashPattern.test(value) ? value.toLowerCase() : undefined;
}

/** Reads an address of 20 bytes into its canonical text. */
export function readEvmAddress(value: JsonValue | undefined): UserAddress | undefined {
  // Servers write lower case; upper case is not a checksum here.
  return typeof value === "string" ? readAddress(value.toLowerCase(), "ethereum")?.address : undefined;
}

/** Parses bytes; "0x" is empty. */
export function readHexBytes(value: JsonValue | undefined): Uint8Array | undefined {
  if (typeof value !== "string" || !bytesPattern.test(value)) return undefined;
  return Uint8Array.fromHex(value.slice(2));
}

// Words of 32 bytes, for arguments of contracts and hashes of typed data: big-endian, values at the right.
// Source: the contract ABI specification; EIP-712 "Definition of encodeData".

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

/** Up to 32 bytes at the left of a word, the encoding of fixed bytes. */
export function wordOfBytes(bytes: Uint8Array): Uint8Array {
  assert(bytes.length <= wordSize, "a word holds 32 bytes");
  const word = new Uint8Array(wordSize);
  word.set(bytes);
  return word;
}

/** Bytes as an argument's tail: their size, then the bytes, padded to full words. */
export function tailOfBytes(bytes: Uint8Array): Uint8Array {
  const padding = new Uint8Array((wordSize - (bytes.length % wordSize)) % wordSize);
  return joinBytes([wordOfNumber(BigInt(bytes.length)), bytes, padding]);
}

/** Joins bytes. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(Buffer.concat(parts));
}

/** Bytes in the encoding of JSON-RPC. */
export function writeHexBytes(bytes: Uint8Array): string {
  return `0x${bytes.toHex()}`;
}
