/**
 * Transactions that are signed here are byte for byte those of a published library, and RLP is as its inventors show it.
 * @module
 */
import { expect, test } from "bun:test";
import { type RlpValue, rlpNumber, signTransaction, writeRlp } from "../../../src/payment/evm/evm-sender.ts";
import { evmAddress } from "../x402/payers.ts";

const text = (value: string) => new TextEncoder().encode(value);

// Source: https://ethereum.org/en/developers/docs/data-structures-and-encoding/rlp/#examples, and both sides of 55 bytes.
const rlp: readonly (readonly [what: string, value: RlpValue, hex: string])[] = [
  ["dog", text("dog"), "83646f67"],
  ["a list of cat and dog", [text("cat"), text("dog")], "c88363617483646f67"],
  ["no text", new Uint8Array(), "80"],
  ["no list", [], "c0"],
  ["0", rlpNumber(0n), "80"],
  ["a byte of 0", Uint8Array.of(0), "00"],
  ["15", rlpNumber(15n), "0f"],
  ["127", rlpNumber(127n), "7f"],
  ["128", rlpNumber(128n), "8180"],
  ["1024", rlpNumber(1_024n), "820400"],
  ["three", [[], [[]], [[], [[]]]], "c7c0c1c0c3c0c1c0"],
  ["55 bytes", new Uint8Array(55), `b7${"00".repeat(55)}`],
  ["56 bytes", new Uint8Array(56), `b838${"00".repeat(56)}`],
  ["256 bytes", new Uint8Array(256), `b90100${"00".repeat(256)}`],
  ["a list of 56 bytes", [new Uint8Array(55)], `f838b7${"00".repeat(55)}`],
];

test.each(rlp)("RLP of %s", (_what, value, hex) => {
  expect(writeRlp(value).toHex()).toBe(hex);
});

const key = new Uint8Array(32).fill(0x11);
const to = evmAddress("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913");

test("a transaction of zeros is a published library's", () => {
  const zeros = { chainId: 8_453n, nonce: 0n, feeMax: 0n, tipMax: 0n, gasMax: 21_000n, to };
  // Made by viem 2.45.1: signTransaction, keccak256.
  expect(signTransaction({ ...zeros, data: new Uint8Array() }, key)).toEqual({
    raw:
      "0x02f86482210580808082520894833589fcd6edb6e08f4c7c32d4f71b54bda029138080c001a0d58c48e95e2267c4e2606099305e44525e" +
      "8f206891eeaa1edb4a5065a7caed53a02e91f1f587181837152c8ca49831ef860a159cb709d097e663591fb70de3fe48",
    hash: "0x32990ff0e976a8b681e4ae88f2a27fec0c74b142a4f17ba4eab6650a50d5276c",
  });
});

test("a call with 292 bytes of data is a published library's", () => {
  const { raw, hash } = signTransaction(
    {
      chainId: 84_532n,
      nonce: 300n,
      feeMax: 123_456_789_012n,
      tipMax: 1_000_000n,
      gasMax: 90_123n,
      to,
      data: Uint8Array.fromHex(`e3ee160e${"01".repeat(288)}`),
    },
    key,
  );
  expect(raw.slice(0, 120)).toBe(
    "0x02f9019683014a3482012c830f4240851cbe991a148301600b94833589fcd6edb6e08f4c7c32d4f71b54bda0291380b90124e3ee160e01" +
      "01010101",
  );
  expect(hash).toBe("0x89c9ad4dd69382c633c864e8198eb4beaadab1586cba744e9ca0355ae64d764c");
});
