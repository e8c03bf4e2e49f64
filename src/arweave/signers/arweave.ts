/**
 * Signature type 1: RSA-PSS with SHA-256 over a 4096-bit key, as Arweave wallets sign.
 * Source: ANS-104 §2.2; RFC 8017 §8.1 (RSASSA-PSS); RFC 3279 §2.3.1 (the key's DER form).
 * @module
 */
import { constants, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { Failure } from "../../failures.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { sha256 } from "../../lib/hash.ts";
import { invalid, type SignatureScheme, type Signer, type Verdict, valid } from "./scheme.ts";

const modulusSize = 512;

/** Everything of a SubjectPublicKeyInfo before and after the modulus; the exponent is always 65537. */
const derTail = Uint8Array.fromHex("0203010001");
const derHeadPositive = Uint8Array.fromHex(
  "30820222300d06092a864886f70d01010105000382020f003082020a0282020100",
);
/** A modulus whose top bit is clear needs no zero byte before it in DER. */
const derHeadBare = Uint8Array.fromHex("30820221300d06092a864886f70d01010105000382020e003082020902820200");

const anySalt = constants.RSA_PSS_SALTLEN_AUTO;

/** The keys checked last, one on each shelf (`shelfOf`): what a bundle of many owners needs, in half a MiB. */
const heldKeyCount = 128;
const heldKeys: ({ readonly modulus: Uint8Array; readonly key: KeyObject } | undefined)[] = [];

/** Arweave's own way of signing. Any salt length is accepted: wallets in the field use 0, 32 and 478. */
export const arweave: SignatureScheme = {
  type: 1,
  name: "arweave",
  signatureSize: 512,
  ownerSize: modulusSize,
  verify: verifyRsa,
  nativeAddress: (owner) => encodeBase64url(sha256(owner)),
};

/**
 * Makes a signer of a 4096-bit RSA private key.
 *
 * @throws Failure `malformed_input` when the key is not one.
 */
export function createArweaveSigner(key: JsonWebKey): Signer {
  const owner = new Uint8Array(Buffer.from(key.n ?? "", "base64url"));
  if (key.kty !== "RSA" || key.e !== "AQAB" || owner.length !== modulusSize) {
    throw new Failure("malformed_input", { reason: "an Arweave key is RSA with 4096 bits and e = 65537" });
  }
  const privateKey = createPrivateKey({ key, format: "jwk" });
  return {
    scheme: arweave,
    owner,
    sign: (message) =>
      new Uint8Array(
        sign("sha256", message, {
          key: privateKey,
          padding: constants.RSA_PKCS1_PSS_PADDING,
          saltLength: 32,
        }),
      ),
  };
}

function verifyRsa(message: Uint8Array, owner: Uint8Array, signature: Uint8Array): Verdict {
  if (owner[0] === 0) return invalid("the RSA modulus is shorter than 4096 bits");
  try {
    const key = { key: publicKeyOf(owner), padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: anySalt };
    return verify("sha256", message, key, signature)
      ? valid
      : invalid("the RSA signature does not match the owner and content");
  } catch {
    // The crypto library refuses numbers that cannot be a modulus, such as even ones.
    return invalid("the owner is no usable RSA modulus");
  }
}

/** The key of a modulus. Owners repeat within a bundle, and a key that is at hand saves a tenth of a check. */
function publicKeyOf(modulus: Uint8Array): KeyObject {
  const shelf = shelfOf(modulus);
  const held = heldKeys[shelf];
  if (held !== undefined && Buffer.compare(held.modulus, modulus) === 0) return held.key;
  const key = createPublicKey({ key: publicKeyDer(modulus), format: "der", type: "spki" });
  heldKeys[shelf] = { modulus: modulus.slice(), key };
  return key;
}

/** Where a modulus's key is held: a modulus has no order in its middle, so any bits of it spread keys well. */
function shelfOf(modulus: Uint8Array): number {
  return (modulus[256] ?? 0) % heldKeyCount;
}

function publicKeyDer(modulus: Uint8Array): Buffer {
  const head = (modulus[0] ?? 0) >= 0x80 ? derHeadPositive : derHeadBare;
  return Buffer.concat([head, modulus, derTail]);
}
