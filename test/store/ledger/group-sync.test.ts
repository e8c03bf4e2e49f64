/**
 * The shared wait for the disk: no write is reported by a synchronisation that began before it.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { yieldToEventLoop } from "../../../src/lib/event-loop.ts";
import { createGroupSync } from "../../../src/store/ledger/group-sync.ts";

/** A disk whose synchronisations end when they are notified to. */
function createDisk() {
  const begun: PromiseWithResolvers<void>[] = [];
  const sync = () => {
    const one = Promise.withResolvers<void>();
    begun.push(one);
    return one.promise;
  };
  return { begun, sync };
}

describe("the wait for the disk", () => {
  test("ends with the synchronisation that begins after it, which concurrent callers share", async () => {
    const { begun, sync } = createDisk();
    const wait = createGroupSync(sync);
    const responded: string[] = [];
    const watch = (name: string) => wait().then(() => responded.push(name));
    const all = [watch("first")];
    all.push(watch("second"), watch("third"));
    await yieldToEventLoop();
    expect([begun.length, responded]).toEqual([1, []]);
    begun[0]?.resolve();
    await yieldToEventLoop();
    expect([begun.length, responded]).toEqual([2, ["first"]]);
    all.push(watch("fourth"));
    begun[1]?.resolve();
    await yieldToEventLoop();
    expect([begun.length, responded]).toEqual([3, ["first", "second", "third"]]);
    begun[2]?.resolve();
    await Promise.all(all);
    expect(begun).toHaveLength(3);
  });

  test("fails only for the callers of the failed synchronisation", async () => {
    const { begun, sync } = createDisk();
    const wait = createGroupSync(sync);
    const first = wait();
    const second = wait();
    begun[0]?.reject(new Error("EIO"));
    await expect(first).rejects.toThrow("EIO");
    await yieldToEventLoop();
    begun[1]?.resolve();
    await second;
  });

  test("starts again after an idle time", async () => {
    let count = 0;
    const wait = createGroupSync(async () => {
      count += 1;
    });
    for (let step = 1; step <= 3; step += 1) {
      await wait();
      await yieldToEventLoop();
      expect(count).toBe(step);
    }
  });
});
