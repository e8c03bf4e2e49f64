/**
 * Parts of the posting index: rows are found in single and merged parts, in any order.
 * @module
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { indexMigrations } from "../../../../src/store/index/index-schema.ts";
import { mergeStreams } from "../../../../src/store/index/pages/row-pages.ts";
import {
  markOrdinals,
  meetList,
  ordinalsPerChunk,
  placesPerBlock,
  readBits,
  readOrdinals,
  readPlaces,
  writeOrdinals,
  writePlaces,
} from "../../../../src/store/index/parts/part-codec.ts";
import { partKeyOf } from "../../../../src/store/index/parts/part-entries.ts";
import { columnsOf, gatherPart, mergeParts, type NewPartRow } from "../../../../src/store/index/parts/part-image.ts";
import { createPartKeyReads, createPartReads, type PartQuery } from "../../../../src/store/index/parts/part-reads.ts";
import { createPartLoader, createParts, type PartSizes } from "../../../../src/store/index/parts/parts.ts";
import { compareHalves, type PlaceHalves } from "../../../../src/store/index/place.ts";
import { createRandom, type Random } from "../../../support/random.ts";
import { seedOr } from "../../../support/seed.ts";

const place = fc.record({
  high: fc.nat({ max: 2 ** 32 - 1 }),
  low: fc.nat({ max: 2 ** 31 - 1 }),
});

describe("the codec", () => {
  test("near and distant places are restored", () => {
    const near = fc.record({ high: fc.nat({ max: 3 }), low: fc.nat({ max: 200 }) });
    const lists = fc.uniqueArray(fc.oneof(place, near), {
      maxLength: placesPerBlock,
      comparator: (a, b) => a.high === b.high && a.low === b.low,
    });
    fc.assert(
      fc.property(lists, (given) => {
        const places = given.toSorted(compareHalves);
        const list = {
          high: Uint32Array.from(places, ({ high }) => high),
          low: Uint32Array.from(places, ({ low }) => low),
        };
        expect(readPlaces(writePlaces(list))).toEqual(list);
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    ["one", [0]],
    ["the last", [ordinalsPerChunk - 1]],
    ["steps of one, two and three bytes", [0, 127, 128, 255, 16_639, 16_640, 65_535]],
    ["every row", Array.from({ length: ordinalsPerChunk }, (_, index) => index)],
    ["one in nine", Array.from({ length: 7_000 }, (_, index) => index * 9)],
    ["one in eleven", Array.from({ length: 5_900 }, (_, index) => index * 11)],
    ["the fewest by blocks", Array.from({ length: 4_096 }, (_, index) => index * 16)],
    ["one less", Array.from({ length: 4_095 }, (_, index) => index * 16)],
    ["all in few blocks", Array.from({ length: 6_500 }, (_, index) => 59_036 + index)],
  ])("ordinals come back: %s", (_what, given) => {
    const ordinals = Uint16Array.from(given);
    const bytes = writeOrdinals(ordinals, ordinalsPerChunk);
    expect(readOrdinals(bytes, ordinals.length)).toEqual(ordinals);
    const bits = new Uint8Array(ordinalsPerChunk / 8);
    markOrdinals(bytes, ordinals.length, bits);
    const marked = new Uint16Array(ordinals.length);
    expect(readBits(bits, marked)).toBe(ordinals.length);
    expect(marked).toEqual(ordinals);
    expect(bytes.length).toBeLessThanOrEqual(1 + ordinalsPerChunk / 8);
    for (const step of [1, 3, 65_535]) {
      const others = Uint16Array.from({ length: Math.floor(65_535 / step) + 1 }, (_, index) => index * step);
      expect(meetList(bytes, ordinals.length, others)).toEqual(ordinals.filter((ordinal) => ordinal % step === 0));
    }
    expect(meetList(bytes, ordinals.length, new Uint16Array(0))).toEqual(new Uint16Array(0));
  });

  test("a dense list takes a bit a row, a sparse one a byte or two an entry", () => {
    const every = (step: number, count: number) => Uint16Array.from({ length: count }, (_, index) => index * step);
    expect(writeOrdinals(every(2, 500), 1_000).length).toBe(1 + 125);
    expect(writeOrdinals(every(100, 600), ordinalsPerChunk).length).toBe(1 + 600);
    expect(writeOrdinals(every(1_000, 60), ordinalsPerChunk).length).toBe(1 + 1 + 59 * 2);
    expect(writeOrdinals(every(13, 5_000), ordinalsPerChunk).length).toBe(1 + 512 + 5_000);
  });

  test("damage is detected by the read", () => {
    expect(() => readPlaces(Uint8Array.of(0, 5))).toThrow("invariant broken");
    expect(() => readPlaces(Uint8Array.of(0x80, 0x80, 0x80, 0x80, 0x80, 0x80))).toThrow("too long");
    expect(() => readOrdinals(Uint8Array.of(0, 1, 1), 3)).toThrow("invariant broken");
  });
});

const sizes: PartSizes = {
  rowsMin: 1,
  sealRows: 1,
  levelRows: 512,
  fanIn: 8,
  inlineRowsMax: 2 ** 19,
  mergedRowsMin: 2 ** 19,
  mergedRowsMax: 2 ** 19,
};

/**
 * Rows at distinct places, each with an id and keys of all frequencies: in every second row, in one of a hundred, in one
 * row, and in one of 1,500, of which a part of several chunks has one list.
 */
function rowsOf(random: Random, count: number, high = 5): NewPartRow[] {
  let low = 0;
  return Array.from({ length: count }, (_, index) => {
    low += 1 + random.below(3);
    const keys = [
      keyOf(1 + (index % 2)),
      keyOf(10 + random.below(100)),
      keyOf(10_000 + random.below(10 ** 6)),
      keyOf(1_000 + random.below(1_500)),
      ...(index % 13 === 0 ? [commonKey] : []), // in lists by blocks
    ];
    return {
      high: high + Math.floor(index / 5_000),
      low,
      keys: [idKeyOf(index), ...keys, ...(random.chance(0.1) ? keys : [])],
    };
  });
}

/** Of one row in 13. */
const commonKey = keyOf(5_000);

const idKeyOf = (number: number): number => keyOf(10 ** 9 + number);

/** Keys spread over all 47 bits. */
function keyOf(number: number): number {
  return Number((BigInt(number) * 0x9e3779b97f4a7c15n) & ((1n << 47n) - 1n));
}

function openTables(): Database {
  const db = new Database(":memory:", { strict: true });
  for (const script of indexMigrations) db.run(script);
  return db;
}

function findAll(db: Database, query: PartQuery): PlaceHalves[] {
  const reads = createPartReads(db);
  const streams = reads.list().map((part) => ({
    bound: query.order === "asc" ? part.first : part.last,
    open: () => reads.find(part, query),
  }));
  return [...mergeStreams(streams, query.order)];
}

const everywhere = { first: { high: 0, low: 0 }, last: { high: 2 ** 32 - 1, low: 2 ** 31 - 1 } };

describe("parts", () => {
  test("find the rows that are in all groups and in a range, in both orders", () => {
    const random = createRandom(seedOr(21));
    const rows = rowsOf(random, 150_000);
    using db = openTables();
    createParts(db, sizes).add(columnsOf(rows));
    const keySets = rows.map(({ keys }) => new Set(keys));
    for (let count = 0; count < 80; count += 1) {
      const [low, high] = [random.below(rows.length), random.below(rows.length)].sort((a, b) => a - b);
      const group = (): number[] =>
        random.chance(0.5)
          ? [random.pick([keyOf(1), keyOf(2), commonKey])]
          : random.chance(0.6)
            ? [keyOf(10 + random.below(110)), keyOf(10 + random.below(100))]
            : random.pick([
                rows[random.below(rows.length)]?.keys.slice(3, 4) ?? [],
                [keyOf(1_000 + random.below(1_500)), keyOf(1_000 + random.below(1_500))],
              ]);
      const groups = [group(), ...(random.chance(0.6) ? [group()] : [])];
      const range =
        random.chance(0.5) || low === undefined || high === undefined
          ? everywhere
          : { first: rows[low] ?? everywhere.first, last: rows[high] ?? everywhere.last };
      const expected = rows.filter(
        (row, index) =>
          compareHalves(row, range.first) >= 0 &&
          compareHalves(row, range.last) <= 0 &&
          groups.every((keys) => keys.some((key) => keySets[index]?.has(key))),
      );
      const order = random.chance(0.5) ? "asc" : "desc";
      const found = findAll(db, { ...range, groups, order, checkpoint: () => undefined });
      const places = expected.map(({ high: above, low: below }) => ({ high: above, low: below }));
      expect(found).toEqual(order === "asc" ? places : places.reverse());
    }
  });

  test("an id is looked for only in the part that has it, and an absent id or rare key in none, but for few", () => {
    using db = openTables();
    const rows = rowsOf(createRandom(23), 5_000);
    const parts = createParts(db, sizes);
    for (let first = 0; first < 5_000; first += 1_000) parts.add(columnsOf(rows.slice(first, first + 1_000)));
    const reads = createPartReads(db);
    const listed = reads.list().toSorted((one, other) => one.part - other.part);
    expect(listed.length).toBe(5);
    const damage = (where: string): void => {
      for (const table of ["part_ids", "part_rare"]) db.run(`UPDATE ${table} SET body = X'01' WHERE ${where}`);
    };
    /** How many of the look-ups read what is damaged. */
    const readsOf = (keys: readonly number[], look: (key: number) => unknown): number =>
      keys.filter((key) => {
        try {
          look(key);
          return false;
        } catch {
          return true;
        }
      }).length;
    const findId = (key: number) => reads.placesOfIds([key]);
    const query = { ...everywhere, order: "asc", checkpoint: () => undefined } as const;
    const findKey = (key: number) => reads.list().map((part) => [...reads.find(part, { ...query, groups: [[key]] })]);
    const idsOf = (at: number) => Array.from({ length: 1_000 }, (_, index) => idKeyOf(at * 1_000 + index));
    // The filters of such small parts are made by the first look-ups.
    for (const look of [findId, findKey]) for (let key = 0; key < 10; key += 1) look(key);
    for (const [at, { part }] of listed.entries()) {
      db.run("SAVEPOINT whole");
      damage(`n >> 24 != ${part}`);
      expect(readsOf(idsOf(at), findId)).toBeLessThan(30);
      expect(readsOf(idsOf((at + 1) % 5), findId)).toBe(1_000);
      db.run("ROLLBACK TO whole");
      db.run("RELEASE whole");
    }
    damage("true");
    const absent = idsOf(10);
    const absentKeys = Array.from({ length: 500 }, (_, index) => keyOf(2_000_000 + index));
    expect(readsOf(absent, findId)).toBeLessThan(30);
    expect(readsOf(absentKeys, findKey)).toBeLessThan(50);
    const rareKeys = rows.slice(0, 100).flatMap(({ keys }) => keys.slice(3, 4));
    expect(readsOf(rareKeys, findKey)).toBe(100);
  });

  test("ids are found by their keys, and other keys are no ids", () => {
    using db = openTables();
    const rows = rowsOf(createRandom(seedOr(22)), 3_000);
    createParts(db, sizes).add(columnsOf(rows));
    const keys = [...rows.map((_row, index) => idKeyOf(index)), keyOf(1), keyOf(10), idKeyOf(3_000)];
    const found = createPartReads(db).placesOfIds(keys);
    expect(found.toSorted((a, b) => a.index - b.index)).toEqual(
      rows.map(({ high, low }, index) => ({ index, place: { high, low } })),
    );
  });

  test("of an earlier release have ids among their keys, also where one is that of a popular tag", () => {
    using db = openTables();
    const rows = rowsOf(createRandom(seedOr(22)), 3_000);
    createParts(db, sizes).add(columnsOf(rows));
    db.run("UPDATE parts SET id_buckets = NULL");
    db.run("UPDATE part_rare SET body = substr(body, 2)");
    db.run("DELETE FROM part_ids");
    const rare = rows.map(({ keys }) => keys[3] ?? 0).slice(0, 50);
    const keys = [...new Set([...rare, keyOf(1), keyOf(10), keyOf(5_000_000)])].sort((a, b) => a - b);
    const found = createPartReads(db).placesOfIds(keys);
    for (const [index, key] of keys.entries()) {
      const expected = rows.filter((row) => row.keys.includes(key)).map(({ high, low }) => ({ high, low }));
      expect(found.filter((one) => one.index === index).map((one) => one.place)).toEqual(expected);
      const query = { ...everywhere, groups: [[key]], order: "asc", checkpoint: () => undefined } as const;
      expect(findAll(db, query)).toEqual(expected);
    }
  });

  test("a complete part is read back unchanged", () => {
    const random = createRandom(2);
    const rows = rowsOf(random, 70_000);
    using db = openTables();
    createParts(db, sizes).add(columnsOf(rows));
    const gathered = gatherPart(columnsOf(rows));
    const loaded = createPartLoader(db)(1);
    expect(loaded.places).toEqual(gathered.places);
    expect([loaded.entries.sort(), loaded.ids]).toEqual([gathered.entries, gathered.ids]);
  });

  test("a key with few rows for each chunk has one list, one more row has a list for each chunk", () => {
    const listsOf = (each: number) => {
      const rows = Array.from({ length: 4 * ordinalsPerChunk }, (_, low) => {
        const isListed = low % ordinalsPerChunk === 0 || low % ordinalsPerChunk > ordinalsPerChunk - each;
        return { high: 1, low, keys: [idKeyOf(low), keyOf(2), ...(isListed ? [keyOf(1)] : [])] };
      });
      using db = openTables();
      createParts(db, sizes).add(columnsOf(rows));
      const query = { ...everywhere, groups: [[keyOf(1)], [keyOf(2)]], order: "asc" } as const;
      const found = findAll(db, { ...query, checkpoint: () => undefined });
      expect(found).toEqual(rows.filter(({ keys }) => keys.length > 2).map(({ high, low }) => ({ high, low })));
      const lists = db.query<{ chunk: number; count: number }, []>(
        "SELECT chunk, count FROM part_keys WHERE count < 999",
      );
      return lists.all();
    };
    expect(listsOf(63)).toEqual([{ chunk: -1, count: 4 * 63 }]);
    expect(listsOf(64)).toEqual([0, 1, 2, 3].map((chunk) => ({ chunk, count: 64 })));
  });

  test("the keys of a part are read in order, however many of them have lists", () => {
    using db = openTables();
    const rows = Array.from({ length: 325_000 }, (_, low) => ({
      high: 7,
      low,
      // 5,000 keys of 65 rows, and one of each row.
      keys: [low, (low % 5_000) * 2 ** 30, low * 2 ** 22].map((key) => key + 2 ** 9),
    }));
    createParts(db, sizes).add(columnsOf(rows));
    const [part] = createPartReads(db).list();
    if (part === undefined) throw new Error("there is a part");
    const keys = [...createPartKeyReads(db).keys(part)];
    const wanted = new Set(rows.flatMap((row) => row.keys.slice(1).map(partKeyOf)));
    expect(db.query("SELECT count(DISTINCT key) AS count FROM part_keys").get()).toEqual({ count: 5_000 });
    expect([...new Set(keys)]).toEqual([...wanted].sort((a, b) => a - b));
  });

  test("merged parts, disjoint or overlapping, equal one part made of all rows", () => {
    const random = createRandom(3);
    const all = rowsOf(random, 9_000);
    const shares: NewPartRow[][] = [[], [], []];
    for (const row of all) {
      random.pick(shares).push(row);
      if (random.chance(0.05)) random.pick(shares).push(row);
    }
    const distinct = shares.map((share) => [...new Set(share)].sort(compareHalves));
    const merged = mergeParts(distinct.map((rows) => gatherPart(columnsOf(rows))));
    const whole = gatherPart(columnsOf(all));
    expect(merged.places).toEqual(whole.places);
    expect([merged.ids, merged.entries]).toEqual([whole.ids, whole.entries]);
  });

  test("many small ones become few, without losing rows, and none has more than an eighth of all, or the minimum", () => {
    const random = createRandom(4);
    const rows = rowsOf(random, 6_000);
    using db = openTables();
    const sizes = { rowsMin: 1, sealRows: 1, levelRows: 20, fanIn: 4, inlineRowsMax: 2_000 };
    const parts = createParts(db, { ...sizes, mergedRowsMin: 300, mergedRowsMax: 2_000 });
    // In random order, so that parts overlap.
    const batches = Array.from({ length: 300 }, (_, index) => rows.filter((_row, at) => at % 300 === index));
    for (const batch of batches.sort(() => (random.chance(0.5) ? 1 : -1))) parts.add(columnsOf(batch));
    const counts = db.query<{ count: number }, []>("SELECT count FROM parts").all();
    expect(counts.length).toBeLessThan(25);
    expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(rows.length);
    const largest = Math.max(...counts.map(({ count }) => count));
    expect([largest > 300, largest <= rows.length / 8]).toEqual([true, true]);
    for (const key of [1, 2, 15, 60]) {
      const expected = rows.filter(({ keys }) => keys.includes(keyOf(key)));
      const query = { ...everywhere, groups: [[keyOf(key)]], checkpoint: () => undefined };
      const places = expected.map(({ high, low }) => ({ high, low }));
      expect(findAll(db, { ...query, order: "asc" })).toEqual(places);
      expect(findAll(db, { ...query, order: "desc" })).toEqual(places.reverse());
    }
    // Bodies of merged parts are removed.
    const orphans = db.query<{ n: number }, []>(
      `SELECT count(*) AS n FROM (SELECT n FROM part_places UNION ALL SELECT n FROM part_ids
         UNION ALL SELECT n FROM part_rare UNION ALL SELECT n FROM part_lists)
       WHERE n >> 24 NOT IN (SELECT part FROM parts)`,
    );
    expect(orphans.get()?.n).toBe(0);
  });

  test("a search is ended between two chunks", () => {
    using db = openTables();
    createParts(db, sizes).add(columnsOf(rowsOf(createRandom(5), 2 * ordinalsPerChunk + 10)));
    let chunks = 0;
    const checkpoint = (): void => {
      chunks += 1;
      if (chunks === 2) throw new Error("too late");
    };
    const query = { ...everywhere, groups: [[keyOf(1)]], order: "asc", checkpoint } as const;
    expect(() => findAll(db, query)).toThrow("too late");
  });
});

describe("mergeStreams", () => {
  test("yields each place once, in order, and opens no stream before it is needed", () => {
    const opened: string[] = [];
    const stream = (name: string, ...lows: number[]) => ({
      bound: { high: 0, low: lows[0] ?? 0 },
      open: () => {
        opened.push(name);
        return lows.map((low) => ({ high: 0, low })).values();
      },
    });
    const merged = mergeStreams(
      [stream("c", 5, 6), stream("a", 1, 3, 5), { ...stream("b", 2, 9), bound: undefined }, stream("none")],
      "asc",
    );
    const taken: number[] = [];
    for (const { low } of merged) {
      taken.push(low);
      if (low === 3) expect(opened).not.toContain("c");
    }
    expect(taken).toEqual([1, 2, 3, 5, 6, 9]);
    expect(opened.length).toBe(4);
  });
});
