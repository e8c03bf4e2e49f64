/**
 * Several ordered streams of places as one: in order, each place once, no stream opened before its turn.
 * @module
 */
import { compareHalves, type PlaceHalves } from "./parts/places.ts";

/** Places in order, not read before it is opened. */
export type PlaceStream = Readonly<{
  /** Where it can begin at the earliest, in the order of the walk; undefined: anywhere. */
  bound: PlaceHalves | undefined;
  open: () => Iterator<PlaceHalves>;
}>;

type Head = { place: PlaceHalves; rest: Iterator<PlaceHalves> };
type Compare = (a: PlaceHalves, b: PlaceHalves) => number;

/** Merges streams of one order. */
export function* mergeStreams(streams: readonly PlaceStream[], order: "asc" | "desc"): Generator<PlaceHalves> {
  const compare: Compare = order === "asc" ? compareHalves : (a, b) => compareHalves(b, a);
  const waiting = streams.toSorted((a, b) => compareBounds(a, b, compare));
  let heads: Head[] = [];
  let last: PlaceHalves | undefined;
  for (;;) {
    const first = firstOf(openDue(waiting, heads, compare), compare);
    if (first === undefined) return;
    const { place } = first;
    if (last === undefined || compare(last, place) !== 0) yield place;
    last = place;
    const { value, done } = first.rest.next();
    if (done === true) heads = heads.filter((head) => head !== first);
    else first.place = value;
  }
}

/** Opens the streams that may have a place before the first of those that are open; adds them to the open ones. */
function openDue(waiting: PlaceStream[], heads: Head[], compare: Compare): readonly Head[] {
  for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
    const first = firstOf(heads, compare);
    const isDue = next.bound === undefined || first === undefined || compare(next.bound, first.place) <= 0;
    if (!isDue) break;
    waiting.shift();
    const rest = next.open();
    const { value, done } = rest.next();
    if (done !== true) heads.push({ place: value, rest });
  }
  return heads;
}

function firstOf(heads: readonly Head[], compare: Compare): Head | undefined {
  let first = heads[0];
  for (const head of heads) if (first !== undefined && compare(head.place, first.place) < 0) first = head;
  return first;
}

/** Streams that can begin anywhere come first. */
function compareBounds(a: PlaceStream, b: PlaceStream, compare: Compare): number {
  if (a.bound === undefined || b.bound === undefined)
    return Number(a.bound !== undefined) - Number(b.bound !== undefined);
  return compare(a.bound, b.bound);
}
