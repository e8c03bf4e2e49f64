/**
 * The cost of the index's counts and times is independent of its size: no statement reads a complete table.
 * @module
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { createSums } from "../../../src/store/index/index-reader.ts";
import { createRandom } from "../../support/random.ts";
import { growingChain } from "./growing-chain.ts";
import { indexFile } from "./index-file.ts";
import { bundleOf, idOf, itemOf, ownerOf } from "./rows-of.ts";

/** The texts of all statements that read counts and times. */
function statementsOf(db: Database): readonly string[] {
  const texts: string[] = [];
  const noting = new Proxy(db, {
    get: (target, name) => {
      if (name !== "prepare") return Reflect.get(target, name, target);
      return (sql: string) => {
        texts.push(sql);
        return target.prepare(sql);
      };
    },
  });
  createSums(noting);
  return texts;
}

/** Whether a step of a statement reads few rows of a table of any size. */
function isShort(detail: string, sql: string): boolean {
  if (detail === "SCAN counters") return true; // one row for each number
  if (detail === "SEARCH blocks USING INTEGER PRIMARY KEY (rowid>?)") return true; // above the border: 18 blocks
  if (!/LIMIT 1$/.test(sql.trim())) return false;
  // In order of time, it skips only the blocks above the border.
  return detail.startsWith("SEARCH") || detail === "SCAN blocks USING COVERING INDEX blocks_by_item_time";
}

test("every statement reads few rows, however many there are", () => {
  using file = indexFile();
  const db = new Database(file.path, { readonly: true });
  const statements = statementsOf(db);
  expect(statements.length).toBeGreaterThan(4);
  for (const sql of statements) {
    const steps = db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`).all();
    const long = steps.map(({ detail }) => detail).filter((detail) => !isShort(detail, sql));
    expect({ sql, long }).toEqual({ sql, long: [] });
  }
  db.close();
});

test("the newest times of stable and of recent heights, also when older blocks were unbundled last", () => {
  using file = indexFile();
  const random = createRandom(8);
  const owner = ownerOf(random);
  const chain = growingChain(file.writer, random, owner);
  const roots = Array.from({ length: 30 }, () =>
    chain.add({
      transactions: [{ dataSize: 1_000 }],
      bundles: (height, rows) => rows.map(({ id }) => bundleOf({ height, txIndex: 0, offset: -1 }, id, 1_000)),
    }),
  );
  // Heights 10 to 39; stable are those up to 21.
  for (const [step, height] of [39, 30, 12, 20, 11].entries()) {
    file.nowMs = (1_700_000_000 + step) * 1_000;
    const bundle = {
      height,
      txIndex: 0,
      offset: -1,
      id: roots[height - 10]?.transactions[0]?.id ?? idOf(random),
    };
    const rows = [itemOf(random, owner, { place: { height, txIndex: 0, offset: 96 } })];
    file.writer.addItems({ bundle, rows, firstEntry: 0, nextEntry: 1, bundles: [] });
  }
  expect(file.reader.times()).toMatchObject({
    recentItemIndexedAt: 1_700_000_001,
    stableItemIndexedAt: 1_700_000_004,
  });
});
