/**
 * A loop's rest: it ends with its time, with a reason, or with the loop, and no reason is lost.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createRest } from "../../src/lib/rest.ts";

/** Far beyond what a test waits. */
const longMs = 3_600_000;

describe("a rest", () => {
  test("ends with its time", async () => {
    await createRest(new AbortController().signal).wait(1);
  });

  test("ends with a reason that comes while it lasts, and the next one lasts again", async () => {
    const rest = createRest(new AbortController().signal);
    const first = rest.wait(longMs);
    rest.end();
    await first;
    const second = rest.wait(longMs).then(() => "ended");
    expect(await Promise.race([second, Bun.sleep(20).then(() => "lasts")])).toBe("lasts");
    rest.end();
    expect(await second).toBe("ended");
  });

  test("does not begin when the reason came before it", async () => {
    const rest = createRest(new AbortController().signal);
    rest.end();
    await rest.wait(longMs);
  });

  test("ends with its loop, and never begins again", async () => {
    const life = new AbortController();
    const rest = createRest(life.signal);
    const waiting = rest.wait(longMs);
    life.abort();
    await waiting;
    await rest.wait(longMs);
  });
});
