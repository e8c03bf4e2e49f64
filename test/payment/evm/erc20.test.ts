/**
 * ERC-20 calls and logs, and the values they are written in: what is read, and what is not.
 * @module
 */
import { expect, test } from "bun:test";
import type { UserAddress } from "../../../src/payment/addresses.ts";
import {
  addressTopic,
  readTransferCall,
  readTransferLogs,
  transferTopic,
} from "../../../src/payment/evm/authorization.ts";
import { readHeight, readQuantity } from "../../../src/payment/evm/evm-values.ts";

const alice = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A" as UserAddress;
const contract = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913" as UserAddress;
const hash = `0x${"ab".repeat(32)}`;
const word = (value: bigint) => value.toString(16).padStart(64, "0");
const call = (amount: bigint, rest = "") =>
  Uint8Array.fromHex(`a9059cbb${addressTopic(alice).slice(2)}${word(amount)}${rest}`);

test("a call of transfer contains its recipient, its amount, and the bytes after them", () => {
  expect(readTransferCall(call(2n ** 256n - 1n))).toEqual({
    to: alice,
    amount: 2n ** 256n - 1n,
    rest: new Uint8Array(0),
  });
  expect(readTransferCall(call(5n, "abcd"))?.rest.toHex()).toBe("abcd");
});

test.each([
  ["nothing", ""],
  ["a call that is cut off", call(5n).toHex().slice(0, -2)],
  ["another function", `23b872dd${call(5n).toHex().slice(8)}`],
  ["a recipient with more than 20 bytes", `a9059cbb${"ff".repeat(32)}${word(5n)}`],
])("%s is not a valid call of transfer", (_name, hex) => {
  expect(readTransferCall(Uint8Array.fromHex(hex))).toBeUndefined();
});

const log = (changes: Record<string, unknown> = {}) => ({
  address: contract.toLowerCase(),
  topics: [transferTopic, addressTopic(alice), addressTopic(contract)],
  data: `0x${word(7n)}`,
  transactionHash: hash.toUpperCase().replace("0X", "0x"),
  removed: false,
  ...changes,
});

test("a log of the contract contains its transfer", () => {
  expect(readTransferLogs([log()] as never, contract)).toEqual([
    { transactionHash: hash, from: alice, to: contract, amount: 7n, isRemoved: false },
  ]);
});

test.each([
  ["of another contract", { address: alice.toLowerCase() }],
  ["of another event", { topics: [hash, addressTopic(alice), addressTopic(contract)] }],
  ["of a token of its own kind, with a third index", { topics: [transferTopic, hash, hash, hash] }],
  ["without an amount", { data: "0x" }],
  ["with two amounts", { data: `0x${word(7n)}${word(8n)}` }],
  ["without a transaction", { transactionHash: null }],
])("a log %s is left out", (_name, changes) => {
  expect(readTransferLogs([log(changes)] as never, contract)).toEqual([]);
});

test("a value that is not a list of logs is not read", () => {
  for (const value of [null, {}, "0x", [null], ["0x"]])
    expect(readTransferLogs(value as never, contract)).toBeUndefined();
});

test.each([
  ["0x0", 0n],
  ["0x10", 16n],
  ["0x00ff", 255n],
  [`0x${"f".repeat(64)}`, 2n ** 256n - 1n],
  [`0x1${"0".repeat(64)}`, undefined],
  ["0x", undefined],
  ["10", undefined],
  ["0xg", undefined],
  [16, undefined],
  [null, undefined],
])("the quantity %p is %p", (text, value) => {
  expect(readQuantity(text)).toBe(value as never);
});

test("a height is a safe integer", () => {
  expect(readHeight("0x1fffffffffffff")).toBe(Number.MAX_SAFE_INTEGER);
  expect(readHeight("0x20000000000000")).toBeUndefined();
});
