/**
 * What a transaction's logs say of an authorization: that it moved what it says, or did anything else.
 * @module
 */
import { expect, test } from "bun:test";
import type { JsonValue } from "../../../src/lib/json.ts";
import { readAuthorizationEnd, writeTransferCall } from "../../../src/payment/evm/authorization.ts";
import { evmAddress, nonce, payer } from "../x402/payers.ts";

const contract = evmAddress(`0x${"11".repeat(20)}`);
const stranger = evmAddress(`0x${"22".repeat(20)}`);
const to = evmAddress(`0x${"33".repeat(20)}`);
const owner = payer(1).address;
const authorization = {
  from: owner,
  to,
  value: 5n,
  validAfter: 0n,
  validBefore: 9n,
  nonce: nonce(1),
};

const word = (value: string | bigint) =>
  `0x${(typeof value === "bigint" ? value.toString(16) : value.slice(2).toLowerCase()).padStart(64, "0")}`;
const log = (topics: readonly string[], data = "0x", address: string = contract) => ({
  address,
  topics,
  data,
  transactionHash: word(7n),
});
const used = (of: string = owner, which = nonce(1), address?: string) =>
  log(["0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5", word(of), which], "0x", address);
const canceled = () =>
  log(["0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81", word(owner), nonce(1)]);
const moved = (value = 5n, from: string = owner, receiver: string = to, address?: string) =>
  log(
    ["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef", word(from), word(receiver)],
    word(value),
    address,
  );

const rows: readonly (readonly [what: string, logs: JsonValue, end: "moved" | "otherwise" | undefined])[] = [
  ["a use, and the transfer after it", [used(), moved()], "moved"],
  ["those of others around it", [moved(9n), used(), used(stranger, nonce(1), stranger), moved()], "moved"],
  ["another coin's transfer between the two", [used(), moved(5n, owner, to, stranger), moved()], "moved"],
  ["nothing of it", [moved()], undefined],
  ["no logs", [], undefined],
  ["no list", "0x", undefined],
  ["another owner's use", [used(stranger), moved()], undefined],
  ["another nonce", [used(owner, nonce(2)), moved()], undefined],
  ["another coin's use", [used(owner, nonce(1), stranger), moved()], undefined],
  ["a use without a transfer", [used()], "otherwise"],
  ["a transfer before the use", [moved(), used()], "otherwise"],
  ["less", [used(), moved(4n)], "otherwise"],
  ["more", [used(), moved(6n)], "otherwise"],
  ["to another party", [used(), moved(5n, owner, stranger)], "otherwise"],
  ["by another party", [used(), moved(5n, stranger)], "otherwise"],
  ["a transfer to another party, then one to us", [used(), moved(5n, owner, stranger), moved()], "otherwise"],
  ["two uses of two nonces, and one transfer", [used(), used(owner, nonce(2)), moved()], "otherwise"],
  ["something else of the coin between the two", [used(), log([word(1n)]), moved()], "otherwise"],
  ["a cancellation", [canceled()], "otherwise"],
  ["a cancellation, and a transfer after it", [canceled(), moved()], "otherwise"],
  ["a transfer that was taken back", [used(), { ...moved(), removed: true }], "otherwise"],
];

test.each(rows)("%s", (_what, logs, end) => {
  expect(readAuthorizationEnd(logs, contract, authorization)).toBe(end);
});

test("a call carries the signature as v, r and s, v being 27 or 28", () => {
  for (const [last, v] of [
    [0, 27],
    [1, 28],
    [27, 27],
    [28, 28],
  ] as const) {
    const signature = Uint8Array.from([...Array<number>(32).fill(1), ...Array<number>(32).fill(2), last]);
    const call = writeTransferCall(authorization, signature);
    expect(call.length).toBe(4 + 9 * 32);
    expect(call.subarray(4 + 6 * 32).toHex()).toBe(
      `${v.toString(16).padStart(64, "0")}${"01".repeat(32)}${"02".repeat(32)}`,
    );
  }
});
