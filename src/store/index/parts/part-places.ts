/**
 * Reads the places of parts: of an ordinal, and the first ordinal at a place.
 * Source: docs/reference/index-layout.md#parts.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepareQuery } from "../../sqlite.ts";
import { compareHalves, type PlaceHalves } from "../place.ts";
import { newPlaces, type PlaceList, placesPerBlock, readPlacesInto } from "./part-codec.ts";

/** The number of a block, a list or a bucket of a part over all parts, as the tables of parts have it. */
export function partEntryNumber(part: number, number: number): number {
  return part * 2 ** 24 + number;
}

/** Limit of cached blocks of places, of 8 KiB: a page of rare rows reads one for each row. */
const blocksCachedMax = 256;
/** Limit of parts whose block starts are cached: 8 bytes for a thousand rows. */
const startsCachedMax = 512;

/** The first `count` places of a list. */
type PlaceBlock = PlaceList & { count: number };

/** The places of parts. */
export type PlaceReads = Readonly<{
  at: (part: number, ordinal: number) => PlaceHalves;
  /** The first ordinal whose place is at or after `place`. */
  firstAtOrAfter: (part: number, place: PlaceHalves) => number;
  /** The first ordinal whose place is after `place`. */
  firstAfter: (part: number, place: PlaceHalves) => number;
  discard: () => void;
}>;

export function createPlaceReads(db: Database): PlaceReads {
  const block = prepareQuery<{ body: Uint8Array }>(db, "SELECT body FROM part_places WHERE n = (? << 24) | ?");
  const start = prepareQuery<{ starts: Uint8Array }>(db, "SELECT starts FROM parts WHERE part = ?");
  /** The oldest first. */
  const blocks = new Map<number, PlaceBlock>();
  const starts = new Map<number, Uint32Array>();

  /** The block is overwritten by a later call: a new one for each row would be collected within a few pages. */
  const blockOf = (part: number, number: number): PlaceBlock => {
    const name = partEntryNumber(part, number);
    const known = blocks.get(name);
    if (known !== undefined) return known;
    const body = block.get(part, number)?.body ?? new Uint8Array(0);
    const [oldest] = blocks.size < blocksCachedMax ? [] : blocks;
    if (oldest !== undefined) blocks.delete(oldest[0]);
    const read = oldest?.[1] ?? { ...newPlaces(), count: 0 };
    read.count = readPlacesInto(read, body);
    blocks.set(name, read);
    return read;
  };
  const startsOf = (part: number): Uint32Array => {
    const known = starts.get(part);
    if (known !== undefined) return known;
    const body = start.get(part)?.starts ?? new Uint8Array(0);
    const read = new Uint32Array(new Uint8Array(body).buffer);
    if (starts.size >= startsCachedMax) starts.clear();
    starts.set(part, read);
    return read;
  };
  /** Number of rows before the first row for which `counts` is false. */
  const rank = (part: number, counts: (place: PlaceHalves) => boolean): number => {
    const first = startsOf(part);
    const number = countWhile(first.length / 2, (at) =>
      counts({ high: first[at * 2] ?? 0, low: first[at * 2 + 1] ?? 0 }),
    );
    if (number === 0) return 0;
    const { high, low, count } = blockOf(part, number - 1);
    const within = countWhile(count, (at) => counts({ high: high[at] ?? 0, low: low[at] ?? 0 }));
    return (number - 1) * placesPerBlock + within;
  };

  return {
    at: (part, ordinal) => {
      const { high, low } = blockOf(part, Math.floor(ordinal / placesPerBlock));
      const at = ordinal % placesPerBlock;
      return { high: high[at] ?? 0, low: low[at] ?? 0 };
    },
    firstAtOrAfter: (part, place) => rank(part, (other) => compareHalves(other, place) < 0),
    firstAfter: (part, place) => rank(part, (other) => compareHalves(other, place) <= 0),
    discard: () => {
      blocks.clear();
      starts.clear();
    },
  };
}

/** Binary search: the first number for which a condition is false. */
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
