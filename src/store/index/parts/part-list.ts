/**
 * The parts of an index that queries see, read again when they change.
 * Source: docs/reference/index-layout.md#parts.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepareQuery } from "../../sqlite.ts";
import { compareHalves, type PlaceHalves } from "../place.ts";
import { highSql, lowSql } from "../place-sql.ts";

/** The row of a part. */
export type PartInfo = Readonly<{
  part: number;
  count: number;
  buckets: number;
  /** Null for a part of an earlier release, whose ids are among its keys, or in `postings` when `keys` is null. */
  idBuckets: number | null;
  /** Number of distinct keys; null for a part of the earliest releases, whose ids are in `postings`. */
  keys: number | null;
  /** Name of the file of its filter. */
  filter: string | null;
  first: PlaceHalves;
  last: PlaceHalves;
}>;

/** Whether a part may have rows in a range of places, both inclusive. */
export function overlaps(part: PartInfo, { first, last }: Pick<PartInfo, "first" | "last">): boolean {
  return compareHalves(part.first, last) <= 0 && compareHalves(part.last, first) >= 0;
}

/** Whether a part has its ids in buckets of their own. */
export function hasIdsApart<Part extends PartInfo>(part: Part): part is Part & Readonly<{ idBuckets: number }> {
  return part.idBuckets !== null;
}

/** The parts of one database. Calls run inside the reader's snapshot. */
type PartList = Readonly<{
  /** The newest first. It is read again when a counter shows that it changed. */
  list: () => readonly PartInfo[];
  /** The version of the list that was read last. */
  version: () => number;
  /** The version at which this connection first read a part with its present filter. */
  listedSince: (part: number) => number;
  discard: () => void;
}>;

/** @param changed - Called with each new list. */
export function createPartList(db: Database, changed: (infos: readonly PartInfo[]) => void): PartList {
  const version = prepareQuery<{ value: number }>(db, "SELECT value FROM meta WHERE name = 'parts_version'");
  type Row = Omit<PartInfo, "first" | "last"> &
    Readonly<Record<"firstHigh" | "firstLow" | "lastHigh" | "lastLow", number>>;
  const rows = prepareQuery<Row>(
    db,
    `SELECT part, count, buckets, id_buckets AS idBuckets, keys, filter,
       ${highSql("first")} AS firstHigh, ${lowSql("first")} AS firstLow,
       ${highSql("last")} AS lastHigh, ${lowSql("last")} AS lastLow
     FROM parts WHERE level >= 0 ORDER BY part DESC`,
  );
  let known: number | undefined;
  let infos: readonly PartInfo[] = [];
  let since = new Map<number, Readonly<{ filter: string | null; version: number }>>();
  return {
    list: () => {
      const present = version.get()?.value ?? 0;
      if (present === known) return infos;
      infos = rows.all().map(({ firstHigh, firstLow, lastHigh, lastLow, ...info }) => ({
        ...info,
        first: { high: firstHigh, low: firstLow },
        last: { high: lastHigh, low: lastLow },
      }));
      known = present;
      changed(infos);
      since = new Map(
        infos.map(({ part, filter }) => {
          const before = since.get(part);
          return [part, before?.filter === filter ? before : { filter, version: present }];
        }),
      );
      return infos;
    },
    version: () => known ?? 0,
    listedSince: (part) => since.get(part)?.version ?? Number.POSITIVE_INFINITY,
    discard: () => {
      known = undefined;
      since.clear();
    },
  };
}
