/**
 * A value that is requested in the background, again and again.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { createLog } from "../../../src/lib/log.ts";
import { sleep } from "../../../src/lib/stop.ts";
import { openRefresh } from "../../../src/payment/prices/price-sources.ts";
import { until } from "../../support/until.ts";

const signal = new AbortController().signal;

/** A refresh whose attempts do what the test says; its log lines. */
function open(
  ask: (count: number, signal: AbortSignal) => Promise<void>,
  times: Readonly<{ everyMs?: number; timeoutMs?: number; wokenEveryMs?: number }> = {},
) {
  const lines: { level: string; message: string }[] = [];
  let count = 0;
  const log = createLog({
    level: "debug",
    format: "json",
    clock: () => 0,
    write: (line) => lines.push(JSON.parse(line)),
  });
  const refresh = openRefresh({
    name: "a test",
    everyMs: 3_600_000,
    timeoutMs: 1_000,
    ...times,
    random: () => 0,
    log,
    ask: (own) => {
      count += 1;
      return ask(count, own);
    },
  });
  return { refresh, lines, count: () => count };
}

describe("a refresh", () => {
  test("starts a moment later, at once for a caller, then at its interval", async () => {
    const { refresh, count } = open(async () => undefined, { everyMs: 1 });
    expect(count()).toBe(0);
    const settled = refresh.settled(signal);
    expect(count()).toBe(1);
    await settled;
    await until(() => count() >= 5);
    await refresh.close();
    const atEnd = count();
    await Bun.sleep(20); // twenty intervals, in which no request may be sent
    expect(count()).toBe(atEnd);
  });

  test("is woken by a caller without a value, but not more often than its limit", async () => {
    const { refresh, count } = open(async () => undefined, { wokenEveryMs: 1_000 });
    await refresh.settled(signal);
    await refresh.settled(signal);
    expect(count()).toBe(1);
    await Bun.sleep(1_100); // longer than `wokenEveryMs`
    await Promise.all(Array.from({ length: 20 }, () => refresh.settled(signal)));
    expect(count()).toBe(2);
    await refresh.close();
  });

  test("is not woken during a backoff", async () => {
    const { refresh, count } = open(() => Promise.reject(new Error("no")), { wokenEveryMs: 0 });
    await refresh.settled(signal);
    for (let round = 0; round < 100; round += 1) await refresh.settled(signal);
    expect(count()).toBe(1);
    await refresh.close();
  });

  test("aborts an attempt after its timeout, and logs each outage once", async () => {
    const { refresh, lines, count } = open(
      async (made, own) => {
        if (made !== 3) await sleep(60_000, own);
      },
      { everyMs: 1, timeoutMs: 5 },
    );
    await until(() => count() >= 4);
    await refresh.close();
    const said = lines.filter(({ level }) => level !== "debug").map(({ message }) => message);
    expect(said.slice(0, 2)).toEqual([
      "price source failed; the last price is used until it expires",
      "price source recovered",
    ]);
  });

  test("abandons work that ignores its signal", async () => {
    const { refresh, count } = open(() => new Promise(() => undefined), { timeoutMs: 1 });
    await refresh.settled(signal);
    expect(count()).toBe(1);
    await refresh.settled(signal);
    await refresh.close();
  });

  test("lets no caller wait after it is closed", async () => {
    const { refresh } = open((_made, own) => sleep(60_000, own));
    const waiting = refresh.settled(signal);
    await refresh.close();
    await waiting;
    await refresh.settled(signal);
    await refresh.close();
  });
});
