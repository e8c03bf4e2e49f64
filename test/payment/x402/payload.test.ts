/**
 * Payments as headers carry them: those of clients are read, and nothing else is taken for one.
 * @module
 */
import { expect, test } from "bun:test";
import { readX402Payment } from "../../../src/payment/x402/x402-payment-reader.ts";
import { headerOf, nonce, payer, payTo } from "./payers.ts";

const authorization = {
  from: payer(1).address,
  to: payTo,
  value: "2000",
  validAfter: "1799999400",
  validBefore: "1800000300",
  nonce: nonce(1),
};
const signature = `0x${"5a".repeat(65)}`;
const first = {
  x402Version: 1,
  scheme: "exact",
  network: "base",
  payload: { signature, authorization },
};
const accepted = {
  scheme: "exact",
  network: "eip155:8453",
  amount: "2000",
  payTo,
  maxTimeoutSeconds: 300,
  asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
  extra: { name: "USD Coin", version: "2" },
};
const second = { x402Version: 2, accepted, payload: { signature, authorization } };

test("version 1 is read", () => {
  expect(readX402Payment(headerOf(first), 1)).toMatchObject({
    version: 1,
    scheme: "exact",
    network: "base",
    accepted: undefined,
    authorization: { from: payer(1).address, to: payTo, value: 2_000n, nonce: nonce(1) },
    signature: new Uint8Array(65).fill(0x5a),
  });
});

test("version 2 is read, with what it repeats", () => {
  expect(readX402Payment(headerOf(second), 2)).toMatchObject({
    version: 2,
    network: "eip155:8453",
    accepted: { amount: 2_000n, payTo },
  });
});

test("addresses and nonces in any case are one payment", () => {
  const spell = (text: string) => `0x${text.slice(2).toUpperCase()}`;
  const { from, to } = authorization;
  const shouted = { ...authorization, from: spell(from), to: to.toLowerCase(), nonce: spell(nonce(1)) };
  const payment = readX402Payment(headerOf({ ...first, payload: { signature, authorization: shouted } }), 1);
  expect(payment).toEqual(readX402Payment(headerOf(first), 1));
});

test("numbers may be JSON numbers, as some clients write them, and lose no digit", () => {
  const text = JSON.stringify(first).replace('"2000"', "9007199254740993");
  expect(readX402Payment(btoa(text), 1)?.authorization.value).toBe(9_007_199_254_740_993n);
});

test("the smallest and the largest number are read, and one more is not", () => {
  const max = 2n ** 256n - 1n;
  for (const [value, isRead] of [
    [0n, true],
    [max, true],
    [max + 1n, false],
  ] as const) {
    const payload = { signature, authorization: { ...authorization, value: value.toString() } };
    expect(readX402Payment(headerOf({ ...first, payload }), 1) !== undefined).toBe(isRead);
  }
});

const withAuthorization = (change: Record<string, unknown>) =>
  headerOf({ ...first, payload: { signature, authorization: { ...authorization, ...change } } });
const without = (record: Record<string, unknown>, key: string) =>
  Object.fromEntries(Object.entries(record).filter(([name]) => name !== key));

const faults: readonly (readonly [what: string, header: string, version: 1 | 2])[] = [
  ["nothing", "", 1],
  ["no base64", "%%%", 1],
  ["base64 of bytes that are no text", Buffer.from([0xff, 0xfe, 0x00]).toString("base64"), 1],
  ["text that is no JSON", btoa("{"), 1],
  ["JSON that is not a valid object", btoa("[]"), 1],
  ["null", btoa("null"), 1],
  ["JSON without base64", JSON.stringify(first), 1],
  ["two headers in one", `${headerOf(first)}, ${headerOf(first)}`, 1],
  ["more than is looked into", headerOf({ ...first, padding: "x".repeat(8_192) }), 1],
  ["nesting without end", btoa(`${"[".repeat(4_000)}`), 1],
  ["no version", headerOf(without(first, "x402Version")), 1],
  ["a version that is text", headerOf({ ...first, x402Version: "1" }), 1],
  ["version 3", headerOf({ ...first, x402Version: 3 }), 1],
  ["version 1 in the header of version 2", headerOf(first), 2],
  ["version 2 in the header of version 1", headerOf(second), 1],
  ["no scheme", headerOf(without(first, "scheme")), 1],
  ["no network", headerOf(without(first, "network")), 1],
  ["a network that is a number", headerOf({ ...first, network: 8_453 }), 1],
  ["no payload", headerOf(without(first, "payload")), 1],
  ["a payload that is text", headerOf({ ...first, payload: "0x" }), 1],
  ["no signature", headerOf({ ...first, payload: { authorization } }), 1],
  ["a signature that is not a valid hex", headerOf({ ...first, payload: { authorization, signature: "0xzz" } }), 1],
  ["a signature without 0x", headerOf({ ...first, payload: { authorization, signature: "5a" } }), 1],
  ["a signature of odd length", headerOf({ ...first, payload: { authorization, signature: "0x5a5" } }), 1],
  [
    "a signature of 3,000 bytes",
    headerOf({ ...first, payload: { authorization, signature: `0x${"5a".repeat(3_000)}` } }),
    1,
  ],
  ["no authorization", headerOf({ ...first, payload: { signature } }), 1],
  ["a transaction in its place (Solana)", headerOf({ ...first, payload: { transaction: "AQ==" } }), 1],
  ["no payer", withAuthorization({ from: undefined }), 1],
  ["a payer that is short", withAuthorization({ from: "0x12" }), 1],
  ["a payer that is a list", withAuthorization({ from: [payer(1).address] }), 1],
  ["no receiver", withAuthorization({ to: undefined }), 1],
  ["no value", withAuthorization({ value: undefined }), 1],
  ["a value below zero", withAuthorization({ value: "-1" }), 1],
  ["a value with a fraction", withAuthorization({ value: "2000.0" }), 1],
  ["a value with an exponent", withAuthorization({ value: "2e3" }), 1],
  ["a value in hex", withAuthorization({ value: "0x7d0" }), 1],
  ["a value that is empty", withAuthorization({ value: "" }), 1],
  ["a value with a space", withAuthorization({ value: "2000 " }), 1],
  ["a number with a fraction", withAuthorization({ value: 2_000.5 }), 1],
  ["a number below zero", withAuthorization({ value: -2_000 }), 1],
  ["no beginning", withAuthorization({ validAfter: undefined }), 1],
  ["no end", withAuthorization({ validBefore: undefined }), 1],
  ["an end that is null", withAuthorization({ validBefore: null }), 1],
  ["no nonce", withAuthorization({ nonce: undefined }), 1],
  ["a nonce of 31 bytes", withAuthorization({ nonce: `0x${"ab".repeat(31)}` }), 1],
  ["a nonce that is a number", withAuthorization({ nonce: 1 }), 1],
  ["version 2 without what it accepts", headerOf(without(second, "accepted")), 2],
  ["version 2 without an amount", headerOf({ ...second, accepted: without(accepted, "amount") }), 2],
  ["version 2 without an asset", headerOf({ ...second, accepted: without(accepted, "asset") }), 2],
  ["version 2 without a receiver", headerOf({ ...second, accepted: without(accepted, "payTo") }), 2],
];

test.each(faults)("%s is not a payment", (_what, header, version) => {
  expect(readX402Payment(header, version)).toBeUndefined();
});
