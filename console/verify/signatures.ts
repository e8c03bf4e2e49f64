/**
 * Signatures of transactions and data items, checked in a browser: RSA by WebCrypto, the others by @noble/curves, which
 * works in every browser and rejects keys of small order.
 * Source: docs/reference/signatures.md; EIP-191 (version 0x45), EIP-712.
 * @module
 */
import { ed25519 } from "@noble/curves/ed25519.js";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js";
import { type Bytes, equal, hexText, join, toBase64url, utf8 } from "./bytes.ts";

/** Salt lengths of published signers besides the longest possible. */
const rsaSalts = [32, 0];
const hashBytes = 32;

type Check = (message: Bytes, owner: Bytes, signature: Bytes) => boolean | Promise<boolean>;

const checks: ReadonlyMap<number, Check> = new Map<number, Check>([
  [1, verifyRsa],
  [2, verifyEd25519],
  [3, verifyEthereum],
  // Solana wallets sign the message as hexadecimal text.
  [4, (message, owner, signature) => verifyEd25519(utf8(hexText(message)), owner, signature)],
  [7, verifyTypedEthereum],
  [101, verifyEthereum],
]);

/**
 * Whether a signature is the owner's over a message; undefined for a type that is not checked here.
 *
 * @param message - A deep hash, 48 bytes.
 */
export async function isSignedBy(
  type: number,
  owner: Bytes,
  message: Bytes,
  signature: Bytes,
): Promise<boolean | undefined> {
  return await checks.get(type)?.(message, owner, signature);
}

async function verifyRsa(message: Bytes, owner: Bytes, signature: Bytes): Promise<boolean> {
  const jwk = { kty: "RSA", n: toBase64url(owner), e: "AQAB", alg: "PS256" };
  const key = await crypto.subtle.importKey("jwk", jwk, { name: "RSA-PSS", hash: "SHA-256" }, false, ["verify"]);
  for (const saltLength of [...rsaSalts, owner.length - hashBytes - 2])
    if (await crypto.subtle.verify({ name: "RSA-PSS", saltLength }, key, signature, message)) return true;
  return false;
}

function verifyEd25519(message: Bytes, owner: Bytes, signature: Bytes): boolean {
  return owner.length === 32 && signature.length === 64 && ed25519.verify(signature, message, owner, { zip215: false });
}

function verifyEthereum(message: Bytes, owner: Bytes, signature: Bytes): boolean {
  const head = utf8(`\x19Ethereum Signed Message:\n${message.length}`);
  const signer = recoverSigner(keccak256(join([head, message])), signature);
  return signer !== undefined && equal(signer, owner);
}

function verifyTypedEthereum(message: Bytes, owner: Bytes, signature: Bytes): boolean {
  const address = new TextDecoder().decode(owner).toLowerCase();
  if (!/^0x[0-9a-f]{40}$/.test(address)) return false;
  const word = new Uint8Array(32);
  for (let at = 0; at < 20; at += 1) word[12 + at] = Number.parseInt(address.slice(2 + 2 * at, 4 + 2 * at), 16);
  const type = keccak256(utf8("Bundlr(bytes Transaction hash,address address)"));
  const content = keccak256(join([type, keccak256(message), word]));
  const signer = recoverSigner(keccak256(join([Uint8Array.of(0x19, 0x01), typedDomain(), content])), signature);
  return signer !== undefined && `0x${hexText(keccak256(signer.subarray(1)).subarray(12))}` === address;
}

function typedDomain(): Uint8Array {
  return keccak256(
    join(["EIP712Domain(string name,string version)", "Bundlr", "1"].map((text) => keccak256(utf8(text)))),
  );
}

/** The 65-byte key of the signer; undefined for an invalid signature. @param signature - r, s, v. */
function recoverSigner(hash: Uint8Array, signature: Bytes): Uint8Array | undefined {
  const last = signature[64] ?? 0;
  const parity = last >= 27 ? last - 27 : last;
  if (signature.length !== 65 || parity > 1) return undefined;
  const compact = secp256k1.Signature.fromBytes(signature.slice(0, 64), "compact");
  if (compact.hasHighS()) return undefined;
  return compact.addRecoveryBit(parity).recoverPublicKey(hash).toBytes(false);
}
