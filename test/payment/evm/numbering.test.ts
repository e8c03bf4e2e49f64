/**
 * Numbers of transactions: in order, without gaps, and once each but for one that is stuck, which is replaced at a fee
 * for which servers do that.
 * @module
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { createNumbering, type Numbering, stuckMs } from "../../../src/payment/evm/evm-sender.ts";
import { createTestClock, type TestClock } from "../../support/payment.ts";

const fees = { feeMax: 1_000n, tipMax: 10n };
let clock: TestClock;
let numbering: Numbering;

beforeEach(() => {
  clock = createTestClock();
  numbering = createNumbering(clock.now);
});

/** Takes the next number, and sends with it. */
function take(mined: bigint, known: bigint) {
  const next = numbering.next(fees, { mined, known });
  numbering.sent(next);
  return next;
}

test("without pending transactions it is the number of mined ones", () => {
  expect(take(0n, 0n)).toEqual({ ...fees, nonce: 0n });
  expect(take(1n, 1n)).toEqual({ ...fees, nonce: 1n });
});

test("a transaction that was just sent is counted before a server knows it", () => {
  expect([take(5n, 5n), take(5n, 5n), take(5n, 6n), take(5n, 5n)].map(({ nonce }) => nonce)).toEqual([5n, 6n, 7n, 8n]);
});

test("a transaction of another process is counted", () => {
  expect(take(5n, 8n).nonce).toBe(8n);
  expect(take(5n, 9n).nonce).toBe(9n);
});

describe("a stuck transaction", () => {
  test("is replaced by the next one, at a quarter more than its fees, or at twice today's fees", () => {
    take(5n, 5n);
    take(5n, 6n);
    clock.advance(stuckMs + 1);
    expect(take(5n, 7n)).toEqual({ nonce: 5n, feeMax: 1_251n, tipMax: 13n });
    expect(take(5n, 7n).nonce).toBe(7n); // the one that replaced it is fresh
    clock.advance(stuckMs + 1);
    expect(take(5n, 8n)).toEqual({ nonce: 5n, feeMax: 1_564n, tipMax: 17n });
  });

  test("is replaced at today's fees when they are higher", () => {
    take(5n, 5n);
    clock.advance(stuckMs + 1);
    const dear = { feeMax: 9_000n, tipMax: 900n };
    expect(numbering.next(dear, { mined: 5n, known: 6n })).toEqual({ ...dear, nonce: 5n });
  });

  test("of another process is left for the same time as an own one", () => {
    expect(numbering.next(fees, { mined: 5n, known: 7n }).nonce).toBe(7n);
    clock.advance(stuckMs);
    expect(numbering.next(fees, { mined: 5n, known: 7n }).nonce).toBe(7n);
    clock.advance(1);
    expect(numbering.next(fees, { mined: 5n, known: 7n })).toEqual({
      nonce: 5n,
      feeMax: 2_001n,
      tipMax: 21n,
    });
    expect(numbering.next(fees, { mined: 6n, known: 7n }).nonce).toBe(7n);
  });

  test("of another process is detected while later ones are sent", () => {
    expect(take(5n, 6n).nonce).toBe(6n);
    clock.advance(stuckMs + 1);
    expect(take(5n, 7n)).toEqual({ nonce: 5n, feeMax: 2_001n, tipMax: 21n });
  });

  test("is not one that was mined in between", () => {
    take(5n, 5n);
    take(5n, 6n);
    clock.advance(stuckMs + 1);
    expect(take(7n, 7n)).toEqual({ ...fees, nonce: 7n });
  });
});
