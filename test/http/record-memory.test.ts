/**
 * Blocks and transactions that never change are read without the router and sent from memory once they are requested
 * repeatedly: the same response as that of their route, until their block leaves the chain.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import type { BlockHash, Id } from "../../src/arweave/id.ts";
import type { Gateway, GatewaySettings } from "../../src/http/gateway/gateway.ts";
import { bodySizeOf, heldMemoryOf } from "../../src/http/responses.ts";
import { openDataNode } from "../chain/data-node.ts";
import { openHarness } from "../content/content-harness.ts";
import { emptyReader, openGatewayServer } from "../support/gateway-server.ts";

const tipHeight = 1_000;
/** The highest block that no fork replaces. */
const deepest = tipHeight - 18;
const hash = "h".repeat(64) as BlockHash;
const id = "g".repeat(43) as Id;
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/**
 * A gateway with every block, and one transaction.
 * @param read - Reads a record that never changes; undefined: its route has to.
 */
async function openFixture({ isFinal = true, read = bytesOf, settings = {} }: FixtureOptions = {}) {
  const node = await openDataNode();
  closers.push(node.stop);
  const harness = openHarness({ nodeUrls: [node.url] });
  closers.push(harness.close);
  let reads = 0;
  const counted = (text: string) => {
    reads += 1;
    return read(text);
  };
  const textOf = (at: number | BlockHash) => `{"of":"${at}"}`;
  const transaction = { height: 1, hash, confirmations: isFinal ? 19 : 18, text: '{"data":""}', dataAt: null };
  const gateway = openGatewayServer({
    content: harness.content,
    nodes: harness.nodes,
    reader: {
      ...emptyReader,
      tip: () => ({ height: tipHeight, hash, timestamp: 0 }),
      blockText: (at) => ({ text: textOf(at), checked: [], unchecked: [] }),
      finalBlock: (at) => (typeof at === "string" || at <= deepest ? counted(textOf(at)) : undefined),
      transactionRecord: (of) => (of === id ? transaction : undefined),
      finalTransaction: (of) => (of === id && isFinal ? counted(transaction.text) : undefined),
    },
    settings: { responseCacheBytesMax: 2 ** 20, ...settings },
  });
  closers.push(gateway.close);
  const isInMemory = (path: string) => gateway.gateway.hit(new Request(`${gateway.url}${path}`)) !== undefined;
  return { isInMemory, reads: () => reads, ...gateway };
}

type FixtureOptions = Readonly<{
  isFinal?: boolean;
  read?: (text: string) => Uint8Array<ArrayBuffer> | undefined;
  settings?: Partial<GatewaySettings>;
}>;

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

async function responseTo(url: string, init: RequestInit = {}) {
  const response = await fetch(url, init);
  const headers = Object.fromEntries(response.headers);
  const isAtOnce = headers["x-request-id"] === undefined;
  delete headers["x-request-id"];
  delete headers["date"];
  return { isAtOnce, status: response.status, headers, body: await response.text() };
}

/** What lines about requests say of them, but for what differs between any two. */
function completed(lines: readonly Record<string, unknown>[]) {
  return lines
    .filter(({ message }) => message === "request completed")
    .map(({ requestId: _id, time: _time, durationMs: _duration, ...line }) => line);
}

/** Reads a record without the server around it. */
function read({ finalRecord }: Pick<Gateway, "finalRecord">, path: string): Response | undefined {
  return finalRecord({ scheme: "http", host: "gateway.example", path, query: "" })?.()?.response;
}

const recordPaths = [`/block/height/${deepest}`, `/block/hash/${hash}`, `/tx/${id}`];

describe("a record that never changes", () => {
  test.each(recordPaths)("gets the same response by its route, without it, and from memory: %s", async (path) => {
    const routed = await openFixture({ read: () => undefined });
    const byRoute = await responseTo(`${routed.url}${path}`);
    const { url, reads, isInMemory, lines } = await openFixture();
    expect(await responseTo(`${url}${path}`)).toEqual(byRoute);
    expect([isInMemory(path), reads()]).toEqual([false, 1]);
    expect(completed(lines)).toHaveLength(1);
    expect(completed(lines)).toEqual(completed(routed.lines));
    expect(await responseTo(`${url}${path}`)).toEqual(byRoute);
    expect([isInMemory(path), reads()]).toEqual([true, 2]);
    expect(await responseTo(`${url}${path}`)).toEqual({ ...byRoute, isAtOnce: true });
    expect(reads()).toBe(2);
    expect(byRoute.headers["cache-control"]).toBe("public, max-age=2592000, immutable");
    expect(byRoute.headers["access-control-allow-origin"]).toBe("*");
  });

  test.each([
    ["HEAD", { method: "HEAD" }],
    ["a range", { headers: { Range: "bytes=0-1" } }],
    ["a condition", { headers: { "If-None-Match": '"x"' } }],
  ])("gets the same response to %s by its route and without it", async (_what, init) => {
    const routed = await openFixture({ read: () => undefined });
    const { url } = await openFixture();
    for (const path of recordPaths)
      expect(await responseTo(`${url}${path}`, init)).toEqual(await responseTo(`${routed.url}${path}`, init));
  });

  test("is read each time above 256 KiB, where it is not in memory", async () => {
    const long = (size: number) => new Uint8Array(size).fill(0x20);
    for (const [size, expected] of [
      [256 * 2 ** 10, 2],
      [256 * 2 ** 10 + 1, 3],
    ] as const) {
      const { url, reads } = await openFixture({
        read: () => long(size),
        settings: { responseCacheBytesMax: 2 ** 22 },
      });
      for (let time = 0; time < 3; time += 1)
        expect((await responseTo(`${url}/block/height/${deepest}`)).body.length).toBe(size);
      expect([size, reads()]).toEqual([size, expected]);
    }
  });

  test("is not cached for a client that walks the chain, but when it is requested again soon", async () => {
    const { gateway, isInMemory } = await openFixture();
    const isCachedBy = (number: number): boolean => {
      const path = `/block/hash/${String(number).padStart(64, "0")}`;
      expect(read(gateway, path)?.status).toBe(200);
      return isInMemory(path);
    };
    const blocks = Array.from({ length: 10_000 }, (_, number) => number);
    for (let time = 0; time < 2; time += 1) expect(blocks.filter(isCachedBy).length).toBeLessThan(10);
    const few = Array.from({ length: 200 }, (_, number) => -1 - number);
    expect(few.filter(isCachedBy)).toEqual([]);
    expect(few.filter(isCachedBy).length).toBeGreaterThan(few.length / 2);
  });

  test.each([
    [2 ** 14 - 1, "bytes", "shared"],
    [2 ** 14, "shared", "shared"],
    [2 ** 18, "shared", "shared"],
    [2 ** 18 + 1, "bytes", "bytes"],
  ])("holds memory that is counted: of %d bytes, when first requested %p, then %p", async (size, first, then) => {
    const settings = { responseCacheBytesMax: 2 ** 22 };
    const { gateway } = await openFixture({ read: () => new Uint8Array(size), settings });
    const noted = [1, 2].map(() => {
      const response = read(gateway, `/block/height/${deepest}`);
      return response && `${heldMemoryOf(response)?.kind} ${bodySizeOf(response)}`;
    });
    expect(noted).toEqual([`${first} ${size}`, `${then} ${size}`]);
  });

  test("is read by its route, which reports the error, where the read fails", async () => {
    const fails = () => {
      throw new Error("damaged");
    };
    const { url, reads, isInMemory, lines } = await openFixture({ read: fails });
    const { status, body } = await responseTo(`${url}/block/height/${deepest}`);
    expect([status, body, reads()]).toEqual([200, `{"of":"${deepest}"}`, 1]);
    expect(lines.filter(({ level }) => level === "warn")).toHaveLength(1);
    expect(isInMemory(`/block/height/${deepest}`)).toBe(false);
  });

  test.each([`/block/height/${deepest}/x`, "/block/height/0x10", `/block/hash/${hash}a`, `/tx/${id}/status`, `/${id}`])(
    "is read for its own path only: %s",
    async (path) => {
      const { url, reads } = await openFixture();
      await responseTo(`${url}${path}`);
      expect(reads()).toBe(0);
    },
  );

  test("is read for the gateway's own hosts only", async () => {
    const { url, reads } = await openFixture({ settings: { rootHosts: ["root.example"] } });
    const to = (host: string) => responseTo(`${url}/tx/${id}`, { headers: { Host: host } });
    await to("some-name.root.example");
    expect(reads()).toBe(0);
    expect((await to("root.example")).status).toBe(200);
    expect(reads()).toBe(1);
  });

  test("leaves memory when the chain changes; a transaction also when it is blocked", async () => {
    const { url, isInMemory, gateway } = await openFixture();
    const isStored = async (path: string) => {
      for (let time = 0; time < 2; time += 1) await (await fetch(`${url}${path}`)).text();
      return isInMemory(path);
    };
    expect(await isStored(`/tx/${id}`)).toBe(true);
    gateway.forget("A".repeat(43) as Id);
    expect(isInMemory(`/tx/${id}`)).toBe(true);
    gateway.forget(id);
    expect(isInMemory(`/tx/${id}`)).toBe(false);
    expect(await isStored(`/block/height/${deepest}`)).toBe(true);
    gateway.forgetAll();
    expect(isInMemory(`/block/height/${deepest}`)).toBe(false);
  });
});

describe("a record that may change is read each time", () => {
  test("a block that a fork may replace", async () => {
    const { url, isInMemory } = await openFixture();
    const path = `/block/height/${deepest + 1}`;
    expect((await responseTo(`${url}${path}`)).headers["cache-control"]).toBeUndefined();
    expect(isInMemory(path)).toBe(false);
  });

  test("a transaction of such a block", async () => {
    const { url, isInMemory } = await openFixture({ isFinal: false });
    expect((await responseTo(`${url}/tx/${id}`)).headers["cache-control"]).toBeUndefined();
    expect(isInMemory(`/tx/${id}`)).toBe(false);
  });

  test("the status and the fields of a transaction", async () => {
    const { url, isInMemory } = await openFixture();
    for (const path of [`/tx/${id}/status`, `/tx/${id}/data_root`, "/block/current"]) {
      await responseTo(`${url}${path}`);
      expect([path, isInMemory(path)]).toEqual([path, false]);
    }
  });
});
