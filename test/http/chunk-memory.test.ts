/**
 * Chunks served from memory: the same response as the first, dropped with its block or data, without eviction of
 * content.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import type { BlockHash, Id } from "../../src/arweave/id.ts";
import { buildTxTree } from "../../src/arweave/tx-root.ts";
import { minerWallet } from "../../src/dev/devnet/wallets.ts";
import { writeJson } from "../../src/lib/json.ts";
import { makeData, openDataNode } from "../chain/data-node.ts";
import { isSame, locatedOf, openHarness } from "../content/content-harness.ts";
import { emptyReader, openGatewayServer } from "../support/gateway-server.ts";
import { makeSample } from "../support/sample-block.ts";

const kib256 = 262_144;
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A gateway that followed a transaction of ten chunks, which a node has. The block's tree may be unavailable. */
async function openFixture(tipHeight: number, responseCacheBytesMax = 64 * 2 ** 20, blocks = { areKnown: true }) {
  const data = makeData(1, 10 * kib256);
  const node = await openDataNode(data);
  closers.push(node.stop);
  const harness = openHarness({ nodeUrls: [node.url] });
  closers.push(harness.close);
  const { id, dataRoot, size, weaveStart = 0n } = data.root;
  harness.index.set(id, locatedOf(id, data.root));
  const place = { height: 100, txIndex: 0, offset: -1 };
  const span = { id, place, start: weaveStart, end: weaveStart + BigInt(size), format: 2, dataRoot } as const;
  const transactions = [{ id, txIndex: 0, format: 2, dataSize: size, dataRoot }] as const;
  const { root, size: blockSize } = buildTxTree(transactions, "plain");
  const weaveSize = `${weaveStart + blockSize}`;
  const sample = { shape: "2.9", wallet: minerWallet("chunks"), txs: [id], txRoot: root, blockSize } as const;
  const block = makeSample({ ...sample, change: { weave_size: weaveSize } });
  const gateway = openGatewayServer({
    content: harness.content,
    nodes: harness.nodes,
    reader: {
      ...emptyReader,
      tip: () => ({ height: tipHeight, hash: "" as BlockHash, timestamp: 0 }),
      block: () => (blocks.areKnown ? { ...block, txCount: 1 } : undefined),
      blockText: () => ({ text: writeJson(block.fields), checked: [], unchecked: [] }),
      transactionsOfBlock: () => transactions,
      transactionAt: (at) => (at >= span.start && at < span.end ? span : undefined),
    },
    settings: { responseCacheBytesMax },
  });
  closers.push(gateway.close);
  const pathOf = (chunk: number, suffix = "") => `/chunk/${weaveStart + BigInt((chunk + 1) * kib256)}${suffix}`;
  const isInMemory = (path: string) => gateway.gateway.hit(new Request(`${gateway.url}${path}`)) !== undefined;
  return { data, node, harness, pathOf, isInMemory, ...gateway };
}

const ownHeaders = (response: Response) =>
  [...response.headers].filter(([name]) => !["date", "x-request-id"].includes(name));

describe("a chunk that is final", () => {
  test.each(["", "/data"])("gets the same response again: /chunk/{offset}%s", async (suffix) => {
    const { data, node, url, pathOf, isInMemory } = await openFixture(1_000);
    const path = pathOf(3, suffix);
    const first = await fetch(`${url}${path}`);
    const body = await first.bytes();
    const bytes = data.bytes.subarray(3 * kib256, 4 * kib256);
    const chunk = suffix === "" ? Buffer.from(JSON.parse(Buffer.from(body).toString()).chunk, "base64url") : body;
    expect(isSame(chunk, bytes)).toBe(true);
    expect(isInMemory(path)).toBe(true);
    const asked = node.requests.length;
    const second = await fetch(`${url}${path}`);
    expect(isSame(await second.bytes(), body)).toBe(true);
    expect([second.status, ownHeaders(second)]).toEqual([first.status, ownHeaders(first)]);
    expect(second.headers.get("access-control-allow-origin")).toBe("*");

    const tag = `"${createHash("sha256").update(bytes).digest("base64url")}"`;
    expect(first.headers.get("etag")).toBe(tag);
    const head = await fetch(`${url}${path}`, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, String(body.length)]);
    for (const method of ["GET", "HEAD"]) {
      const known = await fetch(`${url}${path}`, { method, headers: { "if-none-match": tag } });
      expect([known.status, known.headers.get("content-type"), known.headers.get("etag")]).toEqual([304, null, tag]);
    }
    expect(node.requests.length).toBe(asked);
  });

  test("is given up with its transaction, and when something was rejected or taken back", async () => {
    const { data, url, pathOf, isInMemory, gateway } = await openFixture(1_000);
    const gone: readonly (readonly [string, () => void, boolean])[] = [
      ["its transaction", () => gateway.forget(data.root.id), false],
      ["another", () => gateway.forget("A".repeat(43) as Id), true],
      ["all", () => gateway.forgetAll(), false],
    ];
    for (const [name, forget, stays] of gone) {
      await (await fetch(`${url}${pathOf(0)}`)).bytes();
      expect([name, isInMemory(pathOf(0))]).toEqual([name, true]);
      forget();
      expect([name, isInMemory(pathOf(0))]).toEqual([name, stays]);
    }
  });

  test("is rejected once its transaction is", async () => {
    const { data, harness, url, pathOf, gateway } = await openFixture(1_000);
    expect((await fetch(`${url}${pathOf(0)}`)).status).toBe(200);
    harness.blockedIds.add(data.root.id);
    gateway.forgetAll(); // as every rejection does
    const blocked = await fetch(`${url}${pathOf(0)}`);
    expect(blocked.status).toBe(451);
  });
});

test("a chunk that a fork can still replace is not stored", async () => {
  const { url, pathOf, isInMemory } = await openFixture(101);
  expect((await fetch(`${url}${pathOf(0)}`)).headers.get("cache-control")).toBe("public, max-age=60");
  expect(isInMemory(pathOf(0))).toBe(false);
});

test("a chunk whose block is not at hand has another tag, and no cache keeps it", async () => {
  const blocks = { areKnown: false };
  const { data, url, pathOf, isInMemory } = await openFixture(1_000, undefined, blocks);
  const tag = createHash("sha256").update(data.bytes.subarray(0, kib256)).digest("base64url");
  for (const suffix of ["", "/data"]) {
    const path = pathOf(0, suffix);
    const incomplete = await fetch(`${url}${path}`);
    const named = ["etag", "cache-control"].map((name) => incomplete.headers.get(name));
    expect([named, isInMemory(path)]).toEqual([[`"${tag}.u"`, "public, max-age=60"], false]);
    blocks.areKnown = true;
    const complete = await fetch(`${url}${path}`, { headers: { "if-none-match": `"${tag}.u"` } });
    expect([complete.status, complete.headers.get("etag"), isInMemory(path)]).toEqual([200, `"${tag}"`, true]);
    blocks.areKnown = false;
  }
});

test("a client that reads chunk after chunk evicts no content from memory", async () => {
  const { data, harness, url, pathOf, isInMemory } = await openFixture(1_000, 8 * 2 ** 20);
  const small = makeData(2, 50_000);
  harness.index.set(small.root.id, { ...locatedOf(small.root.id, small.root), contentType: "image/png" });
  await harness.content.keep(small.root, small.bytes);
  expect((await fetch(`${url}/${small.root.id}`)).status).toBe(200);
  for (let chunk = 0; chunk < data.spans.length; chunk += 1) {
    await (await fetch(`${url}${pathOf(chunk)}`)).bytes();
    await (await fetch(`${url}${pathOf(chunk, "/data")}`)).bytes();
  }
  expect(isInMemory(`/${small.root.id}`)).toBe(true);
  expect([isInMemory(pathOf(0)), isInMemory(pathOf(9, "/data"))]).toEqual([false, true]);
});
