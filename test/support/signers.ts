/**
 * One signer of every signature type, with throw-away keys.
 * @module
 */
import { createArweaveSigner } from "../../src/arweave/signers/arweave.ts";
import {
  bitmapOffset,
  createEd25519Signer,
  createSolanaSigner,
  ed25519KeyPair,
  ed25519KeySize,
  ed25519SignatureSize,
  injectedAptos,
  multiAptos,
  slotCount,
  thresholdOffset,
  walletText,
} from "../../src/arweave/signers/ed25519.ts";
import {
  createEthereumSigner,
  ethereumAddress,
  kyve,
  signRecoverable,
  typedDataHash,
  typedEthereum,
} from "../../src/arweave/signers/ethereum.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import { assert } from "../../src/lib/assert.ts";
import { secp256k1 } from "../../src/lib/secp256k1.ts";
import { rsaKeys } from "./rsa-keys.ts";

/** 32 bytes of one value: a private key or seed for every scheme but RSA. */
export function testKey(value: number): Uint8Array {
  return new Uint8Array(32).fill(value);
}

/** The RSA key of all tests, 4,096 bits. */
export const rsaKey: JsonWebKey = rsaKeys["4096"];

/** A signer of each type, ascending by type. */
export const signers: readonly Signer[] = [
  createArweaveSigner(rsaKey),
  createEd25519Signer(testKey(2)),
  createEthereumSigner(testKey(3)),
  createSolanaSigner(testKey(4)),
  createInjectedAptosSigner(testKey(5)),
  createMultiAptosSigner([testKey(6), testKey(7), testKey(8)], 2, [0, 2]),
  createTypedEthereumSigner(testKey(9)),
  createKyveSigner(testKey(10)),
];

/** Makes a signer of a 32-byte seed, which signs as a browser wallet does. */
export function createInjectedAptosSigner(seed: Uint8Array): Signer {
  const { publicKey, sign } = ed25519KeyPair(seed);
  return { scheme: injectedAptos, owner: publicKey, sign: (message) => sign(walletText(message)) };
}

/**
 * Makes a signer of several seeds.
 *
 * @param seeds - 1 to 32 seeds of 32 bytes, in the order of their slots.
 * @param threshold - How many must sign, 1 to the number of seeds.
 * @param signing - The slots that do sign; all by default.
 */
export function createMultiAptosSigner(
  seeds: readonly Uint8Array[],
  threshold: number,
  signing: readonly number[] = seeds.map((_, slot) => slot),
): Signer {
  assert(seeds.length >= 1 && seeds.length <= slotCount, "there are 1 to 32 keys");
  const pairs = seeds.map(ed25519KeyPair);
  const owner = new Uint8Array(multiAptos.ownerSize);
  pairs.forEach(({ publicKey }, slot) => {
    owner.set(publicKey, slot * ed25519KeySize);
  });
  owner[thresholdOffset] = threshold;

  const sign = (message: Uint8Array) => {
    const signature = new Uint8Array(multiAptos.signatureSize);
    pairs.forEach((pair, slot) => {
      if (!signing.includes(slot)) return;
      signature.set(pair.sign(message), slot * ed25519SignatureSize);
      const byte = bitmapOffset + (slot >> 3);
      signature[byte] = (signature[byte] ?? 0) | (0x80 >> (slot & 7));
    });
    return signature;
  };
  return { scheme: multiAptos, owner, sign };
}

/** Makes a signer of a 32-byte private key. */
export function createKyveSigner(privateKey: Uint8Array): Signer {
  return { ...createEthereumSigner(privateKey), scheme: kyve };
}

/** Makes a signer of a 32-byte private key. */
export function createTypedEthereumSigner(privateKey: Uint8Array): Signer {
  const address = ethereumAddress(secp256k1.publicKeyOf(privateKey)).toLowerCase();
  return {
    scheme: typedEthereum,
    owner: new TextEncoder().encode(address),
    sign: (message) => signRecoverable(typedDataHash(message, address), privateKey),
  };
}
