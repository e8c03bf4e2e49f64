/**
 * Blocks of content that the index does not have: transactions from before the first block that is followed, and an
 * item in one of their bundles, by every way in which nodes' bytes are passed on.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { readItemHeader } from "../../src/arweave/data-item.ts";
import type { Id } from "../../src/arweave/id.ts";
import type { Transaction } from "../../src/arweave/transaction.ts";
import { post, rsa, testBytes } from "../dev/devnet/support.ts";
import { bundleTags, makeItem } from "../indexing/samples.ts";
import { openStack, type Stack } from "../support/stack.ts";

const key = "elsewhere-key";
const large = testBytes(600_000, 21);
const small = testBytes(900, 22);
// Data of format 1 must not end with a digit.
const carried = Uint8Array.from([...testBytes(5_000, 23), 0xff]);
const items = [makeItem(testBytes(300_000, 24)), makeItem("what must not be seen"), makeItem("what may")];
const bundleData = writeBundle(items);
const innermost = makeItem("what is in a bundle within a bundle");
const nested = makeItem(writeBundle([innermost]), { tags: bundleTags });

let stack: Stack;
let chunked: Transaction;
let single: Transaction;
let old: Transaction;
let bundle: Transaction;
let outer: Transaction;
let secret: Id;
let innermostId: Id;
let nestedId: Id;
/** Absolute offset of the last byte of each transaction's data, counted from one. */
const ends = new Map<string, bigint>();

beforeAll(async () => {
  stack = await openStack({ ADMIN_API_KEY: key, START_HEIGHT: "30", ENABLE_MEMPOOL_WATCHER: "false" });
  const { devnet, node } = stack;
  chunked = await post(devnet, rsa, { data: large });
  single = await post(devnet, rsa, { data: small });
  old = await post(devnet, rsa, { format: 1, data: carried });
  bundle = await post(devnet, rsa, { data: bundleData, tags: [...bundleTags] });
  outer = await post(devnet, rsa, { data: writeBundle([nested]), tags: [...bundleTags] });
  await devnet.mine(40);
  await stack.settled();
  for (const { id } of [chunked, single, old, bundle])
    ends.set(id, BigInt((await (await node.get(`/tx/${id}/offset`)).json()).offset));
  secret = idOf(items[1]);
  innermostId = idOf(innermost);
  nestedId = idOf(nested);
  expect(stack.gateway.reader.placeOf(chunked.id)).toBeUndefined();
}, 120_000);
afterAll(() => stack.close());

function idOf(item: Uint8Array | undefined): Id {
  const read = readItemHeader(item ?? new Uint8Array(0), "strict");
  if (read.kind !== "header") throw new Error("the test's item is an item");
  return read.header.id;
}

async function put(path: string, body: object): Promise<void> {
  const url = `${stack.gateway.url}/svc/admin/${path}`;
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(url, { method: "PUT", headers, body: JSON.stringify(body) });
  expect([response.status, await response.text()]).toEqual([200, ""]);
}

type Ask = readonly [path: string, headers?: Readonly<Record<string, string>>];

async function statusesOf(asks: readonly Ask[]): Promise<string[]> {
  const statuses: string[] = [];
  for (const [path, headers = {}] of asks)
    for (const method of ["GET", "HEAD"]) {
      const response = await fetch(`${stack.gateway.url}${path}`, { method, headers });
      await response.arrayBuffer();
      statuses.push(`${method} ${path} ${JSON.stringify(headers)} ${response.status}`);
    }
  return statuses;
}

/** Expects that the content is served, is blocked at once and after a restart, and is served again. */
async function expectBlocked(rule: object, asks: readonly Ask[], spared: readonly Ask[]): Promise<void> {
  const open = await statusesOf(asks);
  expect(open.filter((status) => !/ 20[06]$/.test(status))).toEqual([]);
  const free = await statusesOf(spared);
  expect(free.filter((status) => !/ 20[06]$/.test(status))).toEqual([]);
  await put("block-data", rule);
  for (let round = 0; round < 2; round++) {
    expect((await statusesOf(asks)).filter((status) => !status.endsWith(" 451"))).toEqual([]);
    expect(await statusesOf(spared)).toEqual(free);
    await stack.restart();
    await stack.settled();
  }
  await put("unblock-data", rule);
  expect(await statusesOf(asks)).toEqual(open);
}

const hashOf = (data: Uint8Array) => createHash("sha256").update(data).digest("base64url");
const chunkAt = (id: string, fromEnd: number): Ask[] => {
  const offset = (ends.get(id) ?? 0n) - BigInt(fromEnd);
  return [[`/chunk/${offset}`], [`/chunk/${offset}/data`]];
};
const contentOf = (id: string): Ask[] => [
  [`/${id}`],
  [`/raw/${id}`],
  [`/raw/${id}`, { range: "bytes=0-9" }],
  [`/tx/${id}/data`],
];

describe("what the index does not have is rejected", () => {
  test("by id, in chunks", async () => {
    const asks = [...contentOf(chunked.id), ...chunkAt(chunked.id, 0), ...chunkAt(chunked.id, 599_000)];
    await expectBlocked({ id: chunked.id }, asks, [...contentOf(single.id), ...chunkAt(single.id, 0)]);
  }, 120_000);

  test("by id, with the record that carries its data", async () => {
    const asks: Ask[] = [...contentOf(old.id), [`/tx/${old.id}`], [`/unconfirmed_tx/${old.id}`]];
    await expectBlocked({ id: old.id }, asks, contentOf(single.id));
  }, 120_000);

  test("by hash, whole or as the one chunk that it is", async () => {
    const asks = [...contentOf(single.id), ...chunkAt(single.id, 0)];
    await expectBlocked({ hash: hashOf(small) }, asks, contentOf(chunked.id));
    const record: Ask[] = [...contentOf(old.id), [`/tx/${old.id}`], [`/unconfirmed_tx/${old.id}`]];
    await expectBlocked({ hash: hashOf(carried) }, record, contentOf(chunked.id));
    await expectBlocked({ hash: hashOf(large) }, contentOf(chunked.id), contentOf(single.id));
  }, 120_000);

  test("by the id of an item that was found in a bundle: wherever its bytes are", async () => {
    const hint = { "x-ar-io-root-transaction-id": bundle.id };
    const start = bundleData.length - (items[2]?.length ?? 0) - "what must not be seen".length;
    const asks: Ask[] = [
      [`/${secret}`, hint],
      [`/raw/${bundle.id}`],
      [`/raw/${bundle.id}`, { range: `bytes=${start}-${start}` }],
      [`/tx/${bundle.id}/data`],
      ...chunkAt(bundle.id, bundleData.length - start - 1),
    ];
    const spared: Ask[] = [
      [`/raw/${bundle.id}`, { range: "bytes=0-999" }],
      [`/raw/${bundle.id}`, { range: "bytes=-100" }],
      ...chunkAt(bundle.id, bundleData.length - 10),
    ];
    await expectBlocked({ id: secret }, asks, spared);
  }, 120_000);

  test("by the id of a bundle that contains an item of unknown position", async () => {
    const hint = { "x-ar-io-root-transaction-id": outer.id };
    const asks: Ask[] = [
      [`/${innermostId}`, hint],
      [`/raw/${innermostId}`, hint],
      [`/raw/${innermostId}`, { ...hint, range: "bytes=0-3" }],
    ];
    await expectBlocked({ id: nestedId }, asks, contentOf(single.id));
    await expectBlocked({ id: outer.id }, asks, contentOf(single.id));
  }, 120_000);
});
