/**
 * Indexes of data items in partitions, and as content of ids: an item is found by each of them, and a partition,
 * a manifest or content that is not what it should be makes a fault, never a wrong item.
 * @module
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Id, idBytes } from "../../src/arweave/id.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import { openRootFiles } from "../../src/chain/root-files.ts";
import { Failure } from "../../src/failures.ts";
import { utf8Bytes } from "../../src/lib/bytes.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { madeId } from "../chain/data-node.ts";
import { type FaultServer, openFaultServer, rangeResult } from "../chain/fault-server.ts";
import { writeRootIndex } from "../support/cdb64.ts";
import { until } from "../support/until.ts";
import { makeItem, signItem } from "./bundles.ts";
import { type Harness, isSame, joined, openHarness } from "./content-harness.ts";
import { type ItemFixture, openItemFixture, type PostedBundle } from "./item-fixture.ts";

const none = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), "cairn-index-sources-"));
const closers: (() => Promise<unknown>)[] = [];
const item = makeItem(3_000);
const prefix = idBytes(item.id).subarray(0, 1).toHex();
let fixture: ItemFixture;
let bundle: PostedBundle;
let index: Uint8Array;
/** The index as the data of a transaction, after seven bytes of something else, and as a data item. */
let indexTx: Id;
let shiftedTx: Id;
let indexItem: Readonly<{ id: Id; rootId: Id; dataOffset: number }>;

beforeAll(async () => {
  fixture = await openItemFixture();
  bundle = await fixture.postBundle([makeItem(10), item]);
  index = writeRootIndex([[item.id, { r: idBytes(bundle.rootId) }]]);
  indexTx = await fixture.postData(index, []);
  shiftedTx = await fixture.postData(Buffer.concat([new Uint8Array(7), index, new Uint8Array(9)]), []);
  const made = signItem(index, [], createEd25519Signer(new Uint8Array(32).fill(3)));
  const posted = await fixture.postBundle([makeItem(5), made]);
  const { itemOffset, headerSize } = posted.place(made.id);
  indexItem = { id: made.id, rootId: posted.rootId, dataOffset: itemOffset + headerSize };
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  fixture.node.requests.length = 0;
});
afterAll(async () => {
  await fixture.close();
  removeFolder(folder);
});

function harnessOf(...rootFiles: readonly string[]): Harness {
  const harness = openHarness({ nodeUrls: [fixture.node.url], rootFiles });
  closers.push(harness.close);
  return harness;
}

type Location = Readonly<Record<string, unknown>>;

const manifestOf = (location: Location, size = index.length, at = prefix) =>
  JSON.stringify({
    version: 1,
    createdAt: "2026-01-01T00:00:00Z",
    totalRecords: 1,
    partitions: [{ prefix: at, location, recordCount: 1, size }],
    metadata: { source: "test" },
  });

/** A directory with files. */
function directoryOf(files: Readonly<Record<string, string | Uint8Array>>): string {
  const path = join(folder, Bun.randomUUIDv7());
  mkdirSync(path);
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(path, name), bytes);
  return path;
}

async function serverOf(files: Readonly<Record<string, string | Uint8Array>>): Promise<FaultServer> {
  const server = await openFaultServer(({ path, headers }) => {
    const file = files[path];
    if (file === undefined) return { status: 404, body: new Uint8Array() };
    const bytes = typeof file === "string" ? utf8Bytes(file) : file;
    return rangeResult(headers, bytes);
  });
  closers.push(server.stop);
  return server;
}

async function expectFound(harness: Harness): Promise<void> {
  const opened = await harness.content.open(item.id, none);
  expect(opened.verified).toBe(true);
  expect(isSame(await joined(opened.read({ start: 0, end: opened.size }, none)), item.payload)).toBe(true);
  const code = await codeOf(harness, madeId(77));
  expect(code).toBe("not_found");
}

async function codeOf(harness: Harness, id: Id): Promise<string> {
  return await harness.content.open(id, none).then(
    () => "found",
    (error: unknown) => (error instanceof Failure ? error.code : String(error)),
  );
}

const file = { type: "file", filename: "part.cdb" };
const sources: readonly (readonly [string, () => string | Promise<string>])[] = [
  ["a directory with a manifest", () => directoryOf({ "manifest.json": manifestOf(file), "part.cdb": index })],
  ["a directory of files", () => directoryOf({ "a.cdb": writeRootIndex([]), "b.cdb": index, c: "" })],
  ["the id of a transaction", () => indexTx],
  ["a range of a transaction", () => `${shiftedTx}:7:${index.length}`],
  [
    "a manifest that names a transaction",
    () => directoryOf({ "manifest.json": manifestOf({ type: "arweave-tx", txId: indexTx }) }),
  ],
  [
    "a manifest that names a range of a bundle",
    () => {
      const { rootId: rootTxId, dataOffset: dataOffsetInRootTx } = indexItem;
      const location = { type: "arweave-byte-range", rootTxId, dataOffsetInRootTx, dataItemId: indexItem.id };
      return directoryOf({ "manifest.json": manifestOf(location) });
    },
  ],
  [
    "a manifest that names an item of a bundle",
    () => {
      const { rootId: txId, dataOffset: offset } = indexItem;
      const location = { type: "arweave-bundle-item", txId, offset, size: index.length };
      return directoryOf({ "manifest.json": manifestOf(location) });
    },
  ],
  [
    "a manifest on the chain",
    async () => await fixture.postData(utf8Bytes(manifestOf({ type: "arweave-id", id: indexTx })), []),
  ],
  [
    "the URL of a manifest with a file beside it",
    async () => `${(await serverOf({ "/a/m.json": manifestOf(file), "/a/part.cdb": index })).url}/a/m.json`,
  ],
  [
    "the URL of a directory with a relative location",
    async () => {
      const location = { type: "http", url: "../b/part.cdb" };
      return `${(await serverOf({ "/a/manifest.json": manifestOf(location), "/b/part.cdb": index })).url}/a/`;
    },
  ],
];

describe("an item is found by", () => {
  test.each(sources)("%s", async (_name, sourceOf) => {
    await expectFound(harnessOf(await sourceOf()));
  });

  test("an index that is a data item, which another index finds", async () => {
    const first = directoryOf({
      "a.cdb": writeRootIndex([[indexItem.id, { r: idBytes(indexItem.rootId) }]]),
    });
    // The look-up of an index never asks an index: only where nodes or gateways have it is it found.
    expect(await codeOf(harnessOf(first, indexItem.id), item.id)).toBe("source_failed");
    expect(await codeOf(harnessOf(first), indexItem.id)).toBe("found");
  });
});

test("an index that is itself content requests itself once, without a loop", async () => {
  const absent = madeId(5);
  const harness = harnessOf(absent);
  expect(await codeOf(harness, item.id)).toBe("source_failed");
  expect(await codeOf(harness, absent)).toBeOneOf(["source_failed", "not_found"]);
  const asked = fixture.node.requests.filter((line) => line === `GET /tx/${absent}`);
  expect(asked.length).toBeLessThanOrEqual(2);
});

test("a partition is opened only for keys that begin with its prefix", async () => {
  const other = prefix === "00" ? "01" : "00";
  const server = await serverOf({
    "/m.json": manifestOf(file, index.length, other),
    "/part.cdb": index,
  });
  const harness = harnessOf(`${server.url}/m.json`);
  expect(await codeOf(harness, item.id)).toBe("not_found");
  expect(server.requests).toEqual(["GET /m.json"]);
});

test("the manifest and the head of a partition are read once", async () => {
  const server = await serverOf({ "/m.json": manifestOf(file), "/part.cdb": index });
  const harness = harnessOf(`${server.url}/m.json`);
  const sameStart = idBytes(item.id).slice();
  for (let last = 0; last < 3; last += 1) {
    sameStart[31] = (sameStart[31] ?? 0) + 1;
    expect(await codeOf(harness, sameStart.toBase64({ alphabet: "base64url", omitPadding: true }) as Id)).toBe(
      "not_found",
    );
  }
  expect(server.requests.filter((line) => line === "GET /m.json")).toHaveLength(1);
  expect(server.requests.length).toBeLessThanOrEqual(2 + 3 * 2);
});

test("a look-up that is under way ends well when the manifest is read again", async () => {
  const server = await serverOf({ "/m.json": manifestOf(file), "/part.cdb": index });
  const time = { now: 1_000_000 };
  const root = openRootFiles([`${server.url}/m.json`], {
    clock: () => time.now,
    random: () => 0.5,
    log: silentLog,
    openContent: () => Promise.reject(new Error("no content is read")),
  });
  closers.push(async () => root.close());
  let isHeld = true;
  server.setFault(({ path }) => (isHeld && path === "/part.cdb" ? { kind: "delay", ms: 300 } : undefined));
  const find = () => root.find(item.id, async ({ rootId }) => ({ kind: "ok", value: rootId }), none);
  const first = find();
  await until(() => server.requests.includes("GET /part.cdb"));
  isHeld = false;
  time.now += 3_600_000;
  const found = { kind: "ok", value: bundle.rootId };
  expect<unknown>(await Promise.all([first, find()])).toEqual([found, found]);
  expect(server.requests.filter((line) => line === "GET /m.json")).toHaveLength(2);
});

describe("a fault is", () => {
  const faults: readonly (readonly [string, () => string | Promise<string>])[] = [
    [
      "a partition of another size",
      async () =>
        (await serverOf({ "/m.json": manifestOf(file, index.length + 1), "/part.cdb": index })).url + "/m.json",
    ],
    [
      "content of another size",
      () => {
        const location = { type: "arweave-id", id: indexTx };
        return directoryOf({ "manifest.json": manifestOf(location, index.length - 1) });
      },
    ],
    ["a range beyond the content", () => `${indexTx}:1:${index.length}`],
    ["an invalid manifest", async () => `${(await serverOf({ "/m.json": "[]" })).url}/m.json`],
    ["a manifest that is absent", async () => `${(await serverOf({})).url}/m.json`],
    [
      "a manifest of more than a mebibyte",
      async () => `${(await serverOf({ "/m.json": " ".repeat(2 ** 20) + manifestOf(file) })).url}/m.json`,
    ],
    ["content that is neither an index nor a manifest", async () => await fixture.postData(utf8Bytes("text"), [])],
    ["content that is shorter than a head", async () => await fixture.postData(new Uint8Array(100), [])],
    [
      "a private address that a manifest of others names",
      async () => {
        const { url } = await serverOf({ "/part.cdb": index });
        const location = { type: "http", url: `${url}/part.cdb` };
        return await fixture.postData(utf8Bytes(manifestOf(location)), []);
      },
    ],
  ];
  test.each(faults)("%s", async (_name, sourceOf) => {
    expect(await codeOf(harnessOf(await sourceOf()), item.id)).toBe("source_failed");
  });
});

test("an index at a URL that had no items yet is found when it was replaced", async () => {
  const files: Record<string, Uint8Array> = { "/items.cdb": writeRootIndex([]) };
  const harness = harnessOf(`${(await serverOf(files)).url}/items.cdb`);
  expect(await codeOf(harness, madeId(78))).toBe("not_found");
  files["/items.cdb"] = index;
  await expectFound(harness);
});
