/**
 * What the pages with scripts share: values, tables, and texts of numbers and moments.
 * @module
 */
import type { ReactNode } from "react";

/** A number with separators; a dash for an unknown one. */
export function numberText(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: 1 });
}

/** A moment of today as its time, another one with its date. @param ms - Unix milliseconds. */
export function momentText(ms: number): string {
  const moment = new Date(ms);
  const isToday = moment.toDateString() === new Date().toDateString();
  return isToday ? moment.toLocaleTimeString() : moment.toLocaleString();
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Bytes in the largest unit that leaves at least 1. */
export function bytesText(bytes: number): string {
  const power = Math.min(units.length - 1, bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10));
  return `${numberText(bytes / 1_024 ** power)} ${units[power]}`;
}

/** Names with their values. */
export function Values({ values }: Readonly<{ values: readonly (readonly [name: string, value: ReactNode])[] }>) {
  return (
    <dl className="values">
      {values.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A key that no other row of the table has, and the cells. */
export type Row = readonly [key: string, ...cells: ReactNode[]];

export type TableProps = Readonly<{
  /** For screen readers. */
  name: string;
  columns: readonly string[];
  rows: readonly Row[];
  /** Shown without rows. */
  empty: string;
}>;

/** Columns of a table from which on its rows become blocks in a narrow window. */
const wideFrom = 4;

/** A table. Where it is wider than the window, it scrolls by itself, or its rows become blocks. */
export function Table({ name, columns, rows, empty }: TableProps) {
  if (rows.length === 0) return <p className="empty">{empty}</p>;
  return (
    <section className={columns.length < wideFrom ? "table" : "table wide"} aria-label={name}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([key, ...cells]) => (
            <tr key={key}>
              {cells.map((cell, column) => (
                <td key={columns[column]} data-name={columns[column]}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
