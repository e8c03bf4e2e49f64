/**
 * Signature type 101: signed and checked as type 3; only the address is KYVE's own.
 * Source: BIP-173 (bech32); Cosmos SDK (address = RIPEMD-160 of SHA-256 of the compressed key).
 * @module
 */
import { createHash } from "node:crypto";
import { ripemd160 } from "@noble/hashes/legacy.js";
import {
  createEthereumSigner,
  ethereumOwnerSize,
  ethereumSignatureSize,
  verifyEthereum,
} from "./ethereum.ts";
import type { SignatureScheme, Signer } from "./scheme.ts";

const alphabet = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const generators = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];
const prefix = "kyve";

/** KYVE keys as owner: 04, x, y. */
export const kyve: SignatureScheme = {
  type: 101,
  name: "kyve",
  signatureSize: ethereumSignatureSize,
  ownerSize: ethereumOwnerSize,
  verify: verifyEthereum,
  nativeAddress: kyveAddress,
};

/** Makes a signer of a 32-byte private key. */
export function createKyveSigner(privateKey: Uint8Array): Signer {
  return { ...createEthereumSigner(privateKey), scheme: kyve };
}

function kyveAddress(owner: Uint8Array): string {
  const compressed = new Uint8Array(33);
  compressed[0] = 2 + ((owner[64] ?? 0) & 1);
  compressed.set(owner.subarray(1, 33), 1);
  return encodeBech32(ripemd160(new Uint8Array(createHash("sha256").update(compressed).digest())));
}

function encodeBech32(bytes: Uint8Array): string {
  const groups = regroup(bytes);
  const letters = [...groups, ...checksum(groups)].map((group) => alphabet[group]);
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

function checksum(groups: readonly number[]): number[] {
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
