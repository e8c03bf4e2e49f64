/**
 * Signature type 7: ECDSA over secp256k1 of Ethereum typed data; the owner is the address as 42 characters.
 * Source: EIP-712. The domain and the type are those of published signers.
 * @module
 */
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js";
import { ethereumAddress, ethereumSignatureSize, recoverSigner, recoveryByteEncodings } from "./ethereum.ts";
import { invalid, type SignatureScheme, type Verdict, valid } from "./scheme.ts";

const addressPattern = /^0x[0-9a-fA-F]{40}$/;

const domainSeparator = hashWords(
  hashText("EIP712Domain(string name,string version)"),
  hashText("Bundlr"),
  hashText("1"),
);
const messageType = hashText("Bundlr(bytes Transaction hash,address address)");

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

function hashText(text: string): Uint8Array {
  return keccak256(new TextEncoder().encode(text));
}

function hashWords(...words: readonly Uint8Array[]): Uint8Array {
  return keccak256(new Uint8Array(Buffer.concat(words)));
}
