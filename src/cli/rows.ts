/**
 * Rows of a command's page: a name and what is said of it. Values may come from another machine, or from a file that
 * came from one, so that nothing in them moves the cursor or begins a line.
 * @module
 */
import { printable } from "../lib/printable.ts";

/** A name, and what is said of it. */
export type PageRow = readonly [string, string];

/** A line for each row, the values one below the other. @param width - Characters of the names. */
export function rowsText(rows: readonly PageRow[], width: number): string {
  return rows.map(([name, value]) => `  ${printable(name).padEnd(width)} ${printable(value)}\n`).join("");
}
