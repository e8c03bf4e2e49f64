/**
 * Hashes of complete data, which a thread makes after it was read.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { createChunkCheck } from "../../src/content/chunk-check.ts";
import { createPieceHash, createRootDigests, type HashPiece } from "../../src/content/root-digests.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { openPool } from "../../src/threads/pool.ts";
import { madeId, makeData } from "../chain/data-node.ts";
import { until } from "../support/until.ts";
import { closeAfterEach, isSame, joined } from "./content-harness.ts";

const none = new AbortController().signal;
const { nodeWith, harnessWith } = closeAfterEach();
const options = { entry: "content", threads: 1, queueMax: 64, timeoutMs: 60_000, idleMs: 60_000 } as const;
const thread = openPool(options);
afterAll(thread.close);

const checks = { chunk: createChunkCheck(thread), hashPiece: createPieceHash(thread) };

describe("the hash of complete data", () => {
  test("learns the hash of large data after all of it was read", async () => {
    const data = makeData(75, 3 * 2 ** 20 + 1_000); // the last piece is one that the cache holds in memory
    const node = await nodeWith(data);
    const harness = harnessWith({ nodeUrls: [node.url], checks }, data);
    const opened = await harness.content.open(data.root.id, none);
    await joined(opened.read({ start: 0, end: opened.size - 1 }, none));
    const all = await joined(opened.read({ start: 0, end: opened.size }, none));
    expect(isSame(all, data.bytes)).toBe(true);
    await until(
      () => harness.extents.digest(data.root) !== undefined,
      () => "the hash is learnt",
    );
    expect((await harness.content.open(data.root.id, none)).digest).toEqual(sha256(data.bytes));
    const last = { start: opened.size - 1_000, end: opened.size };
    expect(isSame(opened.hot?.bytes(last), data.bytes.subarray(last.start))).toBe(true);
  });

  test("hashes one root at a time, lets few wait, and begins no other when content is closed", async () => {
    const begun: string[] = [];
    const life = new AbortController();
    const untilClosed: HashPiece = ({ id }, signal) => {
      begun.push(id);
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    let held = 0;
    const extents = {
      digest: () => undefined,
      hold: () => {
        held += 1;
        return () => {
          held -= 1;
        };
      },
      read: async () => new Uint8Array(10),
      setDigest: () => undefined,
    };
    const digests = createRootDigests(extents, untilClosed, life.signal);
    for (let seed = 0; seed < 100; seed++) digests.learn({ id: madeId(seed), dataRoot: "", size: 2 ** 21 });
    await until(
      () => begun.length > 0,
      () => "the first root is hashed",
    );
    expect(held).toBe(1);
    life.abort(new Error("closed"));
    await digests.ended();
    expect({ begun, held }).toEqual({ begun: [madeId(0)], held: 0 });
  });

  test("makes no hash of data whose beginning it lacks", async () => {
    const piece = (at: number) => thread.run("hashPiece", { id: "a", at, size: 20, bytes: new Uint8Array(10) });
    expect(await piece(10)).toBeUndefined();
    expect(await piece(0)).toBeUndefined();
    expect(await thread.run("hashPiece", { id: "b", at: 10, size: 20, bytes: new Uint8Array(10) })).toBeUndefined();
    expect(await piece(10)).toEqual(sha256(new Uint8Array(20)));
  });
});
