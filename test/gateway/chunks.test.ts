/**
 * Chunks that the gateway has not got: fetched once, however many ask, and stored with their proofs.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { assert } from "../../src/lib/assert.ts";
import { isChunkRequest } from "../chain/data-node.ts";
import { type FaultServer, openFaultProxy } from "../chain/fault-server.ts";
import { post, rsa, testBytes } from "../dev/devnet/support.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { eventually } from "../support/until.ts";

const data = testBytes(1_400_000, 12);
const chunk = 256 * 1_024;
let stack: Stack;
let node: FaultServer;
/** Weave offset of the data's first byte, counted from 1 as on the wire. */
let first: bigint;

beforeAll(async () => {
  const opened: { node?: FaultServer } = {};
  stack = await openStack({ HOT_BYTES_MAX: "0" }, {}, async (nodeUrl) => {
    opened.node = await openFaultProxy(nodeUrl);
    return opened.node.url;
  });
  assert(opened.node !== undefined, "the node was opened before the gateway");
  node = opened.node;
  const { id } = await post(stack.devnet, rsa, { data });
  await stack.devnet.mine(1);
  await stack.settled();
  first = (stack.gateway.reader.weaveSpan(id)?.start ?? 0n) + 1n;
}, 120_000);
afterAll(async () => {
  await stack.close();
  await node.stop();
});

const fetches = () => node.requests.filter(isChunkRequest).length;

/** Requests the chunk that contains a byte of the data. @returns Its first byte in the data. */
async function startOf(at: number, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(`${stack.gateway.url}/chunk/${first + BigInt(at)}/data`, { headers });
  const bytes = Buffer.from(await response.arrayBuffer());
  const start = Number(response.headers.get("x-arweave-chunk-relative-start-offset"));
  expect([response.status, response.headers.get("x-ar-io-verified")]).toEqual([200, "true"]);
  expect(bytes.equals(Buffer.from(data.subarray(start, start + bytes.length)))).toBe(true);
  expect(start <= at && at < start + bytes.length).toBe(true);
  return start;
}

test("a chunk is fetched once for 40 concurrent requests, by any of its bytes, and then not again", async () => {
  node.setFault(({ path }) => (isChunkRequest(path) ? { kind: "delay", ms: 50 } : undefined));
  const starts = await Promise.all(Array.from({ length: 40 }, (_, index) => startOf(2 * chunk + index * 1_000)));
  expect([new Set(starts), fetches()]).toEqual([new Set([2 * chunk]), 1]);
  // The first responses also write the chunk to the disk: later requests are served from there.
  const fetchedFor = async (at: number) => {
    const before = fetches();
    await startOf(at);
    return fetches() - before;
  };
  await eventually(
    () => fetchedFor(2 * chunk),
    (more) => more === 0,
  );
  expect(await fetchedFor(3 * chunk - 1)).toBe(0);
});

test("200 readers of one address all get a response, though its share of memory holds fewer responses", async () => {
  const starts = await Promise.all(Array.from({ length: 200 }, (_, index) => startOf(2 * chunk + index * 1_000)));
  expect(new Set(starts)).toEqual(new Set([2 * chunk]));
});

test("another chunk is another fetch; fetched chunks are served without the node, and to ranges of the data", async () => {
  const before = fetches();
  await startOf(0);
  await startOf(data.length - 1);
  expect(fetches()).toBe(before + 2);
  for (const at of [0, data.length - 1])
    await eventually(
      async () => {
        const asked = fetches();
        await startOf(at);
        return fetches() - asked;
      },
      (more) => more === 0,
    );
  node.setFault(() => ({ kind: "reset" }));
  for (const at of [5, 2 * chunk + 5, data.length - 5]) {
    await startOf(at);
    await startOf(at, { "x-ar-io-hops": "1" });
  }
  const failed = await fetch(`${stack.gateway.url}/chunk/${first + BigInt(chunk)}`);
  expect(failed.status).toBe(502);
  node.setFault(() => undefined);
  await startOf(chunk);
});
