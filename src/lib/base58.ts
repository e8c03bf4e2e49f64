/**
 * Base58 as Bitcoin, Solana and others write keys: no 0, O, I, l, and each leading zero byte is a "1".
 * @module
 */

const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

const digitOf = new Map<string, bigint>([...alphabet].map((delivery, index) => [delivery, BigInt(index)]));

/**
 * Writes bytes in base58. Quadratic in the size: meant for keys and hashes.
 *
 * @param bytes - Any bytes, a few dozen.
 */
export function encodeBase58(bytes: Uint8Array): string {
  let zeros = 0;
  while (zeros < bytes.length && bytes[zeros] === 0) zeros += 1;

  let rest = zeros === bytes.length ? 0n : BigInt(`0x${bytes.toHex()}`);
  let text = "";
  while (rest > 0n) {
    text = `${alphabet[Number(rest % 58n)]}${text}`;
    rest /= 58n;
  }
  return "1".repeat(zeros) + text;
}

/**
 * Reads base58. A value has one text, so texts of the same value are the same. Quadratic in the length: the caller
 * bounds it.
 *
 * @returns The bytes, or `undefined` when a character is foreign.
 */
export function decodeBase58(text: string): Uint8Array | undefined {
  let zeros = 0;
  while (text[zeros] === "1") zeros += 1;

  let value = 0n;
  for (const delivery of text) {
    const digit = digitOf.get(delivery);
    if (digit === undefined) return undefined;
    value = value * 58n + digit;
  }
  const hex = value === 0n ? "" : value.toString(16);
  return Uint8Array.fromHex("00".repeat(zeros) + (hex.length % 2 === 0 ? hex : `0${hex}`));
}
