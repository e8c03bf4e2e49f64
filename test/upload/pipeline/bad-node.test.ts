/**
 * The whole way with everything real: uploads over sockets, threads, a ledger, the index, and a development chain behind
 * a socket that loses data, or that switches to another branch.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createDataItem } from "../../../src/arweave/data-item.ts";
import { createEd25519Signer } from "../../../src/arweave/signers/ed25519.ts";
import type { Devnet } from "../../../src/dev/devnet/devnet.ts";
import { openTestDevnet, serve } from "../../dev/devnet/support.ts";
import { type FaultyProxy, noFaults, openFaultyProxy } from "../../support/faulty-proxy.ts";
import { itemsOnChain } from "../../support/items-on-chain.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { seedOr } from "../../support/seed.ts";
import { testKey } from "../../support/signers.ts";
import { eventually } from "../../support/until.ts";
import { openUploadStack, sendItem, statusOf, type UploadStack } from "../../support/upload-stack.ts";

const seed = seedOr(1);
const signer = createEd25519Signer(testKey(31));
const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Item = Readonly<{ id: string; data: Uint8Array }>;

async function upload(stack: UploadStack, data: Uint8Array, name: string): Promise<Item> {
  const tags = [
    { name: "Content-Type", value: "application/x-test" },
    { name: "Name", value: name },
  ];
  const { id } = await sendItem(stack.uploads, createDataItem({ data, tags }, signer));
  return { id, data };
}

/** Mines while a test waits: the chain of a test has no other traffic. */
function keepMining(devnet: Devnet, everyMs = 40): () => void {
  const timer = setInterval(() => void devnet.mine(1), everyMs);
  return () => clearInterval(timer);
}

async function untilPermanent(stack: UploadStack, items: readonly Item[], timeoutMs = 60_000): Promise<void> {
  for (const { id } of items)
    await eventually(
      () => statusOf(stack.uploads, id),
      ({ info }) => info === "permanent",
      timeoutMs,
    );
}

describe("a node that loses things", () => {
  test("has every item in the end, each once: 30 % of chunks, a transaction, and a data root", async () => {
    const random: Random = createRandom(seed);
    const proxies: FaultyProxy[] = [];
    const stack = await openUploadStack({
      before: (url) => {
        const faults = { chunksDropped: 0.3, txsDropped: 1, rootsForgotten: 1 };
        const proxy = openFaultyProxy(url, random, faults);
        proxies.push(proxy);
        return proxy.url;
      },
    });
    cleanups.push(stack.close, async () => proxies[0]?.close());
    const stop = keepMining(stack.devnet, 150);
    cleanups.push(async () => stop());
    const items: Item[] = [];
    for (let round = 0; round < 12; round += 1) {
      const size = round % 4 === 0 ? 600_000 + random.below(900_000) : random.below(3_000);
      items.push(await upload(stack, random.bytes(size), `${seed}-${round}`));
      await Bun.sleep(random.below(120));
    }
    await untilPermanent(stack, items);
    const { lost } = proxies[0] as FaultyProxy;
    console.log(`lost: ${JSON.stringify(lost)}`);
    expect(lost).toMatchObject({ txs: 1, roots: 1 });
    expect(lost.chunks).toBeGreaterThan(0);
    expect(itemsOnChain(stack.devnet).sort()).toEqual(items.map(({ id }) => id).sort());
    for (const { id, data } of items) {
      const response = await fetch(`${stack.content}/raw/${id}`);
      expect(Buffer.compare(new Uint8Array(await response.arrayBuffer()), data)).toBe(0);
    }
  }, 120_000);
});

describe("the whole way of an item", () => {
  test("shows it at all times: content, GraphQL and status agree, and its file goes at the end", async () => {
    const stack = await openUploadStack({ environment: { UPLOAD_BUNDLE_WAIT_MS: "700" } });
    cleanups.push(stack.close);
    const data = createRandom(seed + 5).bytes(1_500_000);
    const item = await upload(stack, data, "whole way");
    const seen = new Set<string>();
    const query = async () => {
      const body = JSON.stringify({
        query: `{ transactions(ids: ["${item.id}"]) { edges { node { id bundledIn { id } block { height } } } } }`,
      });
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${stack.content}/graphql`, { method: "POST", body, headers });
      const { data: found }: { data: { transactions: { edges: { node: Found }[] } } } = await response.json();
      return found.transactions.edges.map(({ node }) => node);
    };
    type Found = { id: string; bundledIn: { id: string } | null; block: { height: number } | null };

    let isOver = false;
    const looking = (async () => {
      while (!isOver) {
        const before = await statusOf(stack.uploads, item.id);
        const nodes = await query();
        const after = await statusOf(stack.uploads, item.id);
        const content = await fetch(`${stack.content}/raw/${item.id}`);
        const bytes = new Uint8Array(await content.arrayBuffer());
        seen.add(`${after.info}${after.bundleId === undefined ? "" : "+bundle"}`);
        expect(content.status).toBe(200);
        expect(Buffer.compare(bytes, data)).toBe(0);
        expect(nodes.map(({ id }) => id)).toEqual([item.id]);
        const [node] = nodes;
        if (node?.bundledIn != null) expect(node.bundledIn.id).toBe(after.bundleId ?? "");
        expect(node?.block === null).toBe(node?.bundledIn === null);
        if (before.info === "permanent") expect(node?.block).not.toBeNull();
        await Bun.sleep(10);
      }
    })();
    const stop = keepMining(stack.devnet, 250);
    await untilPermanent(stack, [item]);
    await Bun.sleep(300); // time for more readings of the permanent state
    stop();
    isOver = true;
    await looking;
    expect([...seen]).toContain("permanent+bundle");

    // At the next start at the latest.
    await stack.restart();
    const ownFiles = join(stack.folder, "uploads/items");
    await eventually(
      async () => (existsSync(ownFiles) ? readdirSync(ownFiles).length : 0),
      (count) => count === 0,
    );
    const response = await fetch(`${stack.content}/raw/${item.id}`);
    expect(response.status).toBe(200);
    expect(Buffer.compare(new Uint8Array(await response.arrayBuffer()), data)).toBe(0);
  }, 120_000);
});

describe("a reorganization of the chain", () => {
  test("takes a bundle back, and has it again on the other branch, once", async () => {
    // Two chains with the same beginning: nothing but calls and clock make them different.
    const start = 1_700_000_000_000;
    const clock = () => start;
    const other = await openTestDevnet({ clock, seed: "branches" });
    const otherNode = serve(other);
    cleanups.push(otherNode.close, async () => other.close());
    const proxies: FaultyProxy[] = [];
    const stack = await openUploadStack({
      chain: { clock, seed: "branches" },
      environment: { UPLOAD_CONFIRMATIONS: "6" },
      before: (url) => {
        const proxy = openFaultyProxy(url, createRandom(seed), noFaults);
        proxies.push(proxy);
        return proxy.url;
      },
    });
    cleanups.push(stack.close, async () => proxies[0]?.close());
    await stack.devnet.mine(20);
    await other.mine(20);
    expect(stack.devnet.tipHash()).toBe(other.tipHash());
    await eventually(
      async () => stack.gateway.reader.tip()?.height,
      (height) => height === 20,
    );
    const item = await upload(stack, createRandom(seed).bytes(400_000), "reorganized");
    await eventually(
      async () => stack.devnet.pendingIds().length,
      (count) => count === 1,
    );
    await stack.devnet.mine(2);
    const { bundleId = "" } = await eventually(
      () => statusOf(stack.uploads, item.id),
      (status) => status.bundleId !== undefined,
    );
    await eventually(
      async () => stack.gateway.reader.transactionStatus(bundleId as never)?.height,
      (height) => height === 21,
    );

    await other.mine(5);
    proxies[0]?.setTarget(`http://127.0.0.1:${otherNode.port}`);
    await eventually(
      async () => stack.gateway.reader.block(25)?.hash,
      (hash) => hash === other.tipHash(),
    );
    expect(stack.gateway.reader.transactionStatus(bundleId as never)).toBeUndefined();
    expect((await fetch(`${stack.content}/raw/${item.id}`)).status).toBe(200);

    await eventually(
      async () => other.pendingIds(),
      (ids) => ids.includes(bundleId),
    );
    const stop = keepMining(other);
    await untilPermanent(stack, [item]);
    stop();
    expect(itemsOnChain(other)).toEqual([item.id]);
    expect((await statusOf(stack.uploads, item.id)).bundleId).toBe(bundleId);
  }, 120_000);
});
