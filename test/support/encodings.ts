/**
 * Every other encoding of a data item's signature that can be derived without the key, valid or not: what a
 * verifier must reject, or the ledger must take for the same act of signing.
 * Source: docs/reference/signatures.md.
 * @module
 */
import { readItemHeader } from "../../src/arweave/data-item.ts";

/** An item whose signature is encoded in another way. */
export type OtherEncoding = Readonly<{ name: string; bytes: Uint8Array<ArrayBuffer>; isValid: boolean }>;

const signatureStart = 2;
const secp256k1Order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const ed25519Order = 2n ** 252n + 27742317777372353535851937790883648493n;

/** Lists the encodings of an item's signature by its type. */
export function otherEncodings(item: Uint8Array): OtherEncoding[] {
  const read = readItemHeader(item, "strict", item.length);
  if (read.kind !== "header") throw new Error("a test's item is an item");
  const { signatureType, signature, owner } = read.header;
  const encode = (name: string, isValid: boolean, other: Uint8Array): OtherEncoding => {
    const bytes = new Uint8Array(item);
    bytes.set(other, signatureStart);
    return { name, bytes, isValid };
  };
  switch (signatureType) {
    case 1:
      return [encode("s + n", false, rsaPlusModulus(signature, owner))];
    case 3:
    case 7:
    case 101:
      return ecdsaEncodings(signature).map(([name, isValid, other]) => encode(name, isValid, other));
    case 6:
      return subsets(signature, owner[1_024] ?? 0).map((other, index) => encode(`subset ${index}`, true, other));
    default:
      return [
        encode("S + L", false, withTail(signature, littleEndian(tailOf(signature) + ed25519Order))),
        encode("S with its highest bits set", false, signature.with(63, (signature[63] ?? 0) | 0xe0)),
      ];
  }
}

/** The other encodings of an item's signature that are valid. */
export function validEncodings(item: Uint8Array): Uint8Array<ArrayBuffer>[] {
  return otherEncodings(item).flatMap(({ bytes, isValid }) => (isValid ? [bytes] : []));
}

function rsaPlusModulus(signature: Uint8Array, modulus: Uint8Array): Uint8Array {
  const sum = (BigInt(`0x${signature.toHex()}`) + BigInt(`0x${modulus.toHex()}`)) % 2n ** 4096n;
  return Uint8Array.fromHex(sum.toString(16).padStart(1_024, "0"));
}

function ecdsaEncodings(signature: Uint8Array): [string, boolean, Uint8Array][] {
  const last = signature[64] ?? 0;
  const parity = last >= 27 ? last - 27 : last;
  const flipped = BigInt(`0x${signature.subarray(32, 64).toHex()}`);
  const high = Uint8Array.fromHex((secp256k1Order - flipped).toString(16).padStart(64, "0"));
  const highS = (lastByte: number) => {
    const other = new Uint8Array(signature);
    other.set(high, 32);
    other[64] = lastByte;
    return other;
  };
  const valid = [parity, parity + 27].filter((byte) => byte !== last);
  return [
    ...valid.map((byte): [string, boolean, Uint8Array] => [`last byte ${byte}`, true, signature.with(64, byte)]),
    ...[2 + parity, 29 + parity, 31 + parity, 35 + parity, 37 + parity, 128 + parity].map(
      (byte): [string, boolean, Uint8Array] => [`last byte ${byte}`, false, signature.with(64, byte)],
    ),
    ["high S, last byte 0 or 1", false, highS(1 - parity)],
    ["high S, last byte 27 or 28", false, highS(28 - parity)],
  ];
}

/** Every choice of the signatures at hand that is not all of them and meets the threshold. */
function subsets(signature: Uint8Array, threshold: number): Uint8Array[] {
  const bitmap = 32 * 64;
  const isUsed = (slot: number) => ((signature[bitmap + (slot >> 3)] ?? 0) & (0x80 >> (slot & 7))) !== 0;
  const used = Array.from({ length: 32 }, (_, slot) => slot).filter(isUsed);
  const choices = Array.from({ length: 2 ** used.length - 1 }, (_, mask) =>
    used.filter((_, index) => (mask & (1 << index)) !== 0),
  ).filter((choice) => choice.length >= threshold);
  return choices.map((choice) => {
    const other = new Uint8Array(signature.length);
    for (const slot of choice) {
      other.set(signature.subarray(slot * 64, slot * 64 + 64), slot * 64);
      other[bitmap + (slot >> 3)] = (other[bitmap + (slot >> 3)] ?? 0) | (0x80 >> (slot & 7));
    }
    return other;
  });
}

function tailOf(signature: Uint8Array): bigint {
  return BigInt(`0x${signature.slice(32, 64).reverse().toHex()}`);
}

function littleEndian(value: bigint): Uint8Array {
  return Uint8Array.fromHex(value.toString(16).padStart(64, "0")).reverse();
}

function withTail(signature: Uint8Array, tail: Uint8Array): Uint8Array {
  const other = new Uint8Array(signature);
  other.set(tail, 32);
  return other;
}
