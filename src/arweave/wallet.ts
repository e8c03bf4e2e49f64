/**
 * Wallets: keys from files (JWK) that sign transactions and blocks; RSA of any size or ECDSA over secp256k1.
 * Source: RFC 7517; RFC 7518 §6; docs/reference/formats.md#identifiers.
 * @module
 */
import type { KeyObject } from "node:crypto";
import { Failure } from "../failures.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import { concatBytes } from "../lib/bytes.ts";
import { sha256 } from "../lib/hash.ts";
import type { JsonObject } from "../lib/json.ts";
import { nodeCrypto } from "../lib/late-modules.ts";
import { signRsaPss } from "../lib/rsa.ts";
import { compressPoint, secp256k1 } from "../lib/secp256k1.ts";
import type { Address } from "./id.ts";
import { transactionOwnerAddress } from "./transaction.ts";
import { malformed } from "./wire.ts";

/** A key that signs transactions and blocks. */
export type Wallet = Readonly<{
  type: "rsa" | "ecdsa";
  /** The public key: an RSA modulus, or the 33 bytes of a compressed point. */
  owner: Uint8Array;
  address: Address;
  /** Signs a message: PSS with SHA-256 and 32 bytes of salt, or ECDSA with its recovery number. */
  sign(message: Uint8Array): Uint8Array;
}>;

/** Bytes of random salt in an RSA signature. */
export type SaltSize = 0 | 32;

const privateKeySize = 32;

/**
 * Reads a key file.
 *
 * @param jwk - Its JSON. As in the reference node, every key without `"kty":"EC"` is read as RSA.
 * @param saltSize - 0 makes RSA signatures deterministic, for chains made from a seed. ECDSA always is.
 * @throws Failure `malformed_input` without a usable private key.
 */
export function readWallet(jwk: JsonObject, saltSize: SaltSize = 32): Wallet {
  return jwk["kty"] === "EC" ? readEcdsa(jwk) : readRsa(jwk, saltSize);
}

function readRsa(jwk: JsonObject, saltSize: SaltSize): Wallet {
  const owner = keyPart(jwk, "n");
  const key = importRsa(jwk);
  return {
    type: "rsa",
    owner,
    address: transactionOwnerAddress(owner),
    sign: (message) => signRsaPss(key, message, saltSize),
  };
}

function readEcdsa(jwk: JsonObject): Wallet {
  if (jwk["crv"] !== "secp256k1") throw malformed("the key's curve is not secp256k1");
  const privateKey = keyPart(jwk, "d");
  if (privateKey.length !== privateKeySize) throw malformed("an ECDSA key has 32 bytes");
  return ecdsaWallet(privateKey);
}

/**
 * A wallet of an ECDSA private key.
 *
 * @param privateKey - 32 bytes, a number from 1 to the group's order − 1.
 */
export function ecdsaWallet(privateKey: Uint8Array): Wallet {
  const owner = compressPoint(secp256k1.publicKeyOf(privateKey));
  return {
    type: "ecdsa",
    owner,
    address: transactionOwnerAddress(owner),
    sign(message) {
      const { signature, recovery } = secp256k1.sign(sha256(message), privateKey);
      return concatBytes([signature, Uint8Array.of(recovery)]);
    },
  };
}

function importRsa(jwk: JsonObject): KeyObject {
  const parts = ["n", "d", "p", "q", "dp", "dq", "qi"].map((name) => [name, jwk[name]]);
  try {
    return nodeCrypto().createPrivateKey({
      key: { ...Object.fromEntries(parts), kty: "RSA", e: "AQAB" },
      format: "jwk",
    });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Failure("malformed_input", { reason: `the RSA key cannot be used: ${why}` }, cause);
  }
}

function keyPart(jwk: JsonObject, name: string): Uint8Array {
  const text = jwk[name];
  const bytes = typeof text === "string" ? decodeBase64url(text) : undefined;
  if (bytes === undefined || bytes.length === 0) throw malformed(`the key's part ${name} is missing`);
  return bytes;
}
