/**
 * Signature type 1: RSA-PSS with SHA-256 over a 4096-bit key, as Arweave wallets sign.
 * Source: ANS-104 §2.2.
 * @module
 */
import type { KeyObject } from "node:crypto";
import { Failure } from "../../failures.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { sha256 } from "../../lib/hash.ts";
import { nodeCrypto } from "../../lib/late-modules.ts";
import { signRsaPss, verifyRsaPss } from "../../lib/rsa.ts";
import { invalid, type SignatureScheme, type Signer, type Verdict, valid } from "./scheme.ts";

/** Bytes of a modulus, and so of a signature. */
const modulusSize = 512;

/** Bytes of random salt of published signers. Verification accepts any salt. */
const saltSizeUsual = 32;

const notAKey = "an Arweave key is a private RSA key with 4096 bits and e = 65537";

/** Arweave keys: the owner is the modulus, big-endian; the exponent is always 65537. */
export const arweave: SignatureScheme = {
  type: 1,
  name: "arweave",
  signatureSize: modulusSize,
  ownerSize: modulusSize,
  encodings: "unique",
  verify: verifyArweave,
  nativeAddress: (owner) => encodeBase64url(sha256(owner)),
};

/**
 * Creates a signer from a 4096-bit RSA private key.
 *
 * @param saltSize - Bytes of random salt; 0 makes signatures deterministic.
 * @throws Failure `malformed_input` for any other key.
 */
export function createArweaveSigner(key: JsonWebKey, saltSize: number = saltSizeUsual): Signer {
  const owner = new Uint8Array(Buffer.from(key.n ?? "", "base64url"));
  if (key.kty !== "RSA" || key.e !== "AQAB" || owner.length !== modulusSize || owner[0] === 0) {
    throw new Failure("malformed_input", { reason: notAKey });
  }
  const privateKey = readPrivateKey(key);
  return { scheme: arweave, owner, sign: (message) => signRsaPss(privateKey, message, saltSize) };
}

function readPrivateKey(key: JsonWebKey): KeyObject {
  try {
    return nodeCrypto().createPrivateKey({ key, format: "jwk" });
  } catch (cause) {
    throw new Failure("malformed_input", { reason: notAKey }, cause);
  }
}

function verifyArweave(message: Uint8Array, owner: Uint8Array, signature: Uint8Array): Verdict {
  return verifyRsaPss(owner, message, signature)
    ? valid
    : invalid("the RSA signature does not match the owner and content");
}
