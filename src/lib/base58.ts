/**
 * Base58 as Bitcoin, Solana and others write keys: no 0, O, I, l, and each leading zero byte is a "1".
 * @module
 */

const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

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
