/**
 * ECDSA over secp256k1, by the native addon where it loads, otherwise in pure TypeScript.
 *
 * Bun's own crypto has no secp256k1. The addon is about six times faster than the pure code, with equal results.
 * Signatures are 64 bytes, r and s big-endian; callers pass hashes of 32 bytes. The addon's files are named literally,
 * so that `bun build --compile` embeds them.
 * Source: SEC 1 §4.1 (signing, verifying, recovering), BIP-62 (low S).
 * @module
 */
import { secp256k1 as curve } from "@noble/curves/secp256k1.js";
import { assert } from "./assert.ts";

/** A signature from which the public key can be recovered. `recovery` is 0 to 3. */
export type RecoverableSignature = Readonly<{ signature: Uint8Array; recovery: number }>;

/** The interface of both implementations. Input of a wrong length is invalid, and never throws. */
export type Secp256k1 = Readonly<{
  /** True for a valid signature with a low S. The public key has 33 or 65 bytes. */
  verify(signature: Uint8Array, hash: Uint8Array, publicKey: Uint8Array): boolean;
  /** The 65-byte public key of the signer, or `undefined`. Accepts a high S: see `hasLowS`. */
  recover(signature: Uint8Array, recovery: number, hash: Uint8Array): Uint8Array | undefined;
  /** Signs deterministically (RFC 6979) with a low S. The private key has 32 bytes, in [1, n). */
  sign(hash: Uint8Array, privateKey: Uint8Array): RecoverableSignature;
  /** The 65-byte public key of a private key. */
  publicKeyOf(privateKey: Uint8Array): Uint8Array;
}>;

/** Half of the group's order, big-endian: the largest low S. */
const halfOrder = Uint8Array.fromHex("7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0");

/** The pure TypeScript implementation. */
export const pureSecp256k1: Secp256k1 = {
  verify: (signature, hash, publicKey) =>
    hasLengths(signature, hash) &&
    isPublicKeySize(publicKey) &&
    (attempt(() => curve.verify(signature, hash, publicKey, { prehash: false, lowS: true })) ?? false),

  recover: (signature, recovery, hash) =>
    hasLengths(signature, hash) && isRecovery(recovery)
      ? attempt(() => recoverPurely(signature, recovery, hash))
      : undefined,

  sign: (hash, privateKey) => {
    const whole = curve.sign(hash, privateKey, { prehash: false, lowS: true, format: "recovered" });
    return { signature: whole.slice(1), recovery: whole[0] ?? 0 };
  },

  publicKeyOf: (privateKey) => curve.getPublicKey(privateKey, false),
};

/** The functions of the addon; 0 is success. They do not check the range of `recovery`. */
type Addon = Readonly<{
  ecdsaVerify(signature: Uint8Array, hash: Uint8Array, publicKey: Uint8Array): number;
  ecdsaRecover(output: Uint8Array, signature: Uint8Array, recovery: number, hash: Uint8Array): number;
  ecdsaSign(output: { signature: Uint8Array; recid: number | null }, h: Uint8Array, key: Uint8Array): number;
  publicKeyCreate(output: Uint8Array, privateKey: Uint8Array): number;
}>;

let loaded: Secp256k1 | undefined;

/**
 * Loads the addon at the first call, not with the module: a thread that is terminated while it loads an addon crashes
 * the process (Bun 1.4.5), and idle threads are terminated.
 */
function implementation(): Secp256k1 {
  loaded ??= loadNative() ?? pureSecp256k1;
  return loaded;
}

/** The implementation in use: the fallback is six times slower. */
export function secp256k1Implementation(): "native" | "pure" {
  return implementation() === pureSecp256k1 ? "pure" : "native";
}

export const secp256k1: Secp256k1 = {
  verify: (signature, hash, publicKey) => implementation().verify(signature, hash, publicKey),
  recover: (signature, recovery, hash) => implementation().recover(signature, recovery, hash),
  sign: (hash, privateKey) => implementation().sign(hash, privateKey),
  publicKeyOf: (privateKey) => implementation().publicKeyOf(privateKey),
};

/**
 * Whether S is at most half the order. A check for low S makes a signature unique.
 *
 * @param signature - 64 bytes, r then s.
 */
export function hasLowS(signature: Uint8Array): boolean {
  return Buffer.compare(signature.subarray(32, 64), halfOrder) <= 0;
}

/** Compresses a 65-byte public key to 33 bytes. */
export function compressPoint(publicKey: Uint8Array): Uint8Array {
  const compressed = publicKey.slice(0, 33);
  compressed[0] = 2 + ((publicKey[64] ?? 0) & 1);
  return compressed;
}

function recoverPurely(signature: Uint8Array, recovery: number, hash: Uint8Array): Uint8Array {
  const whole = new Uint8Array(65);
  whole[0] = recovery;
  whole.set(signature, 1);
  return curve.Point.fromBytes(curve.recoverPublicKey(whole, hash, { prehash: false })).toBytes(false);
}

/** Converts the errors of the pure code, for invalid points and scalars, to `undefined`. */
function attempt<Value>(compute: () => Value): Value | undefined {
  try {
    return compute();
  } catch {
    return undefined;
  }
}

function hasLengths(signature: Uint8Array, hash: Uint8Array): boolean {
  return signature.length === 64 && hash.length === 32;
}

function isPublicKeySize(publicKey: Uint8Array): boolean {
  return publicKey.length === 33 || publicKey.length === 65;
}

function isRecovery(recovery: number): boolean {
  return Number.isInteger(recovery) && recovery >= 0 && recovery <= 3;
}

function loadNative(): Secp256k1 | undefined {
  try {
    const addon = construct(requirePrebuilt());
    return addon === undefined ? undefined : overAddon(addon);
  } catch {
    // No prebuilt file for this machine or its C library: the pure code is used.
    return undefined;
  }
}

function requirePrebuilt(): unknown {
  if (process.platform === "darwin" && process.arch === "arm64") {
    return require("secp256k1/prebuilds/darwin-arm64/secp256k1.node");
  }
  if (process.platform === "win32" && process.arch === "x64") {
    return require("secp256k1/prebuilds/win32-x64/secp256k1.node");
  }
  if (process.platform !== "linux" || process.arch !== "x64") return undefined;
  try {
    return require("secp256k1/prebuilds/linux-x64/secp256k1.glibc.node");
  } catch {
    // Linux without glibc.
    return require("secp256k1/prebuilds/linux-x64/secp256k1.musl.node");
  }
}

function construct(module: unknown): Addon | undefined {
  if (typeof module !== "object" || module === null || !("Secp256k1" in module)) return undefined;
  if (typeof module.Secp256k1 !== "function") return undefined;
  const made: unknown = Reflect.construct(module.Secp256k1, []);
  return isAddon(made) ? made : undefined;
}

function isAddon(value: unknown): value is Addon {
  if (typeof value !== "object" || value === null) return false;
  const names = ["ecdsaVerify", "ecdsaRecover", "ecdsaSign", "publicKeyCreate"];
  return names.every((name) => typeof Reflect.get(value, name) === "function");
}

function overAddon(addon: Addon): Secp256k1 {
  return {
    verify: (signature, hash, publicKey) =>
      hasLengths(signature, hash) && isPublicKeySize(publicKey) && addon.ecdsaVerify(signature, hash, publicKey) === 0,

    recover: (signature, recovery, hash) => {
      if (!hasLengths(signature, hash) || !isRecovery(recovery)) return undefined;
      const publicKey = new Uint8Array(65);
      return addon.ecdsaRecover(publicKey, signature, recovery, hash) === 0 ? publicKey : undefined;
    },

    sign: (hash, privateKey) => {
      assert(hash.length === 32 && privateKey.length === 32, "hash and private key have 32 bytes each");
      const output: { signature: Uint8Array; recid: number | null } = {
        signature: new Uint8Array(64),
        recid: null,
      };
      assert(addon.ecdsaSign(output, hash, privateKey) === 0, "the private key is in [1, n)");
      return { signature: output.signature, recovery: output.recid ?? 0 };
    },

    publicKeyOf: (privateKey) => {
      assert(privateKey.length === 32, "a private key has 32 bytes");
      const publicKey = new Uint8Array(65);
      assert(addon.publicKeyCreate(publicKey, privateKey) === 0, "the private key is in [1, n)");
      return publicKey;
    },
  };
}
