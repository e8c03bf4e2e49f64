/**
 * The handling of a payment, by where it is in the ledger and on the chain: every pair of the two.
 * @module
 */
import { expect, test } from "bun:test";
import type { AuthorizationStatus } from "../../../src/payment/evm/authorization-chain.ts";
import { rejectedStep, stepOf, type X402State } from "../../../src/payment/x402/x402-payment-store.ts";
import { nonce, payer, payTo } from "./payers.ts";

const end = 1_800_000_300n;
const authorization = {
  from: payer(1).address,
  to: payTo,
  value: 2_000n,
  validAfter: 0n,
  validBefore: end,
  nonce: nonce(1),
};
const final = 20;
const place = { transaction: `0x${"1".repeat(64)}`, block: { height: 5, hash: `0x${"2".repeat(64)}` } };
const moved = (confirmations: number) => ({ kind: "moved", ...place, confirmations }) as const;
const otherwise = (confirmations: number) => ({ kind: "otherwise", ...place, confirmations }) as const;
const unused = (time: bigint): AuthorizationStatus => ({ kind: "unused", height: 9, time });

/** By state: what is done, `!` after what is final. */
const rows: readonly (readonly [what: string, status: AuthorizationStatus, ...steps: readonly string[]])[] = [
  // seen      settling  settled   rejected  reversed
  ["moved just now", moved(1), "credit", "credit", "place", "credit", "rest"],
  ["moved long ago", moved(final - 1), "credit", "credit", "place", "credit", "rest"],
  ["moved for good", moved(final), "credit!", "credit!", "place!", "credit!", "rest"],
  ["used otherwise", otherwise(1), "reject", "reject", "wait", "wait", "rest"],
  ["used otherwise for good", otherwise(final), "reject!", "reject!", "reverse", "rest", "rest"],
  ["unused", unused(0n), "send", "send", "send", "wait", "rest"],
  ["unused, seven seconds left", unused(end - 7n), "send", "send", "send", "wait", "rest"],
  ["unused, six seconds left", unused(end - 6n), "wait", "wait", "wait", "wait", "rest"],
  ["unused at its end", unused(end), "wait", "wait", "wait", "wait", "rest"],
  ["unused 119 s after its end", unused(end + 119n), "wait", "wait", "wait", "wait", "rest"],
  ["unused 120 s after its end", unused(end + 120n), "reject!", "reject!", "reverse", "rest", "rest"],
];

const states: readonly X402State[] = ["seen", "settling", "settled", "rejected", "reversed"];

test.each(
  rows.flatMap(([what, status, ...steps]) => states.map((state, at) => ({ state, what, status, step: steps[at] }))),
)("$state and $what: $step", ({ state, status, step }) => {
  const taken = stepOf({ state, authorization }, status, final);
  const isFinal = "isFinal" in taken && taken.isFinal;
  expect(`${taken.kind}${isFinal ? "!" : ""}`).toBe(step ?? "");
});

const send = { kind: "send" } as const;
const credit = { kind: "credit", end: { ...place, confirmations: 1 }, isFinal: false } as const;

test("a rejection ends a payment only at its first attempt", () => {
  const rejected = { kind: "reject", reason: "no funds", isFinal: false } as const;
  const wait = { kind: "wait" } as const;
  for (const [state, attempts, before, step] of [
    ["seen", 0, 0, rejected], // rejected before it was sent
    ["settling", 1, 0, rejected],
    ["settling", 1, 1, wait], // rejected before it was sent a second time
    ["settling", 2, 1, wait],
    ["settling", 2, 0, wait], // another party has sent it, too
    ["settled", 1, 0, wait],
    ["rejected", 1, 0, wait],
  ] as const)
    expect(rejectedStep({ state, attempts }, send, "no funds", before)).toEqual(step);
});

test("a rejection does not override the chain", () => {
  expect(rejectedStep({ state: "settling", attempts: 1 }, credit, "no funds", 0)).toBe(credit);
});
