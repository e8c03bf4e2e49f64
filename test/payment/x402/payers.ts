/**
 * Payers of x402: keys, authorizations and their signatures, and the headers that clients make of them.
 *
 * Written from EIP-712 and EIP-3009 without the program's own code, so that the two check each other.
 * @module
 */
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { keccak_256 as keccak256 } from "@noble/hashes/sha3.js";
import { readAddress, type UserAddress } from "../../../src/payment/addresses.ts";
import type { Authorization } from "../../../src/payment/evm/authorization.ts";

/** What a coin's signatures are bound to. */
export type Domain = Readonly<{ name: string; version: string; chainId: bigint; contract: string }>;

/** A payer with a key. */
export type Payer = Readonly<{ key: Uint8Array; address: UserAddress }>;

/** A payer of its own for each number. */
export function payer(number: number): Payer {
  const key = keccak256(new TextEncoder().encode(`payer ${number}`));
  const point = secp256k1.getPublicKey(key, false).subarray(1);
  return { key, address: evmAddress(`0x${keccak256(point).subarray(12).toHex()}`) };
}

/** An address in its canonical text. */
export function evmAddress(text: string): UserAddress {
  const read = readAddress(text.toLowerCase(), "ethereum");
  if (read === undefined) throw new Error(`${text} is not a valid address`);
  return read.address;
}

/** Where payments go. */
export const payTo = evmAddress(`0x${"c0".repeat(20)}`);

/** A nonce of its own for each number. */
export function nonce(number: number): string {
  return `0x${keccak256(new TextEncoder().encode(`nonce ${number}`)).toHex()}`;
}

const textHash = (text: string) => keccak256(new TextEncoder().encode(text)).toHex();
const word = (value: bigint | string) =>
  (typeof value === "bigint" ? value.toString(16) : value.replace(/^0x/, "").toLowerCase()).padStart(64, "0");

/** The hash that a payer signs. */
export function digestOf(domain: Domain, authorization: Authorization): Uint8Array {
  const head = textHash("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
  const separator = keccak256(
    Uint8Array.fromHex(
      head + textHash(domain.name) + textHash(domain.version) + word(domain.chainId) + word(domain.contract),
    ),
  );
  const { from, to, value, validAfter, validBefore, nonce: used } = authorization;
  const type = textHash(
    "TransferWithAuthorization(address from,address to,uint256 value," +
      "uint256 validAfter,uint256 validBefore,bytes32 nonce)",
  );
  const content = keccak256(
    Uint8Array.fromHex(type + [from, to, value, validAfter, validBefore, used].map(word).join("")),
  );
  return keccak256(Uint8Array.fromHex(`1901${separator.toHex()}${content.toHex()}`));
}

/** Signs an authorization: r, s, and 27 or 28. */
export function sign(domain: Domain, authorization: Authorization, key: Uint8Array): Uint8Array {
  const whole = secp256k1.sign(digestOf(domain, authorization), key, {
    prehash: false,
    lowS: true,
    format: "recovered",
  });
  return Uint8Array.from([...whole.slice(1), 27 + (whole[0] ?? 0)]);
}

/** Whose signature it is, as a contract finds out; undefined for an unknown id. */
export function signerOf(domain: Domain, authorization: Authorization, signature: Uint8Array): string | undefined {
  const [last = 0] = signature.slice(64);
  if (signature.length !== 65 || (last !== 27 && last !== 28)) return undefined;
  const recovered = Uint8Array.from([last - 27, ...signature.slice(0, 64)]);
  try {
    const point = secp256k1.recoverPublicKey(recovered, digestOf(domain, authorization), { prehash: false });
    const whole = secp256k1.Point.fromBytes(point).toBytes(false).subarray(1);
    return evmAddress(`0x${keccak256(whole).subarray(12).toHex()}`);
  } catch {
    return undefined; // a point that is invalid
  }
}

/** What a client of version 1 writes. */
export type PayloadV1 = Readonly<{
  x402Version: number;
  scheme: string;
  network: string;
  payload: Readonly<{ signature: string; authorization: Readonly<Record<string, unknown>> }>;
}>;

/** An authorization as it is in a payload. */
export function authorizationRecord(authorization: Authorization): Readonly<Record<string, string>> {
  const { from, to, value, validAfter, validBefore, nonce: used } = authorization;
  return {
    from,
    to,
    value: value.toString(),
    validAfter: validAfter.toString(),
    validBefore: validBefore.toString(),
    nonce: used,
  };
}

/** Base64 of JSON, as headers carry it. */
export function headerOf(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64");
}

/** Reads a header back. */
export function readHeader(text: string | null): Record<string, unknown> {
  return JSON.parse(Buffer.from(text ?? "", "base64").toString());
}
