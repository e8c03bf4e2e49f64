/**
 * Content on disk that was verified a moment ago is sent at once: ranges of up to 16 KiB from memory, those below 256 KiB
 * from the open file, larger ones as a slice of the file. A response at once equals the response that the routes compose.
 * Only the routes give an X-Request-Id to a request without one, and only they read conditions.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Id } from "../../src/arweave/id.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openBlockList } from "../../src/store/block-list.ts";
import { post, rsa, testBytes } from "../dev/devnet/support.ts";
import { adminKey, askAdmin, openStack, type Stack } from "../support/stack.ts";
import { eventually } from "../support/until.ts";

const size = 3 * 2 ** 20 + 12_345;
const step = 64 * 1_024;
const folder = mkdtempSync(join(tmpdir(), "cairn-hot-"));
const data = testBytes(size, 11);
let stack: Stack;
let id: Id;

beforeAll(async () => {
  stack = await openStack({ DATA_DIR: folder, ADMIN_API_KEY: adminKey, LOG_REQUESTS: "true" });
  ({ id } = await post(stack.devnet, rsa, { data }));
  await stack.devnet.mine(1);
  await stack.settled();
}, 120_000);
afterAll(async () => {
  await stack.close();
  removeFolder(folder);
});

async function ask(range: string | undefined, headers: Record<string, string> = {}, method = "GET", of = id) {
  const sent = range === undefined ? headers : { ...headers, range };
  const response = await fetch(`${stack.gateway.url}/raw/${of}`, { method, headers: sent });
  const body = Buffer.from(await response.arrayBuffer());
  const received = Object.fromEntries(response.headers);
  const isAtOnce = received["x-request-id"] === undefined;
  delete received["x-request-id"];
  delete received["date"];
  return { status: response.status, headers: received, body, isAtOnce };
}

/** Headers with which the routes compose the response. */
const conditional = { "if-match": "*" } as const;

/** Requests a range of content on disk: of the routes, and then until the response comes at once. */
async function twice(range: string | undefined) {
  await ask(undefined);
  const composed = await ask(range, conditional);
  // A file that changed less than 50 ms ago is verified each time.
  const again = await eventually(
    () => ask(range),
    ({ isAtOnce }) => isAtOnce,
  );
  return { composed, again };
}

const last = size - 1;

describe("is sent at once, as the routes would", () => {
  test.each([
    ["bytes=0-0", 0, 0],
    ["bytes=100-1123", 100, 1_123],
    [`bytes=${step}-${step + 16_383}`, step, step + 16_383],
    [`bytes=${step - 512}-${step + 511}`, step - 512, step + 511],
    ["bytes=-1", last, last],
    ["bytes=-1024", size - 1_024, last],
    [`bytes=${last}-`, last, last],
    [`bytes=${last}-${2 * size}`, last, last],
    ["bytes=0-16384", 0, 2 ** 14],
    [`bytes=${step - 1}-${2 * step}`, step - 1, 2 * step],
    ["bytes=0-262142", 0, 2 ** 18 - 2],
    ["bytes=0-262143", 0, 2 ** 18 - 1],
    ["bytes=0-1048575", 0, 2 ** 20 - 1],
    [`bytes=777-${777 + 2 ** 20}`, 777, 777 + 2 ** 20],
    ["bytes=0-", 0, last],
  ])("%s", async (range, first, end) => {
    const { composed, again } = await twice(range);
    expect([composed.isAtOnce, again.isAtOnce]).toEqual([false, true]);
    expect([again.status, again.headers]).toEqual([206, composed.headers]);
    expect(again.headers).toMatchObject({
      "content-range": `bytes ${first}-${end}/${size}`,
      "content-length": String(end - first + 1),
      "x-cache": "HIT",
    });
    expect(again.body.equals(data.subarray(first, end + 1))).toBe(true);
  });

  test("all of it", async () => {
    const { composed, again } = await twice(undefined);
    expect([composed.isAtOnce, again.isAtOnce]).toEqual([false, true]);
    expect([again.status, again.headers]).toEqual([200, composed.headers]);
    expect(again.body.equals(data)).toBe(true);
  });
});

test("a small body is sent from memory", async () => {
  const small = await post(stack.devnet, rsa, { data: testBytes(3_000, 12) });
  await stack.devnet.mine(1);
  await stack.settled();
  const request = async (headers: Record<string, string>) => {
    const response = await fetch(`${stack.gateway.url}/${small.id}`, { headers });
    return { isAtOnce: !response.headers.has("x-request-id"), body: Buffer.from(await response.arrayBuffer()) };
  };
  expect((await request({})).isAtOnce).toBe(false);
  expect(await request({})).toEqual({ isAtOnce: true, body: Buffer.from(testBytes(3_000, 12)) });
  expect((await request(conditional)).isAtOnce).toBe(false);
});

test("what is sent at once has the id of its request, in the line of the log too, and no other has it", async () => {
  const idOf = async (path: string, headers: Record<string, string>) => {
    const response = await fetch(`${stack.gateway.url}${path}`, { headers });
    await response.arrayBuffer();
    return response.headers.get("x-request-id");
  };
  const small = await post(stack.devnet, rsa, { data: testBytes(3_000, 13) });
  await stack.devnet.mine(1);
  await stack.settled();
  for (const [path, headers] of [
    [`/${small.id}`, {}],
    [`/raw/${id}`, {}],
    [`/raw/${id}`, { range: "bytes=0-1023" }],
    [`/raw/${id}`, { range: "bytes=0-65535" }],
    [`/raw/${id}`, { range: "bytes=0-1048575" }],
  ] as const) {
    const isAtOnce = (given: string | null) => given === null;
    await eventually(() => idOf(path, headers), isAtOnce);
    const own = `${path.slice(-4)}-${JSON.stringify(headers).length}`;
    expect(await idOf(path, { ...headers, "x-request-id": own })).toBe(own);
    expect(stack.lines.filter(({ requestId }) => requestId === own)).toMatchObject([{ durationMs: 0 }]);
    expect(await idOf(path, headers)).toBeNull();
  }
});

describe("a body of 256 KiB to 1 MiB", () => {
  /** Bytes of all bodies in memory. */
  const inMemory = async () => {
    const text = await (await fetch(`${stack.gateway.url}/metrics`)).text();
    return Number(/^memory_hits_bytes (\d+)/m.exec(text)?.[1]);
  };
  /** A transaction of so many bytes, and the bytes. */
  const postBody = async (bytes: number) => {
    const sent = testBytes(bytes, bytes);
    const posted = await post(stack.devnet, rsa, { data: sent });
    await stack.devnet.mine(1);
    await stack.settled();
    return { id: posted.id, sent };
  };
  const atOnce = (of: Id) =>
    eventually(
      () => ask(undefined, {}, "GET", of),
      ({ isAtOnce }) => isAtOnce,
    );
  const untilInMemory = async (of: Id, bytes: number) => {
    const before = await inMemory();
    await ask(undefined, {}, "GET", of);
    await eventually(
      async () => ({ sent: await atOnce(of), after: await inMemory() }),
      ({ after }) => after - before >= bytes,
    );
  };

  test.each([
    [2 ** 18 + 1, true],
    [500_000, true],
    [2 ** 20 - 1, true],
    [2 ** 20, false],
  ])("of %p bytes that is requested again is brought into memory: %p, and is the same", async (bytes, isInMemory) => {
    const { id: medium, sent } = await postBody(bytes);
    const before = await inMemory();
    await ask(undefined, {}, "GET", medium);
    const composed = await ask(undefined, conditional, "GET", medium);
    if (isInMemory) await untilInMemory(medium, bytes);
    for (let count = 0; count < 8; count += 1) {
      const again = await atOnce(medium);
      expect([again.status, again.headers]).toEqual([200, composed.headers]);
      expect(again.body.equals(sent)).toBe(true);
    }
    expect((await inMemory()) - before >= bytes).toBe(isInMemory);
  });

  test("is not sent any more from the moment at which another connection blocks it", async () => {
    const bytes = 600_000;
    const { id: medium, sent } = await postBody(bytes);
    await untilInMemory(medium, bytes);
    const connection = openBlockList(join(folder, "moderation.sqlite"), Date.now);
    try {
      for (const [kind, value] of [
        ["id", medium],
        ["hash", encodeBase64url(sha256(sent))],
      ] as const) {
        connection.block(kind, value, {});
        expect((await ask(undefined, {}, "GET", medium)).status).toBe(451);
        connection.unblock(kind, value);
        expect(await ask(undefined, {}, "GET", medium)).toMatchObject({ status: 200, isAtOnce: true });
      }
    } finally {
      connection.close();
    }
  });
});

describe("is composed by the routes", () => {
  test.each([
    ["several ranges", "bytes=0-9,20-29", {}, "GET", 206],
    ["a range that is not there", `bytes=${size}-`, {}, "GET", 416],
    ["an end before its beginning", "bytes=9-0", {}, "GET", 200],
    ["another unit", "lines=0-9", {}, "GET", 200],
    ["HEAD", "bytes=0-9", {}, "HEAD", 206],
    ["If-Range with another tag", "bytes=0-9", { "if-range": '"other"' }, "GET", 200],
    ["If-None-Match", "bytes=0-9", { "if-none-match": '"other"' }, "GET", 206],
    ["If-Match with another tag", "bytes=0-9", { "if-match": '"other"' }, "GET", 412],
  ] as const)("%s", async (_name, range, headers, method, status) => {
    await twice("bytes=0-9");
    await ask(range, headers, method);
    const response = await ask(range, headers, method);
    expect([response.status, response.isAtOnce]).toEqual([status, false]);
  });
});

describe("a file that is damaged after it was verified", () => {
  /** Changes every byte of the content's file. */
  function damage(): void {
    const names = readdirSync(join(folder, "content"), { recursive: true, encoding: "utf8" });
    for (const name of names.map((each) => join(folder, "content", each)).filter((each) => Bun.file(each).size >= size))
      writeFileSync(
        name,
        readFileSync(name).map((byte) => byte ^ 1),
      );
  }

  test.each([
    ["a small range", "bytes=100-199", data.subarray(100, 200)],
    ["a range of 64 KiB", "bytes=100-65635", data.subarray(100, 65_636)],
    ["a large range", "bytes=0-1999999", data.subarray(0, 2_000_000)],
    ["all of it", undefined, data],
  ] as const)("is not sent: %s has the right bytes", async (_name, range, bytes) => {
    await twice(range);
    damage();
    for (let count = 0; count < 3; count += 1) expect((await ask(range)).body.equals(bytes)).toBe(true);
  });
});

test("content that is blocked is not sent from then on, and is sent again when it is unblocked", async () => {
  const ranges = ["bytes=100-199", "bytes=100-65635", "bytes=0-1999999", undefined];
  for (const range of ranges) await twice(range);
  expect((await askAdmin(stack, "PUT", "block-data", { id })).status).toBe(200);
  for (const range of ranges) expect((await ask(range)).status).toBe(451);
  expect((await askAdmin(stack, "PUT", "unblock-data", { id })).status).toBe(200);
  for (const range of ranges) expect((await ask(range)).status).toBe(range === undefined ? 200 : 206);
});

describe("P1: while other content is blocked", () => {
  const ranges = ["bytes=100-199", "bytes=100-65635", "bytes=0-1999999", undefined];
  const other = "A".repeat(43);
  const hash = encodeBase64url(sha256(data));

  test.each([
    ["an id", { id: other }],
    ["a hash", { hash: other }],
  ])("%s: it is sent at once, and not from the response to its own PUT on", async (_name, blocked) => {
    expect((await askAdmin(stack, "PUT", "block-data", blocked)).status).toBe(200);
    for (const range of ranges) expect((await twice(range)).again.isAtOnce).toBe(true);
    for (const own of [{ id }, { hash }]) {
      expect((await askAdmin(stack, "PUT", "block-data", own)).status).toBe(200);
      for (const range of ranges) expect((await ask(range)).status).toBe(451);
      expect((await askAdmin(stack, "PUT", "unblock-data", own)).status).toBe(200);
      for (const range of ranges) expect((await twice(range)).again.isAtOnce).toBe(true);
    }
    expect((await askAdmin(stack, "PUT", "unblock-data", blocked)).status).toBe(200);
  });

  test("a change by another connection holds at once", async () => {
    const connection = openBlockList(join(folder, "moderation.sqlite"), Date.now);
    try {
      connection.block("id", other, {});
      for (const range of ranges) expect((await twice(range)).again.isAtOnce).toBe(true);
      for (const [kind, value] of [
        ["id", id],
        ["hash", hash],
      ] as const) {
        connection.block(kind, value, {});
        for (const range of ranges) expect((await ask(range)).status).toBe(451);
        connection.unblock(kind, value);
        for (const range of ranges) expect((await ask(range)).isAtOnce).toBe(true);
      }
    } finally {
      connection.unblock("id", other);
      connection.close();
    }
  });
});
