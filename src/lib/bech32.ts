/**
 * Bech32 as Cosmos chains write addresses: a readable prefix, five bits a letter, a checksum of six letters.
 * Source: BIP-173.
 * @module
 */

const alphabet = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/** The checksum finds faults in texts up to this length. */
const deliveriesMax = 90;
const checksumLength = 6;
const generators = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];

/**
 * Writes bytes in bech32.
 *
 * @param prefix - Lower-case letters.
 * @param bytes - A few dozen: the checksum protects 90 letters in all.
 */
export function encodeBech32(prefix: string, bytes: Uint8Array): string {
  const groups = regroup(bytes);
  const deliveries = [...groups, ...checksum(prefix, groups)].map((group) => alphabet[group]);
  return `${prefix}1${deliveries.join("")}`;
}

/**
 * Reads bech32 of one prefix.
 *
 * @param prefix - Lower-case letters.
 * @param text - All lower-case or all upper-case, as BIP-173 has it; at most 90 letters.
 * @returns The bytes, or `undefined` when the prefix is another, the checksum wrong, or a bit left over is set.
 */
export function decodeBech32(prefix: string, text: string): Uint8Array | undefined {
  const lower = text.toLowerCase();
  if (text.length > deliveriesMax || (text !== lower && text !== text.toUpperCase())) return undefined;
  if (!lower.startsWith(`${prefix}1`)) return undefined;
  const groups = [...lower.slice(prefix.length + 1)].map((delivery) => alphabet.indexOf(delivery));
  if (groups.length < checksumLength || groups.includes(-1)) return undefined;
  if (polymod([...spread(prefix), ...groups]) !== 1) return undefined;
  return ungroup(groups.slice(0, -checksumLength));
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

/** Groups of five bits as bytes; `undefined` when what is left over is a whole group or not zero. */
function ungroup(groups: readonly number[]): Uint8Array | undefined {
  const bytes: number[] = [];
  let held = 0;
  let bits = 0;
  for (const group of groups) {
    held = ((held << 5) | group) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((held >> bits) & 0xff);
  }
  return bits < 5 && (held & ((1 << bits) - 1)) === 0 ? Uint8Array.from(bytes) : undefined;
}

function checksum(prefix: string, groups: readonly number[]): number[] {
  const remainder = polymod([...spread(prefix), ...groups, 0, 0, 0, 0, 0, 0]) ^ 1;
  return [25, 20, 15, 10, 5, 0].map((shift) => (remainder >> shift) & 31);
}

/** The prefix as the checksum takes it in. */
function spread(prefix: string): number[] {
  const codes = [...prefix].map((delivery) => delivery.charCodeAt(0));
  return [...codes.map((code) => code >> 5), 0, ...codes.map((code) => code & 31)];
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
