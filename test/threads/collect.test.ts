/**
 * When threads with large buffers collect their garbage: `createCollections`.
 * @module
 */
import { expect, test } from "bun:test";
import { createCollections } from "../../src/threads/collect.ts";

const limit = 32 * 2 ** 20;

/** Objects of which the caller has only weak references. */
function garbage(count: number): readonly WeakRef<object>[] {
  return Array.from({ length: count }, (_, number) => new WeakRef({ number }));
}

function countLive(references: readonly WeakRef<object>[]): number {
  return references.filter((reference) => reference.deref() !== undefined).length;
}

/** The next turn of the event loop: a job has ended, and what it dereferenced may be collected. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test("garbage is collected after 32 MiB of counted buffers, once the job has ended", async () => {
  const countBytes = createCollections();
  const references = garbage(1_000);
  countBytes(limit - 1);
  await nextTurn();
  countBytes(1);
  expect(countLive(references.slice(0, 1))).toBe(1);
  await nextTurn();
  // The stack may still have some of them by chance.
  expect(countLive(references)).toBeLessThan(10);
});
