/**
 * Content between a disk that fails and sources that do not: whatever is cut how, asked how, damaged how, the bytes
 * that leave are right.
 * @module
 */
import { expect, test } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Failure } from "../../src/failures.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { type MadeData, madeBytes, madeId, makeData } from "../chain/data-node.ts";
import { buildRebasedTree } from "../support/rebased-tree.ts";
import { newSeed } from "../support/seed.ts";
import { closeAfterEach, isSame, joined, seeded } from "./content-harness.ts";

const chunk = 256 * 1_024;
const none = new AbortController().signal;
const { closers, harnessWith, nodeWith } = closeAfterEach();

/** Data whose tree is made of subtrees that count from zero, as some clients build them. */
function rebasedData(seed: number): MadeData {
  const sizes = [chunk, chunk, chunk, 50_000]; // two pieces of data; only the last may end off the grid
  const bytes = madeBytes(
    seed,
    sizes.reduce((sum, size) => sum + size, 0),
  );
  const spans = sizes.map((size, at) => {
    const start = sizes.slice(0, at).reduce((sum, each) => sum + each, 0);
    return { start, end: start + size };
  });
  const chunks = spans.map(({ start, end }) => bytes.subarray(start, end));
  const tree = buildRebasedTree([chunks.slice(0, 2), chunks.slice(2)]);
  const root = {
    id: madeId(seed),
    dataRoot: encodeBase64url(tree.root),
    size: bytes.length,
    weaveStart: 2n ** 50n + BigInt(seed) * 2n ** 30n,
  };
  return { root, bytes, spans, path: (at) => tree.path(spans[at]?.start ?? 0) };
}

test("data of a tree with rebased subtrees is read at each chunk boundary", async () => {
  const data = rebasedData(1);
  const node = await nodeWith(data);
  const harness = harnessWith({ nodeUrls: [node.url] }, data);
  const opened = await harness.content.open(data.root.id, none);
  const size = data.bytes.length;
  for (let at = 0; at < size; at += 65_536) {
    const span = { start: Math.max(0, at - 3), end: Math.min(size, at + 3) };
    expect(isSame(await opened.bytes(span, none), data.bytes.subarray(span.start, span.end))).toBe(true);
  }
  expect(isSame(await joined(opened.read({ start: 0, end: size }, none)), data.bytes)).toBe(true);
  await harness.content.ensure(data.root, { start: 0, end: size }, none);
});

test("500 concurrent spans of differently chunked data are right, with a cache that is too small for the data", async () => {
  const random = seeded(newSeed());
  const below = (limit: number) => Math.floor(random() * limit);
  const rules = ["halved", "plain"] as const;
  const all = [
    ...Array.from({ length: 8 }, (_, at) => makeData(10 + at, 1 + below(9 * chunk), rules[at % 2] ?? "plain")),
    rebasedData(20),
    makeData(21, 900_000, [100_000, 100_001, 350_000, 360_000, 600_000, 610_000, 870_000, 900_000]), // as before 2.5
  ];
  const node = await nodeWith(...all);
  let harness = harnessWith({ nodeUrls: [node.url], bytesMax: 4 * 2 ** 20 }, ...all);
  closers.pop();
  for (let round = 0; round < 5; round++) {
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        const data = all[below(all.length)] ?? rebasedData(20);
        const size = data.bytes.length;
        const start = below(size);
        const end = Math.min(size, start + below(3 * chunk));
        const opened = await harness.content.open(data.root.id, none);
        const span = { start, end };
        const how = below(3);
        const expected = data.bytes.subarray(start, end);
        if (how === 0) return expect(isSame(await opened.bytes(span, none), expected)).toBe(true);
        if (how === 1) return expect(isSame(await joined(opened.read(span, none)), expected)).toBe(true);
        const file = await opened.file(span, none);
        if (file === undefined) return;
        const bytes = readFileSync(file.path).subarray(file.start, file.start + end - start);
        return expect(isSame(bytes, expected)).toBe(true);
      }),
    );
    harness = await harness.restart();
  }
  await harness.close();
});

/** How many files are damaged, a multiple of eight. */
const files = Number(process.env["FILES"] ?? 160);

test(`C4: ${files} damaged files, running or restarted: no wrong byte is sent, and all data is fetched again`, async () => {
  const random = seeded(newSeed());
  const all = Array.from({ length: files }, (_, at) => makeData(1_000 + at, 70_000 + at));
  const node = await nodeWith(...all);
  for (const isRestarted of [false, true]) {
    let harness = harnessWith({ nodeUrls: [node.url] }, ...all);
    closers.pop();
    const read = async (data: MadeData) => {
      const opened = await harness.content.open(data.root.id, none);
      const span = { start: 0, end: data.bytes.length };
      const file = await opened.file(span, none);
      if (file !== undefined) {
        const bytes = readFileSync(file.path).subarray(0, data.bytes.length); // a swapped file may be longer
        expect(isSame(bytes, data.bytes)).toBe(true);
      }
      expect(isSame(await opened.bytes(span, none), data.bytes)).toBe(true);
      expect(isSame(await joined(opened.read(span, none)), data.bytes)).toBe(true);
    };
    for (const data of all) await read(data);
    await harness.extents.flush();
    const before = node.chunkRequests();
    const paths = all.map(({ root }) => harness.extents.path(root));
    if (isRestarted) harness = await harness.restart();
    for (const [at, path] of paths.entries()) damage(path, paths[at ^ 1] ?? path, at % 8, random);
    for (const data of all) await read(data);
    // A process that has a file open still reads the right bytes of it after it was deleted or renamed.
    expect(node.chunkRequests() - before).toBeGreaterThan(files * (isRestarted ? 0.7 : 0.4));
    for (const data of all) await read(data);
    await harness.close();
  }
}, 600_000);

function damage(path: string, other: string, how: number, random: () => number): void {
  const bytes = readFileSync(path);
  const at = Math.floor(random() * bytes.length);
  switch (how) {
    case 0:
      bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8));
      writeFileSync(path, bytes);
      break;
    case 1:
      truncateSync(path, at);
      break;
    case 2:
      writeFileSync(path, new Uint8Array(bytes.length));
      break;
    case 3:
      unlinkSync(path);
      break;
    case 4: // swaps the file with the next one, which is then skipped
      renameSync(path, `${path}.aside`);
      renameSync(other, path);
      renameSync(`${path}.aside`, other);
      break;
    case 6: // root can read any file: a link to itself replaces the unreadable file
      if (process.getuid?.() === 0) {
        unlinkSync(path);
        symlinkSync(path, path);
      } else chmodSync(path, 0o000);
      break;
    case 7:
      unlinkSync(path);
      mkdirSync(path);
      writeFileSync(join(path, "inside"), bytes);
  }
}

test("C4: a file that is damaged during a stream does not break the stream: the rest is fetched", async () => {
  const data = makeData(2_000, 20 * chunk);
  const node = await nodeWith(data);
  const harness = harnessWith({ nodeUrls: [node.url] }, data);
  const opened = await harness.content.open(data.root.id, none);
  const span = { start: 0, end: 20 * chunk };
  await joined(opened.read(span, none));
  const pieces: Uint8Array[] = [];
  for await (const piece of opened.read(span, none)) {
    if (pieces.length === 3) truncateSync(harness.extents.path(data.root), 3 * chunk);
    if (pieces.length === 9) unlinkSync(harness.extents.path(data.root));
    pieces.push(piece);
  }
  expect(isSame(Buffer.concat(pieces), data.bytes)).toBe(true);
});

test("content reports whether a read fetched any byte, also a byte that was missing on the disk", async () => {
  const data = makeData(2_001, 4 * chunk);
  const node = await nodeWith(data);
  const harness = harnessWith({ nodeUrls: [node.url] }, data);
  const span = { start: 10, end: chunk + 10 };
  const look = async () => {
    const opened = await harness.content.open(data.root.id, none);
    const cached = opened.cached(span);
    expect(opened.fetched()).toBe(false);
    const bytes = await opened.bytes(span, none);
    expect(isSame(bytes, data.bytes.subarray(span.start, span.end))).toBe(true);
    return [cached, opened.fetched()];
  };
  expect([await look(), await look(), await look()]).toEqual([
    [false, true],
    [true, false],
    [true, false],
  ]);
  await harness.extents.flush();
  const path = harness.extents.path(data.root);
  // The chunk after it is in memory since the first read: whether it is fetched again, too, depends on which is faster.
  writeFileSync(path, readFileSync(path).fill(0, 0, chunk));
  expect([await look(), await look()]).toEqual([
    [true, true],
    [true, false],
  ]);
});

test("C4: damage that no source repairs is a fault, not wrong bytes", async () => {
  const data = makeData(2_001, chunk);
  const node = await nodeWith(data);
  const harness = harnessWith({ nodeUrls: [node.url] }, data);
  const opened = await harness.content.open(data.root.id, none);
  await opened.bytes({ start: 0, end: chunk }, none);
  truncateSync(harness.extents.path(data.root), 100_000);
  node.setFault(() => ({ kind: "reset" }));
  const error = await opened.bytes({ start: 0, end: chunk }, none).catch((reason: unknown) => reason);
  expect(error instanceof Failure && error.code).toBe("source_failed");
  expect(isSame(await opened.bytes({ start: 0, end: 65_536 }, none), data.bytes.subarray(0, 65_536))).toBe(true);
});
