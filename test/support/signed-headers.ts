/**
 * Headers of signed requests, made with node's crypto and with the curves' own code: by no path of the program.
 * @module
 */
import { createHash, createPrivateKey, sign } from "node:crypto";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js";
import { encodeBase58 } from "../../src/lib/base-encodings.ts";

/** A signer of requests. */
export type RequestWallet = Readonly<{
  address: string;
  /** `x-signature-type`. */
  type: "1" | "3" | "4";
  publicKey: string;
  sign: (message: Uint8Array) => Uint8Array;
}>;

/** A wallet of an RSA key; `salt` as in Node (478), in browsers (32), or 0. */
export function arweaveWallet(key: JsonWebKey, salt = 478): RequestWallet {
  const privateKey = createPrivateKey({ key, format: "jwk" });
  const modulus = Buffer.from(key.n ?? "", "base64url");
  return {
    address: createHash("sha256").update(modulus).digest("base64url"),
    type: "1",
    publicKey: modulus.toString("base64url"),
    sign: (message) => sign("sha256", message, { key: privateKey, padding: 6, saltLength: salt }),
  };
}

/** A wallet of a secp256k1 key of 32 bytes; its public key as the published SDK sends it. */
export function ethereumWallet(privateKey: Uint8Array): RequestWallet {
  const point = secp256k1.getPublicKey(privateKey, false);
  return {
    address: checksummed(keccak256(point.subarray(1)).subarray(12).toHex()),
    type: "3",
    publicKey: Buffer.from(point).toString("base64url"),
    sign: (message) => {
      const head = Buffer.from(`\x19Ethereum Signed Message:\n${message.length}`, "latin1");
      const hash = keccak256(Buffer.concat([head, message]));
      const signed = secp256k1.sign(hash, privateKey, { prehash: false, format: "recovered" });
      return Buffer.concat([signed.subarray(1), Buffer.of(27 + (signed[0] ?? 0))]);
    },
  };
}

/** A wallet of an Ed25519 seed of 32 bytes that signs the hexadecimal text, as the published SDK does. */
export function solanaWallet(seed: Uint8Array): RequestWallet {
  const head = Buffer.from("302e020100300506032b657004220420", "hex");
  const key = createPrivateKey({ key: Buffer.concat([head, seed]), format: "der", type: "pkcs8" });
  const publicKey = Buffer.from(key.export({ format: "jwk" }).x ?? "", "base64url");
  return {
    address: encodeBase58(publicKey),
    type: "4",
    publicKey: publicKey.toString("base64url"),
    sign: (message) => sign(null, Buffer.from(Buffer.from(message).toString("hex"), "latin1"), key),
  };
}

/** The same wallet, signing bytes as they are: what some of its programs do. */
export function rawSolanaWallet(seed: Uint8Array): RequestWallet {
  const hex = solanaWallet(seed);
  const head = Buffer.from("302e020100300506032b657004220420", "hex");
  const key = createPrivateKey({ key: Buffer.concat([head, seed]), format: "der", type: "pkcs8" });
  return { ...hex, sign: (message) => sign(null, message, key) };
}

/**
 * The headers of a signed request.
 *
 * @param message - The signed message; the nonce by default.
 */
export function signedHeaders(
  wallet: RequestWallet,
  nonce: string,
  message: Uint8Array = Buffer.from(nonce),
): Record<string, string> {
  return {
    "x-signature": Buffer.from(wallet.sign(message)).toString("base64url"),
    "x-nonce": nonce,
    "x-public-key": wallet.publicKey,
    "x-signature-type": wallet.type,
  };
}

function checksummed(digits: string): string {
  const hash = keccak256(Buffer.from(digits, "latin1")).toHex();
  const spelled = [...digits].map((digit, at) =>
    Number.parseInt(hash[at] ?? "0", 16) >= 8 ? digit.toUpperCase() : digit,
  );
  return `0x${spelled.join("")}`;
}
