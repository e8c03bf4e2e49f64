/**
 * Reading places of a part: of an ordinal, and which ordinals lie within a range of places.
 *
 * Parts never change and their numbers are never given again, so what was read of one stays true.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepareQuery } from "../../sqlite.ts";
import { type PlaceList, placesPerBlock, readPlaces } from "./codec.ts";

/** A place in its upper 32 and lower 31 bits. */
export type PlaceHalves = Readonly<{ high: number; low: number }>;

/** A part, as a query begins with it. */
export type PartInfo = Readonly<{
  part: number;
  count: number;
  buckets: number;
  first: PlaceHalves;
  last: PlaceHalves;
}>;

/** Blocks of places that are kept decoded: a page of rare rows touches one each. */
const blocksStored = 256;
/** Parts whose block starts are kept: 8 bytes a thousand rows. */
const startsStored = 512;

/** Places of parts, for a reader. */
export type PlaceReads = Readonly<{
  at: (part: PartInfo, ordinal: number) => PlaceHalves;
  /** The first ordinal whose place is not before one. */
  firstAtOrAfter: (part: PartInfo, place: PlaceHalves) => number;
  /** The first ordinal whose place is after one. */
  firstAfter: (part: PartInfo, place: PlaceHalves) => number;
}>;

/** Opens these reads over a reader's connection. */
export function createPlaceReads(db: Database): PlaceReads {
  const block = prepareQuery<{ body: Uint8Array }>(db, "SELECT body FROM part_places WHERE n = (? << 24) | ?");
  const start = prepareQuery<{ starts: Uint8Array }>(db, "SELECT starts FROM parts WHERE part = ?");
  const blocks = new Map<string, PlaceList>();
  const starts = new Map<number, Uint32Array>();

  const blockOf = (part: number, number: number): PlaceList => {
    const name = `${part}/${number}`;
    const known = blocks.get(name);
    if (known !== undefined) return known;
    const read = readPlaces(block.get(part, number)?.body ?? new Uint8Array(0));
    if (blocks.size >= blocksStored) blocks.clear();
    blocks.set(name, read);
    return read;
  };
  const startsOf = (part: number): Uint32Array => {
    const known = starts.get(part);
    if (known !== undefined) return known;
    const body = start.get(part)?.starts ?? new Uint8Array(0);
    const read = new Uint32Array(new Uint8Array(body).buffer);
    if (starts.size >= startsStored) starts.clear();
    starts.set(part, read);
    return read;
  };
  /** How many rows of a part come before the first that does not count. */
  const rank = (part: PartInfo, counts: (place: PlaceHalves) => boolean): number => {
    const first = startsOf(part.part);
    const number = countWhile(first.length / 2, (at) =>
      counts({ high: first[at * 2] ?? 0, low: first[at * 2 + 1] ?? 0 }),
    );
    if (number === 0) return 0;
    const { high, low } = blockOf(part.part, number - 1);
    const within = countWhile(high.length, (at) => counts({ high: high[at] ?? 0, low: low[at] ?? 0 }));
    return (number - 1) * placesPerBlock + within;
  };

  return {
    at: ({ part }, ordinal) => {
      const { high, low } = blockOf(part, Math.floor(ordinal / placesPerBlock));
      const at = ordinal % placesPerBlock;
      return { high: high[at] ?? 0, low: low[at] ?? 0 };
    },
    firstAtOrAfter: (part, place) => rank(part, (other) => compareHalves(other, place) < 0),
    firstAfter: (part, place) => rank(part, (other) => compareHalves(other, place) <= 0),
  };
}

/** How many numbers from 0 on meet a condition that, once false, stays false. */
export function countWhile(count: number, holds: (at: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Orders places as the chain does. */
export function compareHalves(a: PlaceHalves, b: PlaceHalves): number {
  return a.high - b.high || a.low - b.low;
}
