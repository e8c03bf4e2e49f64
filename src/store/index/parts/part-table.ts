import type { Database } from "bun:sqlite";
import { assert } from "../../../lib/assert.ts";
import { prepare, prepareQuery } from "../../sqlite.ts";
import {
  gatherPart,
  imageOfPart,
  mergeParts,
  type NewPartRow,
  ordinalsPerChunk,
  type PartImage,
  type PartRows,
  type PlaceList,
  readOrdinals,
  readPlaces,
} from "./part-image.ts";

/** Thresholds for making and merging parts. */
export type PartSizes = Readonly<{
  /** Minimum of new rows that become a part directly. */
  rowsMin: number;
  /** This many stable rows in no part become one. */
  sealRows: number;
  /** Minimum of rows of a part of the second level; eight times as many of the third, and so on. */
  levelRows: number;
  /** Parts of a level that are merged. */
  fanIn: number;
  /** Limit of the rows of one merge: bounds memory (100 bytes a row) and the time that other writes wait. */
  mergedRowsMax: number;
}>;

/** The largest merge takes a quarter of a second; 10 million rows make about 50 parts. */
export const partSizesDefault: PartSizes = {
  rowsMin: 32,
  sealRows: 4_096,
  levelRows: 512,
  fanIn: 8,
  mergedRowsMax: 2 ** 18,
};

/** The parts of one database. Calls run inside the writer's transaction. */
export type Parts = Readonly<{
  /** @param rows - In place order. */
  add: (rows: readonly NewPartRow[]) => void;
}>;

export function createParts(db: Database, sizes: PartSizes): Parts {
  const store = createPartStore(db, sizes);
  const load = createPartLoader(db);
  const drop = createPartRemoval(db);
  const crowded = prepareQuery<{ level: number }>(
    db,
    "SELECT level FROM parts WHERE count < ? GROUP BY level HAVING count(*) >= ? ORDER BY level LIMIT 1",
  );
  const ofLevel = prepareQuery<{ part: number; count: number }>(
    db,
    "SELECT part, count FROM parts WHERE level = ? AND count < ? ORDER BY first LIMIT ?",
  );
  // A part of half the limit is never merged.
  const mergeableRows = sizes.mergedRowsMax / 2;

  const mergeDue = (): void => {
    for (;;) {
      const level = crowded.get(mergeableRows, sizes.fanIn)?.level;
      if (level === undefined) return;
      let total = 0;
      const chosen = ofLevel.all(level, mergeableRows, sizes.fanIn).filter(({ count }) => {
        const fits = total + count <= sizes.mergedRowsMax;
        if (fits) total += count;
        return fits;
      });
      const merged = mergeParts(chosen.map(({ part }) => load(part)));
      for (const { part } of chosen) drop(part);
      store(merged);
    }
  };
  return {
    add: (rows) => {
      if (rows.length === 0) return;
      store(gatherPart(rows));
      mergeDue();
    },
  };
}

function levelOf(count: number, { levelRows, fanIn }: PartSizes): number {
  if (count < levelRows) return 0;
  return 1 + Math.floor(Math.log(count / levelRows) / Math.log(fanIn));
}

function createPartStore(db: Database, sizes: PartSizes): (rows: PartRows) => void {
  const addPart = prepareQuery<{ part: number }>(
    db,
    `INSERT INTO parts (level, count, entries, buckets, first, last, starts)
     VALUES (?, ?, ?, ?, (? << 31) | ?, (? << 31) | ?, ?) RETURNING part`,
  );
  const body = (table: string) => prepare(db, `INSERT INTO ${table} VALUES ((? << 24) | ?, ?)`);
  const addPlaces = body("part_places");
  const addRare = body("part_rare");
  const addList = body("part_lists");
  const addKey = prepare(db, "INSERT INTO part_keys VALUES (?, ?, ?, ?, ?)");
  return (rows) => {
    const image: PartImage = imageOfPart(rows);
    const { high, low } = rows.places;
    const last = high.length - 1;
    const added = addPart.get(
      ...[levelOf(image.count, sizes), image.count, rows.entries.length, image.rare.length],
      ...[high[0] ?? 0, low[0] ?? 0, high[last] ?? 0, low[last] ?? 0, image.starts],
    );
    assert(added !== undefined, "a part that was added has a number");
    const { part } = added;
    for (const [number, places] of image.places.entries()) addPlaces.run(part, number, places);
    for (const [number, bucket] of image.rare.entries()) addRare.run(part, number, bucket);
    for (const [number, list] of image.lists.entries()) {
      addList.run(part, number, list.body);
      addKey.run(part, list.key, list.chunk, list.count, number);
    }
  };
}

function createPartRemoval(db: Database): (part: number) => void {
  const bodies = ["part_places", "part_rare", "part_lists"].map((table) =>
    prepare(db, `DELETE FROM ${table} WHERE n BETWEEN (?1 << 24) AND (?1 << 24) | 0xffffff`),
  );
  const keys = prepare(db, "DELETE FROM part_keys WHERE part = ?");
  const row = prepare(db, "DELETE FROM parts WHERE part = ?");
  return (part) => {
    for (const statement of [...bodies, keys, row]) statement.run(part);
  };
}

/** Returns a function that reads a complete part. */
export function createPartLoader(db: Database): (part: number) => PartRows {
  const info = prepareQuery<{ count: number; entries: number }>(db, "SELECT count, entries FROM parts WHERE part = ?");
  const bodies = (table: string) =>
    prepareQuery<{ body: Uint8Array }>(
      db,
      `SELECT body FROM ${table} WHERE n BETWEEN (?1 << 24) AND (?1 << 24) | 0xffffff ORDER BY n`,
    );
  const places = bodies("part_places");
  const rare = bodies("part_rare");
  const lists = prepareQuery<{ key: number; chunk: number; count: number; body: Uint8Array }>(
    db,
    `SELECT key, chunk, count, body FROM part_keys k JOIN part_lists l ON l.n = (k.part << 24) | k.list
     WHERE k.part = ?`,
  );
  return (part) => {
    const found = info.get(part);
    assert(found !== undefined, "the row of a part exists");
    const entries = new BigUint64Array(found.entries);
    const words = new Uint32Array(entries.buffer);
    const bytes = new Uint8Array(entries.buffer);
    let at = 0;
    for (const { body } of rare.all(part)) {
      bytes.set(body, at * 4);
      at += body.length / 4;
    }
    for (const { key, chunk, count, body } of lists.all(part)) {
      const base = (key % 256) * 2 ** 24 + chunk * ordinalsPerChunk;
      const high = Math.floor(key / 256);
      for (const ordinal of readOrdinals(body, count)) {
        words[at] = base + ordinal;
        words[at + 1] = high;
        at += 2;
      }
    }
    assert(at === words.length, "a part has as many entries as its row states");
    const all = joinPlaces(places.all(part), found.count);
    return { places: all, entries };
  };
}

function joinPlaces(blocks: readonly Readonly<{ body: Uint8Array }>[], count: number): PlaceList {
  const high = new Uint32Array(count);
  const low = new Uint32Array(count);
  let at = 0;
  for (const { body } of blocks) {
    const block = readPlaces(body);
    high.set(block.high, at);
    low.set(block.low, at);
    at += block.high.length;
  }
  assert(at === count, "a part has as many places as its row states");
  return { high, low };
}
