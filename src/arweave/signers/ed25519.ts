/**
 * Signature types 2, 4, 5 and 6: Ed25519 over the bare message (2), over its lower-case hexadecimal as Solana wallets
 * show it (4), and over messages of Aptos wallets, signed by one key (5) or by up to 32 (6).
 *
 * A type 6 owner is 32 key slots and a threshold; its signature is 32 slots and a bitmap of those in use, the
 * first slot in the highest bit of the first byte. Fewer signatures than the threshold are invalid.
 * Source: ANS-104 §2.2; RFC 8032 §5.1.7; "Taming the many EdDSAs" (Chalkias and others, 2020) for rejected signatures;
 * Aptos multi-Ed25519 (threshold rule).
 * @module
 */
import { assert } from "../../lib/assert.ts";
import { encodeBase58 } from "../../lib/base-encodings.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { sha256 } from "../../lib/hash.ts";
import { nodeCrypto } from "../../lib/late-modules.ts";
import { invalid, type SignatureScheme, type Signer, type Verdict, valid } from "./scheme.ts";

export const ed25519KeySize = 32;
export const ed25519SignatureSize = 64;

const publicKeyHead = Uint8Array.fromHex("302a300506032b6570032100");
const privateKeyHead = Uint8Array.fromHex("302e020100300506032b657004220420");

/** The group's order, little-endian: an S of this or more is a second encoding of a signature. */
const order = Uint8Array.fromHex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");

/**
 * The y coordinates of points of small order, little-endian, sign bit cleared, also unreduced ones. Signatures for
 * such keys can be forged. Source: libsodium, ge25519_has_small_order.
 */
const smallOrderPoints = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
].map((hex) => Uint8Array.fromHex(hex));

/** Plain Ed25519, for server-side signers of several chains. */
export const ed25519: SignatureScheme = {
  type: 2,
  name: "ed25519",
  signatureSize: ed25519SignatureSize,
  ownerSize: ed25519KeySize,
  encodings: "unique",
  verify: verifyEd25519,
  nativeAddress: encodeBase58,
};

/** Creates a signer from a 32-byte seed. */
export function createEd25519Signer(seed: Uint8Array): Signer {
  const { publicKey, sign } = ed25519KeyPair(seed);
  return { scheme: ed25519, owner: publicKey, sign };
}

/**
 * Verifies an Ed25519 signature over any message. S must be reduced; keys and commitments of small order are
 * rejected, because such a key makes every signature valid.
 *
 * @param publicKey - 32 bytes.
 * @param signature - 64 bytes.
 */
export function verifyEd25519(message: Uint8Array, publicKey: Uint8Array, signature: Uint8Array): Verdict {
  if (hasSmallOrder(publicKey, 0)) return invalid("the Ed25519 key has small order");
  if (hasSmallOrder(signature, 0)) return invalid("the Ed25519 signature has a commitment of small order");
  if (!isReduced(signature)) return invalid("the Ed25519 signature has S beyond the order");
  try {
    const der = Buffer.allocUnsafe(publicKeyHead.length + ed25519KeySize);
    der.set(publicKeyHead, 0);
    der.set(publicKey, publicKeyHead.length);
    const { createPublicKey, verify } = nodeCrypto();
    const key = createPublicKey({ key: der, format: "der", type: "spki" });
    return verify(null, message, key, signature)
      ? valid
      : invalid("the Ed25519 signature does not match the owner and content");
  } catch {
    // The crypto library throws for bytes that are not a point of the curve.
    return invalid("the owner is not a valid Ed25519 key");
  }
}

/** The public key of a 32-byte seed, and its function to sign. */
export function ed25519KeyPair(
  seed: Uint8Array,
): Readonly<{ publicKey: Uint8Array; sign(message: Uint8Array): Uint8Array }> {
  assert(seed.length === ed25519KeySize, "an Ed25519 seed has 32 bytes");
  const der = Buffer.concat([privateKeyHead, seed]);
  const { createPrivateKey, createPublicKey, sign } = nodeCrypto();
  const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const spki = createPublicKey(privateKey).export({ format: "der", type: "spki" });
  return {
    publicKey: new Uint8Array(spki.subarray(publicKeyHead.length)),
    sign: (message) => new Uint8Array(sign(null, message, privateKey)),
  };
}

function isReduced(signature: Uint8Array): boolean {
  for (let index = 31; index >= 0; index -= 1) {
    const digit = signature[32 + index] ?? 0;
    const limit = order[index] ?? 0;
    if (digit !== limit) return digit < limit;
  }
  return false;
}

function hasSmallOrder(bytes: Uint8Array, start: number): boolean {
  return smallOrderPoints.some((point) => isPoint(bytes, start, point));
}

function isPoint(bytes: Uint8Array, start: number, point: Uint8Array): boolean {
  for (let index = 0; index < 31; index += 1) {
    if (bytes[start + index] !== point[index]) return false;
  }
  return ((bytes[start + 31] ?? 0) & 0x7f) === point[31];
}

/** Solana keys as owner: 32 bytes. */
export const solana: SignatureScheme = {
  type: 4,
  name: "solana",
  signatureSize: ed25519SignatureSize,
  ownerSize: ed25519KeySize,
  encodings: "unique",
  verify: (message, owner, signature) => verifyEd25519(hexText(message), owner, signature),
  nativeAddress: encodeBase58,
};

/** Creates a signer from a 32-byte seed. */
export function createSolanaSigner(seed: Uint8Array): Signer {
  const { publicKey, sign } = ed25519KeyPair(seed);
  return { scheme: solana, owner: publicKey, sign: (message) => sign(hexText(message)) };
}

function hexText(message: Uint8Array): Uint8Array {
  return Buffer.from(message.toHex(), "latin1");
}

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
