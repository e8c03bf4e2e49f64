/**
 * The signature types of data items, by their number on the wire.
 * Source: ANS-104 §2.2; type 101 is KYVE's, and published libraries do not verify it.
 * @module
 */
import { arweave } from "./signers/arweave.ts";
import { ed25519, injectedAptos, multiAptos, solana } from "./signers/ed25519.ts";
import { ethereum, kyve, typedEthereum } from "./signers/ethereum.ts";
import type { SignatureScheme } from "./signers/scheme.ts";

/** Every scheme, by ascending type. */
export const signatureSchemes: readonly SignatureScheme[] = [
  arweave,
  ed25519,
  ethereum,
  solana,
  injectedAptos,
  multiAptos,
  typedEthereum,
  kyve,
];

const byType = new Map<number, SignatureScheme>(signatureSchemes.map((scheme) => [scheme.type, scheme]));

/**
 * Finds the scheme of a signature type.
 *
 * @param type - The number on the wire, 0 to 65535.
 * @returns `undefined` for an unknown type.
 */
export function signatureLayout(type: number): SignatureScheme | undefined {
  return byType.get(type);
}
