/**
 * Bech32 as Cosmos chains write addresses: a readable prefix, five bits a letter, a checksum of six letters.
 * Source: BIP-173.
 * @module
 */

const alphabet = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const generators = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];

/**
 * Writes bytes in bech32.
 *
 * @param prefix - Lower-case letters.
 * @param bytes - A few dozen: the checksum protects 90 letters in all.
 */
export function encodeBech32(prefix: string, bytes: Uint8Array): string {
  const groups = regroup(bytes);
  const letters = [...groups, ...checksum(prefix, groups)].map((group) => alphabet[group]);
  return `${prefix}1${letters.join("")}`;
}

/** Bytes as groups of five bits, the last one filled up with zeros. */
function regroup(bytes: Uint8Array): number[] {
  const groups: number[] = [];
  let held = 0;
  let bits = 0;
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      groups.push((held >> bits) & 31);
    }
  }
  if (bits > 0) groups.push((held << (5 - bits)) & 31);
  return groups;
}

function checksum(prefix: string, groups: readonly number[]): number[] {
  const codes = [...prefix].map((letter) => letter.charCodeAt(0));
  const spread = [...codes.map((code) => code >> 5), 0, ...codes.map((code) => code & 31)];
  const remainder = polymod([...spread, ...groups, 0, 0, 0, 0, 0, 0]) ^ 1;
  return [25, 20, 15, 10, 5, 0].map((shift) => (remainder >> shift) & 31);
}

function polymod(values: readonly number[]): number {
  let remainder = 1;
  for (const value of values) {
    const top = remainder >> 25;
    remainder = ((remainder & 0x1ffffff) << 5) ^ value;
    generators.forEach((generator, bit) => {
      if ((top >> bit) & 1) remainder ^= generator;
    });
  }
  return remainder;
}
