/**
 * What the owner of coins signs: the hash that a published library finds, and signatures that are the owner's for this
 * coin, this chain and these words alone.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import {
  type Authorization,
  authorizationHash,
  isSignedByOwner,
  type TypedDomain,
} from "../../../src/payment/evm/authorization.ts";
import { createRandom } from "../../support/random.ts";
import { newSeed } from "../../support/seed.ts";
import { digestOf, evmAddress, payer, sign } from "../x402/payers.ts";

const domain: TypedDomain = {
  name: "USD Coin",
  version: "2",
  chainId: 8_453n,
  contract: evmAddress("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
};
const key = new Uint8Array(32).fill(0x11);
const authorization: Authorization = {
  from: evmAddress("0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A"),
  to: evmAddress(`0x${"c0".repeat(20)}`),
  value: 2_000n,
  validAfter: 1_799_999_400n,
  validBefore: 1_800_000_300n,
  nonce: `0x${"5a".repeat(32)}`,
};

// Made by viem 2.45.1: hashTypedData, signTypedData.
const hash = "ec14c12daae5339f51e6b9fb0cb5fa344080b8b1c95fb04febe2b2cb18cc71ba";
const signature = Uint8Array.fromHex(
  "79f8c1bb7f509323501dd07e10ca1413dfff19e8b4b7c66eff8e1002ac01e845" +
    "2c7fd6dee828e375c4a4a9d75e40b5420c434ad4acd62692e55f150737e8aab71b",
);

/** A signature with its parts changed. */
function spelled(change: (bytes: Uint8Array) => void): Uint8Array {
  const bytes = Uint8Array.from(signature);
  change(bytes);
  return bytes;
}

/** The other signature that the mathematics allows: s is the order less s, and the parity the other. */
function highS(): Uint8Array {
  const order = secp256k1.Point.Fn.ORDER;
  const s = order - BigInt(`0x${signature.subarray(32, 64).toHex()}`);
  return Uint8Array.from([
    ...signature.subarray(0, 32),
    ...Uint8Array.fromHex(s.toString(16).padStart(64, "0")),
    signature[64] === 27 ? 28 : 27,
  ]);
}

test("the hash and the signature are those of a published library", () => {
  expect(authorizationHash(domain, authorization).toHex()).toBe(hash);
  expect(sign(domain, authorization, key)).toEqual(signature);
  expect(isSignedByOwner(domain, authorization, signature)).toBe(true);
});

const max = 2n ** 256n - 1n;

test("a thousand random authorizations have the same hash in another implementation", () => {
  const random = createRandom(newSeed());
  const number = () => random.pick([0n, 1n, max, BigInt(`0x${random.bytes(32).toHex()}`)]);
  for (let round = 0; round < 1_000; round += 1) {
    const other = { ...domain, chainId: BigInt(random.below(2 ** 31)), name: `coin ${random.below(9)} é` };
    const one: Authorization = {
      from: evmAddress(`0x${random.bytes(20).toHex()}`),
      to: evmAddress(`0x${random.bytes(20).toHex()}`),
      value: number(),
      validAfter: number(),
      validBefore: number(),
      nonce: `0x${random.bytes(32).toHex()}`,
    };
    expect(authorizationHash(other, one)).toEqual(digestOf(other, one));
  }
});

const other = payer(1).address;

const foreign: readonly (readonly [what: string, domain: TypedDomain, authorization: Authorization])[] = [
  ["another name of the coin", { ...domain, name: "USDC" }, authorization],
  ["another version", { ...domain, version: "1" }, authorization],
  ["another chain", { ...domain, chainId: 84_532n }, authorization],
  ["another coin", { ...domain, contract: other }, authorization],
  ["another owner", domain, { ...authorization, from: other }],
  ["another receiver", domain, { ...authorization, to: other }],
  ["another value", domain, { ...authorization, value: 2_001n }],
  ["another beginning", domain, { ...authorization, validAfter: 0n }],
  ["another end", domain, { ...authorization, validBefore: max }],
  ["another nonce", domain, { ...authorization, nonce: `0x${"5b".repeat(32)}` }],
];

test.each(foreign)("the signature is not the owner's for %s", (_what, otherDomain, otherWords) => {
  expect(isSignedByOwner(otherDomain, otherWords, signature)).toBe(false);
});

describe("a signature", () => {
  const spellings: readonly (readonly [what: string, signature: Uint8Array, isTaken: boolean])[] = [
    ["with the parity itself as its last byte is taken", spelled((bytes) => (bytes[64] = 0)), true],
    ["with the other parity is rejected", spelled((bytes) => (bytes[64] = 28)), false],
    ["with 29 as its last byte is rejected", spelled((bytes) => (bytes[64] = 29)), false],
    ["with a high s is rejected", highS(), false],
    ["of 64 bytes is rejected", signature.subarray(0, 64), false],
    ["of 66 bytes is rejected", Uint8Array.from([...signature, 0]), false],
    ["of no bytes is rejected", new Uint8Array(), false],
    ["of zeros is rejected", new Uint8Array(65), false],
    ["whose r is beyond the curve is rejected", spelled((bytes) => bytes.fill(0xff, 0, 32)), false],
    ["whose s is zero is rejected", spelled((bytes) => bytes.fill(0, 32, 64)), false],
  ];
  test.each(spellings)("%s", (_what, bytes, isTaken) => {
    expect(isSignedByOwner(domain, authorization, bytes)).toBe(isTaken);
  });
});
