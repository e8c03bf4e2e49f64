/**
 * The inspection finds inconsistencies, and none in an intact index.
 * @module
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { closeSync, openSync, writeSync } from "node:fs";
import { openIndexReader } from "../../../src/store/index/index-reader.ts";
import { openIndexWriter } from "../../../src/store/index/index-writer.ts";
import { inspectIndex } from "../../support/inspect-index.ts";
import { createRandom } from "../../support/random.ts";
import { temporaryFolder } from "../folder.ts";
import { createFixture } from "./index-fixture.ts";

/** A closed index with rows of every kind. */
function builtIndex(path: string): void {
  const opened: (() => void)[] = [];
  const fixture = createFixture(createRandom(1), (clock) => {
    const writer = openIndexWriter(path, { clock });
    const reader = openIndexReader(path);
    opened.push(reader.close, writer.close);
    return { writer, reader };
  });
  for (let step = 0; step < 60; step += 1) fixture.step();
  for (const close of opened) close();
}

describe("inspectIndex", () => {
  test.each([
    ["nothing", "SELECT 1", undefined],
    ["a lost posting", "DELETE FROM postings WHERE n = (SELECT max(n) FROM items)", "postings"],
    ["a posting of no row", "INSERT INTO postings VALUES (5, 5)", "postings"],
    ["a lost row", "DELETE FROM items WHERE n = (SELECT max(n) FROM items)", "postings"],
    ["a count that is off", "UPDATE counters SET value = value + 1 WHERE name = 'items'", "number of items"],
    ["a block's count", "UPDATE blocks SET item_count = item_count + 1 WHERE height = 100", "item count"],
    ["a lost text", "DELETE FROM transaction_texts WHERE n = (SELECT min(n) FROM items)", "lacks"],
    ["a lost block", "DELETE FROM blocks WHERE height = 101", "is in no block"],
    ["a broken link", "UPDATE blocks SET hash = zeroblob(48) WHERE height = 101", "does not follow"],
    ["a duplicate of nothing", "UPDATE duplicates SET id = zeroblob(32)", "no lower place"],
    ["one id twice", "UPDATE items SET id = (SELECT id FROM items LIMIT 1)", "two rows have one id"],
  ])("%s", (_what, damage, fault) => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    builtIndex(path);
    const db = new Database(path);
    db.run(damage);
    db.close();
    const { faults } = inspectIndex(path);
    if (fault === undefined) expect(faults).toEqual([]);
    else expect(faults.join("\n")).toContain(fault);
  });

  test("finds changed bytes of the file", () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    builtIndex(path);
    const db = new Database(path);
    const found = db.query<{ rootpage: number }, []>("SELECT rootpage FROM sqlite_schema WHERE name = 'items'").get();
    db.close();
    const file = openSync(path, "r+");
    // The header of the table's first page states the kind of page and the positions of its cells.
    writeSync(file, new Uint8Array(64).fill(0xff), 0, 64, ((found?.rootpage ?? 1) - 1) * 8_192);
    closeSync(file);
    expect(inspectIndex(path).faults.length).toBeGreaterThan(0);
    const reader = openIndexReader(path);
    expect(reader.integrity().length).toBeGreaterThan(0);
    reader.close();
  });

  test("can be aborted", () => {
    using folder = temporaryFolder();
    const path = `${folder.path}/index.sqlite`;
    builtIndex(path);
    const stop = (): void => {
      throw new Error("stopped");
    };
    expect(() => inspectIndex(path, stop)).toThrow("stopped");
  });
});
