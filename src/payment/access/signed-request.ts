/**
 * The signer of a request: three signature headers, verified against the possible signed messages.
 *
 * A signature over the nonce alone does not cover the request, so an observer can repeat it. Every route that
 * discloses, issues or moves something must also claim the nonce and the signed message (wallet-access.ts).
 * Source: docs/reference/payment.md#signed-requests; EIP-191 (version 0x45).
 * @module
 */
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js";
import { addressOf } from "../../arweave/id.ts";
import { verifyEd25519 } from "../../arweave/signers/ed25519.ts";
import { ethereumAddress, recoverSigner } from "../../arweave/signers/ethereum.ts";
import { Failure } from "../../failures.ts";
import { assert } from "../../lib/assert.ts";
import { encodeBase58 } from "../../lib/base-encodings.ts";
import { decodeBase64url } from "../../lib/base64url.ts";
import { concatBytes, equalBytes, utf8Bytes } from "../../lib/bytes.ts";
import { sha256 } from "../../lib/hash.ts";
import { verifyRsaPss } from "../../lib/rsa.ts";
import { compressPoint } from "../../lib/secp256k1.ts";
import { type AddressType, readAddress, type UserAddress } from "../addresses.ts";

/** The parts of a request that a signature may cover. */
export type SignedRequest = Readonly<{
  headers: Headers;
  /** As received. */
  method: string;
  /** As received, from the first slash, with the query. */
  pathWithQuery: string;
  /** The received part of the body; absent for a method without a body. */
  body?: Uint8Array | undefined;
}>;

export type RequestSigner = Readonly<{
  address: UserAddress;
  nonce: string;
  /** The signed message: the same for every request that one signature fits, wherever its nonce begins. */
  message: Uint8Array;
}>;

/** Characters of a nonce; published clients send 32 or 36. */
export const nonceLengthMax = 256;

/** The longest valid headers: 4,096 bits of base64url. */
const encodedLengthMax = 683;

/** A signature type: the format of its key, and its verification. */
type SignatureType = Readonly<{
  addressType: AddressType;
  signatureSize: number;
  readKey: (text: string) => Uint8Array | undefined;
  /** The signer; `undefined` when the signature is not valid for the message. */
  signerOf: (message: Uint8Array, key: Uint8Array, signature: Uint8Array) => Signed | undefined;
}>;

/** A signer's address and what it signed. */
type Signed = Readonly<{ address: string; message: Uint8Array }>;

/** A data item's deep hash in hexadecimal, which Solana keys sign: its signature is public. */
const deepHashDigits = 96;

const signatureTypes: ReadonlyMap<string, SignatureType> = new Map([
  ["1", { addressType: "native", signatureSize: 512, readKey: keyOfSize(512), signerOf: arweaveSigner }],
  ["3", { addressType: "ethereum", signatureSize: 65, readKey: readPoint, signerOf: ethereumSigner }],
  ["4", { addressType: "solana", signatureSize: 64, readKey: keyOfSize(32), signerOf: solanaSigner }],
]);

/** The type of a request without x-signature-type. */
const typeDefault = "1";

/** Whether a request has any signature header, valid or not. */
export function isSigned(headers: Headers): boolean {
  return ["x-signature", "x-nonce", "x-public-key"].some((name) => headers.has(name));
}

/**
 * Verifies the signature of a request. Costs at most six checks of an RSA signature, 0.4 ms.
 *
 * @throws Failure `invalid_signature`, whose context `reason` is for the log.
 */
export function readSigner(request: SignedRequest): RequestSigner {
  const { headers } = request;
  const type = signatureTypes.get(headers.get("x-signature-type") ?? typeDefault);
  if (type === undefined) throw invalid("invalid x-signature-type: expected 1, 3 or 4");
  const nonce = headers.get("x-nonce") ?? "";
  if (nonce === "" || nonce.length > nonceLengthMax) throw invalid("invalid x-nonce: expected 1 to 256 characters");
  const signature = decode(headers.get("x-signature") ?? "");
  if (signature?.length !== type.signatureSize) throw invalid("invalid x-signature: the size differs from its type's");
  const key = type.readKey(headers.get("x-public-key") ?? "");
  if (key === undefined) throw invalid("invalid x-public-key: not a key of the signature type");

  for (const message of messagesOf(request, nonce)) {
    const signed = type.signerOf(message, key, signature);
    if (signed === undefined) continue;
    const address = readAddress(signed.address, type.addressType)?.address;
    assert(address !== undefined, "a signer has an address");
    return { address, nonce, message: signed.message };
  }
  throw invalid("the signature is not the key's over any of the messages");
}

/** The possible signed messages, in the order of the attempts. */
function messagesOf({ method, pathWithQuery, body }: SignedRequest, nonce: string): Uint8Array[] {
  return [
    utf8Bytes(nonce),
    ...(body === undefined ? [] : [concatBytes([body, utf8Bytes(nonce)])]),
    utf8Bytes(`${method} ${pathWithQuery}${nonce}`),
  ];
}

/** RSA-PSS with any salt, over the message or, as wallets in browsers do, over its SHA-256. */
function arweaveSigner(message: Uint8Array, key: Uint8Array, signature: Uint8Array): Signed | undefined {
  const isKeys = [message, sha256(message)].some((signed) => verifyRsaPss(key, signed, signature));
  return isKeys ? { address: addressOf(key), message } : undefined;
}

/** A personal message of an Ethereum wallet. */
function ethereumSigner(message: Uint8Array, key: Uint8Array, signature: Uint8Array): Signed | undefined {
  const head = utf8Bytes(`\x19Ethereum Signed Message:\n${message.length}`);
  const signer = recoverSigner(keccak256(concatBytes([head, message])), signature);
  if (typeof signer === "string") return undefined;
  return equalBytes(key.length === 33 ? compressPoint(signer) : signer, key)
    ? { address: ethereumAddress(signer), message }
    : undefined;
}

/**
 * Ed25519 over the message in hexadecimal, as wallets show it, or over the message itself.
 *
 * A message that is hexadecimal text equals the message whose bytes it encodes: one signature fits both.
 */
function solanaSigner(message: Uint8Array, key: Uint8Array, signature: Uint8Array): Signed | undefined {
  const isKeys = (signed: Uint8Array) => verifyEd25519(signed, key, signature).valid;
  const address = encodeBase58(key);
  if (isKeys(utf8Bytes(message.toHex()))) return { address, message };
  const digits = Buffer.from(message).toString("latin1");
  if (!/^(?:[0-9a-f]{2})+$/.test(digits)) return isKeys(message) ? { address, message } : undefined;
  if (digits.length === deepHashDigits) return undefined;
  return isKeys(message) ? { address, message: Uint8Array.fromHex(digits) } : undefined;
}

function keyOfSize(size: number): (text: string) => Uint8Array | undefined {
  return (text) => {
    const key = decode(text);
    return key?.length === size ? key : undefined;
  };
}

/** A point of secp256k1, 33 or 65 bytes: in hexadecimal after 0x, or in base64url. */
function readPoint(text: string): Uint8Array | undefined {
  const key = /^0x(?:[0-9a-fA-F]{66}|[0-9a-fA-F]{130})$/.test(text) ? Uint8Array.fromHex(text.slice(2)) : decode(text);
  if (key === undefined) return undefined;
  const [first] = key;
  const isPoint = key.length === 65 ? first === 4 : key.length === 33 && (first === 2 || first === 3);
  return isPoint ? key : undefined;
}

function decode(text: string): Uint8Array | undefined {
  return text.length > encodedLengthMax ? undefined : decodeBase64url(text);
}

function invalid(reason: string): Failure {
  return new Failure("invalid_signature", { reason });
}
