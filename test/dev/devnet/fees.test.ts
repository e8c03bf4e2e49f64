/**
 * Fees of the devnet: the chain's formula at a constant low price.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { devnetFee, devnetPrice, minerShare } from "../../../src/dev/devnet/chain-rules.ts";

/** The formula in floating point, from its description: twenty replicas for ever, at a price falling 0.5 % a year. */
function roughFee(size: number): number {
  const firstYear = (size * Number(devnetPrice.pricePerGibMinute) * 525_600 * 20) / 2 ** 30;
  return (firstYear / -Math.log(0.995)) * 1.05;
}

describe("a fee", () => {
  const sizes: readonly (readonly [dataSize: bigint, weaveSize: number])[] = [
    [0n, 0],
    [1n, 262_144],
    [262_144n, 262_144],
    [262_145n, 524_288],
    [2n ** 40n, 2 ** 40],
  ];

  test.each(sizes)("for %p bytes pays for %p bytes of weave and 3,210 more", (dataSize, weaveSize) => {
    const rough = roughFee(weaveSize + 3_210);
    expect(Math.abs(Number(devnetFee(dataSize, "none")) / rough - 1)).toBeLessThan(1e-6);
  });

  test("for a new account adds what 20,000,000 bytes cost", () => {
    const added = devnetFee(5n, "new") - devnetFee(5n, "known");
    expect(Math.abs(Number(added) / roughFee(20_000_000) - 1)).toBeLessThan(1e-6);
    expect(devnetFee(5n, "known")).toBe(devnetFee(5n, "none"));
  });

  test("for a GiB is less than one AR, so that a funded wallet lasts for a petabyte", () => {
    expect(devnetFee(2n ** 30n, "none")).toBeLessThan(10n ** 12n);
  });

  test("gives the miner its twenty-first part, a twentieth of the rest", () => {
    expect([0n, 20n, 21n, 2_100n].map(minerShare)).toEqual([0n, 0n, 1n, 100n]);
  });
});
