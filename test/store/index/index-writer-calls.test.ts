/**
 * The writer in its thread: order of calls, rows by value and serialized, and errors.
 * @module
 */
import { serialize } from "bun:jsc";
import { describe, expect, test } from "bun:test";
import { createFilterKeys } from "../../../src/store/index/filter-key.ts";
import { openIndexReader } from "../../../src/store/index/index-reader.ts";
import { createIndexWriterCalls } from "../../../src/store/index/index-writer-calls.ts";
import { encodeItems, serializeBatch } from "../../../src/store/index/rows/row-batch.ts";
import { openPool } from "../../../src/threads/pool.ts";
import { createRandom } from "../../support/random.ts";
import { temporaryFolder } from "../folder.ts";
import { growingChain } from "./growing-chain.ts";
import { bundleOf, itemOf, ownerOf, someFilters } from "./rows-of.ts";

describe("the index thread", () => {
  test("executes calls in the order in which they are made", async () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    const random = createRandom(8);
    const owner = ownerOf(random);
    const pool = openPool({ entry: "index", threads: 1, queueMax: 100, timeoutMs: 30_000, idleMs: 60_000 });
    const writer = createIndexWriterCalls(path, (job) => pool.run("write", job));
    await pool.run("open", { path });
    const reader = openIndexReader(path);

    const rows: Parameters<typeof writer.addBlock>[0][] = [];
    const chain = growingChain({ addBlock: (block: (typeof rows)[0]) => rows.push(block) } as never, random, owner);
    for (let count = 0; count < 10; count += 1)
      chain.add({
        transactions: [{ dataSize: 5_000, weaveStart: 2n ** 60n, weaveEnd: 2n ** 60n + 5_000n }],
        bundles: (height, added) =>
          added.map(({ id, dataSize }) => bundleOf({ height, txIndex: 0, offset: -1 }, id, dataSize)),
      });
    await Promise.all(rows.map((block) => writer.addBlock(serialize(block))));
    expect(reader.tip()?.height).toBe(19);

    const job = await writer.takeBundle();
    const place = { height: 10, txIndex: 0, offset: -1 };
    expect(job?.place).toEqual(place);
    const item = itemOf(random, owner, { place: { ...place, offset: 96 } });
    const batch = {
      bundle: place,
      rows: serializeBatch(encodeItems([item], createFilterKeys(reader.filterSecret))),
      firstEntry: 0,
      nextEntry: 1,
      bundles: [],
    };
    expect(await writer.addItems(batch)).toEqual({ added: 1, duplicated: 0, repeated: 0, gone: false });
    await writer.finishBundle(place, { ...someFilters, itemCount: 1 });
    expect(reader.locate(item.id)?.weaveStart).toBe(2n ** 60n);

    // A defect rejects its own call; the thread continues.
    // (`rejects` keeps the thread's message from arriving: it waits without letting the loop run.)
    const complaint = await writer.addBlock(serialize(rows[3])).then(() => "none", String);
    expect(complaint).toContain("the height of a block");
    expect(await writer.rollback(15)).toEqual({ blocks: 5, rows: 5 });
    expect(reader.tip()?.height).toBe(14);
    await pool.run("close", { path });
    reader.close();
    await pool.close();
  });
});
