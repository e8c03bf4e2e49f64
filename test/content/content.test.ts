/**
 * Content from a cold start: what is fetched, how often, and what is given.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { Failure } from "../../src/failures.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { madeBytes, madeId, makeData } from "../chain/data-node.ts";
import { until } from "../support/until.ts";
import { closeAfterEach, impatient, isSame, joined, locatedOf } from "./content-harness.ts";

const kibibyte = 1_024;
const mebibyte = 2 ** 20;
const chunk = 256 * kibibyte;
const { closers, harnessWith, nodeWith } = closeAfterEach();
const none = new AbortController().signal;

async function failureOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof Failure ? error.code : String(error);
}

describe("fetched bytes", () => {
  test("64 KiB of a cold 64 MiB transaction cost at most 2 chunks; a second read fetches none, also after a restart", async () => {
    const data = makeData(1, 64 * mebibyte + 1_000);
    const node = await nodeWith(data);
    let harness = harnessWith({ nodeUrls: [node.url] }, data);
    closers.pop();
    for (const start of [0, 30 * mebibyte, 40 * mebibyte - 100, 64 * mebibyte + 1_000 - 64 * kibibyte]) {
      const before = node.requests.length;
      const span = { start, end: start + 64 * kibibyte };
      const opened = await harness.content.open(data.root.id, none);
      expect(node.requests.length).toBe(before); // opening sends no request
      expect(opened.cached(span)).toBe(false);
      expect(isSame(await joined(opened.read(span, none)), data.bytes.subarray(span.start, span.end))).toBe(true);
      expect(node.requests.length - before).toBeLessThanOrEqual(2);

      const after = node.requests.length;
      expect(isSame(await opened.bytes(span, none), data.bytes.subarray(span.start, span.end))).toBe(true);
      expect(opened.cached(span)).toBe(true);
      harness = await harness.restart();
      const again = await harness.content.open(data.root.id, none);
      expect(isSame(await again.bytes(span, none), data.bytes.subarray(span.start, span.end))).toBe(true);
      expect(node.requests.length).toBe(after);
    }
    await harness.close();
  });

  const cuts: readonly (readonly [string, number, "halved" | "plain" | readonly number[]])[] = [
    ["one byte", 1, "halved"],
    ["less than a chunk", 100_000, "halved"],
    ["exactly a chunk, with the empty leaf after it", chunk, "halved"],
    ["exactly four chunks", 4 * chunk, "plain"],
    ["a halved tail", 2 * chunk + 10_000, "halved"],
    ["a tail that client libraries would halve, not halved", 2 * chunk + 10_000, "plain"],
    ["a long tail", 2 * chunk + 100_000, "halved"],
  ];
  test.each(cuts)("%s is read completely and correctly, and each chunk is fetched once", async (_name, size, rule) => {
    const data = makeData(2, size, rule);
    const node = await nodeWith(data);
    const harness = harnessWith({ nodeUrls: [node.url] }, data);
    const opened = await harness.content.open(data.root.id, none);
    expect(isSame(await joined(opened.read({ start: 0, end: size }, none)), data.bytes)).toBe(true);
    const chunks = data.spans.filter(({ start, end }) => end > start).length;
    expect(node.chunkRequests()).toBeLessThanOrEqual(chunks + (rule === "plain" ? 1 : 0));
    expect(opened.cached({ start: 0, end: size })).toBe(true);
  });

  test("a transaction without data has no bytes, and sends no request", async () => {
    const data = makeData(3, 1);
    const root = { ...data.root, size: 0, dataRoot: "" };
    const node = await nodeWith();
    const harness = harnessWith({ nodeUrls: [node.url] });
    harness.index.set(root.id, locatedOf(root.id, root));
    const opened = await harness.content.open(root.id, none);
    expect(opened).toMatchObject({ size: 0, verified: true });
    expect(await opened.bytes({ start: 0, end: 0 }, none)).toHaveLength(0);
    expect(await joined(opened.read({ start: 0, end: 0 }, none))).toHaveLength(0);
    expect(node.requests).toEqual([]);
  });

  test("the place in the weave is requested once when the index lacks it", async () => {
    const data = makeData(4, 3 * chunk);
    const { weaveStart: _known, ...root } = data.root;
    const node = await nodeWith(data);
    const harness = harnessWith({ nodeUrls: [node.url] });
    harness.index.set(root.id, locatedOf(root.id, root));
    const opened = await harness.content.open(root.id, none);
    expect(isSame(await joined(opened.read({ start: 0, end: 3 * chunk }, none)), data.bytes)).toBe(true);
    expect(node.requests.filter((line) => line.endsWith("/offset"))).toHaveLength(1);
  });

  test("C5: 1,000 concurrent readers of the same bytes share one fetch; an aborted reader does not affect the others", async () => {
    const data = makeData(5, chunk);
    const node = await nodeWith(data);
    node.setFault(() => ({ kind: "delay", ms: 100 }));
    const harness = harnessWith({ nodeUrls: [node.url] }, data);
    const leaving = new AbortController();
    const span = { start: 1_000, end: 50_000 };
    const waits = Array.from({ length: 1_000 }, async (_, index) => {
      const opened = await harness.content.open(data.root.id, none);
      return opened.bytes(span, index % 3 === 0 ? leaving.signal : none);
    });
    const results = Promise.allSettled(waits);
    await until(() => node.chunkRequests() > 0);
    leaving.abort(new Error("gone"));
    const [left, stayed] = [0, 1].map((wanted) => async () => {
      const all = await results;
      return all.filter((_, index) => (index % 3 === 0) === (wanted === 0));
    });
    for (const result of (await stayed?.()) ?? []) {
      expect(result.status === "fulfilled" && isSame(result.value, data.bytes.subarray(1_000, 50_000))).toBe(true);
    }
    for (const result of (await left?.()) ?? []) expect(result.status).toBe("rejected");
    expect(node.requests).toHaveLength(1);
  });

  test("C3: when the last reader has left, the fetch is aborted and its socket closed", async () => {
    const data = makeData(6, chunk);
    const node = await nodeWith(data);
    node.setFault(() => ({ kind: "hang", at: 10 }));
    const harness = harnessWith({ nodeUrls: [node.url] }, data);
    const leaving = new AbortController();
    const opened = await harness.content.open(data.root.id, none);
    const waits = [1, 2].map(() => failureOf(opened.bytes({ start: 0, end: 10 }, leaving.signal)));
    await until(() => node.openSockets() !== 0);
    leaving.abort(new Error("gone"));
    expect(await Promise.all(waits)).toEqual(["Error: gone", "Error: gone"]);
    await until(() => node.openSockets() === 0);
    await until(() => harness.content.stats().fetching === 0);
  });

  test("C5: a stalled reader causes only a little prefetching", async () => {
    const data = makeData(7, 40 * chunk);
    const node = await nodeWith(data);
    const harness = harnessWith({ nodeUrls: [node.url] }, data);
    const opened = await harness.content.open(data.root.id, none);
    const slow = opened.read({ start: 0, end: 40 * chunk }, none)[Symbol.asyncIterator]();
    await slow.next();
    await Bun.sleep(100); // time for fetches that must not happen
    expect(node.chunkRequests()).toBeLessThanOrEqual(8);
    const quick = await joined(opened.read({ start: 0, end: 40 * chunk }, none));
    expect(isSame(quick, data.bytes)).toBe(true);
    expect(node.chunkRequests()).toBe(40);
    await slow.return?.();
  });
});

describe("an opened content", () => {
  test("an item is a slice of its root; both are stored once", async () => {
    const data = makeData(10, 3 * chunk);
    const node = await nodeWith(data);
    const harness = harnessWith({ nodeUrls: [node.url] }, data);
    const item = madeId(1_010);
    harness.index.set(item, locatedOf(item, data.root, { start: 100_000, end: 400_000 }));
    const root = await harness.content.open(data.root.id, none);
    await joined(root.read({ start: 0, end: 3 * chunk }, none));
    const before = node.requests.length;
    const opened = await harness.content.open(item, none);
    expect(opened).toMatchObject({ size: 300_000, dataOffset: 100_000, verified: true, stable: true });
    expect(isSame(await opened.bytes({ start: 5, end: 300_000 }, none), data.bytes.subarray(100_005, 400_000))).toBe(
      true,
    );
    expect(node.requests.length).toBe(before);
  });

  test("a file is returned once all of the span was compared, with the byte where the content begins", async () => {
    const data = makeData(11, 3 * chunk);
    const node = await nodeWith(data);
    const harness = harnessWith({ nodeUrls: [node.url] }, data);
    const item = madeId(1_011);
    harness.index.set(item, locatedOf(item, data.root, { start: 1_234, end: 2 * chunk }));
    const opened = await harness.content.open(item, none);
    expect(await opened.file({ start: 0, end: opened.size }, none)).toBeUndefined();
    await joined(opened.read({ start: 0, end: opened.size }, none));
    const file = await opened.file({ start: 10, end: opened.size }, none);
    expect(file?.start).toBe(1_244);
    const bytes = readFileSync(file?.path ?? "").subarray(1_244, 2 * chunk);
    expect(isSame(bytes, data.bytes.subarray(1_244, 2 * chunk))).toBe(true);
  });

  test("a transaction's hash is known after a complete read, also after a restart", async () => {
    const data = makeData(12, 2 * chunk + 5);
    const node = await nodeWith(data);
    let harness = harnessWith({ nodeUrls: [node.url] }, data);
    closers.pop();
    const opened = await harness.content.open(data.root.id, none);
    expect(opened.digest).toBeUndefined();
    await joined(opened.read({ start: 0, end: opened.size }, none));
    expect((await harness.content.open(data.root.id, none)).digest).toEqual(sha256(data.bytes));
    harness = await harness.restart();
    expect((await harness.content.open(data.root.id, none)).digest).toEqual(sha256(data.bytes));
    await harness.close();
  });

  const rows: readonly (readonly [string, object, boolean])[] = [
    ["an item whose signature was checked, in a transaction whose id was", {}, true],
    ["an item that was not checked", { verified: false }, false],
    ["a transaction that is in no block yet", { pending: true, kind: "transaction" }, false],
    ["data with neither data root nor format 1", { dataRoot: "", rootFormat: 2 }, false],
    ["data of format 1", { dataRoot: "", rootFormat: 1 }, true],
  ];
  test.each(rows)("%s: verified %p", async (_name, change, verified) => {
    const data = makeData(13, 1_000);
    const harness = harnessWith({ nodeUrls: ["http://127.0.0.1:1"] });
    harness.index.set(data.root.id, { ...locatedOf(data.root.id, data.root), ...change });
    expect((await harness.content.open(data.root.id, none)).verified).toBe(verified);
  });
});

describe("content that the index lacks", () => {
  test("an unknown id is not found, and is not requested again for a short time", async () => {
    const node = await nodeWith();
    const gateway = await nodeWith();
    const harness = harnessWith({ nodeUrls: [node.url], gatewayUrls: [gateway.url] });
    for (let times = 0; times < 5; times++) {
      expect(await failureOf(harness.content.open(madeId(20), none))).toBe("not_found");
    }
    expect([node.requests.length, gateway.requests.length]).toEqual([1, 2]);
    harness.content.forget(madeId(20));
    expect(await failureOf(harness.content.open(madeId(20), none))).toBe("not_found");
    expect([node.requests.length, gateway.requests.length]).toEqual([2, 3]);
  });

  test("C5: 1,000 concurrent readers of an unknown id cause one request", async () => {
    const node = await nodeWith();
    const harness = harnessWith({ nodeUrls: [node.url] });
    const all = Array.from({ length: 1_000 }, () => failureOf(harness.content.open(madeId(21), none)));
    expect(new Set(await Promise.all(all))).toEqual(new Set(["not_found"]));
    expect(node.requests).toHaveLength(1);
  });

  test("P1: a gateway's content that is blocked by its hash is never served, complete or by range", async () => {
    const [body, other] = [madeBytes(26, 300_000), madeBytes(27, 300_000)];
    const gateway = await nodeWith();
    gateway.addRaw(madeId(26), body, { "content-type": "image/png" });
    gateway.addRaw(madeId(27), other, { "content-type": "image/png" });
    const harness = harnessWith({ nodeUrls: [(await nodeWith()).url], gatewayUrls: [gateway.url] });
    harness.blockedDigests.add(sha256(body).toHex());
    const span = { start: 5, end: 200_000 };
    const [blocked, spared] = [
      await harness.content.open(madeId(26), none),
      await harness.content.open(madeId(27), none),
    ];
    for (const read of [
      () => blocked.bytes(span, none),
      () => joined(blocked.read({ start: 0, end: body.length }, none)),
      () => blocked.check(span, none),
    ])
      expect(await read().catch((error: unknown) => error instanceof Failure && error.code)).toBe("blocked");
    expect(isSame(await spared.bytes(span, none), other.subarray(span.start, span.end))).toBe(true);
  });

  test("bytes of an untrusted gateway are not reported as trusted", async () => {
    const gateway = await nodeWith();
    gateway.addRaw(madeId(28), madeBytes(28, 1_000), { "content-type": "image/png" });
    const untrusted = JSON.stringify({ [gateway.url]: { priority: 2, trusted: false } });
    const harness = harnessWith({ nodeUrls: [(await nodeWith()).url], gatewayUrls: [untrusted] });
    expect(await harness.content.open(madeId(28), none)).toMatchObject({ verified: false, trusted: false });
  });

  test("a trusted gateway's bytes are passed through by range, not verified and not stored", async () => {
    const body = madeBytes(22, 300_000);
    const gateway = await nodeWith();
    gateway.addRaw(madeId(22), body, { "content-type": "image/png" });
    const harness = harnessWith({ nodeUrls: [(await nodeWith()).url], gatewayUrls: [gateway.url] });
    const opened = await harness.content.open(madeId(22), none);
    expect(opened).toMatchObject({ size: 300_000, contentType: "image/png", verified: false, trusted: true });
    expect(isSame(await joined(opened.read({ start: 1_000, end: 2_000 }, none)), body.subarray(1_000, 2_000))).toBe(
      true,
    );
    expect(isSame(await opened.bytes({ start: 0, end: 300_000 }, none), body)).toBe(true);
    expect(await opened.file({ start: 0, end: 10 }, none)).toBeUndefined();
    expect(opened.cached({ start: 0, end: 10 })).toBe(false);
    expect(harness.extents.stats().bytes).toBe(0);
  });

  test("C3: a source with a fault is never an absence", async () => {
    const node = await nodeWith();
    const gateway = await nodeWith();
    const harness = harnessWith({ nodeUrls: [node.url], gatewayUrls: [gateway.url], timeouts: impatient });
    const id = madeId(23);
    for (const status of [500, 503, 429, 502]) {
      gateway.setFault(() => ({ kind: "response", response: { status } }));
      expect(await failureOf(harness.content.open(id, none))).toBe("source_failed");
    }
    gateway.setFault(() => ({ kind: "hang", at: "headers" }));
    expect(await failureOf(harness.content.open(id, none))).toBe("source_timeout");
    gateway.setFault(() => undefined);
    node.setFault(() => ({ kind: "reset" }));
    expect(await failureOf(harness.content.open(id, none))).toBe("source_failed");
    for (const status of [401, 403, 451]) {
      node.setFault(() => ({ kind: "response", response: { status } }));
      expect(await failureOf(harness.content.open(id, none))).toBe("source_failed");
    }
    node.setFault(() => undefined);
    expect(await failureOf(harness.content.open(id, none))).toBe("not_found");
  });

  test("a body whose data root is right is stored where no node has its chunks", async () => {
    for (const rule of ["halved", "plain"] as const) {
      const data = makeData(24, 2 * chunk + 10_000, rule);
      const gateway = await nodeWith();
      gateway.addRaw(data.root.id, data.bytes);
      const harness = harnessWith({ nodeUrls: [(await nodeWith()).url], gatewayUrls: [gateway.url] }, data);
      const opened = await harness.content.open(data.root.id, none);
      expect(isSame(await opened.bytes({ start: 0, end: 10 }, none), data.bytes.subarray(0, 10))).toBe(true);
      expect(opened.cached({ start: 0, end: data.bytes.length })).toBe(true);
      expect(gateway.requests).toHaveLength(1);
    }
  });

  test("C1: a body whose data root is another is rejected and not stored", async () => {
    const data = makeData(25, 2 * chunk);
    const gateway = await nodeWith();
    const wrong = data.bytes.slice();
    wrong[chunk] = (wrong[chunk] ?? 0) ^ 1;
    gateway.addRaw(data.root.id, wrong);
    const harness = harnessWith({ nodeUrls: [(await nodeWith()).url], gatewayUrls: [gateway.url] }, data);
    const opened = await harness.content.open(data.root.id, none);
    expect(await failureOf(opened.bytes({ start: 0, end: 10 }, none))).toBe("source_failed");
    expect(harness.extents.stats().bytes).toBe(0);
  });
});

describe("blocked content", () => {
  test("an id, the transaction around it, or its hash: blocked on opening", async () => {
    const data = makeData(30, chunk);
    const harness = harnessWith({ nodeUrls: ["http://127.0.0.1:1"] }, data);
    const item = madeId(1_030);
    const digest = sha256(madeBytes(30, 10));
    harness.index.set(item, { ...locatedOf(item, data.root, { start: 100, end: 200 }), digest });
    const open = () => failureOf(harness.content.open(item, none));
    harness.blockedIds.add(item);
    expect(await open()).toBe("blocked");
    harness.blockedIds.clear();
    harness.blockedIds.add(data.root.id);
    expect(await open()).toBe("blocked");
    harness.blockedIds.clear();
    harness.blockedDigests.add(digest.toHex());
    expect(await open()).toBe("blocked");
    harness.blockedDigests.clear();
    expect(await open()).toBe("undefined");
  });

  test("a range of a parent is blocked exactly when it touches a blocked item", async () => {
    const data = makeData(31, chunk);
    const node = await nodeWith(data);
    const harness = harnessWith({ nodeUrls: [node.url] }, data);
    const item = madeId(1_031);
    harness.items.push({ id: item, start: 1_000, end: 2_000 });
    harness.blockedIds.add(item);
    const opened = await harness.content.open(data.root.id, none);
    const rows: readonly (readonly [number, number, boolean])[] = [
      [0, 1_000, false],
      [999, 1_001, true],
      [1_500, 1_501, true],
      [1_999, 2_000, true],
      [2_000, 3_000, false],
      [0, chunk, true],
      [1_500, 1_500, false],
    ];
    for (const [start, end, isBlocked] of rows) {
      const wanted = isBlocked ? "blocked" : "undefined";
      expect(await failureOf(opened.bytes({ start, end }, none))).toBe(wanted);
      expect(await failureOf(joined(opened.read({ start, end }, none)))).toBe(wanted);
      expect(await failureOf(opened.file({ start, end }, none))).toBe(wanted);
    }
  });

  test("a blocked item is found among more items than one query returns", async () => {
    const data = makeData(32, chunk);
    const node = await nodeWith(data);
    const harness = harnessWith({ nodeUrls: [node.url] }, data);
    for (let index = 0; index < 5_000; index++) {
      harness.items.push({ id: madeId(index), start: index * 50, end: index * 50 + 50 });
    }
    harness.blockedIds.add(madeId(4_321));
    const opened = await harness.content.open(data.root.id, none);
    expect(await failureOf(opened.bytes({ start: 0, end: chunk }, none))).toBe("blocked");
    expect(await failureOf(opened.bytes({ start: 0, end: 4_321 * 50 }, none))).toBe("undefined");
  });

  test("while a hash is blocked, a transaction of unknown hash is hashed before any byte is sent", async () => {
    const data = makeData(33, chunk + 1_000);
    const node = await nodeWith(data);
    const harness = harnessWith({ nodeUrls: [node.url] }, data);
    harness.blockedDigests.add(sha256(data.bytes).toHex());
    const opened = await harness.content.open(data.root.id, none);
    const pieces = opened.read({ start: 0, end: 10 }, none)[Symbol.asyncIterator]();
    expect(await failureOf(pieces.next())).toBe("blocked");
    expect(await failureOf(harness.content.open(data.root.id, none))).toBe("blocked");
  });
});

describe("ensure and keep", () => {
  test("a span is on this disk and stays until it is released", async () => {
    const data = makeData(40, 20 * chunk + 7);
    const node = await nodeWith(data);
    const harness = harnessWith({ nodeUrls: [node.url], bytesMax: 8 * mebibyte }, data);
    const held = await harness.content.ensure(data.root, { start: chunk, end: 19 * chunk }, none);
    const bytes = readFileSync(held.path).subarray(chunk, 19 * chunk);
    expect(isSame(bytes, data.bytes.subarray(chunk, 19 * chunk))).toBe(true);
    expect(node.chunkRequests()).toBe(18);
    held.release();
  });

  test("a span without space in the cache is busy, and is served nevertheless", async () => {
    const data = makeData(41, 20 * chunk);
    const node = await nodeWith(data);
    const harness = harnessWith({ nodeUrls: [node.url], bytesMax: mebibyte }, data);
    expect(await failureOf(harness.content.ensure(data.root, { start: 0, end: 20 * chunk }, none))).toBe("busy");
    const opened = await harness.content.open(data.root.id, none);
    expect(isSame(await joined(opened.read({ start: 0, end: 20 * chunk }, none)), data.bytes)).toBe(true);
    expect(harness.extents.stats().bytes).toBeLessThanOrEqual(mebibyte);
  });

  test("a body that was verified elsewhere is stored and read without a request", async () => {
    const bytes = madeBytes(42, 2 * mebibyte + 3);
    const root = { id: madeId(42), dataRoot: "", size: bytes.length };
    const harness = harnessWith({ nodeUrls: ["http://127.0.0.1:1"] });
    harness.index.set(root.id, locatedOf(root.id, root));
    expect(await harness.content.keep(root, bytes)).toBe(true);
    const opened = await harness.content.open(root.id, none);
    expect(isSame(await joined(opened.read({ start: 0, end: bytes.length }, none)), bytes)).toBe(true);
  });
});
