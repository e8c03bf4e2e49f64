/**
 * Packed places (place.ts) in SQL. A packed place is above 2^53, so statements take and return its two halves.
 * @module
 */
import { lastLow } from "./place.ts";

/** A packed place from its halves: parameters, columns or numbers. */
export function placeSql(high = "?", low = "?"): string {
  return `(${high} << 31) | ${low}`;
}

/** The columns `high` and `low` of a packed place. */
export function halvesSql(place: string): string {
  return `${highSql(place)} AS high, ${lowSql(place)} AS low`;
}

/** The upper half of a packed place: the transaction. */
export function highSql(place: string): string {
  return `${place} >> 31`;
}

/** The lower half of a packed place: the step within the transaction's data. */
export function lowSql(place: string): string {
  return `${place} & ${lastLow}`;
}

/** The height of a packed place. */
export function heightSql(place: string): string {
  return `${place} >> 41`;
}

/** The packed place of the transaction that contains a row. */
export function rootSql(place: string): string {
  return `(${highSql(place)}) << 31`;
}

/** The exact offset of an item's header in the root transaction's data. */
export function offsetSql(place: string, fine: string): string {
  return `((${lowSql(place)}) << 6) + ${fine}`;
}
