/**
 * Blocks and transactions that never change are read before any route and then sent from memory: the same response as
 * that of their route, until their block leaves the chain.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import type { BlockHash, Id } from "../../src/arweave/id.ts";
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

/** A gateway with every block, and one transaction; `reads` counts those of records that never change. */
async function openFixture(isFinal = true) {
  const node = await openDataNode();
  closers.push(node.stop);
  const harness = openHarness({ nodeUrls: [node.url] });
  closers.push(harness.close);
  let reads = 0;
  const read = (text: string) => {
    reads += 1;
    return new TextEncoder().encode(text);
  };
  const textOf = (at: number | BlockHash) => `{"of":"${at}"}`;
  const transactionText = '{"data":""}';
  const gateway = openGatewayServer({
    content: harness.content,
    nodes: harness.nodes,
    reader: {
      ...emptyReader,
      tip: () => ({ height: tipHeight, hash, timestamp: 0 }),
      blockText: (at) => ({ text: textOf(at), checked: [], unchecked: [] }),
      finalBlock: (at) => (typeof at === "string" || at <= deepest ? read(textOf(at)) : undefined),
      transactionRecord: (of) =>
        of === id
          ? { height: 1, hash, confirmations: isFinal ? 19 : 18, text: transactionText, dataAt: null }
          : undefined,
      finalTransaction: (of) => (of === id && isFinal ? read(transactionText) : undefined),
    },
    settings: { responseCacheBytesMax: 2 ** 20 },
  });
  closers.push(gateway.close);
  /** Whether a request needs no read any more. */
  const isInMemory = (path: string) => {
    const before = reads;
    return gateway.gateway.hit(new Request(`${gateway.url}${path}`)) !== undefined && reads === before;
  };
  return { isInMemory, reads: () => reads, ...gateway };
}

async function responseTo(url: string, asked: Record<string, string> = {}) {
  const response = await fetch(url, { headers: asked });
  const headers = Object.fromEntries(response.headers);
  const isAtOnce = headers["x-request-id"] === undefined;
  delete headers["x-request-id"];
  delete headers["date"];
  return { isAtOnce, status: response.status, headers, body: await response.text() };
}

describe("a record that never changes", () => {
  test.each([`/block/height/${deepest}`, `/block/hash/${hash}`, `/tx/${id}`])(
    "gets the same response by its route, at its first request and from memory: %s",
    async (path) => {
      const { url, reads } = await openFixture();
      const byRoute = await responseTo(`${url}${path}`, { "X-Request-Id": "asked" });
      expect([byRoute.isAtOnce, reads()]).toEqual([false, 0]);
      const first = await responseTo(`${url}${path}`);
      expect([first.isAtOnce, reads()]).toEqual([true, 1]);
      expect(first).toEqual({ ...byRoute, isAtOnce: true });
      expect(await responseTo(`${url}${path}`)).toEqual(first);
      expect(reads()).toBe(1);
      expect(first.headers["cache-control"]).toBe("public, max-age=2592000, immutable");
      expect(first.headers["access-control-allow-origin"]).toBe("*");
    },
  );

  test.each([
    `/block/height/${deepest}?x`,
    `/block/height/0x10`,
    `/block/hash/${hash}a`,
    `/tx/${id}/`,
    `/tx/${id}/status`,
    `/${id}`,
  ])("is read for its own path only: %s", async (path) => {
    const { url, reads } = await openFixture();
    await responseTo(`${url}${path}`);
    expect(reads()).toBe(0);
  });

  test.each([
    ["a range", { Range: "bytes=0-1" }],
    ["a condition", { "If-None-Match": '"x"' }],
  ])("is sent by its route to a request with %s", async (_what, asked) => {
    const { url, reads } = await openFixture();
    expect((await responseTo(`${url}/block/height/${deepest}`, asked)).isAtOnce).toBe(false);
    expect(reads()).toBe(0);
  });

  test("leaves memory when the chain changes; a transaction also when it is blocked", async () => {
    const { url, isInMemory, gateway } = await openFixture();
    const isStored = async (path: string) => {
      await (await fetch(`${url}${path}`)).text();
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
    const { url, isInMemory } = await openFixture(false);
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
