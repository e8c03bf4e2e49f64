/**
 * X-Cache, and the metrics that count by it: HIT means that no byte of the response came from another machine.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Id } from "../../src/arweave/id.ts";
import { assert } from "../../src/lib/assert.ts";
import { isChunkRequest } from "../chain/data-node.ts";
import { type FaultServer, openFaultProxy } from "../chain/fault-server.ts";
import { post, rsa, testBytes } from "../dev/devnet/support.ts";
import { openStack, type Stack } from "../support/stack.ts";

const chunk = 256 * 1_024;
let stack: Stack;
let node: FaultServer;

beforeAll(async () => {
  const opened: { node?: FaultServer } = {};
  stack = await openStack({}, {}, async (nodeUrl) => {
    opened.node = await openFaultProxy(nodeUrl);
    return opened.node.url;
  });
  assert(opened.node !== undefined, "the node was opened before the gateway");
  node = opened.node;
}, 120_000);
afterAll(async () => {
  await stack.close();
  await node.stop();
});

/** Data of several chunks on the chain. */
async function mined(size: number, seed: number): Promise<Readonly<{ id: Id; data: Uint8Array }>> {
  const data = testBytes(size, seed);
  const { id } = await post(stack.devnet, rsa, { data });
  await stack.devnet.mine(1);
  await stack.settled();
  return { id, data };
}

/** What a response says, and whether a chunk was fetched for it. */
async function ask(id: Id, range?: string, method = "GET"): Promise<[number, string | null, boolean]> {
  const before = chunkFetches();
  const headers = range === undefined ? {} : { range };
  const response = await fetch(`${stack.gateway.url}/raw/${id}`, { method, headers });
  await response.arrayBuffer();
  return [response.status, response.headers.get("x-cache"), chunkFetches() > before];
}

const chunkFetches = () => node.requests.filter(isChunkRequest).length;

async function counted(): Promise<Record<string, number>> {
  const text = await (await fetch(`${stack.gateway.url}/metrics`)).text();
  const lines = text.matchAll(/^contiguous_data_cache_(hit|miss)_total\{request_type="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...lines].map(([, kind, type, count]) => [`${type} ${kind}`, Number(count)]));
}

test("a range is a MISS once and then a HIT, though the rest of the content is elsewhere", async () => {
  const { id } = await mined(6 * chunk, 1);
  const before = await counted();
  expect(await ask(id, "bytes=100-199")).toEqual([206, "MISS", true]);
  for (let count = 0; count < 4; count += 1) expect(await ask(id, "bytes=100-199")).toEqual([206, "HIT", false]);
  expect(await ask(id, `bytes=${chunk - 5}-${chunk - 1}`)).toEqual([206, "HIT", false]);
  expect(await ask(id, "bytes=100-199", "HEAD")).toEqual([206, "HIT", false]);
  const after = await counted();
  const more = (name: string) => (after[name] ?? 0) - (before[name] ?? 0);
  expect([more("range miss"), more("range hit"), more("full miss"), more("full hit")]).toEqual([1, 6, 0, 0]);
});

test("several ranges are a HIT when every one is here", async () => {
  const { id } = await mined(6 * chunk, 2);
  await ask(id, "bytes=0-9");
  const both = `bytes=0-9,${5 * chunk}-${5 * chunk + 9}`;
  expect(await ask(id, both)).toEqual([206, "MISS", true]);
  expect(await ask(id, both)).toEqual([206, "HIT", false]);
});

test("content of which a part is here is a MISS, and then a HIT; a range of it as well", async () => {
  const { id } = await mined(6 * chunk, 3);
  await ask(id, "bytes=0-9");
  expect(await ask(id)).toEqual([200, "MISS", true]);
  expect(await ask(id)).toEqual([200, "HIT", false]);
  expect(await ask(id, "bytes=-10")).toEqual([206, "HIT", false]);
});

test("a small body is a HIT from memory, its ranges too", async () => {
  const { id } = await mined(3_000, 4);
  expect(await ask(id)).toEqual([200, "MISS", true]);
  expect(await ask(id)).toEqual([200, "HIT", false]);
  expect(await ask(id, "bytes=5-9")).toEqual([206, "HIT", false]);
});

test("responses without content count neither as hit nor as miss", async () => {
  const { id } = await mined(3_001, 5);
  await ask(id);
  const before = await counted();
  expect((await ask(id, "bytes=5000-"))[0]).toBe(416);
  const tag = (await fetch(`${stack.gateway.url}/raw/${id}`, { method: "HEAD" })).headers.get("etag") ?? "";
  const response = await fetch(`${stack.gateway.url}/raw/${id}`, { headers: { "if-none-match": tag } });
  expect(response.status).toBe(304);
  const after = await counted();
  expect([after["range miss"], after["range hit"], after["full miss"]]).toEqual([
    before["range miss"],
    before["range hit"],
    before["full miss"],
  ]);
});
