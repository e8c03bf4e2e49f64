/**
 * Stores the parts of the posting index (part-image.ts) and merges them.
 *
 * Eight parts of a level become one of the next, so a row is written again at most six times. The smallest merges are
 * made at once, in the transaction that adds rows. All others are made in a thread of their own (part-merge.ts): the
 * writer stores their steps under a level that readers do not see, then replaces the sources in one short transaction,
 * and removes their bodies in steps. A merge that a crash interrupted is removed in the same way.
 * Source: docs/reference/index-layout.md#merges.
 * @module
 */
import type { Database } from "bun:sqlite";
import { assert } from "../../../lib/assert.ts";
import { prepare, prepareQuery } from "../../sqlite.ts";
import { placeSql } from "../place-sql.ts";
import { ordinalsOfList, type PlaceList, readPlaces } from "./part-codec.ts";
import { bucketReaderOf, bucketsFor, createEntryList, readBucket } from "./part-entries.ts";
import { filterFolderOf, removeFilterFile } from "./part-filter.ts";
import {
  gatherPart,
  imageOfPart,
  mergeParts,
  type NewPartRows,
  type PartRows,
  partRowsMax,
  rareRowsMax,
} from "./part-image.ts";
import type { MergedBodies, MergedPart, PartMerge } from "./part-merge.ts";

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
  /** Limit of the rows of a merge that the writer makes at once: 1 to 5 µs a row (measured). */
  inlineRowsMax: number;
  /**
   * Limits of the rows of one merge. It may have `mergedShare` of all rows, because the file has its sources and the
   * new part for a while, and readers wait for processors meanwhile; but `mergedRowsMin` in any case.
   */
  mergedRowsMin: number;
  mergedRowsMax: number;
}>;

const mergedShare = 1 / 8;

/**
 * A list has 32 entries in the mean at least, because a key of few more rows than `rareRowsMax` may have two of them
 * (part-image.ts). The number of a list within its part has 24 bits.
 */
const mergedEntriesMax = 2 ** 29;

/** A hundred million rows make about 30 parts. */
export const partSizesDefault: PartSizes = {
  rowsMin: 32,
  sealRows: 2_048,
  levelRows: 512,
  fanIn: 8,
  inlineRowsMax: 2 ** 12,
  mergedRowsMin: 2 ** 22,
  mergedRowsMax: partRowsMax,
};

/** Levels of parts that readers do not see. Numbers are part of the format. */
const hiddenLevels = { unfinished: -1, replaced: -2 } as const;

/** A level this many times as crowded as it may be is merged at once: the thread of the merges does not follow. */
const crowdedMax = 8;

/** The writer's calls for merges in another thread. */
export type PartMerges = Readonly<{
  /**
   * Begins the next merge; undefined when none is due.
   *
   * @param within - A merge that is under way: one that is much smaller can be made between two of its steps. Without
   *   it, merges that are under way are abandoned.
   */
  beginMerge: (within?: PartMerge) => PartMerge | undefined;
  /** Stores one step of a merge. @throws Error when it was abandoned, as those of an earlier writer are. */
  addMerged: (part: number, bodies: MergedBodies) => void;
  /**
   * Replaces the sources by the new part.
   *
   * @param filter - Name of its filter's file; null without one.
   * @throws Error as `addMerged` does.
   */
  endMerge: (merge: PartMerge, merged: MergedPart, filter: string | null) => void;
  /** Records a filter that was made again, and removes the file of the one before; its own when the part is gone. */
  setFilter: (part: number, filter: string) => void;
  /** Removes some bodies of parts that were replaced. @returns Whether there were any. */
  dropReplaced: () => boolean;
}>;

/** The parts of one database. Calls run inside the writer's transaction. */
export type Parts = PartMerges &
  Readonly<{
    add: (rows: NewPartRows) => void;
  }>;

export function createParts(db: Database, sizes: PartSizes): Parts {
  const store = createPartStore(db, sizes);
  const load = createPartLoader(db);
  const due = createDueMerges(db, sizes);
  const count = prepare(db, "UPDATE meta SET value = value + 1 WHERE name = 'parts_version'");
  const replace = prepare(db, `UPDATE parts SET level = ${hiddenLevels.replaced} WHERE part = ?`);
  const setFilter = prepare(db, "UPDATE parts SET filter = ?2 WHERE part = ?1");
  const filterOf = prepareQuery<{ filter: string | null }>(db, "SELECT filter FROM parts WHERE part = ?");
  const end = prepare(
    db,
    `UPDATE parts SET level = ?, count = ?, entries = ?, first = ${placeSql()}, last = ${placeSql()}, starts = ?,
       keys = ?, filter = ? WHERE part = ?`,
  );
  const unfinished = prepareQuery<{ part: number }>(
    db,
    `SELECT part FROM parts WHERE part = ? AND level = ${hiddenLevels.unfinished}`,
  );
  const abandon = prepare(
    db,
    `UPDATE parts SET level = ${hiddenLevels.replaced} WHERE level = ${hiddenLevels.unfinished}`,
  );
  const remove = createPartRemoval(db);
  const folder = filterFolderOf(db.filename);
  // The thread of the merges may outlive the writer, and its sources are not known here.
  abandon.run();
  const expectUnderWay = (part: number): void => {
    if (unfinished.get(part) === undefined) throw new Error("the merge was abandoned");
  };

  return {
    add: (rows) => {
      if (rows.high.length === 0) return;
      store.complete(gatherPart(rows));
      for (let sources = due.inline(); sources !== undefined; sources = due.inline()) {
        store.complete(mergeParts(sources.map(load)));
        for (const part of sources) remove.all(part);
      }
      count.run();
    },
    beginMerge: (within) => {
      if (within === undefined) abandon.run();
      const sources = due.next(within);
      if (sources === undefined) return undefined;
      const sum = (value: (source: DueSource) => number) => sources.reduce((total, each) => total + value(each), 0);
      const buckets = bucketsFor(sum(({ rare }) => rare));
      const idBuckets = bucketsFor(sum(({ count: rows }) => rows));
      return {
        part: store.unfinished(buckets, idBuckets),
        within: within?.part,
        sources,
        buckets,
        idBuckets,
        keysMax: sum(({ keys, entries }) => keys ?? entries),
      };
    },
    addMerged: (part, bodies) => {
      expectUnderWay(part);
      store.bodies(part, bodies);
    },
    endMerge: ({ part, sources }, { count: rows, entries, keys, first, last, starts }, filter) => {
      expectUnderWay(part);
      const bounds = [first.high, first.low, last.high, last.low];
      end.run(levelOf(rows, sizes), rows, entries, ...bounds, starts, keys, filter, part);
      for (const source of sources) replace.run(source.part);
      due.end(sources);
      count.run();
    },
    setFilter: (part, filter) => {
      const found = filterOf.get(part);
      if (found === undefined) {
        // The part was merged while its filter was made: no part names the new file.
        removeFilterFile(folder, filter);
        return;
      }
      setFilter.run(part, filter);
      if (found.filter !== null && found.filter !== filter) removeFilterFile(folder, found.filter);
      count.run();
    },
    dropReplaced: remove.next,
  };
}

function levelOf(count: number, { levelRows, fanIn }: PartSizes): number {
  if (count < levelRows) return 0;
  return 1 + Math.floor(Math.log(count / levelRows) / Math.log(fanIn));
}

/**
 * A part that is to be merged. `rare`: entries of keys that are rare in it, also of those that have lists, as some do
 * in parts of earlier releases; `keys` is null for a part of an earlier release.
 */
type DueSource = PartMerge["sources"][number] & Readonly<{ rare: number; keys: number | null }>;

function rowsOf({ sources }: PartMerge): number {
  return sources.reduce((sum, { count }) => sum + count, 0);
}

/** Returns the calls that choose the parts of the next merge. */
function createDueMerges(db: Database, { fanIn, inlineRowsMax, mergedRowsMin, mergedRowsMax }: PartSizes) {
  const all = prepareQuery<{ rows: number }>(db, "SELECT total(count) AS rows FROM parts WHERE level >= 0");
  const mergeable = prepareQuery<{ part: number; level: number; count: number; entries: number }>(
    db,
    `SELECT part, level, count, entries FROM parts
     WHERE level >= 0 AND id_buckets IS NOT NULL AND count < ? AND entries < ?
     ORDER BY level, first`,
  );
  // A part whose ids are in `postings`, or one that is to be merged and has its ids among its keys.
  const old = prepareQuery<{ part: number }>(
    db,
    `SELECT part FROM parts WHERE level >= 0 AND id_buckets IS NULL AND (keys IS NULL OR count < ?)
     ORDER BY part LIMIT 1`,
  );
  const source = prepareQuery<DueSource>(
    db,
    `SELECT part, count, entries, buckets, id_buckets AS idBuckets, keys,
       entries - (SELECT coalesce(sum(rows), 0) FROM (
         SELECT sum(k.count) AS rows FROM part_keys k WHERE k.part = p.part GROUP BY k.key
       ) WHERE rows > ${rareRowsMax}) AS rare
     FROM parts p WHERE part = ?`,
  );
  assert(mergedRowsMax <= partRowsMax, "a part is bounded");
  const rowsMax = (): number => {
    const share = (all.get()?.rows ?? 0) * mergedShare;
    return Math.min(mergedRowsMax, Math.max(mergedRowsMin, share));
  };
  /** The sources of the merges under way. */
  const busy = new Set<number>();
  /** The parts to merge of each level that has enough of them, and the number of its parts. */
  const levels = () => {
    const limit = rowsMax();
    const byLevel = new Map<number, { part: number; count: number; entries: number }[]>();
    // A part of half a limit is not merged.
    for (const { level, ...part } of mergeable.all(limit / 2, mergedEntriesMax / 2))
      if (!busy.has(part.part)) byLevel.set(level, [...(byLevel.get(level) ?? []), part]);
    const crowded = [...byLevel.values()].filter(({ length }) => length >= fanIn);
    return crowded.map((parts) => {
      let rows = 0;
      let sum = 0;
      const chosen = parts.slice(0, fanIn).filter(({ count, entries }) => {
        const fits = rows + count <= limit && sum + entries <= mergedEntriesMax;
        if (fits) {
          rows += count;
          sum += entries;
        }
        return fits;
      });
      return { parts: chosen.map(({ part }) => part), rows, all: parts.length };
    });
  };
  return {
    /** Parts that the writer merges at once. */
    inline: (): readonly number[] | undefined =>
      levels().find(
        ({ rows, all }) => rows <= inlineRowsMax || (all >= crowdedMax * fanIn && rows <= crowdedMax * inlineRowsMax),
      )?.parts,
    /** Ends the merge of these parts. */
    end: (sources: PartMerge["sources"]): void => {
      for (const { part } of sources) busy.delete(part);
    },
    /** Parts that are merged in another thread; the writer does not merge them meanwhile. */
    next: (within: PartMerge | undefined): readonly DueSource[] | undefined => {
      if (within === undefined) busy.clear();
      const rewritten = within === undefined ? old.get(rowsMax() / 2) : undefined;
      // Within another merge, one of a lower level.
      const limit = within === undefined ? mergedRowsMax : rowsOf(within) / fanIn;
      const parts = rewritten === undefined ? levels().find(({ rows }) => rows <= limit)?.parts : [rewritten.part];
      for (const part of parts ?? []) busy.add(part);
      return parts?.map((part) => {
        const found = source.get(part);
        assert(found !== undefined, "the row of a part exists");
        return found;
      });
    },
  };
}

function createPartStore(db: Database, sizes: PartSizes) {
  const addPart = prepareQuery<{ part: number }>(
    db,
    `INSERT INTO parts (level, count, entries, buckets, id_buckets, first, last, starts, keys)
     VALUES (?, ?, ?, ?, ?, ${placeSql()}, ${placeSql()}, ?, ?) RETURNING part`,
  );
  const body = (table: string) => prepare(db, `INSERT INTO ${table} VALUES ((? << 24) | ?, ?)`);
  const addPlaces = body("part_places");
  const addRare = body("part_rare");
  const addIds = body("part_ids");
  const addList = body("part_lists");
  const addKey = prepare(db, "INSERT INTO part_keys VALUES (?, ?, ?, ?, ?)");

  const bodies: PartMerges["addMerged"] = (part, { places, ids, rare, lists }) => {
    for (const { number, body: bytes } of places) addPlaces.run(part, number, bytes);
    for (const { number, body: bytes } of ids) addIds.run(part, number, bytes);
    for (const { number, body: bytes } of rare) addRare.run(part, number, bytes);
    for (const { number, key, chunk, count, body: bytes } of lists) {
      addList.run(part, number, bytes);
      addKey.run(part, key, chunk, count, number);
    }
  };
  const added = (row: { part: number } | undefined): number => {
    assert(row !== undefined, "a part that was added has a number");
    return row.part;
  };
  return {
    bodies,
    complete: (rows: PartRows): void => {
      const image = imageOfPart(rows);
      const { high, low } = rows.places;
      const last = high.length - 1;
      const bounds = [high[0] ?? 0, low[0] ?? 0, high[last] ?? 0, low[last] ?? 0];
      const level = levelOf(image.count, sizes);
      const counts = [level, image.count, rows.entries.length, image.buckets, image.idBuckets];
      bodies(added(addPart.get(...counts, ...bounds, image.starts, image.keys)), {
        places: image.places.map((bytes, number) => ({ number, body: bytes })),
        ids: image.ids,
        rare: image.rare,
        lists: image.lists.map((list, number) => ({ ...list, number })),
      });
    },
    unfinished: (buckets: number, idBuckets: number): number =>
      added(addPart.get(hiddenLevels.unfinished, 0, 0, buckets, idBuckets, 0, 0, 0, 0, new Uint8Array(0), 0)),
  };
}

/** Bodies removed in one step: five megabytes, more than one step of a merge adds. */
const bodiesPerStep = 4_000;

type ReplacedPart = Readonly<{ part: number; filter: string | null }>;

/**
 * Returns the calls that remove parts. The files of their filters are removed before the transaction is committed. If
 * it is rolled back, or lost with the machine's power after the commit, a part that is still there has no file: it is
 * searched without a filter, and the filter is made again at the next start.
 */
function createPartRemoval(db: Database) {
  const next = prepareQuery<ReplacedPart>(
    db,
    `SELECT part, filter FROM parts WHERE level = ${hiddenLevels.replaced} ORDER BY part LIMIT 1`,
  );
  const bodies = ["part_places", "part_ids", "part_rare", "part_lists"].map((table) => ({
    last: prepareQuery<{ n: number }>(
      db,
      `SELECT n FROM ${table} WHERE n BETWEEN (?1 << 24) AND (?1 << 24) | 0xffffff ORDER BY n LIMIT 1 OFFSET ?2`,
    ),
    // A range without a subquery: SQLite removes its rows while it reads them.
    upTo: prepare(db, `DELETE FROM ${table} WHERE n BETWEEN (?1 << 24) AND ?2`),
    all: prepare(db, `DELETE FROM ${table} WHERE n BETWEEN (?1 << 24) AND (?1 << 24) | 0xffffff`),
  }));
  const keys = prepare(
    db,
    `DELETE FROM part_keys WHERE (part, key, chunk) IN
       (SELECT part, key, chunk FROM part_keys WHERE part = ?1 ORDER BY key, chunk LIMIT ?2)`,
  );
  const allKeys = prepare(db, "DELETE FROM part_keys WHERE part = ?");
  const row = prepare(db, "DELETE FROM parts WHERE part = ?");
  const filterOf = prepareQuery<Pick<ReplacedPart, "filter">>(db, "SELECT filter FROM parts WHERE part = ?");
  const folder = filterFolderOf(db.filename);
  /** Removes some bodies of a part. @returns Whether it has none any more. */
  const removeSome = (part: number): boolean => {
    let left = bodiesPerStep;
    for (const { last, upTo, all } of bodies) {
      const edge = last.get(part, left - 1)?.n;
      left -= edge === undefined ? all.run(part).changes : upTo.run(part, edge).changes;
      if (left === 0) return false;
    }
    return keys.run(part, left).changes < left;
  };
  return {
    all: (part: number): void => {
      const filter = filterOf.get(part)?.filter ?? null;
      for (const { all } of bodies) all.run(part);
      allKeys.run(part);
      row.run(part);
      if (filter !== null) removeFilterFile(folder, filter);
    },
    next: (): boolean => {
      const replaced = next.get();
      if (replaced === undefined) return false;
      const { part, filter } = replaced;
      if (removeSome(part)) {
        row.run(part);
        if (filter !== null) removeFilterFile(folder, filter);
      }
      return true;
    },
  };
}

/** Returns a function that reads a complete part. */
export function createPartLoader(db: Database): (part: number) => PartRows {
  const info = prepareQuery<{ count: number; entries: number; idBuckets: number | null }>(
    db,
    "SELECT count, entries, id_buckets AS idBuckets FROM parts WHERE part = ?",
  );
  const bodies = (table: string) =>
    prepareQuery<{ body: Uint8Array }>(
      db,
      `SELECT body FROM ${table} WHERE n BETWEEN (?1 << 24) AND (?1 << 24) | 0xffffff ORDER BY n`,
    );
  const places = bodies("part_places");
  const rare = bodies("part_rare");
  const ids = bodies("part_ids");
  const lists = prepareQuery<{ key: number; chunk: number; count: number; body: Uint8Array }>(
    db,
    `SELECT key, chunk, count, body FROM part_keys k JOIN part_lists l ON l.n = (k.part << 24) | k.list
     WHERE k.part = ?`,
  );
  return (part) => {
    const found = info.get(part);
    assert(found !== undefined, "the row of a part exists");
    const read = bucketReaderOf(found.idBuckets);
    const entries = createEntryList(found.entries);
    for (const { body } of rare.all(part)) entries.addAll(read(body));
    for (const { key, ...list } of lists.all(part)) {
      const ordinals = ordinalsOfList(list);
      for (let index = 0; index < ordinals.length; index += 1) entries.add(key, ordinals[index] ?? 0);
    }
    assert(entries.count() === found.entries, "a part has as many entries as its row states");
    // A row may have several ids: its place was that of another row before a reorganization.
    const idWords = ids.all(part).map(({ body }) => readBucket(body));
    const ownIds = createEntryList(idWords.reduce((sum, words) => sum + words.length / 2, 0));
    for (const words of idWords) ownIds.addAll(words);
    const all = joinPlaces(places.all(part), found.count);
    return { places: all, ids: ownIds.unsorted(), entries: entries.unsorted() };
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
