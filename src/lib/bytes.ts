/**
 * Bytes: concatenation, comparison, big-endian integers.
 * @module
 */
import { assert } from "./assert.ts";

const encoder = new TextEncoder();

export function utf8Bytes(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/**
 * Bytes that stay in memory alone: a view keeps all of its buffer, so a view of at most half of it is copied.
 *
 * @returns The same bytes, whose buffer has at most twice as many.
 */
export function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.length > bytes.buffer.byteLength / 2 ? bytes : new Uint8Array(bytes);
}

/** The same bytes, as memory that threads do not share: bytes that they may share are copied. */
export function unshared(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, byteLength } = bytes;
  return buffer instanceof ArrayBuffer ? new Uint8Array(buffer, byteOffset, byteLength) : new Uint8Array(bytes);
}

/** Compares bytes, not in constant time: never for secrets. */
export function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && Buffer.compare(left, right) === 0;
}

/** Orders byte strings as unsigned bytes; a prefix is less than a longer string. Returns negative, 0 or positive. */
export function compareBytes(left: Uint8Array, right: Uint8Array): number {
  return Buffer.compare(left, right);
}

/** Reads a big-endian unsigned integer of any length; no bytes are 0. */
export function readUnsigned(bytes: Uint8Array): bigint {
  if (bytes.length === 0) return 0n;
  return BigInt(`0x${bytes.toHex()}`);
}

/**
 * Writes an unsigned integer as the fewest big-endian bytes; 0 takes one byte.
 *
 * @param value - 0 or more.
 */
export function writeUnsigned(value: bigint): Uint8Array {
  assert(value >= 0n, "an unsigned integer is 0 or more");
  const hex = value.toString(16);
  return Uint8Array.fromHex(hex.length % 2 === 0 ? hex : `0${hex}`);
}

/**
 * Writes an unsigned integer as exactly `size` big-endian bytes.
 *
 * @param value - 0 or more, below 256^size.
 */
export function writeUnsignedFixed(value: bigint, size: number): Uint8Array {
  const bytes = writeUnsigned(value);
  const padded = new Uint8Array(size);
  if (value === 0n) return padded;
  assert(bytes.length <= size, "the integer fits into its field");
  padded.set(bytes, size - bytes.length);
  return padded;
}

/** Prefixes bytes with their size. @param width - Bytes of the size, big-endian; the size must fit. */
export function withSize(bytes: Uint8Array, width: number): Uint8Array {
  return concatBytes([writeUnsignedFixed(BigInt(bytes.length), width), bytes]);
}

/**
 * Moves bytes into a Blob, which the runtime sends without another copy. The buffer is detached: otherwise the bytes
 * would be in memory twice until the garbage collection.
 */
export function blobOf(bytes: Uint8Array<ArrayBuffer>): Blob {
  const blob = new Blob([bytes]);
  bytes.buffer.transfer(0);
  return blob;
}
