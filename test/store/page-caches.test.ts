/**
 * The page cache of a connection is bounded, however large its file is: counted in pages that are allocated.
 * @module
 */
import { heapStats } from "bun:jsc";
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { openIndexWriter } from "../../src/store/index/index-writer.ts";
import { pageBytes } from "../../src/store/sqlite.ts";
import { temporaryFolder } from "./folder.ts";

test("readers of an index of 48 MiB hold 2 MiB of its pages each", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "index.sqlite");
  openIndexWriter(path, { clock: () => 0 }).close();
  fill(path);
  const before = pagesAllocated(pageBytes);
  const readers = [openIndexReader(path), openIndexReader(path), openIndexReader(path)];
  for (const reader of readers) expect(reader.integrity()).toEqual([]);
  const held = pagesAllocated(pageBytes) - before;
  for (const reader of readers) reader.close();
  expect(held).toBeGreaterThan(readers.length * 100);
  expect(held * pageBytes).toBeLessThan(readers.length * 2.2 * 2 ** 20);
});

/** Adds 48 MiB that a check of the file reads. */
function fill(path: string): void {
  const db = new Database(path);
  db.run("CREATE TABLE filler (x BLOB)");
  db.run(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000) " +
      "INSERT INTO filler SELECT zeroblob(8000) FROM n",
  );
  db.close();
}

type Allocator = Readonly<{ mimalloc: { malloc_bins: readonly { block_size: number; current: number }[] } }>;

/** Number of allocated blocks of the size of a page with its header. */
function pagesAllocated(size: number): number {
  const { mimalloc } = heapStats() as unknown as Allocator; // the types of the runtime lack this field
  return mimalloc.malloc_bins.find(({ block_size }) => block_size > size)?.current ?? 0;
}
