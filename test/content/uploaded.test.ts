/**
 * Uploaded items before their block: hashed once, however often and by however many they are read; and never served
 * once their bytes are not what they were.
 *
 * `COUNT=2000` is the size that docs/evidence.md records.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { appendFileSync, readFileSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Id, idFromBytes } from "../../src/arweave/id.ts";
import { createBlockGuard } from "../../src/content/block-guard.ts";
import { createUploadedContent, type UploadedPayload } from "../../src/content/uploaded.ts";
import { Failure } from "../../src/failures.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { temporaryFolder } from "../store/folder.ts";
import { patternBytes } from "../support/memory-content.ts";
import { testKey } from "../support/signers.ts";

const count = Number(process.env["COUNT"] ?? 500);
const never = new AbortController().signal;
const step = 64 * 2 ** 10;

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());
let files = 0;

const blockList = { isBlockedId: () => false, isBlockedDigest: () => false, isBlockedWithin: () => false };
const guard = createBlockGuard(
  { itemsWithin: () => [], version: () => 0 },
  { ...blockList, hasBlockedDigests: () => false, has: () => false, version: () => 0 },
);

/** Small items one behind another in one file, and how often each was looked for. */
function openItems(sizes: readonly number[], verifiedAt?: number) {
  const path = join(folder.path, String(++files));
  const headerSize = 100;
  const payloads = new Map<Id, UploadedPayload>();
  const bodies: Uint8Array[] = [];
  let at = 0;
  for (const [index, size] of sizes.entries()) {
    const body = patternBytes(size).map((byte) => byte ^ index);
    const id = idFromBytes(testKey(index + 1));
    at += headerSize;
    payloads.set(id, {
      id,
      path,
      start: at,
      headerSize,
      size,
      contentType: undefined,
      contentEncoding: undefined,
      digest: sha256(body),
      verifiedAt,
    });
    bodies.push(new Uint8Array(headerSize), body);
    at += size;
  }
  writeFileSync(path, Buffer.concat(bodies));
  const content = createUploadedContent(async (id) => payloads.get(id), guard);
  const ids = [...payloads.keys()];
  const open = async (index: number) => {
    const id = ids[index];
    const found = id === undefined ? undefined : await content.open(id);
    if (found === undefined) throw new Error("it was uploaded");
    return found;
  };
  const bodyOf = (index: number) => Buffer.from(bodies[2 * index + 1] ?? []);
  return { path, payloads, ids, open, bodyOf, content };
}

const codeOf = (error: unknown) => (error instanceof Failure ? error.code : String(error));
const bytesRead = () => Number(/rchar: (\d+)/.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);

test("C5: an item is read and hashed once before its first response, for all concurrent readers, and never again", async () => {
  const { open, bodyOf } = openItems([2 ** 20, 200_000, 0, 1]);
  const before = bytesRead();
  const opened = await Promise.all(Array.from({ length: count }, (_, at) => open(at % 4)));
  for (let round = 0; round < 3; round += 1) for (let index = 0; index < 4; index += 1) await open(index);
  expect(bytesRead() - before).toBeLessThan(2 * (2 ** 20 + 200_000) + 100_000);
  expect(opened.every(({ verified }) => verified)).toBeTrue();
  for (let index = 0; index < 4; index += 1) {
    const found = await open(index);
    expect(bodyOf(index).equals(await found.bytes({ start: 0, end: found.size }, never))).toBeTrue();
  }
});

test(`${count} concurrent readers of an item of 1 MiB do not hold one copy each`, async () => {
  const { open } = openItems([2 ** 20]);
  Bun.gc(true);
  const before = process.memoryUsage.rss();
  await Promise.all(Array.from({ length: count }, () => open(0)));
  const grown = process.memoryUsage.rss() - before;
  console.log(`${count} at once: RSS +${Math.round(grown / 2 ** 20)} MiB`);
  expect(grown).toBeLessThan(64 * 2 ** 20);
});

test("each span of an item has the uploaded bytes, while other items are added after it", async () => {
  const { open, path, bodyOf } = openItems([5 * step + 17, 2 * step]);
  const found = await open(0);
  const whole = bodyOf(0);
  for (const [start, end] of [
    [0, found.size],
    [0, 1],
    [step - 1, step + 1],
    [step, 2 * step],
    [5 * step, found.size],
    [found.size, found.size],
    [3 * step + 5, 4 * step + 6],
  ] as const) {
    appendFileSync(path, "more");
    expect(whole.subarray(start, end).equals(await found.bytes({ start, end }, never))).toBeTrue();
    for (const read of [found.read, found.inspect]) {
      const pieces: Uint8Array[] = [];
      for await (const piece of read({ start, end }, never)) pieces.push(piece);
      expect(whole.subarray(start, end).equals(Buffer.concat(pieces))).toBeTrue();
    }
  }
  expect(await found.file({ start: 0, end: found.size }, never)).toBeUndefined();
});

test("C4: a byte that changes after the comparison is never sent, nor is the item afterwards", async () => {
  for (const at of [0, step, 2 * step + 5, 3 * step - 1]) {
    const { open, path, payloads, ids, bodyOf } = openItems([3 * step, 10]);
    const found = await open(0);
    expect(await found.bytes({ start: 0, end: 1 }, never)).toHaveLength(1);
    const bytes = readFileSync(path);
    const place = at + (payloads.get(ids[0] ?? idFromBytes(testKey(1)))?.start ?? 0);
    bytes[place] = (bytes[place] ?? 0) ^ 1;
    writeFileSync(path, bytes);

    const other = at < step ? { start: step, end: 2 * step } : { start: 0, end: 10 };
    expect(
      bodyOf(0)
        .subarray(other.start, other.end)
        .equals(await found.bytes(other, never)),
    ).toBeTrue();
    expect(await found.bytes({ start: at, end: at + 1 }, never).catch(codeOf)).toBe("source_failed");
    const given: Uint8Array[] = [];
    const reading = (async () => {
      for await (const piece of found.read({ start: 0, end: found.size }, never)) given.push(piece);
    })();
    expect(await reading.catch(codeOf)).toBe("source_failed");
    expect(Buffer.concat(given).length).toBeLessThanOrEqual(at);
    expect(await open(0).catch(codeOf)).toBe("source_failed"); // it is compared whole again
    expect(await (await open(1)).bytes({ start: 0, end: 10 }, never)).toHaveLength(10);
  }
});

test("C4: an item whose file is cut short, or gone, is not served", async () => {
  const { open, path } = openItems([step, step]);
  const [one, two] = [await open(0), await open(1)];
  truncateSync(path, step + 150);
  expect(await two.bytes({ start: 0, end: step }, never).catch(codeOf)).toBe("source_failed");
  expect(await one.bytes({ start: 0, end: step }, never)).toHaveLength(step);
  unlinkSync(path);
  expect(await one.bytes({ start: 0, end: step }, never).catch(codeOf)).toBe("busy");
  expect(await open(0).then(({ verified }) => verified)).toBeTrue(); // found out when it is read
});

test("a large item of an earlier process is hashed once for all concurrent readers, and again when its file changes", async () => {
  const size = 3 * 2 ** 20;
  const { open, path, payloads, ids } = openItems([size]);
  const before = bytesRead();
  const opened = await Promise.all(Array.from({ length: count }, () => open(0)));
  for (let round = 0; round < 3; round += 1) await open(0);
  expect(bytesRead() - before).toBeLessThan(2 * size);
  expect(opened.every(({ verified }) => verified)).toBeTrue();
  const bytes = readFileSync(path);
  const place = payloads.get(ids[0] ?? idFromBytes(testKey(1)))?.start ?? 0;
  bytes[place + 5] = (bytes[place + 5] ?? 0) ^ 1;
  writeFileSync(path, bytes);
  expect(await open(0).catch(codeOf)).toBe("source_failed");
});
