/**
 * Signature type 4: Ed25519 over the message in lower-case hexadecimal, as Solana wallets show it.
 * @module
 */
import { encodeBase58 } from "../../lib/base-encodings.ts";
import { ed25519KeyPair, ed25519KeySize, ed25519SignatureSize, verifyEd25519 } from "./ed25519.ts";
import type { SignatureScheme, Signer } from "./scheme.ts";

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
