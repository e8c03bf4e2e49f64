/**
 * A budget of bytes: who gets some, who waits, and who gets none.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createByteBudget } from "../../src/lib/byte-budget.ts";

const never = new AbortController().signal;
const patience = { bytesMax: 100, clientBytesMax: 40, waitMsMax: 20_000 };
const impatience = { ...patience, waitMsMax: 20 };

describe("N6: a budget of bytes", () => {
  test.each([
    ["a client's share", [["a", 40]], ["a", 1], false],
    ["a client's share, to the byte", [["a", 39]], ["a", 1], true],
    ["another client beside a full share", [["a", 40]], ["b", 40], true],
    [
      "the total",
      [
        ["a", 40],
        ["b", 40],
        ["c", 20],
      ],
      ["d", 1],
      false,
    ],
    [
      "the total, to the byte",
      [
        ["a", 40],
        ["b", 40],
        ["c", 19],
      ],
      ["d", 1],
      true,
    ],
    ["more than a share, for a client that has nothing", [["a", 1]], ["b", 99], true],
    ["more than a share, for a client that has something", [["a", 1]], ["a", 40], false],
    ["more than the total, when no bytes are in use", [], ["a", 1_000], true],
    ["more than the total, when bytes are in use", [["a", 1]], ["b", 100], false],
  ] as const)("%s", (_name, before, [client, bytes], isTaken) => {
    const budget = createByteBudget(impatience);
    for (const [each, size] of before) expect(budget.take(each, size)).toBe(true);
    expect(budget.take(client, bytes)).toBe(isTaken);
    const taken = before.reduce((sum, [, size]) => sum + size, 0);
    expect(budget.bytes()).toBe(taken + (isTaken ? bytes : 0));
  });

  test("waiting requests get released bytes in order, except requests of clients at their limit", async () => {
    const budget = createByteBudget(patience);
    for (const client of ["a", "b"]) budget.take(client, 40);
    budget.take("c", 20);
    const ended: string[] = [];
    const waits = (
      [
        ["a", 10],
        ["d", 30],
        ["e", 10],
        ["f", 20],
      ] as const
    ).map(async ([client, bytes]) => {
      expect(await budget.takeSoon(client, bytes, 0, never)).toBe(true);
      ended.push(client);
    });
    expect(budget.waiting()).toBe(4);
    budget.release("b", 40);
    await Promise.all(waits.slice(1, 3));
    expect(ended).toEqual(["d", "e"]);
    budget.release("c", 20);
    await waits[3];
    budget.release("a", 40);
    await waits[0];
    expect(ended).toEqual(["d", "e", "f", "a"]);
    expect([budget.bytes(), budget.waiting()]).toEqual([70, 0]);
  });

  test("a wait ends without bytes at its timeout, and when its signal is aborted", async () => {
    const budget = createByteBudget(impatience);
    budget.take("a", 100);
    const gone = new AbortController();
    const left = budget.takeSoon("b", 1, 0, gone.signal);
    gone.abort();
    expect(await left).toBe(false);
    expect(await budget.takeSoon("b", 1, 0, never)).toBe(false);
    expect([budget.bytes(), budget.waiting()]).toEqual([100, 0]);
  });

  test("waiting requests hold at most an eighth of the total in memory", async () => {
    const budget = createByteBudget(patience);
    budget.take("a", 100);
    const waits = [budget.takeSoon("b", 12, 12, never), budget.takeSoon("c", 30, 0, never)];
    expect(await budget.takeSoon("d", 1, 1, never)).toBe(false);
    budget.release("a", 100);
    expect(await Promise.all(waits)).toEqual([true, true]);
  });

  test("waiting requests hold at most the given limit in memory", async () => {
    const budget = createByteBudget({ ...patience, heldBytesMax: 50 });
    budget.take("a", 100);
    const wait = budget.takeSoon("b", 10, 50, never);
    expect(await budget.takeSoon("c", 1, 1, never)).toBe(false);
    budget.release("a", 100);
    expect(await wait).toBe(true);
  });

  test("unused bytes are collected before a request waits", () => {
    const budget = createByteBudget({ ...impatience, collect: () => budget.release("a", 60) });
    budget.add("a", 100);
    expect(budget.isOverShare("a")).toBe(true);
    expect(budget.take("b", 20)).toBe(true);
    expect(budget.bytes()).toBe(60);
    expect(budget.isOverShare("a")).toBe(false);
  });

  test("at most a thousand requests wait", async () => {
    const budget = createByteBudget(patience);
    budget.take("a", 100);
    const waits = Array.from({ length: 1_024 }, () => budget.takeSoon("b", 0.01, 0, never));
    expect(await budget.takeSoon("c", 0.01, 0, never)).toBe(false);
    budget.release("a", 100);
    expect((await Promise.all(waits)).every((isTaken) => isTaken)).toBe(true);
  });
});
