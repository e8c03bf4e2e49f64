/**
 * Following the development chain: blocks of the newest shape, data by chunks with their proofs, pending
 * transactions.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { checkItem } from "../../src/arweave/data-item.ts";
import type { Id } from "../../src/arweave/id.ts";
import type { Devnet } from "../../src/dev/devnet/devnet.ts";
import { utf8Bytes } from "../../src/lib/bytes.ts";
import { pendingHeight } from "../../src/store/index/place.ts";
import { checkBlock } from "../../workers/verify.ts";
import { chunkPosts, ecdsa, openTestDevnet, post, rsa, serve, statedOf, type TestNode } from "../dev/devnet/support.ts";
import { openWhole, untilWhole, type Whole } from "./indexing-fixture.ts";
import { bundleTags, makeItem, makeItems, makeNested, openFolder, signers } from "./samples.ts";

const none = new AbortController().signal;
const folder = openFolder();
let devnet: Devnet;
let node: TestNode;
let whole: Whole;
const seen: { blocks: number[]; items: Set<Id>; rollbacks: number[] } = {
  blocks: [],
  items: new Set(),
  rollbacks: [],
};

beforeAll(async () => {
  devnet = await openTestDevnet();
  node = serve(devnet);
  whole = await openWhole({
    folder: folder.path,
    nodeUrls: [`http://127.0.0.1:${node.port}`],
    isMempoolWatched: true,
    times: { goneGraceMs: 50 },
    hooks: {
      onBlock: ({ height }) => seen.blocks.push(height),
      onItems: (ids) => {
        for (const id of ids) seen.items.add(id);
      },
      onRollback: (height) => seen.rollbacks.push(height),
    },
  });
});

afterAll(async () => {
  await whole.close();
  await node.close();
  devnet.close();
  folder.remove();
});

function untilFollowed(): Promise<void> {
  return untilWhole("the tip is followed", () => whole.reader.tip()?.hash === devnet.tipHash(), whole);
}

async function textOf(id: Id): Promise<string> {
  const open = await whole.content.open(id, none);
  return Buffer.from(await open.bytes({ start: 0, end: open.size }, none)).toString();
}

function idOf(item: Uint8Array): Id {
  const checked = checkItem(item, "strict");
  if (checked.kind !== "item") throw new Error(checked.reason);
  return checked.header.id;
}

describe("the development chain", () => {
  test("a transaction is pending as soon as it is posted, and mined in its place", async () => {
    const transaction = await post(devnet, rsa, { format: 1, data: utf8Bytes("waits a moment") });
    await untilWhole("it is pending", () => whole.reader.placeOf(transaction.id)?.height === pendingHeight, whole);
    expect(whole.reader.locate(transaction.id)).toMatchObject({ pending: true, stable: false, size: 14 });
    await untilWhole("it was notified", () => seen.items.has(transaction.id), whole);
    await devnet.mine(1);
    await untilFollowed();
    expect(whole.reader.placeOf(transaction.id)).toEqual({ height: devnet.height(), txIndex: 0, offset: -1 });
    expect(whole.reader.counts().pendingTransactions).toBe(0);
    expect(await textOf(transaction.id)).toBe("waits a moment");
    expect(seen.blocks.at(-1)).toBe(devnet.height());
  });

  test("a pending transaction that leaves the mempool is dropped, also one from before a restart", async () => {
    const transaction = await post(devnet, ecdsa, { data: utf8Bytes("never mined") });
    await untilWhole("it is pending", () => whole.reader.placeOf(transaction.id) !== undefined, whole);
    devnet.reset();
    await untilWhole("it is gone", () => whole.reader.placeOf(transaction.id) === undefined, whole);
    await untilFollowed();
    await untilWhole("the rollback was notified", () => seen.rollbacks.length > 0, whole);
  });

  test("a bundle of a thousand items whose chunks come after its block is indexed when they are there", async () => {
    const items = [
      ...makeItems(960),
      ...signers.map((signer) => makeItem("signed", {}, signer)),
      makeNested(makeItems(32, "within")),
    ];
    const data = writeBundle(items);
    const root = await post(devnet, rsa, { stated: statedOf(data), tags: [...bundleTags] });
    await devnet.mine(1);
    await untilFollowed();
    expect(whole.reader.counts().items).toBe(0);
    for (const chunk of chunkPosts(data)) expect((await node.post("/chunk", chunk)).status).toBe(200);
    await untilWhole("all items are there", () => whole.reader.counts().items === 1_000, whole);
    await untilWhole("nothing is left to do", () => whole.reader.counts().bundlesQueued === 0, whole);
    expect(whole.reader.bundleStatus(root.id)).toMatchObject({
      dataItemCount: 968,
      matchedDataItemCount: 968,
    });
    expect(await textOf(idOf(items[17]!))).toBe("item 17");
    expect(await textOf(idOf(makeItems(32, "within")[31]!))).toBe("within 31");
    expect(seen.items.has(idOf(items[959]!))).toBe(true);
    expect(whole.reader.locate(idOf(items[959]!))).toMatchObject({ verified: true, rootId: root.id });
  });

  test("a reset of the chain is followed: what was there is gone", async () => {
    await post(devnet, rsa, { data: utf8Bytes("before") });
    await devnet.mine(3);
    await untilFollowed();
    devnet.reset();
    const transaction = await post(devnet, rsa, { data: utf8Bytes("after") });
    await devnet.mine(1);
    await untilFollowed();
    await untilWhole("the bundle's items are gone", () => whole.reader.counts().items === 0, whole);
    expect(await textOf(transaction.id)).toBe("after");
    expect(whole.reader.counts()).toMatchObject({ blocks: devnet.height() + 1, bundles: 0 });
    expect(whole.reader.integrity()).toEqual([]);
  });

  test("one wrong byte anywhere in a block is rejected", async () => {
    await post(devnet, rsa, { data: utf8Bytes("in the block") });
    await post(devnet, ecdsa, { format: 2, data: utf8Bytes("too") });
    const height = (await devnet.mine(1)).height;
    const text = await (await node.get(`/block/height/${height}`)).text();
    const previous = await (await node.get(`/block/height/${height - 1}`)).text();
    const ids: string[] = JSON.parse(text).txs;
    const transactions = await Promise.all(ids.map(async (id) => await (await node.get(`/tx/${id}`)).bytes()));
    const job = { block: text, transactions, previous, isMainNet: false };
    const whole = checkBlock(job);
    expect(whole.kind).toBe("accepted");
    const passed: string[] = [];
    for (let at = 0; at < text.length; at += 1) {
      const block = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);
      if (checkBlock({ ...job, block }).kind === "accepted") passed.push(`${at}: ${text.slice(at - 10, at + 10)}`);
    }
    expect(passed).toEqual([]);
  }, 120_000);
});
