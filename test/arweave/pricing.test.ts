/**
 * The chain's storage price, against its definition in other arithmetic.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { storageFee, transactionFee } from "../../src/arweave/pricing.ts";

const price = { pricePerGibMinute: 4_897n, kryderPlusRateMultiplier: 1n };

describe("storageFee", () => {
  test("a gibibyte costs a year's price of 20 copies over −ln(0.995), and a twentieth", () => {
    const expected = (4_897 * 525_600 * 20 * 1.05) / -Math.log(0.995);
    expect(Number(storageFee(price, 1_073_741_824n)) / expected).toBeCloseTo(1, 9);
  });

  const rows: [size: bigint, fee: bigint][] = [
    [0n, 0n],
    [1n, 10_042n],
    [262_144n, 2_632_611_645n],
  ];
  test.each(rows)("%p bytes cost %p winston at 4,897 a gibibyte and minute", (size, fee) => {
    expect(storageFee(price, size)).toBe(fee);
  });

  test("grows with size and multiplier, and is rounded down once, so never above the sum of its parts by much", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 15n }), fc.bigInt({ min: 0n, max: 10n ** 15n }), (one, other) => {
        const parts = storageFee(price, one) + storageFee(price, other);
        const whole = storageFee(price, one + other);
        expect(whole === parts || whole === parts + 1n).toBe(true);
        const doubled = storageFee({ ...price, kryderPlusRateMultiplier: 2n }, one);
        expect(doubled - 2n * storageFee(price, one) <= 1n).toBe(true);
      }),
    );
  });

  test("a size below 0 is a defect of ours", () => {
    expect(() => storageFee(price, -1n)).toThrow("invariant broken");
  });
});

describe("transactionFee", () => {
  test("data counts in whole chunks, a transaction as 3,210 bytes, a new account as 20,000,000", () => {
    expect(transactionFee(price, 1n, "none")).toBe(transactionFee(price, 262_144n, "known"));
    expect(transactionFee(price, 0n, "none")).toBe(storageFee(price, 3_210n) as never);
    expect(transactionFee(price, 0n, "new") - transactionFee(price, 0n, "known")).toBe(storageFee(price, 20_000_000n));
  });

  const sizes: [bigint, bigint][] = [
    [0n, 0n],
    [1n, 262_144n],
    [262_144n, 262_144n],
    [262_145n, 524_288n],
  ];
  test.each(sizes)("%p bytes of data cost what %p and the transaction's own do", (size, taken) => {
    expect<bigint>(transactionFee(price, size, "none")).toBe(storageFee(price, taken + 3_210n));
  });
});
