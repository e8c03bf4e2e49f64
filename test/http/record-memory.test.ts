/**
 * Blocks and transactions that never change are sent from memory: the same response as the first, until their block
 * leaves the chain.
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

/** A gateway with every block, and one transaction. */
async function openFixture(confirmations = 19, dataAt: number | null = null) {
  const node = await openDataNode();
  closers.push(node.stop);
  const harness = openHarness({ nodeUrls: [node.url] });
  closers.push(harness.close);
  const gateway = openGatewayServer({
    content: harness.content,
    nodes: harness.nodes,
    reader: {
      ...emptyReader,
      tip: () => ({ height: tipHeight, hash, timestamp: 0 }),
      blockText: (at) => ({ text: `{"of":"${at}"}`, checked: [], unchecked: [] }),
      transactionRecord: (of) =>
        of === id ? { height: 1, hash, confirmations, text: '{"data":""}', dataAt } : undefined,
    },
    settings: { responseCacheBytesMax: 2 ** 20 },
  });
  closers.push(gateway.close);
  const isInMemory = (path: string) => gateway.gateway.hit(new Request(`${gateway.url}${path}`)) !== undefined;
  return { isInMemory, ...gateway };
}

async function responseTo(url: string) {
  const response = await fetch(url);
  const headers = Object.fromEntries(response.headers);
  const isAtOnce = headers["x-request-id"] === undefined;
  delete headers["x-request-id"];
  delete headers["date"];
  return { isAtOnce, status: response.status, headers, body: await response.text() };
}

describe("a record that never changes", () => {
  test.each([`/block/height/${deepest}`, `/block/hash/${hash}`, `/tx/${id}`])(
    "gets the same response from memory: %s",
    async (path) => {
      const { url, isInMemory } = await openFixture();
      const first = await responseTo(`${url}${path}`);
      expect(isInMemory(path)).toBe(true);
      const second = await responseTo(`${url}${path}`);
      expect([first.isAtOnce, second.isAtOnce]).toEqual([false, true]);
      expect(second).toEqual({ ...first, isAtOnce: true });
      expect(second.headers["cache-control"]).toBe("public, max-age=2592000, immutable");
      expect(second.headers["access-control-allow-origin"]).toBe("*");
    },
  );

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
    const { url, isInMemory } = await openFixture(18);
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
