/**
 * Writing rows a page at a time: the table is as if they were added one by one, and its pages are full.
 * @module
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import type { ItemRow } from "../../../../src/store/index/index-types.ts";
import { createRandom } from "../../../support/random.ts";
import { seedOr } from "../../../support/seed.ts";
import { growingChain } from "../growing-chain.ts";
import { type IndexFile, indexFile } from "../index-file.ts";
import { bundleOf, itemOf, ownerOf, tagOf } from "../rows-of.ts";

const root = { height: 10, txIndex: 0, offset: -1 };
const dataSize = 2 ** 32;

/** An index with blocks above one with a bundle, to which batches of rows are added. */
function filled(seed: number, batches: readonly (readonly ItemRow[])[]): IndexFile {
  const file = indexFile();
  const random = createRandom(seed);
  const chain = growingChain(file.writer, random, ownerOf(random));
  chain.add({
    transactions: [{ dataSize }],
    bundles: (_height, rows) => rows.map(({ id }) => bundleOf(root, id, dataSize)),
  });
  for (let block = 0; block < 200; block += 1) chain.add({ transactions: [{}] });
  batches.forEach((rows, index) => {
    file.writer.addItems({ bundle: root, rows, firstEntry: index, nextEntry: index + 1, bundles: [] });
  });
  return file;
}

function query<Row>(file: IndexFile, sql: string): Row[] {
  const db = new Database(file.path, { readonly: true });
  const rows = db.query<Row, []>(sql).all();
  db.close();
  return rows;
}

const allRows = "SELECT * FROM items ORDER BY n";

describe("rows of a batch", () => {
  test("are those of as many batches of one row, whatever their sizes and wherever others are between them", () => {
    const seed = seedOr(5);
    const random = createRandom(seed);
    const owners = Array.from({ length: 300 }, () => ownerOf(random));
    const sizes = [0, 20, 60, 130, 500, 4_000, 7_900, 8_150, 8_200, 12_000, 30_000];
    const rows = Array.from({ length: 3_000 }, (_, index): ItemRow => {
      const size = index % 40 === 0 ? random.pick(sizes) : random.pick(sizes.slice(0, 4));
      return itemOf(random, random.pick(owners), {
        place: { ...root, offset: 128 + index * 1_000_003 },
        anchor: random.below(3) === 0 ? Buffer.from(random.bytes(random.below(33))).toString("base64url") : "",
        size: random.pick([1, 100, 40_000, 9_000_000, 3_000_000_000]),
        tags: [tagOf("a", "x".repeat(size))],
      });
    });
    // Batches of up to 400 rows, in which rows of other batches are or will be missing.
    const batches: ItemRow[][] = Array.from({ length: 16 }, () => []);
    rows.forEach((row, index) => {
      const isScattered = Math.floor(index / 500) % 2 === 1;
      batches[isScattered ? random.below(16) : Math.floor(index / 190)]?.push(row);
    });
    const ordered = batches.toReversed();
    using together = filled(seed, ordered);
    using single = filled(
      seed,
      ordered.flat().map((row) => [row]),
    );
    const stored = query(together, allRows);
    expect(stored.length).toBe(3_201);
    const withoutOwner =
      "SELECT *, (SELECT address FROM owners o WHERE o.owner = i.owner) AS owner FROM items i ORDER BY n";
    expect(query(together, withoutOwner)).toEqual(query(single, withoutOwner));
    expect(query(together, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    expect(together.faults()).toEqual([]);
  });

  test("leave 4 % of the pages free at most, below rows of later blocks", () => {
    const random = createRandom(6);
    const owner = ownerOf(random);
    const rows = Array.from({ length: 20_000 }, (_, index) =>
      itemOf(random, owner, {
        place: { ...root, offset: 128 + index * 1_000 },
        tags: [tagOf("a", "x".repeat(60 + random.below(120)))],
      }),
    );
    using file = filled(
      6,
      Array.from({ length: 10 }, (_, at) => rows.slice(at * 2_000, (at + 1) * 2_000)),
    );
    const [pages] = query<{ free: number; all: number }>(
      file,
      "SELECT sum(unused) AS free, sum(pgsize) AS 'all' FROM dbstat WHERE name = 'items' AND pagetype = 'leaf'",
    );
    expect((pages?.free ?? 0) / (pages?.all ?? 1)).toBeLessThan(0.04);
  });
});
