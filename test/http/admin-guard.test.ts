/**
 * The key of administration under guessing: what it costs, whom, and for how long. Time is the test's.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { Failure } from "../../src/failures.ts";
import { createAdminGuard, freeGuesses } from "../../src/http/admin-guard.ts";

const key = "correct-horse";
const never = new AbortController().signal;

/** A guard whose waits are noted and over at once; time passes only where the test says so. */
function openGuard(opened = { now: 1_000_000 }) {
  const waits: number[] = [];
  const guard = createAdminGuard({
    key,
    clock: () => opened.now,
    sleep: async (ms, signal) => {
      signal.throwIfAborted();
      waits.push(ms);
    },
  });
  const ask = async (authorization: string | null, address = "198.51.100.1", signal = never) => {
    try {
      await guard.admit(authorization, address, signal);
      return "admitted";
    } catch (error) {
      return error instanceof Failure ? error.code : String(error);
    }
  };
  return { ask, waits, time: opened };
}

describe("S2: the guard", () => {
  test.each([
    [`Bearer ${key}`, "admitted"],
    [`bearer ${key}`, "admitted"],
    [`BEARER   ${key} `, "admitted"],
    [null, "unauthorized"],
    ["", "unauthorized"],
    ["Bearer", "unauthorized"],
    ["Bearer ", "unauthorized"],
    [key, "unauthorized"],
    [`Basic ${key}`, "unauthorized"],
    [`Bearer ${key}x`, "unauthorized"],
    [`Bearer ${key.slice(0, -1)}`, "unauthorized"],
    [`Bearer ${key} ${key}`, "unauthorized"],
    [`Bearer ${"x".repeat(100_000)}`, "unauthorized"],
    ["Bearer undefined", "unauthorized"],
  ])("%p is %s", async (authorization, expected) => {
    expect(await openGuard().ask(authorization)).toBe(expected);
  });

  test("the first wrong keys cost nothing, each later one twice the one before, up to five seconds", async () => {
    const { ask, waits, time } = openGuard();
    for (let guess = 0; guess < freeGuesses; guess++) expect(await ask("Bearer wrong")).toBe("unauthorized");
    expect(waits).toEqual([]);
    for (let guess = 0; guess < 8; guess++) {
      expect(await ask("Bearer wrong")).toBe("unauthorized");
      time.now += waits.at(-1) ?? 0;
    }
    expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  });

  test("guesses in parallel wait one after the other, and beyond ten seconds none is looked at", async () => {
    const { ask, waits, time } = openGuard();
    for (let guess = 0; guess < freeGuesses + 6; guess++) {
      await ask("Bearer wrong");
      time.now += waits.at(-1) ?? 0;
    }
    waits.length = 0;
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => ask("Bearer wrong")));
    expect(waits).toEqual([5_000, 10_000, 15_000]);
    expect(outcomes.filter((outcome) => outcome === "too_many_requests")).toHaveLength(17);
    // Not even the right one: who could tell them apart would have guessed.
    expect(await ask(`Bearer ${key}`)).toBe("too_many_requests");
    time.now += 5_000;
    expect(await ask(`Bearer ${key}`)).toBe("admitted");
    expect(await ask("Bearer wrong")).toBe("unauthorized");
    expect(waits).toHaveLength(3); // the right key wiped the slate
  });

  test("of 100,000 guesses at once from one address, a handful is looked at", async () => {
    const { ask, waits } = openGuard();
    const outcomes = await Promise.all(Array.from({ length: 100_000 }, (_, guess) => ask(`Bearer ${guess}`)));
    expect(outcomes.filter((outcome) => outcome === "unauthorized").length).toBeLessThan(freeGuesses + 20);
    expect(outcomes.filter((outcome) => outcome === "admitted")).toEqual([]);
    expect(Math.max(...waits)).toBeLessThan(20_000);
  });

  test("another address pays nothing, one of the same customer's network does", async () => {
    const { ask, waits, time } = openGuard();
    for (let guess = 0; guess <= freeGuesses; guess++) {
      await ask("Bearer wrong", "2001:db8:1:2::1");
      time.now += waits.at(-1) ?? 0;
    }
    expect(waits).toHaveLength(1);
    await ask("Bearer wrong", "2001:db8:1:3::1");
    expect(waits).toHaveLength(1);
    await ask("Bearer wrong", "2001:db8:1:2:ffff::9");
    expect(waits).toHaveLength(2);
  });

  test("requests without a key are no guesses", async () => {
    const { ask, waits } = openGuard();
    for (let request = 0; request < 10 * freeGuesses; request++) await ask(null);
    await ask("Bearer wrong");
    expect(waits).toEqual([]);
  });

  test("an hour of silence is forgiven", async () => {
    const { ask, waits, time } = openGuard();
    for (let guess = 0; guess < freeGuesses + 3; guess++) await ask("Bearer wrong");
    const paid = waits.length;
    time.now += 2 * 60 * 60_000;
    await ask("Bearer wrong");
    expect(waits).toHaveLength(paid);
  });

  test("a guesser who leaves is not waited for", async () => {
    const { ask } = openGuard();
    for (let guess = 0; guess < freeGuesses; guess++) await ask("Bearer wrong");
    const gone = AbortSignal.abort(new DOMException("left", "AbortError"));
    expect(await ask("Bearer wrong", "198.51.100.1", gone)).toContain("AbortError");
  });

  test("a hundred thousand addresses take bounded memory, and the last ones are remembered", async () => {
    const { ask, waits } = openGuard();
    for (let guess = 0; guess <= freeGuesses; guess++) await ask("Bearer wrong", "9.9.9.9");
    expect(waits).toHaveLength(1);
    for (let index = 0; index < 100_000; index++)
      await ask("Bearer wrong", `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`);
    await ask("Bearer wrong", "9.9.9.9");
    expect(waits).toHaveLength(1); // it was forgotten for the others
  });
});

test("S2: keys of any length are compared as hashes, by the comparison in constant time and nothing else", async () => {
  const compared: string[][] = [];
  let verdict = false;
  const guard = createAdminGuard({
    key,
    clock: () => 0,
    sleep: async () => undefined,
    isSame: (...hashes) => {
      compared.push(hashes.map((hash) => Buffer.from(hash).toString("hex")));
      return verdict;
    },
  });
  const hashOf = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");
  const keys = [key, "c", `${key}!`, "x".repeat(4_096)];
  for (const given of keys) {
    // The comparison alone decides, also for the right key.
    for (verdict of [false, true]) {
      const outcome = await guard.admit(`Bearer ${given}`, "198.51.100.7", never).then(
        () => true,
        () => false,
      );
      expect(outcome).toBe(verdict);
    }
  }
  expect(compared).toEqual(keys.flatMap((given) => Array(2).fill([hashOf(given), hashOf(key)])));
});
