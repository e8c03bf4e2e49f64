/**
 * Cached names: used for their time to live, beyond it during faults; a fault is never cached.
 * @module
 */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { openNameGateways } from "../../../src/chain/name-gateways.ts";
import { Failure } from "../../../src/failures.ts";
import { createStoredNames, type StoredNames, type StoredNamesOptions } from "../../../src/gateway/names/name-cache.ts";
import { createLog } from "../../../src/lib/log.ts";
import { createMetrics } from "../../../src/lib/metrics.ts";
import { idOf } from "../../support/memory-content.ts";
import { type NameScript, openNameGateway } from "../../support/name-gateway.ts";
import { until } from "../../support/until.ts";

const gateway = openNameGateway();
const closers: (() => void)[] = [];
const never = new AbortController().signal;
let now = 1_700_000_000_000;

afterEach(() => {
  gateway.speak();
  gateway.scripts.clear();
  gateway.questions.length = 0;
  for (const close of closers.splice(0)) close();
});
afterAll(gateway.close);

function open(
  options: Partial<StoredNamesOptions> = {},
  timeoutMs = 10_000,
): StoredNames & { stats: () => Promise<string> } {
  const gateways = openNameGateways([gateway.template], timeoutMs);
  const metrics = createMetrics();
  const log = createLog({ level: "error", format: "json", clock: () => now, write: () => undefined });
  const stored = createStoredNames({
    gateways,
    retentionMs: 3_600_000,
    storedMax: 100,
    patienceMs: 20,
    metrics,
    clock: () => now,
    log,
    ...options,
  });
  closers.push(stored.close, gateways.close);
  return { ...stored, stats: metrics.text };
}

/** For requests that get a response, also on a busy machine. */
const patient = { patienceMs: 20_000 } as const;

const says = (name: string, ttl = "60"): NameScript => ({
  status: 200,
  headers: { "X-ArNS-Resolved-Id": idOf(name), "X-ArNS-TTL-Seconds": ttl },
});

/** Until the gateway has been asked so often: under load a question takes its time. */
async function asked(times: number): Promise<void> {
  await until(() => gateway.questions.length >= times);
}

/** The id, or what else came of it. */
async function find(names: StoredNames, name = "a", hops = 0): Promise<string> {
  try {
    const { response } = await names.find(name, hops, never);
    return response.kind === "resolved" ? response.record.id : response.kind;
  } catch (error) {
    if (error instanceof Failure) return error.code;
    throw error;
  }
}

describe("what was resolved", () => {
  test("is served for its time to live without a request, then requested again", async () => {
    const names = open(patient);
    gateway.scripts.set("a", says("one"));
    expect(await find(names)).toBe(idOf("one"));
    gateway.scripts.set("a", says("two"));
    now += 59_999;
    expect(await find(names)).toBe(idOf("one"));
    expect(gateway.questions).toHaveLength(1);
    now += 1;
    expect(await find(names)).toBe(idOf("two"));
    expect(gateway.questions).toHaveLength(2);
    expect(await names.stats()).toContain("arns_cache_hit_total 1\n");
    expect(await names.stats()).toContain("arns_cache_miss_total 2\n");
  });

  const faults: readonly (readonly [string, NameScript])[] = [
    ["status 500", { status: 500 }],
    ["status 429", { status: 429 }],
    ["an invalid id", { status: 200, headers: { "X-ArNS-Resolved-Id": "none" } }],
    ["silence", "silent"],
  ];
  test.each(faults)("is served beyond its time to live during a fault: %s", async (_name, script) => {
    const names = open();
    gateway.scripts.set("a", says("one"));
    await find(names);
    gateway.scripts.set("a", script);
    now += 60_000;
    for (let round = 0; round < 20; round++) expect(await find(names)).toBe(idOf("one"));
    // Failing gateways are not asked with every request; a silent one is asked once and waited for.
    expect(gateway.questions).toHaveLength(2);
  });

  test.each(faults.slice(0, 3))("is never an absence of before a fault: %s", async (_name, script) => {
    const names = open();
    gateway.scripts.set("a", { status: 404 });
    expect(await find(names)).toBe("absent");
    gateway.scripts.set("a", script);
    now += 10_000;
    for (let round = 0; round < 3; round++) expect(await find(names)).toBe("source_failed");
  });

  test.each(faults.slice(0, 3))("is not given for ever: %s", async (_name, script) => {
    const names = open({ retentionMs: 100_000 });
    gateway.scripts.set("a", says("one"));
    await find(names);
    gateway.scripts.set("a", script);
    now += 99_999;
    expect(await find(names)).toBe(idOf("one"));
    now += 1;
    expect(await find(names)).toBe("source_failed");
  });

  test("is updated by a slow gateway as soon as its response arrives", async () => {
    const names = open();
    gateway.scripts.set("a", says("one"));
    await find(names);
    gateway.scripts.set("a", "silent");
    now += 60_000;
    expect(await find(names)).toBe(idOf("one"));
    await asked(2);
    gateway.speak(); // 404
    await until(async () => (await find(names)) === "absent");
    expect(gateway.questions).toHaveLength(2);
  });

  test("is refreshed to the end, though its reader already got the old response", async () => {
    const names = open();
    gateway.scripts.set("a", says("one"));
    await find(names);
    gateway.scripts.set("a", "silent");
    now += 60_000;
    const reader = new AbortController();
    expect((await names.find("a", 0, reader.signal)).response.kind).toBe("resolved");
    reader.abort(new Error("left"));
    await Bun.sleep(10); // for the asking to end, if it did
    await asked(2);
    gateway.speak(); // 404
    await until(async () => (await find(names)) === "absent");
    expect(gateway.questions).toHaveLength(2);
  });

  test("is gone when everybody says so", async () => {
    const names = open(patient);
    gateway.scripts.set("a", says("one"));
    await find(names);
    gateway.scripts.delete("a");
    now += 60_000;
    expect(await find(names)).toBe("absent");
  });

  test("makes space: no more names are stored than may be", async () => {
    const names = open({ storedMax: 10 });
    for (let index = 0; index < 50; index++) gateway.scripts.set(`n${index}`, says("one"));
    for (let index = 0; index < 50; index++) await find(names, `n${index}`);
    gateway.questions.length = 0;
    for (let index = 40; index < 50; index++) await find(names, `n${index}`);
    expect(gateway.questions).toHaveLength(0);
    await find(names, "n0");
    expect(gateway.questions).toHaveLength(1);
  });
});

describe("an unknown name", () => {
  test("is requested again after ten seconds", async () => {
    const names = open();
    for (let round = 0; round < 5; round++) expect(await find(names)).toBe("absent");
    expect(gateway.questions).toHaveLength(1);
    gateway.scripts.set("a", says("one"));
    now += 10_000;
    expect(await find(names)).toBe(idOf("one"));
  });

  test.each<readonly [string, NameScript, number, string]>([
    ["500", { status: 500 }, 1_000, "source_failed"],
    ["silence", "silent", 2_000, "source_timeout"],
  ])("is never derived from a fault (%s), which is not stored", async (_name, script, timeoutMs, code) => {
    const names = open({}, timeoutMs);
    gateway.scripts.set("a", script);
    expect(await find(names)).toBe(code);
    gateway.scripts.set("a", says("one"));
    expect(await find(names)).toBe(idOf("one"));
  });
});

describe("asking", () => {
  test("is done once for a hundred who want the same", async () => {
    const names = open();
    gateway.scripts.set("a", "silent");
    const asking = Array.from({ length: 100 }, () => find(names));
    await until(() => gateway.questions.length !== 0);
    gateway.speak();
    expect(new Set(await Promise.all(asking))).toEqual(new Set(["absent"]));
    expect(gateway.questions).toHaveLength(1);
  });

  test("goes on for the others when one leaves", async () => {
    const names = open();
    gateway.scripts.set("a", "silent");
    const leaver = new AbortController();
    const left = names.find("a", 0, leaver.signal).then(
      () => "resolved",
      (error: unknown) => String(error),
    );
    const stayed = find(names);
    await until(() => gateway.questions.length !== 0);
    leaver.abort(new Error("left"));
    expect(await left).toBe("Error: left");
    gateway.speak();
    expect(await stayed).toBe("absent");
  });

  test("passes the hops on, and ends where gateways ask one another", async () => {
    const names = open();
    for (const hops of [0, 1, 2]) await find(names, `n${hops}`, hops);
    expect(await find(names, "n3", 3)).toBe("source_failed");
    expect(gateway.questions.map(({ hops }) => hops)).toEqual(["1", "2", "3"]);
  });

  test("is not held up by another asking of the same name from further away", async () => {
    const names = open();
    gateway.scripts.set("a", "silent");
    const near = find(names, "a", 0);
    const far = find(names, "a", 2);
    await until(() => gateway.questions.length >= 2);
    gateway.speak();
    expect([await near, await far]).toEqual(["absent", "absent"]);
  });
});
