/**
 * RLP, as transactions are written: byte strings, and lists of them.
 * Source: the Ethereum yellow paper, appendix B.
 * @module
 */
import { joinBytes } from "./words.ts";

/** A byte string, or a list. */
export type RlpValue = Uint8Array | readonly RlpValue[];

/** A string shorter than this has its size in its first byte. */
const shortSizeMax = 55;

/** Writes a value. */
export function writeRlp(value: RlpValue): Uint8Array {
  if (value instanceof Uint8Array) {
    const [first = 0x80] = value;
    return value.length === 1 && first < 0x80 ? value : joinBytes([headOf(0x80, value.length), value]);
  }
  const body = joinBytes(value.map(writeRlp));
  return joinBytes([headOf(0xc0, body.length), body]);
}

/** A whole number as a byte string: big-endian, without zeros before it; 0 is empty. */
export function rlpNumber(value: bigint): Uint8Array {
  if (value === 0n) return new Uint8Array();
  const digits = value.toString(16);
  return Uint8Array.fromHex(digits.padStart(digits.length + (digits.length % 2), "0"));
}

function headOf(base: number, size: number): Uint8Array {
  if (size <= shortSizeMax) return Uint8Array.of(base + size);
  const sizeBytes = rlpNumber(BigInt(size));
  return joinBytes([Uint8Array.of(base + shortSizeMax + sizeBytes.length), sizeBytes]);
}
