/**
 * Checks of chunks: hashes and long paths are checked in threads.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import type { PostedChunk } from "../../src/arweave/chunk.ts";
import { branchId, chunkSize as chunk, leafId, noteOf } from "../../src/arweave/merkle.ts";
import type { CheckChunk } from "../../src/chain/chunks.ts";
import { createChunkCheck } from "../../src/content/chunk-check.ts";
import { Failure } from "../../src/failures.ts";
import { decodeBase64url } from "../../src/lib/base64url.ts";
import { concatBytes } from "../../src/lib/bytes.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { openPool } from "../../src/threads/pool.ts";
import { type MadeData, makeData } from "../chain/data-node.ts";
import { closeAfterEach, joined } from "./content-harness.ts";

const none = new AbortController().signal;
const { nodeWith, harnessWith } = closeAfterEach();
const options = { entry: "content", threads: 1, queueMax: 64, timeoutMs: 60_000, idleMs: 60_000 } as const;
const thread = openPool(options);
afterAll(thread.close);

const checkChunk = createChunkCheck(thread);

/** A chunk as a node gives it: a view of a body that has more. */
function claimOf({ root, bytes, spans, path }: MadeData, index: number): PostedChunk {
  const { start, end } = spans[index] ?? { start: 0, end: 0 };
  const dataRoot = decodeBase64url(root.dataRoot) ?? new Uint8Array(0);
  const body = Buffer.concat([Buffer.alloc(3), bytes.subarray(start, end), Buffer.alloc(900)]);
  const part = new Uint8Array(body).subarray(3, 3 + end - start);
  return { dataRoot, dataSize: root.size, dataPath: path(index), offset: start, chunk: part };
}

/** A chunk at the end of a path with many branches, as no client library makes it. */
function deepClaim(size: number, branches: number): PostedChunk {
  const bytes = new Uint8Array(size).fill(7);
  const note = noteOf(size);
  const right = new Uint8Array(32).fill(9);
  const parts = [sha256(bytes), note];
  let root = leafId(sha256(bytes), note);
  for (let branch = 0; branch < branches; branch++) {
    parts.unshift(root, right, note);
    root = branchId(root, right, note);
  }
  return { dataRoot: root, dataSize: size + 1, dataPath: concatBytes(parts), offset: 0, chunk: bytes };
}

describe("a check of a chunk", () => {
  test("proves the chunks that are theirs, and rejects the others that came with them", async () => {
    const data = makeData(70, 20 * chunk + 1_000);
    const claims = data.spans.map((_, index) => claimOf(data, index));
    for (const index of [3, 11]) claims[index]?.chunk.set([1, 2, 3], 77);
    const checked = await Promise.all(claims.map((claim) => checkChunk(claim, none)));
    expect(checked.flatMap(({ kind }, index) => (kind === "rejected" ? [index] : []))).toEqual([3, 11]);
    const proven = checked.filter((result) => result.kind === "proven");
    const places = data.spans.filter((_, index) => ![3, 11].includes(index));
    expect(proven.map(({ start, end }) => ({ start, end }))).toEqual(places);
  });

  test("checks a chunk with a long path in the thread, however small it is", async () => {
    const calls: string[] = [];
    const run: typeof thread.run = (name, job, given) => {
      calls.push(name);
      return thread.run(name, job, given);
    };
    const check = createChunkCheck({ run });
    for (const size of [1_000, chunk]) {
      const claim = deepClaim(size, 100);
      expect(await check(claim, none)).toEqual({ kind: "proven", start: 0, end: size });
      expect((await check({ ...claim, chunk: new Uint8Array(size) }, none)).kind).toBe("rejected");
      expect((await check(deepClaim(size, 40), none)).kind).toBe("proven");
    }
    expect(calls).toEqual(Array.from({ length: 4 }, () => "checkPostedChunk"));
  });

  test("rejects a small chunk that is not theirs", async () => {
    const claim = claimOf(makeData(71, 1_000), 0);
    expect((await checkChunk(claim, none)).kind).toBe("proven");
    claim.chunk.set([1, 2, 3], 77);
    expect((await checkChunk(claim, none)).kind).toBe("rejected");
  });

  test("is not waited for by callers that leave, while their chunks are hashed or wait; the others go on", async () => {
    const check = createChunkCheck(thread);
    const claim = claimOf(makeData(72, chunk), 0);
    const leaving = new AbortController();
    const callers = Array.from({ length: 20 }, (_, index) => check(claim, index % 2 === 0 ? leaving.signal : none));
    const settled = Promise.allSettled(callers);
    leaving.abort(new Error("left"));
    await expect(check(claim, leaving.signal)).rejects.toThrow("left");
    const ends = (await settled).map((each) => (each.status === "fulfilled" ? each.value.kind : each.reason.message));
    expect(ends).toEqual(callers.map((_, index) => (index % 2 === 0 ? "left" : "proven")));
  });

  test("rejects chunks as busy when many wait", async () => {
    const claim = claimOf(makeData(73, chunk), 0);
    const check = createChunkCheck(thread);
    const settled = await Promise.allSettled(Array.from({ length: 300 }, () => check(claim, none)));
    const proven = settled.filter((each) => each.status === "fulfilled" && each.value.kind === "proven");
    const busy = settled.filter((each) => each.status === "rejected" && each.reason.code === "busy");
    expect(proven.length + busy.length).toBe(300);
    // 256 wait, beside one to four that are hashed, by the number of processors.
    expect(proven.length).toBeGreaterThanOrEqual(257);
    expect(proven.length).toBeLessThanOrEqual(260);
  });

  test("fails clearly when its thread fails", async () => {
    const failure = new Failure("worker_failed", { entry: "content" });
    const check = createChunkCheck({ run: () => Promise.reject(failure) });
    await expect(check(deepClaim(1_000, 100), none)).rejects.toBe(failure);
  });

  test("that failed fails its read: the node is not to blame, and nothing is stored", async () => {
    const data = makeData(74, 2 * chunk);
    const node = await nodeWith(data);
    const failing: CheckChunk = async () => {
      throw new Failure("worker_failed", { entry: "content" });
    };
    const harness = harnessWith({ nodeUrls: [node.url], checks: { chunk: failing } }, data);
    const opened = await harness.content.open(data.root.id, none);
    await expect(joined(opened.read({ start: 0, end: opened.size }, none))).rejects.toMatchObject({
      code: "worker_failed",
    });
    expect(harness.nodes.sourceStatus()[0]?.wrongs).toBe(0);
    expect(harness.extents.missing(data.root, { start: 0, end: 1 })).not.toEqual([]);
  });
});
