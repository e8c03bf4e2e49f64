/**
 * Specification 4A, the chain's part, row by row: through the real server, on the real stores, behind a real node.
 *
 * One gateway follows one development chain. The index is read twice: while the node responds, and
 * after it was stopped.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readPostedChunk } from "../../src/arweave/chunk.ts";
import { validatePath } from "../../src/arweave/merkle.ts";
import type { Transaction } from "../../src/arweave/transaction.ts";
import { decodeBase64url } from "../../src/lib/base64url.ts";
import { chunkPosts, ecdsa, post, rsa, sign, statedOf, stranger, testBytes } from "../dev/devnet/support.ts";
import { header, type WireResponse, wire } from "../support/gateway-server.ts";
import { openStack, type Stack } from "../support/stack.ts";

const json = "application/json; charset=utf-8";
const bare = "text/plain; charset=utf-8";
const large = testBytes(700_000, 5);
// Data of format 1 must not end with a digit.
const old = Uint8Array.from([...testBytes(300_001, 6), 0xff]);

let stack: Stack;
/** Two transactions of format 2, in one piece and in chunks; one of format 1; a transfer; one that waits. */
let small: Transaction;
let chunked: Transaction;
let first: Transaction;
let transfer: Transaction;
let waiting: Transaction;
let responses: Map<string, WireResponse>;
/** X-Cache of the chunked data before the first read. */
let cachedAtFirst: string;
/** Responses of the node itself for a mined transaction. */
const nodeTexts = new Map<string, string>();

const get = (path: string, more = "", method = "GET") => wire(stack.port, `${method} ${path} HTTP/1.1${more}`);
const bodyOf = (response: WireResponse) => response.body.toString();

beforeAll(async () => {
  stack = await openStack();
  const { devnet } = stack;
  small = await post(devnet, rsa, {
    data: testBytes(1_000),
    tags: [{ name: "Content-Type", value: "text/plain" }],
  });
  await devnet.mine(1);
  first = await post(devnet, rsa, {
    format: 1,
    data: old,
    tags: [{ name: "Content-Type", value: "image/png" }],
  });
  transfer = await post(devnet, ecdsa, { target: stranger.address, quantity: 5n, reward: 20_000_000_000n });
  await devnet.mine(1);
  chunked = sign(devnet, rsa, { stated: statedOf(large) });
  expect((await fetch(`${stack.gateway.url}/tx`, { method: "POST", body: chunked.text })).status).toBe(200);
  for (const body of chunkPosts(large)) {
    const response = await fetch(`${stack.gateway.url}/chunk`, { method: "POST", body });
    expect([response.status, (await response.json()).successCount]).toEqual([200, 1]);
  }
  await devnet.mine(1);
  waiting = await post(devnet, rsa, { data: testBytes(10) });
  await stack.settled();
  cachedAtFirst = header(await get(`/raw/${chunked.id}`, "", "HEAD"), "x-cache");
  for (const { id } of [small, transfer]) nodeTexts.set(id, await (await stack.node.get(`/tx/${id}`)).text());
}, 120_000);
afterAll(() => stack.close());

/** Responses from the index alone: path, status, media type and body. */
type Row = readonly [path: () => string, status: number, type: string, body: (text: string) => void];

const same = (expected: () => string) => (text: string) => expect(text).toBe(expected());
const sameJson = (expected: () => unknown) => (text: string) => expect(JSON.parse(text)).toEqual(expected());
const block = (height: number) => stack.devnet.blockAt(height)?.text ?? "";
const offsetOf = (transaction: Transaction) => stack.gateway.reader.weaveSpan(transaction.id)?.end.toString() ?? "";

const indexed: readonly Row[] = [
  [() => "/height", 200, bare, same(() => "3")],
  [() => "/block/height/0", 200, json, same(() => block(0))],
  [() => "/block/height/1", 200, json, same(() => block(1))],
  [() => "/block/height/0001", 200, json, same(() => block(1))],
  [() => "/block/height/3", 200, json, same(() => block(3))],
  [() => `/block/hash/${JSON.parse(block(2)).indep_hash}`, 200, json, same(() => block(2))],
  [() => "/block/height/x", 400, bare, same(() => "Invalid height.")],
  [() => "/block/height/-1", 400, bare, same(() => "Invalid height.")],
  [() => "/block/height/1e3", 400, bare, same(() => "Invalid height.")],
  [() => "/block/hash/short", 404, bare, same(() => "Block not found.")],
  [() => "/block/current", 200, json, same(() => block(3))],
  [() => "/current_block", 200, json, same(() => block(3))],
  [() => `/tx/${small.id}`, 200, json, same(() => nodeTexts.get(small.id) ?? "")],
  [() => `/tx/${first.id}`, 200, json, sameJson(() => JSON.parse(first.text))],
  [() => `/tx/${transfer.id}`, 200, json, same(() => nodeTexts.get(transfer.id) ?? "")],
  [() => `/unconfirmed_tx/${small.id}`, 200, json, same(() => nodeTexts.get(small.id) ?? "")],
  [() => `/tx/${small.id}/status`, 200, json, sameJson(() => statusOf(1, 3))],
  [() => `/tx/${first.id}/status`, 200, json, sameJson(() => statusOf(2, 2))],
  [() => `/tx/${small.id}/offset`, 200, json, sameJson(() => ({ size: "1000", offset: offsetOf(small) }))],
  [() => `/tx/${chunked.id}/offset`, 200, json, sameJson(() => ({ size: "700000", offset: offsetOf(chunked) }))],
  [() => `/tx/${small.id}/id`, 200, bare, same(() => small.id)],
  [() => `/tx/${small.id}/owner`, 200, bare, same(() => small.owner)],
  [() => `/tx/${small.id}/data_root`, 200, bare, same(() => small.dataRoot)],
  [() => `/tx/${small.id}/data_size`, 200, bare, same(() => "1000")],
  [() => `/tx/${small.id}/format`, 200, bare, same(() => "2")],
  [() => `/tx/${small.id}/quantity`, 200, bare, same(() => "0")],
  [() => `/tx/${transfer.id}/target`, 200, bare, same(() => stranger.address)],
  [() => `/tx/${small.id}/tags`, 200, json, sameJson(() => JSON.parse(small.text).tags)],
  [() => `/tx/${small.id}/nothing`, 400, json, sameJson(() => ({ error: "invalid_field" }))],
  [() => `/tx/${small.id}/__proto__`, 400, json, sameJson(() => ({ error: "invalid_field" }))],
  [() => `/tx/${small.id}/data`, 200, bare, same(() => Buffer.from(testBytes(1_000)).toString("base64url"))],
  [() => `/tx/${first.id}/data`, 200, bare, same(() => Buffer.from(old).toString("base64url"))],
  [() => `/tx/${chunked.id}/data`, 200, bare, same(() => Buffer.from(large).toString("base64url"))],
  [() => `/tx/${transfer.id}/data`, 200, bare, same(() => "")],
  [() => "/tx/short", 400, bare, same(() => "Invalid hash.")],
  [() => "/tx/short/status", 400, bare, same(() => "Invalid address.")],
  [() => "/tx/short/offset", 400, json, sameJson(() => ({ error: "invalid_address" }))],
  [() => "/tx/short/owner", 400, bare, same(() => "Invalid hash.")],
  [() => "/wallet/a.b/balance", 400, bare, same(() => "Invalid address.")],
  [() => "/price/x", 400, json, sameJson(() => ({ error: "size_must_be_an_integer" }))],
  [() => "/price/-1", 400, json, sameJson(() => ({ error: "size_must_be_an_integer" }))],
  [() => "/chunk/x", 400, json, same(() => '"Invalid offset"')],
  [() => "/chunk/01", 400, json, same(() => '"Invalid offset"')],
  [() => "/chunk/-1", 400, json, same(() => '"Invalid offset"')],
  [() => `/chunk/${"9".repeat(20)}`, 400, json, same(() => '"Invalid offset"')],
  [() => "/chunk/0", 404, json, same(() => '"Not Found"')],
  [() => `/chunk/${offsetOf(small)}`, 200, json, chunkOf(() => small, testBytes(1_000))],
  [() => `/chunk/${offsetOf(chunked)}`, 200, json, chunkOf(() => chunked, large.subarray(2 * 262_144))],
];

/** Responses that only a node has. */
const relayed: readonly Row[] = [
  [() => "/peers", 200, json, sameJson(() => [])],
  [() => "/tx_anchor", 200, bare, same(() => stack.devnet.suggestedAnchor())],
  [() => "/tx/pending", 200, json, sameJson(() => [waiting.id])],
  [() => `/tx/${waiting.id}`, 202, bare, same(() => "Pending")],
  [() => `/tx/${waiting.id}/status`, 202, bare, same(() => "Pending")],
  [() => `/unconfirmed_tx/${waiting.id}`, 200, json, (text) => expect(JSON.parse(text).id).toBe(waiting.id)],
  [() => `/tx/${"A".repeat(43)}`, 404, bare, same(() => "Not Found.")],
  [() => `/tx/${"A".repeat(43)}/status`, 404, bare, same(() => "Not Found.")],
  [() => "/block/height/99", 404, bare, same(() => "Block not found.")],
  [() => `/block/hash/${"A".repeat(64)}`, 404, bare, same(() => "Block not found.")],
  [() => `/wallet/${stranger.address}/balance`, 200, bare, same(() => "5")],
  [() => `/wallet/${stranger.address}/last_tx`, 200, bare, same(() => "")],
  [() => `/wallet/${ecdsa.address}/last_tx`, 200, bare, same(() => transfer.id)],
  [() => "/price/1000", 200, bare, (text) => expect(text).toMatch(/^[1-9]\d*$/)],
  [() => "/price/1000/target", 200, bare, (text) => expect(text).toMatch(/^[1-9]\d*$/)],
  [() => `/price/1000/${rsa.address}`, 200, bare, (text) => expect(text).toMatch(/^[1-9]\d*$/)],
  [() => "/price/0", 200, bare, (text) => expect(text).toMatch(/^\d+$/)],
];

function statusOf(height: number, confirmations: number) {
  return {
    block_height: height,
    block_indep_hash: JSON.parse(block(height)).indep_hash,
    number_of_confirmations: confirmations,
  };
}

/** A chunk record: four strings, whose proofs lead from the block to the bytes. */
function chunkOf(transaction: () => Transaction, bytes: Uint8Array) {
  return (text: string) => {
    const { chunk, data_path, tx_path, packing } = JSON.parse(text);
    expect(packing).toBe("unpacked");
    expect(chunk).toBe(Buffer.from(bytes).toString("base64url"));
    const { id, dataRoot, dataSize } = transaction();
    const leaf = (path: string, root: string, target: bigint, size: bigint) =>
      validatePath({
        root: decodeBase64url(root) ?? new Uint8Array(0),
        path: decodeBase64url(path) ?? new Uint8Array(0),
        target,
        size,
        ruleset: "basic",
      });
    const data = leaf(data_path, dataRoot, BigInt(dataSize - 1), BigInt(dataSize));
    expect(Buffer.from(data?.hash ?? []).equals(createHash("sha256").update(bytes).digest())).toBe(true);
    const height = stack.gateway.reader.transactionStatus(id)?.height ?? -1;
    const { tx_root, weave_size, block_size } = JSON.parse(block(height));
    const start = BigInt(weave_size) - BigInt(block_size);
    const end = stack.gateway.reader.weaveSpan(id)?.end ?? 0n;
    const place = leaf(tx_path, tx_root, end - start - 1n, BigInt(block_size));
    expect(Buffer.from(place?.hash ?? []).toString("base64url")).toBe(dataRoot);
  };
}

async function expectRow([path, status, type, check]: Row): Promise<void> {
  const response = await get(path());
  expect([path(), response.status, header(response, "content-type")]).toEqual([path(), status, type]);
  check(bodyOf(response));
  expect(header(response, "access-control-allow-origin")).toBe("*");
  const head = await get(path(), "", "HEAD");
  const said = (found: WireResponse) =>
    new Map(found.headers.filter(([name]) => !["date", "x-request-id"].includes(name)));
  expect(head.status).toBe(status);
  expect(said(head)).toEqual(said(response));
}

describe("while a node responds", () => {
  test.each(indexed.map((row) => [String(row[0]).replace(/^\(\) => /, ""), row] as const))("GET %s", (_name, row) =>
    expectRow(row),
  );
  test.each(relayed.map((row) => [String(row[0]).replace(/^\(\) => /, ""), row] as const))(
    "GET %s is the node's response",
    (_name, row) => expectRow(row),
  );

  test("GET /info is the node's record", async () => {
    const record = JSON.parse(bodyOf(await get("/info")));
    expect(record).toEqual(await (await stack.node.get("/info")).json());
    expect(Object.keys(record)).toEqual(
      expect.arrayContaining([
        "network",
        "version",
        "release",
        "current",
        "blocks",
        "peers",
        "queue_length",
        "node_state_latency",
      ]),
    );
  });
});

describe("GET /chunk/{offset}", () => {
  test("covers every byte of the data, and nothing beyond the weave", async () => {
    const end = BigInt(offsetOf(chunked));
    const start = end - 700_000n;
    const chunks = await Promise.all(
      [start + 1n, start + 262_144n, start + 262_145n, end].map((at) => get(`/chunk/${at}`)),
    );
    const hashes = chunks.map((response) =>
      createHash("sha256")
        .update(JSON.parse(bodyOf(response)).chunk)
        .digest("hex"),
    );
    expect([hashes[0] === hashes[1], hashes[1] === hashes[2], hashes[2] === hashes[3]]).toEqual([true, false, false]);
    const beyond = await get(`/chunk/${stack.devnet.weaveSize() + 1n}`);
    expect([beyond.status, bodyOf(beyond)]).toEqual([404, '"Not Found"']);
  });

  test("has the hash of the chunk as its tag, and says when it is known", async () => {
    const path = `/chunk/${offsetOf(small)}`;
    const tag = `"${createHash("sha256").update(testBytes(1_000)).digest("base64url")}"`;
    expect(header(await get(path), "etag")).toBe(tag);
    for (const method of ["GET", "HEAD"]) {
      const known = await get(path, `\r\nIf-None-Match: ${tag}`, method);
      expect([known.status, known.body.length, header(known, "etag")]).toEqual([304, 0, tag]);
    }
    expect((await get(path, '\r\nIf-None-Match: "other"')).status).toBe(200);
  });

  test("/data gives the bytes and what proves them", async () => {
    const end = BigInt(offsetOf(chunked));
    const response = await get(`/chunk/${end}/data`);
    const bytes = large.subarray(2 * 262_144);
    expect(response.body.equals(Buffer.from(bytes))).toBe(true);
    const fields = {
      "content-type": "application/octet-stream",
      "x-arweave-chunk-data-root": chunked.dataRoot,
      "x-arweave-chunk-tx-id": chunked.id,
      "x-arweave-chunk-tx-data-size": "700000",
      "x-arweave-chunk-tx-start-offset": String(end - 700_000n + 1n),
      "x-arweave-chunk-relative-start-offset": String(2 * 262_144),
      "x-arweave-chunk-start-offset": String(end - BigInt(bytes.length) + 1n),
      "x-arweave-chunk-read-offset": String(bytes.length - 1),
    };
    for (const [name, value] of Object.entries(fields)) expect([name, header(response, name)]).toEqual([name, value]);
  });
});

describe("K1: an offset", () => {
  const { MAX_SAFE_INTEGER: safe } = Number;
  test.each([
    "-1",
    "1e3",
    "00",
    "01",
    "007",
    "+1",
    "1.0",
    "0x10",
    "%2B1",
    "%201",
    "1%20",
    "\u0661",
    "NaN",
    "1n",
    String(10n ** 19n),
    String(2n ** 64n),
    "9".repeat(100),
  ])("%s is invalid", async (offset) => {
    for (const path of [`/chunk/${offset}`, `/chunk/${offset}/data`]) {
      const response = await get(path);
      expect([path, response.status, bodyOf(response)]).toEqual([path, 400, '"Invalid offset"']);
    }
  });
  test.each([
    "0",
    String(safe),
    String(safe + 1),
    String(2n ** 63n - 1n),
    String(2n ** 63n),
    String(2n ** 63n + 1n),
    "9".repeat(19),
  ])("%s is beyond the weave", async (offset) => {
    for (const path of [`/chunk/${offset}`, `/chunk/${offset}/data`]) {
      const response = await get(path);
      expect([path, response.status, bodyOf(response)]).toEqual([path, 404, '"Not Found"']);
    }
  });
});

describe("K1: a chunk that is posted", () => {
  const [body = ""] = chunkPosts(testBytes(300_000, 99));
  const good: Record<string, string> = JSON.parse(body);
  const path = Buffer.from(good["data_path"] ?? "", "base64url");
  const flipped = (at: number) => {
    const copy = Buffer.from(path);
    copy[at] = (copy[at] ?? 0) ^ 1;
    return copy.toString("base64url");
  };
  const rows: readonly (readonly [string, Record<string, unknown>, string])[] = [
    ["without a proof", { data_path: "" }, "invalid_proof"],
    ["with a proof that is cut", { data_path: path.subarray(0, -1).toString("base64url") }, "invalid_proof"],
    ["with a proof of the first bit wrong", { data_path: flipped(0) }, "invalid_proof"],
    ["with a proof of a bit wrong in its offset", { data_path: flipped(path.length - 1) }, "invalid_proof"],
    ["with a proof of 240 KB", { data_path: "A".repeat(320_000) }, "invalid_proof"],
    ["with a proof of 360 KB", { chunk: "", data_path: "A".repeat(480_000) }, "data_path_too_big"],
    ["of data of 2^255 bytes", { data_size: String(2n ** 255n) }, "data_size_too_big"],
    ["of data of 2^64 bytes", { data_size: String(2n ** 64n) }, "data_size_too_big"],
    ["of no data", { data_size: "0" }, "invalid_proof"],
    ["at 2^255", { offset: String(2n ** 255n) }, "offset_too_big"],
    ["beyond its data", { offset: "300000" }, "invalid_proof"],
    ["of 300 KB", { chunk: Buffer.alloc(300_000).toString("base64url") }, "chunk_too_big"],
    ["of other bytes", { chunk: Buffer.alloc(262_144).toString("base64url") }, "invalid_proof"],
    ["of nothing", { chunk: "" }, "invalid_proof"],
    ["under another root", { data_root: "A".repeat(43) }, "invalid_proof"],
    ["at a negative offset", { offset: "-1" }, "invalid_json"],
    ["at an offset with an exponent", { offset: "1e3" }, "invalid_json"],
    ["of a negative size", { data_size: "-5" }, "invalid_json"],
    ["of an invalid root", { data_root: "short" }, "invalid_json"],
    ["of bytes that are no base64url", { chunk: "***" }, "invalid_json"],
    ["whose offset is absent", { offset: undefined }, "offset_field_required"],
    ["whose chunk is a list", { chunk: [1, 2, 3] }, "invalid_json"],
  ];
  test.each(rows)("%s is rejected here, and no node sees it", async (_name, change, error) => {
    const response = await fetch(`${stack.gateway.url}/chunk`, {
      method: "POST",
      body: JSON.stringify({ ...good, ...change }),
    });
    expect([response.status, await response.json()]).toEqual([400, { error }]);
  });
});

describe("POST", () => {
  const send = async (path: string, body: string) => {
    const response = await fetch(`${stack.gateway.url}${path}`, { method: "POST", body });
    return [response.status, response.headers.get("content-type"), await response.text()] as const;
  };
  test("/tx gives the node's own text", async () => {
    expect(await send("/tx", sign(stack.devnet, ecdsa, { data: testBytes(9) }).text)).toEqual([200, bare, "OK"]);
    expect(await send("/tx", "{")).toEqual([400, bare, "Invalid JSON."]);
    const unsigned = JSON.stringify({ ...JSON.parse(sign(stack.devnet, rsa).text), reward: "1" });
    expect((await send("/tx", unsigned))[0]).toBe(400);
  });

  test("/chunk names what is wrong in the node's words", async () => {
    const [body = ""] = chunkPosts(testBytes(300_000, 99));
    const unknown = await send("/chunk", body);
    expect([unknown[0], JSON.parse(unknown[2]).error]).toEqual([400, "data_root_not_found"]);
    expect(JSON.parse((await send("/chunk", "{"))[2]).error).toBe("invalid_json");
    const wrong = { ...JSON.parse(body), chunk: Buffer.from(testBytes(262_144, 1)).toString("base64url") };
    expect(JSON.parse((await send("/chunk", JSON.stringify(wrong)))[2]).error).toBe("invalid_proof");
  });

  test("/chunk says which nodes took it", async () => {
    const [body = ""] = chunkPosts(large);
    expect(readPostedChunk(body).dataSize).toBe(700_000);
    expect(JSON.parse((await send("/chunk", body))[2])).toEqual({
      successCount: 1,
      preferredSuccessCount: 1,
      failureCount: 0,
      results: [
        {
          peer: `http://127.0.0.1:${stack.node.port}`,
          success: true,
          statusCode: 200,
          canceled: false,
          timedOut: false,
        },
      ],
    });
  });

  test("/chunk stores posted chunks: the data is here before the first request", async () => {
    expect(cachedAtFirst).toBe("HIT");
    expect((await get(`/raw/${chunked.id}`)).body.equals(Buffer.from(large))).toBe(true);
  });

  test("a body beyond its limit is rejected", async () => {
    expect((await send("/chunk", "x".repeat(750_001)))[0]).toBe(413);
    expect((await send("/tx", "x".repeat(15 * 2 ** 20 + 1)))[0]).toBe(413);
  });
});

describe("with every node stopped", () => {
  beforeAll(async () => {
    responses = new Map();
    for (const [path] of indexed) responses.set(path(), await get(path()));
    await stack.node.close();
  });

  test.each(indexed.map((row) => [String(row[0]).replace(/^\(\) => /, ""), row] as const))(
    "GET %s has the same response as before",
    async (_name, [path]) => {
      const [before, now] = [responses.get(path()), await get(path())];
      expect([now.status, bodyOf(now)]).toEqual([before?.status ?? 0, before === undefined ? "" : bodyOf(before)]);
    },
  );

  test("GET /info is made from the index", async () => {
    await Bun.sleep(1_100); // what the node said is believed for a second
    const record = JSON.parse(bodyOf(await get("/info")));
    expect(record).toMatchObject({ height: 3, current: JSON.parse(block(3)).indep_hash, blocks: 4 });
  });

  test.each(["/tx_anchor", "/tx/pending", `/tx/${"C".repeat(42)}A`, "/price/12345"])(
    "GET %s reports temporarily that no node responds",
    async (path) => {
      const response = await get(path);
      expect([response.status, header(response, "retry-after"), header(response, "cache-control")]).toEqual([
        502,
        "5",
        "no-store",
      ]);
    },
  );
});
