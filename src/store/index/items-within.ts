/**
 * Which items lie within a span of a root transaction's data: what a refusal of one of them must reach.
 *
 * Items nest or are apart, never crossing. So an item that begins before the span and reaches into it is the last
 * one that begins before it, or one of its parents.
 * @module
 */
import type { Database } from "bun:sqlite";
import { idFromBytes } from "../../arweave/id.ts";
import { prepareQuery } from "../sqlite.ts";
import { placeHigh } from "./place.ts";
import type { IndexReader, ItemSpan } from "./types.ts";

type SpanRow = Readonly<{
  low: number;
  fine: number;
  id: Uint8Array;
  digest: Uint8Array | null;
  size: number;
  parent: number | null;
}>;

const stepBytes = 64;

/** Opens this read over a reader's connection. */
export function createItemsWithin(db: Database): IndexReader["itemsWithin"] {
  const begun = prepareQuery<SpanRow>(db, spansSql("?2", "?3", "ORDER BY low LIMIT ?4"));
  const lastUpTo = prepareQuery<SpanRow>(db, spansSql("1", "?2", "ORDER BY low DESC LIMIT 1"));
  const at = prepareQuery<SpanRow>(db, spansSql("?2", "?2", "LIMIT 1"));

  return (root, start, end, limit) => {
    const high = placeHigh(root);
    const found = new Map<number, ItemSpan>();
    const add = (row: SpanRow): void => {
      const span = spanOf(row);
      const overlaps = span.start < end && span.end > start;
      if (overlaps && found.get(span.start)?.digest === undefined) found.set(span.start, span);
    };
    const firstStep = Math.floor(start / stepBytes);
    let before = lastUpTo.get(high, firstStep - 1);
    while (before !== undefined) {
      add(before);
      before = before.parent === null ? undefined : at.get(high, Math.floor(before.parent / stepBytes));
    }
    const last = Math.floor(Math.max(start, end - 1) / stepBytes);
    for (const row of begun.all(high, firstStep, last, limit)) add(row);
    return [...found.values()].sort((a, b) => a.start - b.start).slice(0, limit);
  };
}

/** Reads all tables in which an item can stand, by lower halves of the place, both inclusive; ?1 is the upper. */
function spansSql(first: string, last: string, rest: string): string {
  const range = `n BETWEEN (?1 << 31) | ${first} AND (?1 << 31) | ${last}`;
  const columns = "n & 0x7fffffff AS low, fine, id, head + size AS size, parent";
  const tables = [
    `SELECT ${columns}, digest FROM items WHERE sig > 0 AND ${range}`,
    `SELECT ${columns}, digest FROM duplicates WHERE sig > 0 AND ${range}`,
    `SELECT ${columns}, digest FROM pruned_items WHERE ${range}`,
    `SELECT ${columns}, NULL AS digest FROM bundles WHERE depth > 0 AND ${range}`,
  ];
  return `SELECT * FROM (${tables.join(" UNION ALL ")}) ${rest}`;
}

function spanOf({ low, fine, id, digest, size }: SpanRow): ItemSpan {
  const start = low * stepBytes + fine;
  return { id: idFromBytes(id), start, end: start + size, ...(digest === null ? {} : { digest }) };
}
