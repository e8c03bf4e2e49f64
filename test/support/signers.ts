/**
 * One signer of every signature type, with throw-away keys.
 * @module
 */
import { createInjectedAptosSigner, createMultiAptosSigner } from "../../src/arweave/signers/aptos.ts";
import { createArweaveSigner } from "../../src/arweave/signers/arweave.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import { createEthereumSigner } from "../../src/arweave/signers/ethereum.ts";
import { createKyveSigner } from "../../src/arweave/signers/kyve.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import { createSolanaSigner } from "../../src/arweave/signers/solana.ts";
import { createTypedEthereumSigner } from "../../src/arweave/signers/typed-ethereum.ts";
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
