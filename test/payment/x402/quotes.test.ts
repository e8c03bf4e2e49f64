/**
 * What things cost by x402, and which payments pay it: the least amount, prices that are held, and credits for all that
 * was paid.
 * @module
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { winc } from "../../../src/arweave/winston.ts";
import type { Failure } from "../../../src/failures.ts";
import type { X402Want } from "../../../src/payment/x402/x402.ts";
import { createX402Quotes, type X402Quotes } from "../../../src/payment/x402/x402-offers.ts";
import { amountMax } from "../../../src/store/ledger/ledger-database.ts";
import { createTestClock, type TestClock } from "../../support/payment.ts";

const never = new AbortController().signal;
const heldMs = 330_000;
let clock: TestClock;
/** Winc for a unit of the coin. */
let wincEach: bigint;
let quotes: X402Quotes;

beforeEach(() => {
  clock = createTestClock();
  wincEach = 1_000n;
  const rest = { adjustments: [], fees: [], actualPaymentAmount: 0n, quotedPaymentAmount: 0n };
  quotes = createX402Quotes({
    token: "base-usdc",
    heldMs,
    clock: clock.now,
    prices: {
      bytes: async (size) => ({ winc: winc(size * 7n), networkWinc: winc(size * 7n), adjustments: [] }),
      token: async (_token, amount) => ({ winc: winc(amount * wincEach), ...rest }),
      tokenFor: async (_token, wanted) => (wanted + wincEach - 1n) / wincEach,
    },
  });
});

const credits = (amount: bigint): X402Want => ({ kind: "credits", winc: amount });
const quote = (want: X402Want) => quotes.quote(want, never);

const amounts: readonly (readonly [want: X402Want, amount: bigint, buys: bigint])[] = [
  [credits(1n), 1_000n, 1n],
  [credits(1_000_000n), 1_000n, 1_000_000n],
  [credits(1_000_001n), 1_001n, 1_000_001n],
  [credits(amountMax - 1_000n), (amountMax + 999n - 1_000n) / 1_000n, amountMax - 1_000n],
  [{ kind: "bytes", size: 1n }, 1_000n, 7n],
  [{ kind: "bytes", size: 1_000_000n }, 7_000n, 7_000_000n],
  [{ kind: "bytes", size: 1_000_001n }, 7_001n, 7_000_007n],
];

test.each(amounts)("%p costs %p", async (want, amount, buys) => {
  expect(await quote(want)).toEqual({ want, amount, winc: buys });
});

test("a free purchase costs the lowest price", async () => {
  quotes = createX402Quotes({
    token: "base-usdc",
    heldMs,
    clock: clock.now,
    prices: {
      bytes: async () => ({ winc: winc(0n), networkWinc: winc(0n), adjustments: [] }),
      token: async (_token, amount) => ({
        winc: winc(amount),
        adjustments: [],
        fees: [],
        actualPaymentAmount: 0n,
        quotedPaymentAmount: 0n,
      }),
      tokenFor: async (_token, wanted) => wanted,
    },
  });
  expect(await quote({ kind: "bytes", size: 5n })).toMatchObject({ amount: 1_000n, winc: 1n });
  expect(quotes.bought({ kind: "bytes", size: 5n }, 1, 1_000n)).toEqual({ winc: 1_000n, quotedWinc: 1n });
});

test.each([credits(amountMax + 1n), { kind: "bytes", size: 2n ** 62n } as const, credits(amountMax)])(
  "%p is more than an account can hold",
  async (want) => {
    // The largest amount itself is, when what is paid for it buys a little more.
    wincEach = want.kind === "credits" && want.winc === amountMax ? 2n : wincEach;
    expect(await quote(want).catch((error: Failure) => error.code)).toBe("invalid_quantity");
  },
);

describe("a payment", () => {
  const want = credits(5_000_000n); // 5,000 units

  const paid: readonly (readonly [version: 1 | 2, amount: bigint, bought: bigint | undefined])[] = [
    [1, 4_999n, undefined],
    [1, 5_000n, 5_000_000n],
    [1, 5_001n, 5_001_000n],
    [1, 10_000n, 10_000_000n],
    [2, 4_999n, undefined],
    [2, 5_000n, 5_000_000n],
    [2, 5_001n, undefined],
    [1, 0n, undefined],
  ];

  test.each(paid)("of version %p of %p units buys %p", async (version, amount, bought) => {
    await quote(want);
    expect(quotes.bought(want, version, amount)?.winc).toBe(bought);
  });

  test("for a purchase without a quote buys nothing", async () => {
    await quote(want);
    expect(quotes.bought(credits(4_999_999n), 1, 10_000n)).toBeUndefined();
    expect(quotes.bought({ kind: "bytes", size: 5_000_000n }, 1, 10_000n)).toBeUndefined();
  });

  test("is credited at the quoted price", async () => {
    await quote(want);
    wincEach = 500n;
    expect(await quote(want)).toMatchObject({ amount: 10_000n });
    expect(quotes.bought(want, 2, 5_000n)).toEqual({ winc: 5_000_000n, quotedWinc: 5_000_000n });
    expect(quotes.bought(want, 2, 10_000n)).toEqual({ winc: 5_000_000n, quotedWinc: 5_000_000n });
    // Between the two it pays the lower one, and more; it is not known which was meant.
    expect(quotes.bought(want, 1, 7_500n)).toEqual({ winc: 7_500_000n, quotedWinc: 5_000_000n });
  });

  test("is accepted as long as the price is held", async () => {
    await quote(want);
    wincEach = 500n;
    clock.advance(heldMs - 1);
    expect(quotes.bought(want, 2, 5_000n)).toBeDefined();
    clock.advance(1);
    expect(quotes.bought(want, 2, 5_000n)).toBeUndefined();
  });

  test("is accepted longer when the price is quoted again", async () => {
    await quote(want);
    clock.advance(heldMs - 1);
    await quote(want);
    clock.advance(heldMs - 1);
    expect(quotes.bought(want, 2, 5_000n)).toBeDefined();
  });

  test("pays one of the last sixteen quoted prices", async () => {
    for (let round = 0n; round < 17n; round += 1n) {
      wincEach = 1_000n + round;
      await quote(want);
    }
    expect(quotes.bought(want, 2, 5_000n)).toBeUndefined();
    expect(quotes.bought(want, 2, 5_000_000n / 1_001n + 1n)).toBeDefined();
  });
});

test("prices of ten thousand purchases are held; beyond that, the oldest are dropped", async () => {
  for (let each = 1n; each <= 10_001n; each += 1n) await quote(credits(each));
  expect(quotes.bought(credits(1n), 1, 1_000n)).toBeUndefined();
  expect(quotes.bought(credits(2n), 1, 1_000n)).toBeDefined();
  await quote(credits(2n));
  await quote(credits(10_002n));
  expect(quotes.bought(credits(2n), 1, 1_000n)).toBeDefined();
  expect(quotes.bought(credits(3n), 1, 1_000n)).toBeUndefined();
});
