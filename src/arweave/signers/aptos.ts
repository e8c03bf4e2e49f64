/**
 * Signature types 5 and 6: messages of Aptos wallets, signed by one key and by up to 32.
 *
 * A type 6 owner is 32 key slots and a threshold; its signature is 32 slots and a bitmap of those in use, the
 * first slot in the highest bit of the first byte. Fewer signatures than the threshold are invalid.
 * Source: ANS-104 §2.2; Aptos multi-Ed25519 (threshold rule).
 * @module
 */
import { encodeBase64url } from "../../lib/base64url.ts";
import { sha256 } from "../../lib/hash.ts";
import { ed25519KeySize, ed25519SignatureSize, verifyEd25519 } from "./ed25519.ts";
import { invalid, type SignatureScheme, type Verdict, valid } from "./scheme.ts";

export const slotCount = 32;
const bitmapSize = 4;
export const thresholdOffset = slotCount * ed25519KeySize;
export const bitmapOffset = slotCount * ed25519SignatureSize;

/** An Aptos wallet's signed message, one key. */
export const injectedAptos: SignatureScheme = {
  type: 5,
  name: "injectedAptos",
  signatureSize: ed25519SignatureSize,
  ownerSize: ed25519KeySize,
  encodings: "unique",
  verify: (message, owner, signature) => verifyEd25519(walletText(message), owner, signature),
  nativeAddress: hashedOwner,
};

/** Several Aptos keys; at least a threshold of them must sign the bare message. */
export const multiAptos: SignatureScheme = {
  type: 6,
  name: "multiAptos",
  signatureSize: bitmapOffset + bitmapSize,
  ownerSize: thresholdOffset + 1,
  // Signatures above the threshold can be removed.
  encodings: "by-message",
  verify: verifyMultiAptos,
  nativeAddress: hashedOwner,
};

function verifyMultiAptos(message: Uint8Array, owner: Uint8Array, signature: Uint8Array): Verdict {
  const threshold = owner[thresholdOffset] ?? 0;
  if (threshold < 1 || threshold > slotCount) return invalid("the threshold is not 1 to 32");

  let signed = 0;
  for (let slot = 0; slot < slotCount; slot += 1) {
    const part = signature.subarray(slot * ed25519SignatureSize, (slot + 1) * ed25519SignatureSize);
    if (!isSlotUsed(signature, slot)) {
      // Unchecked bytes would give one item many ids.
      if (part.some((byte) => byte !== 0)) return invalid(`signature slot ${slot} is unused but not zero`);
      continue;
    }
    const key = owner.subarray(slot * ed25519KeySize, (slot + 1) * ed25519KeySize);
    const verdict = verifyEd25519(message, key, part);
    if (!verdict.valid) return invalid(`slot ${slot}: ${verdict.reason}`);
    signed += 1;
  }
  return signed >= threshold ? valid : invalid(`${signed} of ${threshold} signatures that are needed`);
}

function isSlotUsed(signature: Uint8Array, slot: number): boolean {
  return ((signature[bitmapOffset + (slot >> 3)] ?? 0) & (0x80 >> (slot & 7))) !== 0;
}

export function walletText(message: Uint8Array): Uint8Array {
  return Buffer.from(`APTOS\nmessage: ${message.toHex()}\nnonce: bundlr`, "latin1");
}

function hashedOwner(owner: Uint8Array): string {
  return encodeBase64url(sha256(owner));
}
