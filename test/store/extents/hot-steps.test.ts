/**
 * Steps of the content cache in memory: what a small range finds, and what leaves first.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { stepBytes } from "../../../src/store/extents/extent-steps.ts";
import { createHotSteps, type RootHotSteps } from "../../../src/store/extents/hot-steps.ts";

/** A step whose bytes all are its number. */
const stepOf = (number: number) => new Uint8Array(stepBytes).fill(number);

function hotRoot(...numbers: number[]) {
  const steps = createHotSteps();
  const root: RootHotSteps = new Map();
  for (const number of numbers) steps.put(root, number, stepOf(number));
  const at = (start: number, length: number) => {
    const bytes = steps.slice(root, { start, end: start + length });
    return bytes && [...bytes];
  };
  return { steps, root, at };
}

describe("steps in memory", () => {
  test.each([
    ["the first byte of a step", stepBytes, 1, [1]],
    ["the last byte of a step", 2 * stepBytes - 1, 1, [1]],
    ["the end of one step and the start of the next", 2 * stepBytes - 1, 3, [1, 2, 2]],
    ["a step that is absent", 0, 1, undefined],
    ["the end of an absent step and the start of the next", stepBytes - 1, 2, undefined],
    ["the end of a step and the start of an absent one", 3 * stepBytes - 1, 2, undefined],
  ] as const)("return %s", (_, start, length, bytes) => {
    expect(hotRoot(1, 2).at(start, length)).toEqual(bytes as number[] | undefined);
  });

  test("are those of one root", () => {
    const { steps } = hotRoot(1);
    expect(steps.slice(new Map(), { start: stepBytes, end: stepBytes + 1 })).toBeUndefined();
  });

  test("stop at the end of the root's data", () => {
    const { steps, root, at } = hotRoot();
    steps.put(root, 0, new Uint8Array([7, 8, 9]));
    expect(at(1, 2)).toEqual([8, 9]);
  });

  test("are gone when the root has lost them", () => {
    const { root, at } = hotRoot(1, 2);
    root.delete(1);
    expect([at(stepBytes, 1), at(2 * stepBytes, 1)]).toEqual([undefined, [2]]);
  });

  test("leave memory in the order of their last use", () => {
    const many = Array.from({ length: 500 }, (_, number) => number);
    const { steps, root, at } = hotRoot(...many);
    expect(root.size).toBe(500);
    expect(at(0, 1)).toEqual([0]);
    for (let number = 500; number < 600; number += 1) steps.put(root, number, stepOf(number));
    expect(at(0, 1)).toEqual([0]);
    expect([...root.keys()].toSorted((a, b) => a - b)).toEqual([0, ...range(600 - root.size + 1, 600)]);
    expect(root.size).toBeWithin(500, 512);
  });

  test("take the memory of one step when two ranges put the same one", () => {
    const { steps, root } = hotRoot(0, 1, 2);
    for (let round = 0; round < 600; round += 1) steps.put(root, 2, stepOf(2));
    expect([...root.keys()].toSorted()).toEqual([0, 1, 2]);
  });
});

const range = (start: number, end: number) => Array.from({ length: end - start }, (_, index) => start + index);
