/**
 * Writes the rows of a batch to `items`, a page of the table at a time.
 *
 * Items of bundles come when the transactions of later blocks are already there, so their rows are inserted in the
 * middle of the table. When a page is full, SQLite then shares its rows with the pages beside it, and a tenth of each
 * stays free. It does not share a row that is as large as a page. So the rows that fill a page are counted, and the
 * last of them is inserted first, with tags as large as a page: it gets a page of its own. Then it is given its own
 * tags, which moves nothing, and the others are inserted before it, into its page.
 * Source: https://www.sqlite.org/fileformat2.html#b_tree_pages; docs/decisions/107-full-pages.md.
 * @module
 */
import type { Database } from "bun:sqlite";
import { assert } from "../../../lib/assert.ts";
import { pageBytes, prepare, prepareQuery } from "../../sqlite.ts";
import { placeSql } from "../place-sql.ts";
import type { Owners } from "./owner-numbers.ts";
import { type BatchRow, ownerOf, type RowBatch } from "./row-batch.ts";
import { rowColumns } from "./stored-row.ts";

/** Writes rows of one batch. */
export type RowWriting = Readonly<{
  /** Adds a row to `items`, above all that were added before. The table has it at the latest after `end`. */
  item: (row: BatchRow) => void;
  /** @returns 0 when the place has a row already, else 1. */
  duplicate: (row: BatchRow) => number;
  end: () => void;
}>;

/** Returns a function that prepares the writing of a batch. @param ingested - Unix seconds. */
export function createRowWriting(db: Database, owners: Owners): (batch: RowBatch, ingested: number) => RowWriting {
  const values = `(${rowColumns}) VALUES (${placeSql()}, ${"?, ".repeat(12)}?)`;
  const insert = prepare(db, `INSERT INTO items ${values}`);
  const insertDuplicate = prepare(db, `INSERT OR IGNORE INTO duplicates ${values}`);
  const setTags = prepare(db, `UPDATE items SET tags = ? WHERE n = ${placeSql()}`);
  const findBetween = prepareQuery<{ found: 1 }>(
    db,
    `SELECT 1 AS found FROM items WHERE n > (${placeSql()}) AND n < (${placeSql()}) LIMIT 1`,
  );

  return (batch, ingested) => {
    const numberOf = ownersOf(batch, owners);
    const run = (statement: typeof insert, row: BatchRow, tags = row.tags): number =>
      statement.run(
        row.high,
        row.low,
        row.fine,
        row.id,
        numberOf(row.owner),
        row.target,
        row.anchor,
        row.head,
        row.size,
        row.sig,
        row.parent,
        tags,
        row.digest,
        ingested,
        row.trusted,
      ).changes;
    const insertAll = (rows: readonly BatchRow[]): void => {
      for (const row of rows) run(insert, row);
    };
    const insertPage = (rows: readonly BatchRow[]): void => {
      const [first, last] = [rows[0], rows.at(-1)];
      assert(first !== undefined && last !== undefined, "a page has rows");
      const other = findBetween.get(first.high, first.low, last.high, last.low);
      if (first === last || other !== undefined) {
        insertAll(rows);
        return;
      }
      run(insert, last, pageOfTags);
      setTags.run(last.tags, last.high, last.low);
      insertAll(rows.slice(0, -1));
    };
    let page: BatchRow[] = [];
    let bytes = 0;

    return {
      item: (row) => {
        const rowBytes = bytesInPage(row, numberOf(row.owner), ingested);
        if (page.length > 0 && bytes + rowBytes > pageCapacity) {
          insertPage(page);
          page = [];
          bytes = 0;
        }
        page.push(row);
        bytes += rowBytes;
      },
      duplicate: (row) => run(insertDuplicate, row),
      end: () => {
        insertAll(page);
        page = [];
        bytes = 0;
      },
    };
  };
}

/** Bytes of a leaf page without its header. */
const pageCapacity = pageBytes - 8;
/** Bytes of the longest record that is in its page as a whole; a page has at least the first ones of a longer one. */
const wholeRecordMax = pageBytes - 35;
const firstOfRecordMin = Math.floor(((pageBytes - 12) * 32) / 255) - 23;
/** With the other columns, of at most 210 bytes unless an anchor is a long text, a whole record. */
const pageOfTags = new Uint8Array(wholeRecordMax - 210);

/** Bytes that a row takes in a page: its record, two sizes before it (the place has nine bytes) and its pointer. */
function bytesInPage(row: BatchRow, owner: number, ingested: number): number {
  const integers =
    integerBytes(row.fine) +
    integerBytes(owner) +
    integerBytes(row.head) +
    integerBytes(row.size) +
    integerBytes(row.sig) +
    integerBytes(row.parent ?? 0) +
    integerBytes(ingested) +
    integerBytes(row.trusted);
  const values =
    valueBytes(row.id) +
    valueBytes(row.target) +
    valueBytes(row.anchor) +
    valueBytes(row.tags) +
    valueBytes(row.digest);
  // A record begins with the size of its header and the types of its 14 columns.
  const record = 15 + integers + values;
  const inPage = record <= wholeRecordMax ? record : firstOfRecordBytes(record);
  return inPage + (record > 127 ? 2 : 1) + 9 + 2;
}

/** Bytes of a longer record in its page, with the number of the page that has the others. */
function firstOfRecordBytes(record: number): number {
  const first = firstOfRecordMin + ((record - firstOfRecordMin) % (pageBytes - 4));
  return (first > wholeRecordMax ? firstOfRecordMin : first) + 4;
}

/** Bytes of a value, and the second byte of its type when it has more than 57. */
function valueBytes(value: string | Uint8Array | null): number {
  const length = typeof value === "string" ? Buffer.byteLength(value) : (value?.length ?? 0);
  return length > 57 ? length + 1 : length;
}

function integerBytes(value: number): number {
  if (value === 0 || value === 1) return 0;
  const size = Math.abs(value);
  if (size < 2 ** 7) return 1;
  if (size < 2 ** 15) return 2;
  if (size < 2 ** 23) return 3;
  if (size < 2 ** 31) return 4;
  return size < 2 ** 47 ? 6 : 8;
}

/** The numbers of a batch's owners, each found when it is first needed. */
function ownersOf(batch: RowBatch, owners: Owners): (owner: number) => number {
  const numbers: (number | undefined)[] = [];
  return (owner) => {
    const number = numbers[owner] ?? owners.numberOf(ownerOf(batch, owner));
    numbers[owner] = number;
    return number;
  };
}
