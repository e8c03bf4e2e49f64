/**
 * Signature types 3, 7 and 101: ECDSA over secp256k1 of an Ethereum personal message (3), of Ethereum typed data (7,
 * with the address as owner), and of a personal message with a KYVE address (101).
 *
 * The last byte of a signature is its parity. Wallets write it as 0 and 1 or as 27 and 28, and both are valid. An item
 * of these types can therefore have two ids, and one can be derived from the other without the key. Charges use the
 * signing id instead (`signing.ts`). Every other last byte and a high S are invalid.
 * Source: docs/reference/signatures.md; EIP-191 (version 0x45), EIP-55 (address), EIP-2 (low S), EIP-712 with the
 * domain and the type of published signers; Cosmos SDK (KYVE address = RIPEMD-160 of SHA-256 of the compressed key).
 * @module
 */
import { ripemd160 } from "@noble/hashes/legacy.js";
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js";
import { assert } from "../../lib/assert.ts";
import { encodeBech32 } from "../../lib/base-encodings.ts";
import { sha256 } from "../../lib/hash.ts";
import { compressPoint, hasLowS, secp256k1 } from "../../lib/secp256k1.ts";
import { invalid, type SignatureScheme, type Signer, type Verdict, valid } from "./scheme.ts";

export const ethereumSignatureSize = 65;
export const ethereumOwnerSize = 65;

const messageSize = 48;
const messageHead = new TextEncoder().encode(`\x19Ethereum Signed Message:\n${messageSize}`);

/** Ethereum keys as owner: 04, x, y. */
export const ethereum: SignatureScheme = {
  type: 3,
  name: "ethereum",
  signatureSize: ethereumSignatureSize,
  ownerSize: ethereumOwnerSize,
  encodings: recoveryByteEncodings,
  verify: verifyEthereum,
  nativeAddress: ethereumAddress,
};

/** Creates a signer from a 32-byte private key. */
export function createEthereumSigner(privateKey: Uint8Array): Signer {
  return {
    scheme: ethereum,
    owner: secp256k1.publicKeyOf(privateKey),
    sign: (message) => signRecoverable(personalMessageHash(message), privateKey),
  };
}

/** Verifies a personal-message signature: recovers its signer and compares it with the owner. */
export function verifyEthereum(message: Uint8Array, owner: Uint8Array, signature: Uint8Array): Verdict {
  if (owner[0] !== 4) return invalid("the owner is not an uncompressed secp256k1 key");
  const signer = recoverSigner(personalMessageHash(message), signature);
  if (typeof signer === "string") return invalid(signer);
  return Buffer.compare(signer, owner) === 0
    ? valid
    : invalid("the Ethereum signature does not match the owner and content");
}

/**
 * Recovers the 65-byte key that signed a hash; a reason when the signature is invalid.
 *
 * @param hash - 32 bytes.
 * @param signature - 65 bytes: r, s, v.
 */
export function recoverSigner(hash: Uint8Array, signature: Uint8Array): Uint8Array | string {
  const parity = parityOf(signature[64] ?? 0);
  if (parity === undefined) return "the last byte of the signature is not 0, 1, 27 or 28";
  if (!hasLowS(signature)) return "the signature has a high S";
  const recovered = secp256k1.recover(signature.subarray(0, 64), parity, hash);
  return recovered ?? "the signature belongs to no key";
}

/** Both encodings of a 65-byte signature with a valid last byte; the canonical one (27 or 28) is first. */
export function recoveryByteEncodings(signature: Uint8Array): readonly [Uint8Array, ...Uint8Array[]] {
  const parity = parityOf(signature[64] ?? 0);
  if (parity === undefined) return [signature];
  return [signature.with(64, 27 + parity), signature.with(64, parity)];
}

/** Signs a hash as r, s and a last byte of 27 or 28, as wallets do. */
export function signRecoverable(hash: Uint8Array, privateKey: Uint8Array): Uint8Array {
  const { signature, recovery } = secp256k1.sign(hash, privateKey);
  const whole = new Uint8Array(ethereumSignatureSize);
  whole.set(signature, 0);
  whole[64] = 27 + recovery;
  return whole;
}

/** The address of a 65-byte key: the last 20 bytes of the hash of x and y, with the capitals of EIP-55. */
export function ethereumAddress(publicKey: Uint8Array): string {
  return spellEthereumAddress(keccak256(publicKey.subarray(1)).subarray(12));
}

/** The 20 bytes of an address as text, with the capitals of EIP-55. */
export function spellEthereumAddress(bytes: Uint8Array): string {
  const address = bytes.toHex();
  const hash = keccak256(new TextEncoder().encode(address)).toHex();
  const spelled = [...address].map((digit, index) =>
    Number.parseInt(hash[index] ?? "0", 16) >= 8 ? digit.toUpperCase() : digit,
  );
  return `0x${spelled.join("")}`;
}

function personalMessageHash(message: Uint8Array): Uint8Array {
  assert(message.length === messageSize, "a deep hash has 48 bytes");
  const whole = new Uint8Array(messageHead.length + messageSize);
  whole.set(messageHead, 0);
  whole.set(message, messageHead.length);
  return keccak256(whole);
}

function parityOf(last: number): 0 | 1 | undefined {
  if (last === 0 || last === 27) return 0;
  if (last === 1 || last === 28) return 1;
  return undefined;
}

const addressPattern = /^0x[0-9a-fA-F]{40}$/;

// Written out: hashed by code that is not compiled yet, they would take four milliseconds of each start.
/** The EIP-712 hash of the domain, of "EIP712Domain(string name,string version)": name "Bundlr", version "1". */
const domainSeparator = Uint8Array.fromHex("783759bfccfc9cc1047174a132a7ac3c2b38cc64a6825c3dab2cdc1d7a9894c8");
/** `keccak256("Bundlr(bytes Transaction hash,address address)")`. */
const messageType = Uint8Array.fromHex("e7b44f79dd1b5d1d629db3e022dd9c4c9f4879a786350d9c9eedaa14937e7c06");

/** Ethereum addresses as owner: ASCII, "0x" and 40 hexadecimal digits of either case. */
export const typedEthereum: SignatureScheme = {
  type: 7,
  name: "typedEthereum",
  signatureSize: ethereumSignatureSize,
  ownerSize: 42,
  encodings: recoveryByteEncodings,
  verify: verifyTypedEthereum,
  nativeAddress: ownerText,
};

function verifyTypedEthereum(message: Uint8Array, owner: Uint8Array, signature: Uint8Array): Verdict {
  const address = ownerText(owner);
  if (!addressPattern.test(address)) return invalid("the owner is not a valid Ethereum address");
  const signer = recoverSigner(typedDataHash(message, address), signature);
  if (typeof signer === "string") return invalid(signer);
  return ethereumAddress(signer).toLowerCase() === address.toLowerCase()
    ? valid
    : invalid("the typed Ethereum signature does not match the owner and content");
}

/** The EIP-712 hash of `{ "Transaction hash": message, address }`. */
export function typedDataHash(message: Uint8Array, address: string): Uint8Array {
  const addressWord = new Uint8Array(32);
  addressWord.set(Uint8Array.fromHex(address.slice(2)), 12);
  const content = hashWords(messageType, keccak256(message), addressWord);

  const whole = new Uint8Array(66);
  whole.set([0x19, 0x01], 0);
  whole.set(domainSeparator, 2);
  whole.set(content, 34);
  return keccak256(whole);
}

function ownerText(owner: Uint8Array): string {
  return Buffer.from(owner.buffer, owner.byteOffset, owner.length).toString("latin1");
}

function hashWords(...words: readonly Uint8Array[]): Uint8Array {
  return keccak256(new Uint8Array(Buffer.concat(words)));
}

/** KYVE keys as owner: 04, x, y. */
export const kyve: SignatureScheme = {
  type: 101,
  name: "kyve",
  signatureSize: ethereumSignatureSize,
  ownerSize: ethereumOwnerSize,
  encodings: recoveryByteEncodings,
  verify: verifyEthereum,
  nativeAddress: kyveAddress,
};

function kyveAddress(owner: Uint8Array): string {
  return encodeBech32("kyve", ripemd160(sha256(compressPoint(owner))));
}
