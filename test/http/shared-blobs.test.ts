/**
 * N6: a body that several clients read is counted once, and for one that still reads it.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createSharedBlobs } from "../../src/http/responses-under-way.ts";
import { createByteBudget } from "../../src/lib/byte-budget.ts";

const size = 30;
const options = { bytesMax: 100, clientBytesMax: 29, waitMsMax: 10 };

function open() {
  const budget = createByteBudget(options);
  const shared = createSharedBlobs(budget);
  const isCounted = (client: string) => budget.isOverShare(client); // a blob is more than a share
  return { budget, shared, isCounted, blob: new Blob(["x".repeat(size)]) };
}

describe("N6: a shared body", () => {
  test("is counted for another reader when the one for which it was counted has left", () => {
    const { budget, shared, isCounted, blob } = open();
    budget.take("a", size);
    shared.took("a", blob);
    expect([shared.join("b", blob), shared.join("a", blob), shared.join("c", blob)]).toEqual([true, true, true]);
    const counted = () => ["a", "b", "c"].filter(isCounted);
    expect([counted(), budget.bytes()]).toEqual([["a"], size]);
    shared.leave("a", blob);
    expect([counted(), budget.bytes()]).toEqual([["a"], size]);
    shared.leave("a", blob);
    expect([counted(), budget.bytes()]).toEqual([["b"], size]);
    shared.leave("c", blob);
    expect([counted(), budget.bytes()]).toEqual([["b"], size]);
    shared.leave("b", blob);
    expect([counted(), budget.bytes()]).toEqual([[], 0]);
    expect(shared.join("d", blob)).toBe(false);
  });

  test("is counted once when two took its bytes during a wait", () => {
    const { budget, shared, isCounted, blob } = open();
    for (const client of ["a", "b"]) {
      budget.take(client, size);
      shared.took(client, blob);
    }
    expect([isCounted("a"), isCounted("b"), budget.bytes()]).toEqual([true, false, size]);
    shared.leave("a", blob);
    shared.leave("b", blob);
    expect(budget.bytes()).toBe(0);
  });

  test("gives no bytes to a request that waits while it passes from one reader to another", async () => {
    const { budget, shared, blob } = open();
    budget.take("other", 70);
    shared.add("a", blob);
    shared.join("b", blob);
    const waiting = budget.takeSoon("d", 20, 0, new AbortController().signal);
    shared.leave("a", blob);
    expect(await waiting).toBe(false);
    expect(budget.bytes()).toBe(100);
  });
});
