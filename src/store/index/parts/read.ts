/**
 * Reading parts of the posting index: which rows of a part are in all of some groups of keys, in place order.
 *
 * Within a part the rows of a key are ordinals, so that lists meet in memory by chunks of 65,536: the shortest list
 * of a chunk is walked, the others are asked bit by bit.
 * Source: docs/reference/index-layout.md#pages-of-results.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepareQuery } from "../../sqlite.ts";
import { ordinalsPerChunk } from "./codec.ts";
import { chunksOf, createKeyLists, meetInChunk } from "./lists.ts";
import {
  compareHalves,
  countWhile,
  createPlaceReads,
  type PartInfo,
  type PlaceHalves,
  type PlaceReads,
} from "./places.ts";

/** What is sought in a part. */
export type PartQuery = Readonly<{
  order: "asc" | "desc";
  /** Places, both inclusive. */
  first: PlaceHalves;
  last: PlaceHalves;
  /** Filter keys; a row must be in each group. One at least. */
  groups: readonly (readonly number[])[];
  /** A row must be in none of them. */
  excluded: readonly (readonly number[])[];
  /** Called between chunks; throws to end the query. */
  checkpoint: () => void;
}>;

/** Parts of one database, for a reader, inside its snapshot. */
export type PartReads = Readonly<{
  list: () => readonly PartInfo[];
  /** Places that may meet the query, in order; each is to be checked against its row. */
  find: (part: PartInfo, query: PartQuery) => Generator<PlaceHalves>;
}>;

/** Opens these reads over a reader's connection. */
export function createPartReads(db: Database): PartReads {
  const list = prepareQuery<
    Readonly<
      { part: number; count: number; buckets: number } & Record<
        "firstHigh" | "firstLow" | "lastHigh" | "lastLow",
        number
      >
    >
  >(
    db,
    `SELECT part, count, buckets, first >> 31 AS firstHigh, first & 0x7fffffff AS firstLow,
       last >> 31 AS lastHigh, last & 0x7fffffff AS lastLow FROM parts`,
  );
  const listsOf = createKeyLists(db);
  const places = createPlaceReads(db);

  return {
    list: () =>
      list.all().map(({ part, count, buckets, firstHigh, firstLow, lastHigh, lastLow }) => ({
        part,
        count,
        buckets,
        first: { high: firstHigh, low: firstLow },
        last: { high: lastHigh, low: lastLow },
      })),
    find: function* (part, query) {
      const { start, end } = ordinalsBetween(places, part, query);
      if (start >= end) return;
      const groups = query.groups.map((keys) => listsOf(part, keys));
      const excluded = query.excluded.map((keys) => listsOf(part, keys));
      for (const chunk of chunksOf(groups, query.order)) {
        const base = chunk * ordinalsPerChunk;
        if (base >= end || base + ordinalsPerChunk <= start) continue;
        query.checkpoint();
        const met = meetInChunk(chunk, groups, excluded);
        const from = countWhile(met.length, (at) => base + (met[at] ?? 0) < start);
        const to = countWhile(met.length, (at) => base + (met[at] ?? 0) < end);
        const ordinals = met.subarray(from, to);
        if (query.order === "desc") ordinals.reverse();
        for (const low of ordinals) yield places.at(part, base + low);
      }
    },
  };
}

/** The ordinals of a part whose places lie in a range, half-open. Most ranges cover it: then nothing is read. */
function ordinalsBetween(
  places: PlaceReads,
  part: PartInfo,
  { first, last }: PartQuery,
): Readonly<{ start: number; end: number }> {
  const isFromStart = compareHalves(first, part.first) <= 0;
  const isToEnd = compareHalves(last, part.last) >= 0;
  return {
    start: isFromStart ? 0 : places.firstAtOrAfter(part, first),
    end: isToEnd ? part.count : places.firstAfter(part, last),
  };
}
