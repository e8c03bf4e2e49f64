/**
 * Base58, bech32 and base32 texts of bytes. A value has one text, but bech32 may be in either case. The decoders
 * return `undefined` for a text that is not valid; decoding base58 is quadratic in the length, which the caller bounds.
 * Source: RFC 4648 §6 (base32); BIP-173 (bech32).
 * @module
 */
import { base32nopad, base58, bech32 } from "@scure/base";

/** Encodes base58 in the alphabet of Bitcoin and Solana. Quadratic in the size: for keys and hashes only. */
export const encodeBase58: (bytes: Uint8Array) => string = base58.encode;

export function decodeBase58(text: string): Uint8Array | undefined {
  return decoded(() => base58.decode(text));
}

/**
 * @param prefix - In lower case.
 * @param bytes - A few dozen bytes: the checksum protects 90 characters in total, and a longer text is a defect.
 */
export function encodeBech32(prefix: string, bytes: Uint8Array): string {
  return bech32.encode(prefix, bech32.toWords(bytes));
}

/** @param text - All lower-case or all upper-case, at most 90 characters, with this prefix. */
export function decodeBech32(prefix: string, text: string): Uint8Array | undefined {
  const read = decoded(() => bech32.decodeToBytes(text));
  return read?.prefix === prefix ? read.bytes : undefined;
}

/** Encodes lower-case base32 without padding. */
export function encodeBase32(bytes: Uint8Array): string {
  return base32nopad.encode(bytes).toLowerCase();
}

/** Decodes lower-case base32 without padding. */
export function decodeBase32(text: string): Uint8Array | undefined {
  // A character outside ASCII may become ASCII in upper case.
  return /^[a-z2-7]*$/.test(text) ? decoded(() => base32nopad.decode(text.toUpperCase())) : undefined;
}

function decoded<Value>(decode: () => Value): Value | undefined {
  try {
    return decode();
  } catch {
    // The library throws for each character, checksum, length or spare bit that is not valid.
    return undefined;
  }
}
