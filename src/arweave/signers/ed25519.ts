/**
 * Signature type 2: Ed25519 over the bare message; also the base of types 4, 5 and 6.
 * Source: RFC 8032 §5.1.7; "Taming the many EdDSAs" (Chalkias and others, 2020) for rejected signatures.
 * @module
 */
import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { assert } from "../../lib/assert.ts";
import { encodeBase58 } from "../../lib/base-encodings.ts";
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
