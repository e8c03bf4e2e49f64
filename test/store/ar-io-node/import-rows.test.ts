/**
 * The index of an ar-io-node becomes rows of this index: complete, once, in any number of attempts. Rows that are not
 * valid are left out with the reason, and a database that is not valid ends the import with one sentence.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { appendFileSync, cpSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Id, idFromBytes } from "../../../src/arweave/id.ts";
import { encodeBase64url } from "../../../src/lib/base64url.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { sha256 } from "../../../src/lib/hash.ts";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { importRows, type RowsImport } from "../../../src/store/ar-io-node/import-rows.ts";
import { openSourceDatabase } from "../../../src/store/ar-io-node/source-database.ts";
import { openIndexReader } from "../../../src/store/index/index-reader.ts";
import { allColumns, type PageRow } from "../../../src/store/index/index-types.ts";
import { openIndexWriter } from "../../../src/store/index/index-writer.ts";
import { firstHeight, itemsPerBlock, makeChain, transactionsPerBlock } from "../../support/ar-io-node-chain.ts";
import { inDatabase, type SourceFolder, writeArIoNodeFolder } from "../../support/ar-io-node-folder.ts";

const root = mkdtempSync(join(tmpdir(), "cairn-import-rows-"));
afterAll(() => removeFolder(root));

const blockCount = 40;
const chain = makeChain(7, blockCount);
const source = join(root, "source");
writeArIoNodeFolder(source, chain);

let folders = 0;
const newPath = (name: string) => {
  folders += 1;
  return join(root, `${name}-${folders}`);
};

/** A copy of the source that a test changes. */
function changed(name: "core" | "bundles", change: Parameters<typeof inDatabase>[2]): string {
  const folder = newPath("changed");
  cpSync(source, folder, { recursive: true });
  inDatabase(folder, name, change);
  return folder;
}

/** Imports into an index. @param stopAfter - Heights after which the import is stopped. */
async function run(folder: string, index: string, stopAfter = Number.POSITIVE_INFINITY): Promise<RowsImport> {
  const writer = openIndexWriter(index, { clock: systemClock });
  const reader = openIndexReader(index);
  const stop = new AbortController();
  const core = openSourceDatabase(join(folder, "sqlite", "core.db"), join(root, "scratch-core"));
  const bundles = openSourceDatabase(join(folder, "sqlite", "bundles.db"), join(root, "scratch-bundles"));
  if (core === undefined) throw new Error("no core.db");
  let heights = 0;
  try {
    return await importRows({
      ...{ core, bundles, index: writer, reader, signal: stop.signal, blocksPerStep: 1 },
      onProgress: () => {
        heights += 1;
        if (heights >= stopAfter) stop.abort(new Error("stopped"));
      },
    });
  } finally {
    core.close();
    bundles?.close();
    reader.close();
    writer.close();
  }
}

/** All rows of an index, without the time of indexing. */
function rowsOf(index: string): readonly Omit<PageRow, "ingestedAt">[] {
  const reader = openIndexReader(index);
  const { rows } = reader.page({ order: "asc", limit: 10_000, columns: allColumns });
  const faults = reader.integrity();
  reader.close();
  expect(faults).toEqual([]);
  return rows.map(({ ingestedAt: _, ...row }) => row);
}

const text = (bytes: Uint8Array) => encodeBase64url(bytes);

/** The rows that the source has, in chain order. */
function expectedRows({ transactions = [], items = [] }: SourceFolder): readonly unknown[] {
  const rows = [
    ...transactions.map((row) => ({
      ...{ kind: "transaction", place: { height: row.height, txIndex: row.index, offset: -1 }, id: text(row.id) },
      ...{ target: text(row.target), anchor: text(row.lastTx), size: row.dataSize, tags: row.tags },
      ...{ ownerAddress: text(sha256(row.owner)), ownerKey: text(row.owner), parentId: undefined },
      ...{ quantity: BigInt(row.quantity), reward: BigInt(row.reward) },
    })),
    ...items.map((row) => ({
      ...{ kind: "item", place: { height: row.height, txIndex: 0, offset: row.rootParentOffset + row.offset } },
      ...{ id: text(row.id), target: "", anchor: text(row.anchor), size: row.dataSize, tags: row.tags },
      ...{ ownerAddress: text(sha256(row.owner)), ownerKey: text(row.owner), parentId: text(row.parentId) },
      ...{ quantity: 0n, reward: 0n },
    })),
  ];
  return rows.toSorted(
    ({ place: a }, { place: b }) => a.height - b.height || a.txIndex - b.txIndex || a.offset - b.offset,
  );
}

const complete = {
  heights: { first: firstHeight, last: firstHeight + blockCount - 1 },
  ...{ blocks: blockCount, transactions: blockCount * transactionsPerBlock, missing: 0 },
  ...{ items: blockCount * itemsPerBlock, duplicates: 0, skipped: {}, blocksBelow: 0 },
};
const nothing = { ...complete, blocks: 0, transactions: 0, items: 0 };

describe("the index of an ar-io-node", () => {
  test("is imported row by row, and once", async () => {
    const index = newPath("index");
    expect(await run(source, index)).toEqual(complete);
    const rows = rowsOf(index);
    expect(rows).toHaveLength(blockCount * (transactionsPerBlock + itemsPerBlock));
    expect(rows).toMatchObject([...expectedRows(chain)] as object[]);
    expect(await run(source, index)).toEqual(nothing);
    expect(rowsOf(index)).toEqual(rows);
    const reader = openIndexReader(index);
    const [item] = chain.items ?? [];
    expect(reader.locate(idFromBytes(item?.id ?? new Uint8Array()))).toMatchObject({ verified: false, pending: false });
    expect(reader.counts()).toMatchObject({ items: complete.items, blocks: blockCount, nestedItems: blockCount * 3 });
    const [transaction] = chain.transactions ?? [];
    const span = reader.weaveSpan(idFromBytes(transaction?.id ?? new Uint8Array()));
    expect(span).toMatchObject({ end: BigInt(transaction?.offset ?? 0), format: 2 });
    expect(reader.tip()?.height).toBe(complete.heights.last);
    reader.close();
  });

  test("is completed after stops at every height", async () => {
    const index = newPath("index");
    for (let stops = 0; ; stops++) {
      // The first height of a later attempt is the last one of the attempt before.
      const outcome = await run(source, index, 2).catch((error: Error) => error.message);
      if (outcome !== "stopped") break;
      expect(stops).toBeLessThan(blockCount);
    }
    const once = newPath("index");
    await run(source, once);
    expect(rowsOf(index)).toEqual(rowsOf(once));
  });

  test("begins after the last gap, and leaves transactions that are incomplete to nodes", async () => {
    const gap = firstHeight + 4;
    const folder = changed("core", (db) => {
      db.run("DELETE FROM stable_blocks WHERE height = ?", [gap]);
      db.run("DELETE FROM stable_transactions WHERE height = ? AND block_transaction_index = 1", [gap + 1]);
    });
    const outcome = await run(folder, newPath("index"));
    expect(outcome).toMatchObject({ heights: { first: gap + 1 }, blocks: blockCount - 5, missing: 1, blocksBelow: 4 });
  });

  test("has items that were not moved to the final tables", async () => {
    const folder = changed("bundles", (db) => {
      db.run("INSERT INTO new_data_items SELECT * FROM stable_data_items WHERE height = ?", [firstHeight + 9]);
      db.run("DELETE FROM stable_data_items WHERE height = ?", [firstHeight + 9]);
      db.run("INSERT INTO new_data_item_tags SELECT * FROM stable_data_item_tags WHERE height = ?", [firstHeight + 9]);
      db.run("DELETE FROM stable_data_item_tags WHERE height = ?", [firstHeight + 9]);
    });
    const index = newPath("index");
    expect(await run(folder, index)).toEqual(complete);
    expect(rowsOf(index)).toMatchObject([...expectedRows(chain)] as object[]);
  });

  test("is not imported into the index of another chain", async () => {
    const other = newPath("other");
    writeArIoNodeFolder(other, makeChain(8, 5));
    const index = newPath("index");
    await run(other, index);
    const message = `the index and core.db have different blocks at height ${firstHeight + 4}: use an empty DATA_DIR`;
    await expect(run(source, index)).rejects.toThrow(message);
  });
});

describe("F2: rows that are not valid", () => {
  const first = (chain.items ?? []).find(({ parentId, rootId }) => Buffer.compare(parentId, rootId) === 0);
  const id = first?.id ?? new Uint8Array();
  const at = "UPDATE stable_data_items SET";
  const outside = "the bundle around it is not in bundles.db, or left out too";
  const longTag = (chain.items ?? []).find(({ tags }) => tags.length > 0);

  test.each<[string, string, number]>([
    ["an id of 31 bytes", `${at} id = substr(id, 1, 31) WHERE id = ?`, 1],
    ["an id that is a text", `${at} id = 'id' WHERE id = ?`, 1],
    ["a negative offset", `${at} "offset" = -1 WHERE id = ?`, 1],
    ["an offset beyond the transaction", `${at} "offset" = 999999, data_offset = 1001099 WHERE id = ?`, 1],
    ["an offset that is a fraction", `${at} "offset" = 1.5 WHERE id = ?`, 1],
    ["an offset above 2^53", `${at} root_parent_offset = 9223372036854775807 WHERE id = ?`, 1],
    ["a payload before its header", `${at} data_offset = 0 WHERE id = ?`, 1],
    ["no offset", `${at} "offset" = NULL WHERE id = ?`, 1],
    ["an unknown type of signature", `${at} signature_type = 77 WHERE id = ?`, 1],
    ["a parent that is absent", `${at} parent_id = randomblob(32) WHERE id = ?`, 1],
    ["a transaction of another block", `${at} root_transaction_id = randomblob(32) WHERE id = ?`, 1],
    ["an owner without a key", `${at} owner_address = randomblob(32) WHERE id = ?`, 1],
    ["another count of tags", `${at} tag_count = tag_count + 1 WHERE id = ?`, 1],
    ["a target of 5 bytes", `${at} target = x'0102030405' WHERE id = ?`, 1],
    ["a height that is a text", `${at} height = 'x' WHERE id = ?`, 0],
  ])("are left out: %s", async (_, sql, skipped) => {
    const index = newPath("index");
    const {
      items,
      blocks,
      skipped: reasons,
    } = await run(
      changed("bundles", (db) => db.run(sql, [id])),
      index,
    );
    expect({ items, blocks }).toEqual({ items: complete.items - 1, blocks: blockCount });
    expect(Object.values(reasons)).toEqual(skipped === 0 ? [] : [skipped]);
    expect(rowsOf(index).map((row) => row.id)).not.toContain(text(id) as Id);
  });

  test("are left out: other items at the same place", async () => {
    const folder = changed("bundles", (db) => {
      const columns = db.query<{ name: string }, []>("SELECT name FROM pragma_table_info('stable_data_items')").all();
      const others = columns.map(({ name }) => `"${name}"`).filter((name) => name !== '"id"');
      db.run(
        `INSERT INTO stable_data_items (id, ${others.join(", ")})
           SELECT randomblob(32), ${others.join(", ")} FROM stable_data_items WHERE tag_count = 0`,
      );
    });
    const index = newPath("index");
    const withoutTags = (chain.items ?? []).filter(({ tags }) => tags.length === 0).length;
    const { items, skipped } = await run(folder, index);
    expect({ items, skipped }).toEqual({
      items: complete.items,
      skipped: { "another item is at its place": withoutTags },
    });
    expect(await run(folder, index)).toMatchObject({ items: 0 });
  });

  test.each([
    ["an owner without a key", "owner_address = randomblob(32)"],
    ["a place that is not valid", '"offset" = -1'],
    ["itself around it", "parent_id = id"],
    ["a height of its own", "height = height + 1"],
  ])("are left out: items of a bundle that is left out, because it has %s", async (_, values) => {
    const nested = (chain.items ?? []).find(({ parentId, rootId }) => Buffer.compare(parentId, rootId) !== 0);
    const folder = changed("bundles", (db) =>
      db.run(`UPDATE stable_data_items SET ${values} WHERE id = ?`, [nested?.parentId ?? null]),
    );
    const index = newPath("index");
    const { items, skipped } = await run(folder, index);
    expect(items).toBe(complete.items - 4);
    expect(skipped[outside]).toBeGreaterThan(2);
    const parents = new Set(rowsOf(index).flatMap(({ parentId }) => parentId ?? []));
    expect(parents).not.toContain(text(nested?.parentId ?? new Uint8Array()) as Id);
  });

  test("are left out: a tag of 32 MiB, without reading it", async () => {
    const folder = changed("bundles", (db) => {
      db.run(
        `UPDATE tag_values SET value = zeroblob(33554432) WHERE hash IN
           (SELECT tag_value_hash FROM stable_data_item_tags WHERE data_item_id = ?)`,
        [longTag?.id ?? null],
      );
    });
    const { items, skipped } = await run(folder, newPath("index"));
    const { "its tags are incomplete": count = 0, [outside]: within = 0 } = skipped;
    expect(count).toBeGreaterThan(0);
    expect(items + count + within).toBe(complete.items);
  });

  test("are left out: a public key that is not that of its address", async () => {
    const { items, skipped } = await run(
      changed("bundles", (db) => db.run("UPDATE wallets SET public_modulus = zeroblob(512)")),
      newPath("index"),
    );
    expect({ items, skipped }).toEqual({
      items: 0,
      skipped: { "its public key is absent, or not that of its address": complete.items },
    });
  });
});

describe("F2: a database that is not valid", () => {
  const path = (folder: string) => join(folder, "sqlite", "core.db");
  const last = firstHeight + blockCount - 1;

  test.each<[string, string, string]>([
    [
      "a block that does not follow",
      `UPDATE stable_blocks SET previous_block = zeroblob(48) WHERE height = ${last}`,
      `core.db: block ${last} does not follow block ${last - 1}`,
    ],
    [
      "a block hash of 5 bytes",
      `UPDATE stable_blocks SET indep_hash = x'0102030405' WHERE height = ${firstHeight}`,
      `core.db: the row of block ${firstHeight} is not valid, or does not name all its transactions`,
    ],
    [
      "an absent name of a transaction",
      `DELETE FROM stable_block_transactions WHERE block_transaction_index = 2`,
      `core.db: the row of block ${firstHeight} is not valid, or does not name all its transactions`,
    ],
    [
      "a height beyond every chain",
      `UPDATE stable_blocks SET height = 9000000000 WHERE height = ${last}`,
      "core.db: the row of block 9000000000 is not valid, or does not name all its transactions",
    ],
  ])("ends the import: %s", async (_, sql, message) => {
    const folder = changed("core", (db) => db.run(sql));
    await expect(run(folder, newPath("index"))).rejects.toThrow(message);
  });

  test("ends the import: a missing column", async () => {
    const folder = changed("core", (db) =>
      db.run("ALTER TABLE stable_transaction_tags RENAME COLUMN transaction_id TO item"),
    );
    const message = "is not a database of ar-io-node: stable_transaction_tags has no column transaction_id";
    await expect(run(folder, newPath("index"))).rejects.toThrow(message);
  });

  test("ends the import: a view in place of a table", async () => {
    const folder = changed("core", (db) => {
      db.run("ALTER TABLE stable_blocks RENAME TO other");
      db.run("CREATE VIEW stable_blocks AS SELECT * FROM other");
    });
    const message = `${path(folder)} is not a database of ar-io-node: stable_blocks is not a table`;
    await expect(run(folder, newPath("index"))).rejects.toThrow(message);
  });

  test("ends the import: a file of other bytes", async () => {
    const folder = changed("core", () => undefined);
    writeFileSync(path(folder), "not a database".repeat(1_000));
    await expect(run(folder, newPath("index"))).rejects.toThrow(`${path(folder)} cannot be read as a SQLite database`);
  });

  test("is noticed when it changes while it is read", () => {
    const folder = changed("core", () => undefined);
    const core = openSourceDatabase(path(folder), join(root, "scratch-core"));
    expect(() => core?.checkUnchanged()).not.toThrow();
    appendFileSync(path(folder), "more");
    expect(() => core?.checkUnchanged()).toThrow("is in use: stop ar-io-node, and run the command again");
    core?.close();
  });
});
