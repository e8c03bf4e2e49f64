/**
 * Ids of transfers sort by time, whatever the clock does, and differ between makers.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createTransferIds } from "../../../src/store/ledger/transfers.ts";
import { createRandom } from "../../support/random.ts";

const chanceOf = (seed: number) => {
  const random = createRandom(seed);
  return () => random.below(2 ** 32) / 2 ** 32;
};

describe("an id of a transfer", () => {
  test("is 26 lower-case characters and digits, the first ten of which are the time", () => {
    const makeId = createTransferIds(
      () => 1_800_000_000_000,
      () => 0,
    );
    expect(makeId()).toBe("01mcc5rm000000000000000000");
    expect(makeId()).toBe("01mcc5rm000001000000000000");
  });

  const clocks: readonly (readonly [string, (step: number) => number])[] = [
    ["is still", () => 1_800_000_000_000],
    ["moves", (step) => 1_800_000_000_000 + step],
    ["is set back", (step) => 1_800_000_000_000 - step],
    ["jumps about", (step) => 1_800_000_000_000 + ((step * 7_919) % 1_000)],
    ["begins at 0", () => 0],
  ];
  test.each(clocks)("is greater than the one before when the clock %s", (_, timeOf) => {
    let step = 0;
    const nextStep = () => {
      step += 1;
      return step;
    };
    const random = chanceOf(1);
    const makeId = createTransferIds(() => timeOf(nextStep()), random);
    const ids = Array.from({ length: 5_000 }, makeId);
    expect(ids).toEqual([...ids].sort());
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("has space for more than 32^4 in one millisecond", () => {
    const makeId = createTransferIds(
      () => 5,
      () => 0,
    );
    let before = makeId();
    for (let step = 0; step < 32 ** 4 + 10; step += 1) {
      const id = makeId();
      if (id <= before) throw new Error(`${id} after ${before}`);
      before = id;
    }
    expect(before.slice(0, 10)).toBe("0000000006");
  });

  test("differs between two makers of the same time", () => {
    const [one, other] = [1, 2].map((seed) => createTransferIds(() => 5, chanceOf(seed)));
    const ids = Array.from({ length: 1_000 }, () => [one?.(), other?.()]).flat();
    expect(new Set(ids).size).toBe(2_000);
  });
});
