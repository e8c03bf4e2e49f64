/**
 * What was uploaded is readable at once, by id and by query, before any block has it: from the file that it was written
 * to, checked, moderated, and over restarts.
 * Source: docs/reference/gateway.md#verification; docs/reference/gateway.md#block-list.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { closeSync, openSync, readdirSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { type RunningProgram, startDev } from "../support/program.ts";
import { connectRaw } from "../support/raw-request.ts";
import { eventually } from "../support/until.ts";
import { type TestItem, testItem } from "../support/upload.ts";

/** Nothing is bundled while this runs. */
const environment = { HOST: "127.0.0.1", UPLOAD_BUNDLE_WAIT_MS: "86400000" };

let program: RunningProgram;

beforeAll(async () => {
  program = await startDev({ environment });
}, 120_000);
afterAll(() => program.remove());

const htmlTag = { name: "Content-Type", value: "text/html" };
const page = "<h1>read at once</h1>";
const small = testItem(page, { tags: [htmlTag, { name: "Test", value: "uploads" }] });
const largeData = new Uint8Array(3_000_000).map((_, index) => index % 251);
const large = testItem(largeData, { tags: [{ name: "Test", value: "uploads" }] });
const digestOf = (data: string | Uint8Array) => createHash("sha256").update(data).digest("base64url");

const uploadUrl = () => program.line.upload;
const get = (id: string, headers: Record<string, string> = {}, method = "GET") =>
  fetch(`${program.line.gateway}/raw/${id}`, { method, headers });

async function send(item: TestItem): Promise<Record<string, unknown>> {
  // While a lost index is rebuilt, no block is known, and uploads get 503.
  const response = await eventually(
    () => fetch(`${uploadUrl()}/v1/tx`, { method: "POST", body: item.bytes }),
    ({ status }) => status !== 503,
  );
  expect(response.status).toBe(200);
  return await response.json();
}

async function restart(): Promise<void> {
  const { folder } = program;
  expect(await program.stop()).toBe(0);
  program = await startDev({ environment, folder });
}

async function admin(path: string, body: unknown): Promise<void> {
  const response = await fetch(`${program.line.gateway}/svc/admin/${path}`, {
    method: "PUT",
    body: JSON.stringify(body),
    headers: { Authorization: `Bearer ${program.line.adminKey}`, "Content-Type": "application/json" },
  });
  expect(response.status).toBe(200);
}

async function found(): Promise<string[]> {
  const query =
    '{ transactions(tags: [{ name: "Test", values: ["uploads"] }]) { edges { node { id block { height } } } } }';
  const response = await fetch(`${program.line.gateway}/graphql`, {
    method: "POST",
    body: JSON.stringify({ query }),
    headers: { "Content-Type": "application/json" },
  });
  const { data } = await response.json();
  return data.transactions.edges.map(({ node }: { node: { id: string; block: unknown } }) => {
    expect(node.block).toBeNull();
    return node.id;
  });
}

const both = [
  ["small", small, page],
  ["large", large, largeData],
] as const;

for (const [name, item, data] of both)
  test(`a ${name} item is readable as soon as its receipt is there`, async () => {
    const receipt = await send(item);
    const host = new URL(program.line.gateway).host;
    expect(receipt).toMatchObject({ id: item.id, dataCaches: [host], fastFinalityIndexes: [host] });
    const response = await get(item.id);
    expect(response.status).toBe(200);
    expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.from(data))).toBe(true);
    expect(await found()).toContain(item.id);
  });

for (const [name, item, data] of both)
  test(`a ${name} item gets all that is known of it, by range and HEAD too`, async () => {
    const size = Buffer.from(data).length;
    const head = await get(item.id, {}, "HEAD");
    const said = Object.fromEntries(head.headers);
    expect(head.status).toBe(200);
    expect(said).toMatchObject({
      "x-ar-io-data-id": item.id,
      "x-ar-io-digest": digestOf(data),
      etag: `"${item.id}"`,
      "x-ar-io-verified": "true",
      "x-ar-io-stable": "false",
      "x-ar-io-trusted": "true",
      "content-length": String(size),
      "accept-ranges": "bytes",
      "cache-control": "public, max-age=7200",
    });
    expect(said["content-type"]).toStartWith(item === small ? "text/html" : "application/octet-stream");
    const part = await get(item.id, { range: "bytes=5-14" });
    expect([part.status, part.headers.get("content-range")]).toEqual([206, `bytes 5-14/${size}`]);
    expect(Buffer.from(await part.arrayBuffer()).equals(Buffer.from(data).subarray(5, 15))).toBe(true);
    expect((await get(item.id, { range: `bytes=${size}-` })).status).toBe(416);
    expect((await get(item.id, { "if-none-match": `"${item.id}"` })).status).toBe(304);
  });

test("an item that is too large is rejected on every route", async () => {
  for (const [url, path] of [
    [uploadUrl(), "/v1/tx"],
    [program.line.gateway, "/upload/tx"],
  ] as const) {
    const connection = await connectRaw(url);
    await connection.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${2 ** 41}\r\n\r\n`);
    expect(await connection.until("bytes!")).toMatch(/^HTTP\/1.1 413 [^"]*"Data item is too large, /);
    connection.cut();
  }
});

test("an item that is blocked by its id or by its hash is not served", async () => {
  for (const [, item, data] of both)
    for (const block of [{ id: item.id }, { hash: digestOf(data) }]) {
      await admin("block-data", block);
      for (const [headers, method] of [
        [{}, "GET"],
        [{}, "HEAD"],
        [{ range: "bytes=0-1" }, "GET"],
      ] as const)
        expect((await get(item.id, { ...headers }, method)).status).toBe(451);
      await admin("unblock-data", block);
      expect((await get(item.id)).status).toBe(200);
    }
});

test("after a restart items are compared and served as verified, and found", async () => {
  await restart();
  for (const [, item, data] of both) {
    const response = await get(item.id);
    expect([response.status, response.headers.get("x-ar-io-verified")]).toEqual([200, "true"]);
    expect(digestOf(new Uint8Array(await response.arrayBuffer()))).toBe(digestOf(data));
  }
  expect((await found()).sort()).toEqual([small.id, large.id].sort());
}, 120_000);

test("uploads are announced again to a rebuilt index", async () => {
  const { folder } = program;
  expect(await program.stop()).toBe(0);
  for (const name of readdirSync(folder).filter((each) => each.startsWith("index.sqlite"))) rmSync(join(folder, name));
  program = await startDev({ environment, folder });
  const ids = await eventually(found, ({ length }) => length === 2);
  expect(ids.sort()).toEqual([small.id, large.id].sort());
}, 120_000);

test("bytes that were changed on the disk are not served, and unchanged bytes are", async () => {
  const uploads = join(program.folder, "uploads");
  const other = testItem("<p>beside it</p>", { tags: [htmlTag] });
  await send(other);
  for (const folder of ["items", "segments"])
    for (const name of readdirSync(join(uploads, folder))) {
      const file = openSync(join(uploads, folder, name), "r+");
      // The last byte of the only item, or of the first of two.
      writeSync(file, "#", folder === "items" ? large.bytes.length - 1 : small.bytes.length - 1);
      closeSync(file);
    }
  for (const item of [small, large]) {
    const response = await get(item.id);
    expect([response.status, response.headers.get("retry-after")]).toEqual([502, "5"]);
  }
  expect((await get(other.id)).status).toBe(200);
});
