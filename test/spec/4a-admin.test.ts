/**
 * Specification 4A "Administration" and its messages of part 7, row by row: through the real server, on the real
 * stores, behind a real node.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import type { Transaction } from "../../src/arweave/transaction.ts";
import { post, rsa, testBytes } from "../dev/devnet/support.ts";
import { header, type WireResponse, wire } from "../support/gateway-server.ts";
import { idOf } from "../support/memory-content.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { eventually } from "../support/until.ts";

const key = "the operator's own key".replaceAll(" ", "-");
const authorized = `\r\nAuthorization: Bearer ${key}`;
const unknown = idOf("an absent id");
const hash = createHash("sha256").update("some content").digest("base64url");
const bundleTags = [
  { name: "Bundle-Format", value: "binary" },
  { name: "Bundle-Version", value: "2.0.0" },
];

let stack: Stack;
let plain: Transaction;
let bundle: Transaction;

beforeAll(async () => {
  stack = await openStack({ ADMIN_API_KEY: key });
  const signer = createEd25519Signer(new Uint8Array(32).fill(3));
  const items = ["one", "two"].map((text) => createDataItem({ data: text, tags: [] }, signer));
  plain = await post(stack.devnet, rsa, { data: testBytes(500) });
  bundle = await post(stack.devnet, rsa, { data: writeBundle(items), tags: bundleTags });
  await stack.devnet.mine(1);
  await stack.settled();
}, 120_000);
afterAll(() => stack.close());

/** Sends one request: without a body as the bytes that it is, so that no library adds or hides anything. */
async function send(method: string, path: string, body: string | undefined, more = authorized) {
  if (body === undefined) return await wire(stack.port, `${method} ${path} HTTP/1.1${more}`);
  const [, name = "x-none", value = ""] = /^\r\n([^:]+): (.*)$/.exec(more) ?? [];
  const response = await fetch(`${stack.gateway.url}${path}`, { method, body, headers: { [name]: value } });
  const { status, headers } = response;
  return { status, headers: [...headers], body: Buffer.from(await response.bytes()), end: "closed" } as const;
}
const json = (value: unknown) => JSON.stringify(value);

/** Method, path below `/svc/admin`, body, status, and the response's body: a message, a record, or nothing. */
type Row = readonly [
  method: "GET" | "POST" | "PUT",
  path: () => string,
  body: string | undefined | (() => string),
  status: number,
  expected: unknown,
];

const announced = (() => {
  const signature = testBytes(64, 41);
  const owner = testBytes(32, 42);
  const named = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("base64url");
  return {
    id: named(signature),
    owner: Buffer.from(owner).toString("base64url"),
    owner_address: named(owner),
    signature: Buffer.from(signature).toString("base64url"),
    data_size: 1_234,
  };
})();

const at = (path: string) => () => path;
const number = expect.any(Number);
const bundleRecord = () => ({
  id: bundle.id,
  rootTransactionId: bundle.id,
  formatId: number,
  unbundleFilterId: number,
  indexFilterId: number,
  previousUnbundleFilterId: null,
  previousIndexFilterId: null,
  dataItemCount: 2,
  matchedDataItemCount: 2,
  duplicatedDataItemCount: 0,
  importAttemptCount: number,
  retryAttemptCount: number,
  firstQueuedAt: number,
  lastQueuedAt: number,
  firstSkippedAt: number,
  lastSkippedAt: number,
  firstUnbundledAt: number,
  lastUnbundledAt: number,
  firstFullyIndexedAt: number,
  lastFullyIndexedAt: number,
});

const rows: readonly Row[] = [
  ["POST", at("/queue-tx"), json({ id: unknown }), 200, { message: "TX queued" }],
  ["POST", at("/queue-tx"), () => json({ id: plain.id }), 200, { message: "TX queued" }],
  ["POST", at("/queue-tx"), () => json({ id: bundle.id, more: 1 }), 200, { message: "TX queued" }],
  ...["{}", "", "[]", "null", "7", json({ id: null }), json({ id: 5 }), json({ id: "a" })].map(
    (body): Row => ["POST", at("/queue-tx"), body, 400, "Must provide 'id'"],
  ),
  ["POST", at("/queue-tx"), json({ id: `${unknown}a` }), 400, "Must provide 'id'"],
  ["POST", at("/queue-tx"), json({ id: unknown.replace(/.$/, "B") }), 400, "Must provide 'id'"],
  ["POST", at("/queue-tx"), "{", 400, "Malformed JSON body"],
  ["POST", at("/queue-tx"), '{"id":"\\ud800"}', 400, "Must provide 'id'"],

  // It is done with filters that choose everything.
  ["POST", at("/queue-bundle"), () => json({ id: bundle.id }), 200, { message: "Bundle skipped" }],
  ["POST", at("/queue-bundle"), () => json({ id: bundle.id, bypassFilter: false }), 200, { message: "Bundle skipped" }],
  ["POST", at("/queue-bundle"), json({ id: idOf("b") }), 200, { message: "Bundle queued" }],
  ["POST", at("/queue-bundle"), json({}), 400, "Must provide 'id'"],
  ["POST", at("/queue-bundle"), undefined, 400, "Must provide 'id'"],
  ["POST", at("/queue-bundle"), json({ bypassFilter: "x" }), 400, "Must provide 'id'"],
  ...["true", 1, null, {}].map(
    (bypassFilter): Row => [
      "POST",
      at("/queue-bundle"),
      json({ id: unknown, bypassFilter }),
      400,
      "'bypassFilter' must be a boolean",
    ],
  ),

  ["POST", at("/queue-data-item"), json([announced]), 200, { message: "Data item(s) queued" }],
  [
    "POST",
    at("/queue-data-item"),
    json([{ ...announced, tags: [{ name: "QQ", value: "Qg" }], target: unknown, anchor: "a", content_type: "x" }]),
    200,
    { message: "Data item(s) queued" },
  ],
  ...[
    undefined,
    "",
    "{}",
    "[]",
    "null",
    json([1]),
    json([null]),
    json([[]]),
    json([announced, {}]),
    json([{ ...announced, id: unknown }]),
    json([{ ...announced, owner_address: unknown }]),
    json([{ ...announced, owner: undefined }]),
    json([{ ...announced, signature: "" }]),
    json([{ ...announced, signature: `${announced.signature}=` }]),
    json([{ ...announced, signature: "A".repeat(10_000) }]),
    json([{ ...announced, data_size: -1 }]),
    json([{ ...announced, data_size: 1.5 }]),
    json([{ ...announced, data_size: 2 ** 53 }]),
    json([{ ...announced, data_size: "12" }]),
    json([{ ...announced, data_size: undefined }]),
    json([{ ...announced, target: "x" }]),
    json([{ ...announced, anchor: "x".repeat(65) }]),
    json([{ ...announced, tags: {} }]),
    json([{ ...announced, tags: [null] }]),
    json([{ ...announced, tags: [{ name: "not base64url!", value: "" }] }]),
    json([{ ...announced, tags: Array.from({ length: 129 }, () => ({ name: "QQ", value: "QQ" })) }]),
  ].map((body): Row => ["POST", at("/queue-data-item"), body, 400, "Must provide array of data item headers"]),
  ["POST", at("/queue-data-item"), "[", 400, "Malformed JSON body"],
  ["POST", at("/queue-data-item"), json(Array.from({ length: 10_001 }, () => 0)), 413, "Payload too large"],

  ["GET", () => `/bundle-status/${bundle.id}`, undefined, 200, () => expect.objectContaining(bundleRecord())],
  ["GET", at(`/bundle-status/${unknown}`), undefined, 404, "Bundle not found"],
  ["GET", () => `/bundle-status/${plain.id}`, undefined, 404, "Bundle not found"],
  ...["/bundle-status/x", "/bundle-status/", "/bundle-status", `/bundle-status/${unknown}a`].map(
    (path): Row => ["GET", at(path), undefined, 400, "Must provide a valid bundle id"],
  ),

  ...["/block-data", "/unblock-data"].flatMap((path): Row[] => [
    ["PUT", at(path), json({ id: idOf("blocked") }), 200, ""],
    ["PUT", at(path), json({ hash }), 200, ""],
    ["PUT", at(path), json({ id: idOf("blocked"), hash, notes: "n", source: "s" }), 200, ""],
    ["PUT", at(path), json({ id: idOf("blocked"), hash: null }), 200, ""],
    ...[undefined, "", "{}", "[]", json({ id: "x" }), json({ hash: "x" }), json({ id: 1 })].map(
      (body): Row => ["PUT", at(path), body, 400, "Must provide 'id' or 'hash'"],
    ),
    ["PUT", at(path), json({ id: idOf("blocked"), hash: "x" }), 400, "Must provide 'id' or 'hash'"],
    ["PUT", at(path), json({ hash: hash.replace(/.$/, "B") }), 400, "Must provide 'id' or 'hash'"],
    ["PUT", at(path), "nonsense", 400, "Malformed JSON body"],
  ]),
  ["PUT", at("/block-data"), json({ hash, notes: 1 }), 400, "Malformed input"],
  ["PUT", at("/block-data"), json({ hash, source: "x".repeat(5_000) }), 400, "Malformed input"],

  ...["/block-name", "/unblock-name"].flatMap((path): Row[] => [
    ["PUT", at(path), json({ name: "ardrive" }), 200, ""],
    ["PUT", at(path), json({ name: "ArDrive", notes: "n", source: "s" }), 200, ""],
    ...[undefined, "{}", json({ name: "" }), json({ name: 5 }), json({ name: "x".repeat(64) })].map(
      (body): Row => ["PUT", at(path), body, 400, "Must provide 'name'"],
    ),
    ["PUT", at(path), "{]", 400, "Malformed JSON body"],
  ]),

  ["GET", at("/blocks"), undefined, 200, { blocks: [], next: null }],
  ...["?limit=0", "?limit=x", "?limit=10001", "?limit=1.5", "?after=x", "?after=WzFd"].map(
    (query): Row => ["GET", at(`/blocks${query}`), undefined, 400, "Malformed input"],
  ),

  ["GET", at("/debug"), undefined, 200, () => expect.objectContaining({ db: expect.any(Object) })],

  ...[
    undefined,
    "",
    "{}",
    "nonsense",
    json({ outputDir: "a", startHeight: 0, endHeight: 1 }),
    json({ startHeight: 0, endHeight: 1, maxFileRows: 1 }),
    json({ outputDir: 1, startHeight: 0, endHeight: 1, maxFileRows: 1 }),
    json({ outputDir: "a", startHeight: -1, endHeight: 1, maxFileRows: 1 }),
    json({ outputDir: "a", startHeight: 0, endHeight: 1.5, maxFileRows: 1 }),
    json({ outputDir: "a", startHeight: 0, endHeight: "1", maxFileRows: 1 }),
    json({ outputDir: "a", startHeight: 0, endHeight: 1, maxFileRows: -1 }),
    json({ outputDir: "a", startHeight: 2, endHeight: 1, maxFileRows: 1 }),
    json({ outputDir: "../../etc", startHeight: 0, endHeight: 1, maxFileRows: 1 }),
    json({ outputDir: "/etc/cron.d", startHeight: 0, endHeight: 1, maxFileRows: 1 }),
    json({ outputDir: "", startHeight: 0, endHeight: 1, maxFileRows: 1 }),
    json({ outputDir: "a", startHeight: 0, endHeight: 1, maxFileRows: 1, heightPartitionSize: 0 }),
    json({ outputDir: "a", startHeight: 0, endHeight: 1, maxFileRows: 1, skipL1Tags: "no" }),
  ].map((body): Row => ["POST", at("/export-parquet"), body, 400, ""]),

  [
    "POST",
    at("/prune-stable-data-items"),
    json({ indexedAtThreshold: 0 }),
    200,
    { message: "Stable data items pruned successfully" },
  ],
  [
    "POST",
    at("/prune-stable-data-items"),
    json({ indexedAtThreshold: 1_600_000_000, startHeight: 5, endHeight: 5 }),
    200,
    { message: "Stable data items pruned successfully" },
  ],
  ...[undefined, "{}", ...[-1, 1.5, "1", null, 2 ** 53].map((indexedAtThreshold) => json({ indexedAtThreshold }))].map(
    (body): Row => [
      "POST",
      at("/prune-stable-data-items"),
      body,
      400,
      "Invalid indexedAtThreshold - must be a positive integer",
    ],
  ),
  [
    "POST",
    at("/prune-stable-data-items"),
    json({ indexedAtThreshold: 1, startHeight: -1 }),
    400,
    "Invalid startHeight - must be a positive integer",
  ],
  [
    "POST",
    at("/prune-stable-data-items"),
    json({ indexedAtThreshold: 1, startHeight: 5, endHeight: 4 }),
    400,
    "Invalid endHeight - must be a positive integer greater than or equal to startHeight",
  ],
];

/** Every endpoint of the admin API, and a path of it. */
const endpoints: readonly (readonly [method: string, path: string, others: readonly string[]])[] = [
  ["GET", "/debug", ["POST", "PUT", "DELETE"]],
  ["POST", "/queue-tx", ["GET", "PUT"]],
  ["POST", "/queue-bundle", ["GET", "PUT"]],
  ["POST", "/queue-data-item", ["GET", "PUT"]],
  ["GET", `/bundle-status/${unknown}`, ["POST", "PUT"]],
  ["PUT", "/block-data", ["GET", "POST"]],
  ["PUT", "/unblock-data", ["GET", "POST"]],
  ["PUT", "/block-name", ["GET", "POST"]],
  ["PUT", "/unblock-name", ["GET", "POST"]],
  ["GET", "/blocks", ["POST", "PUT"]],
  ["POST", "/export-parquet", ["GET", "PUT"]],
  ["GET", "/export-parquet/status", ["POST", "PUT"]],
  ["POST", "/prune-stable-data-items", ["GET", "PUT"]],
];

/** What every response of administration has in common. */
function expectAdministrations(response: WireResponse): void {
  expect(header(response, "cache-control")).toBe("no-store");
  const cors = response.headers.filter(([name]) => name.startsWith("access-control-"));
  expect(cors).toEqual([]);
}

function expectBody(response: WireResponse, expected: unknown): void {
  const text = response.body.toString();
  if (expected === "") {
    expect(text).toBe("");
    return;
  }
  expect(JSON.parse(text)).toEqual(typeof expected === "function" ? expected() : expected);
  expect(header(response, "content-type")).toBe("application/json; charset=utf-8");
}

describe("administration", () => {
  for (const prefix of ["/svc", "/ar-io"])
    test.each(rows.map((row, index) => [index, ...row] as const))(
      `row %# under ${prefix}: %p`,
      async (_index, method, path, body, status, expected) => {
        const response = await send(method, `${prefix}/admin${path()}`, typeof body === "function" ? body() : body);
        expect({ status: response.status, body: response.body.toString() }).toMatchObject({ status });
        expectBody(response, expected);
        expectAdministrations(response);
      },
    );

  test.each(endpoints)("%s %s is for the owner of the key alone", async (method, path) => {
    const wrong = ["", "Bearer", "Bearer ", `Basic ${key}`, `Bearer ${key}x`, `Bearer ${key.slice(1)}`, key];
    for (const value of [undefined, ...wrong]) {
      const more = value === undefined ? "" : `\r\nAuthorization: ${value}`;
      const response = await send(method, `/svc/admin${path}`, method === "GET" ? undefined : "{", more);
      expect([value, response.status]).toEqual([value, 401]);
      expect(response.body.toString()).toBe('"Unauthorized"');
      expect(header(response, "www-authenticate")).toBe("Bearer");
      expectAdministrations(response);
    }
    const words = await send(
      method,
      `/svc/admin${path}`,
      method === "GET" ? undefined : "{",
      `\r\nauthorization: bEaReR  ${key}`,
    );
    expect(words.status).not.toBe(401);
  });

  test.each(endpoints)("%s %s has no other methods", async (method, path, others) => {
    for (const other of others) {
      const response = await send(other, `/svc/admin${path}`, other === "GET" ? undefined : "{}");
      expect([other, response.status]).toEqual([other, 405]);
      expect(header(response, "allow")).toBe(method === "GET" ? "GET, HEAD" : method);
      expectAdministrations(response);
    }
    const preflight = await send("OPTIONS", `/svc/admin${path}`, undefined, "\r\nOrigin: https://example.org");
    expect(preflight.status).toBe(405);
    expectAdministrations(preflight);
  });

  test("another path is not found, and not stored", async () => {
    for (const path of ["/svc/admin", "/svc/admin/", "/svc/admin/nothing", "/svc/admin/debug/"]) {
      const response = await send("GET", path, undefined);
      expect([path, response.status]).toEqual([path, 404]);
      expectAdministrations(response);
    }
  });

  test("HEAD responds as GET does, without the body", async () => {
    for (const path of ["/svc/admin/blocks", "/svc/admin/export-parquet/status", "/svc/admin/bundle-status/x"]) {
      const got = await send("GET", path, undefined);
      const head = await send("HEAD", path, undefined);
      expect([head.status, header(head, "content-length")]).toEqual([got.status, `${got.body.length}`]);
      expectAdministrations(head);
    }
  });

  test("a body beyond 8 MiB is too large, announced or not", async () => {
    const response = await send("POST", "/svc/admin/queue-data-item", " ".repeat(8 * 2 ** 20 + 1));
    expect([response.status, response.body.toString()]).toEqual([413, '"Payload too large"']);
    const chunked = await fetch(`${stack.gateway.url}/svc/admin/queue-tx`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: new ReadableStream({
        start(controller) {
          for (let index = 0; index < 9; index++) controller.enqueue(new Uint8Array(2 ** 20).fill(0x20));
          controller.close();
        },
      }),
    });
    expect(chunked.status).toBe(413);
  });
});

describe("the debug record", () => {
  test("has the numbers, heights, times, errors and warnings that importers read", async () => {
    const response = await send("GET", "/svc/admin/debug", undefined);
    const { db } = JSON.parse(response.body.toString());
    const numbers = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, number]));
    expect(db.counts).toEqual(
      numbers([
        "wallets",
        "tagNames",
        "tagValues",
        "stableTxs",
        "stableBlocks",
        "stableBlockTxs",
        "missingStableBlocks",
        "missingStableTxs",
        "missingTxs",
        "newBlocks",
        "newTxs",
        "pendingTxs",
        "pendingDataItems",
        "bundleCount",
        "queuedBundles",
        "failedBundles",
        "bundleDataItems",
        "matchedDataItems",
        "dataItems",
        "nestedDataItems",
        "storedDataItems",
        "duplicates",
        "stagedTxs",
      ]),
    );
    expect(db.counts).toMatchObject({
      newBlocks: 2,
      newTxs: 3, // the first block has one too
      bundleCount: 1,
      dataItems: 2,
      stableBlocks: 0,
    });
    expect(db.heights).toEqual({
      minStable: -1,
      maxStable: -1,
      minNew: 0,
      maxNew: 1,
      minStableDataItem: -1,
      maxStableDataItem: -1,
      minNewDataItem: 1,
      maxNewDataItem: 1,
    });
    expect(db.timestamps).toEqual(
      numbers([
        "now",
        "maxBundleQueuedAt",
        "maxBundleSkippedAt",
        "maxBundleUnbundledAt",
        "maxBundleFullyIndexedAt",
        "maxNewDataItemIndexedAt",
        "maxStableDataItemIndexedAt",
      ]),
    );
    expect(Math.abs(db.timestamps.now - Date.now() / 1_000)).toBeLessThan(60);
    expect(db.timestamps.maxStableDataItemIndexedAt).toBe(-1);
    expect({ errors: db.errors, warnings: db.warnings }).toEqual({ errors: [], warnings: [] });
  });
});

describe("an export", () => {
  const options = { outputDir: "parquet/a", startHeight: 0, endHeight: 0, maxFileRows: 0 };
  const status = async () =>
    JSON.parse((await send("GET", "/svc/admin/export-parquet/status", undefined)).body.toString());

  test("has not started, is started, ends with a reason, and is remembered after a restart", async () => {
    expect(await status()).toEqual({ status: "not_started" });
    const started = await send("POST", "/svc/admin/export-parquet", json(options));
    expect([started.status, started.body.toString()]).toEqual([200, '{"message":"Parquet export started"}']);
    const last = await eventually(status, (found) => found.status !== "running");
    const ended = {
      ...options,
      status: "errored",
      error: "no height from 0 is final yet: the highest final height is -1",
      heightPartitionSize: 1_000,
      skipL1Transactions: true,
      skipL1Tags: true,
      durationInSeconds: number,
      endTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      endTimestamp: number,
    };
    expect(last).toEqual(ended);
    expect(new Date(last.endTime).getTime()).toBe(last.endTimestamp);
    await stack.restart();
    expect(await status()).toEqual(last);
  });
});

describe("the list of rejections", () => {
  const list = async (query = "") =>
    JSON.parse((await send("GET", `/svc/admin/blocks${query}`, undefined)).body.toString());

  test("has them newest first, by pages, also after a restart", async () => {
    for (const index of [1, 2, 3, 4, 5])
      await send("PUT", "/svc/admin/block-data", json({ id: idOf(`listed ${index}`), notes: `${index}` }));
    await send("PUT", "/svc/admin/block-data", json({ hash, source: "a court" }));
    await send("PUT", "/svc/admin/block-name", json({ name: "ArDrive" }));
    const whole = await list();
    expect(whole.blocks).toHaveLength(7);
    expect(whole.blocks).toContainEqual({
      kind: "hash",
      value: hash,
      source: "a court",
      notes: null,
      blockedAt: number,
    });
    expect(whole.blocks).toContainEqual(expect.objectContaining({ kind: "name", value: "ardrive" }));
    const walked: unknown[] = [];
    for (let next: string | null = ""; next !== null; ) {
      const page: { blocks: unknown[]; next: string | null } = await list(
        `?limit=2${next === "" ? "" : `&after=${next}`}`,
      );
      walked.push(...page.blocks);
      next = page.next;
    }
    expect(walked).toEqual(whole.blocks);
    await stack.restart();
    expect(await list()).toEqual(whole);

    for (const index of [1, 2, 3, 4, 5])
      await send("PUT", "/svc/admin/unblock-data", json({ id: idOf(`listed ${index}`) }));
    await send("PUT", "/svc/admin/unblock-data", json({ hash }));
    await send("PUT", "/svc/admin/unblock-name", json({ name: "ARDRIVE" }));
    expect(await list()).toEqual({ blocks: [], next: null });
  });
});
