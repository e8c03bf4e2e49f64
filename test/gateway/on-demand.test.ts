/**
 * Three whole gateways on one chain: one indexes everything, two index no items. What these find they find by
 * a client's word, or by what the first one tells, and they learn of each other.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { takeFolder } from "../../src/app/data-folder.ts";
import { type OpenGateway, openGateway } from "../../src/app/open-gateway.ts";
import { type Id, idBytes } from "../../src/arweave/id.ts";
import { readConfig } from "../../src/config/config.ts";
import type { Devnet } from "../../src/dev/devnet/devnet.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { createClosers } from "../../src/lib/closers.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { madeId } from "../chain/data-node.ts";
import { bundleOf, bundleTags, makeItem, makeNested, placesIn } from "../content/bundles.ts";
import { chunkPosts, openTestDevnet, post, rsa, serve, statedOf, type TestNode } from "../dev/devnet/support.ts";
import { writeRootIndex } from "../support/cdb64.ts";
import { eventually } from "../support/until.ts";

type Running = Readonly<{ gateway: OpenGateway; url: string; close: () => Promise<void> }>;

const running: Running[] = [];
const folders: string[] = [];
let devnet: Devnet;
let node: TestNode;
let rootId: Id;
let lateHeight: number;
/** Follows the chain from after the bundle on; the node is its only source. */
let alone: Running;
/** Has all of it in its index. */
let full: Running;
/** Follows all, indexes no items, and asks the full one. */
let asking: Running;

const direct = makeItem(20_000);
const nested = makeItem(500, [{ name: "Content-Type", value: "text/html" }]);
const inner = makeNested([makeItem(3), nested]);
const large = makeItem(1_500_000);
const bundle = bundleOf([makeItem(10), direct, inner, large]);
const places = placesIn(bundle);
const index = folder();
const indexFile = join(index, "items.cdb");

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "cairn-demand-"));
  folders.push(made);
  return made;
}

function run(environment: Readonly<Record<string, string>>): Running {
  const nodeUrl = `http://127.0.0.1:${node.port}`;
  const { config } = readConfig(
    {
      DATA_DIR: folder(),
      GATEWAY_PORT: "0",
      TRUSTED_NODE_URL: nodeUrl,
      FOLLOW_INTERVAL_MS: "50",
      WORKER_THREADS: "1",
      QUERY_THREADS: "1",
      ...environment,
    },
    "dev",
  );
  const closers = createClosers(() => undefined);
  const parts = { config, folder: takeFolder(config, closers), nodeUrls: [nodeUrl], rootHosts: [] };
  const gateway = openGateway({ ...parts, log: silentLog, closers });
  const opened = { gateway, url: gateway.url, close: () => closers.closeAll() };
  running.push(opened);
  return opened;
}

beforeAll(async () => {
  devnet = await openTestDevnet();
  node = serve(devnet);
  rootId = (await post(devnet, rsa, { stated: statedOf(bundle), tags: bundleTags })).id;
  for (const body of chunkPosts(bundle)) devnet.postChunk(body);
  await devnet.mine(1);
  lateHeight = devnet.height() + 1;
  await devnet.mine(2);
  writeFileSync(indexFile, writeRootIndex([[large.id, { r: idBytes(rootId) }]]));
  const never = { ANS104_UNBUNDLE_FILTER: '{"never":true}' };
  alone = run({ ...never, START_HEIGHT: String(lateHeight), CDB64_ROOT_TX_INDEX_SOURCES: indexFile });
  full = run({ TRUSTED_GATEWAYS_URLS: alone.url });
  asking = run({
    ...never,
    TRUSTED_GATEWAYS_URLS: full.url,
    PEER_DISCOVERY: "true",
    PEER_PRIVATE_ADDRESSES: "true",
    PEER_PORTS: new URL(alone.url).port,
  });
  const isThere = async ({ gateway }: Running) => gateway.reader.tip()?.height === devnet.height();
  for (const each of running) await eventually(() => isThere(each), Boolean);
  await eventually(
    async () => full.gateway.reader.locate(nested.id),
    (located) => located !== undefined,
  );
}, 120_000);
afterAll(async () => {
  for (const { close } of running.toReversed()) await close();
  await node.close();
  devnet.close();
  for (const each of folders) removeFolder(each);
});

const get = (gateway: Running, path: string, headers: Record<string, string> = {}, method = "GET") =>
  fetch(`${gateway.url}${path}`, { method, headers, redirect: "manual" });

function hintsOf(id: Id): Record<string, string> {
  const { itemOffset, itemSize, parents } = places.get(id) ?? { itemOffset: -1, itemSize: -1, parents: [] };
  return {
    "X-AR-IO-Root-Transaction-Id": rootId,
    "X-AR-IO-Root-Path": [rootId, ...parents].join(","),
    "X-AR-IO-Root-Item-Offset": String(itemOffset),
    "X-AR-IO-Root-Item-Size": String(itemSize),
  };
}

/** The headers with an item's place and type. */
const named = [
  "x-ar-io-data-id",
  "x-ar-io-digest",
  "x-ar-io-root-transaction-id",
  "x-ar-io-root-data-item-offset",
  "x-ar-io-root-data-offset",
  "x-ar-io-data-item-root-parent-offset",
  "x-ar-io-data-item-offset",
  "x-ar-io-data-item-size",
  "x-ar-io-data-item-data-offset",
  "content-type",
  "etag",
  "x-ar-io-verified",
  "x-ar-io-trusted",
];

describe("a gateway that indexes no items", () => {
  test("does not find an item without a hint", async () => {
    for (const id of [direct.id, nested.id, madeId(4)]) expect((await get(alone, `/${id}`)).status).toBe(404);
  });

  test.each([direct, nested])(
    "serves an item by a client's hints, as the gateway that indexes it does: %#",
    async (item) => {
      for (const path of [`/${item.id}`, `/raw/${item.id}`]) {
        const [hinted, indexed] = [await get(alone, path, hintsOf(item.id)), await get(full, path)];
        expect(hinted.status).toBe(200);
        expect(sha256(await hinted.bytes())).toEqual(sha256(item.payload));
        for (const name of named) expect([name, hinted.headers.get(name)]).toEqual([name, indexed.headers.get(name)]);
        expect(hinted.headers.get("x-ar-io-verified")).toBe("true");
        expect(hinted.headers.get("x-ar-io-stable")).toBe("false");
      }
    },
  );

  test("then serves it to other clients, by range, by HEAD, and with 304 for its ETag", async () => {
    await get(alone, `/raw/${direct.id}`, hintsOf(direct.id));
    const part = await get(alone, `/raw/${direct.id}`, { range: "bytes=100-199" });
    expect([part.status, part.headers.get("content-range")]).toEqual([206, "bytes 100-199/20000"]);
    expect(await part.bytes()).toEqual(new Uint8Array(direct.payload.subarray(100, 200)));
    const head = await get(alone, `/raw/${direct.id}`, {}, "HEAD");
    expect([head.status, head.headers.get("content-length")]).toEqual([200, "20000"]);
    expect(head.headers.get("x-ar-io-digest")).toBe(encodeBase64url(sha256(direct.payload)));
    const tag = head.headers.get("etag") ?? "";
    expect((await get(alone, `/raw/${direct.id}`, { "if-none-match": tag })).status).toBe(304);
  });

  const invalidHints: readonly (readonly [string, Record<string, string>])[] = [
    ["an invalid root id", { "X-AR-IO-Root-Transaction-Id": "x" }],
    ["a root that is nowhere", { "X-AR-IO-Root-Transaction-Id": madeId(9) }],
    ["an offset without a root", { "X-AR-IO-Root-Item-Offset": "3" }],
    ["an invalid path", { "X-AR-IO-Root-Path": "a,b" }],
  ];
  test.each(invalidHints)("ignores hints with %s", async (_name, headers) => {
    const id = makeItem(1).id;
    expect((await get(alone, `/${id}`, headers)).status).toBeOneOf([404, 502]);
    const bad = { ...hintsOf(id), "X-AR-IO-Root-Item-Offset": "7", ...headers };
    expect((await get(alone, `/${id}`, bad)).status).toBeOneOf([404, 502]);
  });

  test("does not search for an item that another gateway requests", async () => {
    const headers = { ...hintsOf(nested.id), "X-AR-IO-Hops": "1" };
    expect((await get(alone, `/raw/${large.id}`, headers)).status).toBe(404);
  });

  test("reports a large item as unverified until it was read completely", async () => {
    const path = `/raw/${large.id}`;
    const part = await get(alone, path, { range: "bytes=1000000-1000009" });
    expect(part.status).toBe(206);
    expect(await part.bytes()).toEqual(new Uint8Array(large.payload.subarray(1_000_000, 1_000_010)));
    expect(part.headers.get("x-ar-io-verified")).toBe("false");
    expect(part.headers.get("x-ar-io-trusted")).toBe("true");
    expect(part.headers.get("etag")).toBe(`"${large.id}.u"`);
    expect(sha256(await (await get(alone, path)).bytes())).toEqual(sha256(large.payload));
    const head = await get(alone, path, {}, "HEAD");
    expect(head.headers.get("x-ar-io-verified")).toBe("true");
    expect(head.headers.get("etag")).toBe(`"${large.id}"`);
    expect(head.headers.get("x-ar-io-digest")).toBe(encodeBase64url(sha256(large.payload)));
  });

  test("finds an item by the index of a trusted gateway, and verifies it itself", async () => {
    for (const item of [direct, nested]) {
      const found = await get(asking, `/raw/${item.id}`);
      expect(found.status).toBe(200);
      expect(sha256(await found.bytes())).toEqual(sha256(item.payload));
      const indexed = await get(full, `/raw/${item.id}`, {}, "HEAD");
      for (const name of named) expect([name, found.headers.get(name)]).toEqual([name, indexed.headers.get(name)]);
    }
    expect((await get(asking, `/${madeId(5)}`)).status).toBe(404);
  });
});

test("gateways learn of each other, and list each other as peers", async () => {
  const peers = async () => (await get(asking, "/ar-io/peers")).json();
  const key = new URL(alone.url).host;
  const record = await eventually(peers, ({ gateways }) => gateways[key] !== undefined);
  expect(Object.keys(record).toSorted()).toEqual(["arweaveNodes", "gateways"]);
  expect(Object.keys(record.gateways).toSorted()).toEqual([key, new URL(full.url).host].toSorted());
  for (const { url, dataWeight, chunkWeight } of Object.values<Record<string, unknown>>(record.gateways)) {
    expect(url).toBeOneOf([alone.url, full.url]);
    for (const weight of [dataWeight, chunkWeight]) expect(weight).toBeWithin(1, 101);
  }
  expect(await (await get(asking, "/svc/peers")).json()).toMatchObject({ gateways: record.gateways });
  // Where learning is off, as under `dev`, only those are shown that an operator chose.
  const shown = await (await get(full, "/ar-io/peers")).json();
  expect(Object.keys(shown.gateways)).toEqual([key]);
});
