/**
 * Looking through the posting index: every row is found by each of its keys, in the B-tree or in a part.
 * @module
 */
import type { Database } from "bun:sqlite";
import { prepareQuery } from "../sqlite.ts";
import { createFilterKeys, type FilterKeys } from "./filter-key.ts";
import { createPartReads, type PartInfo, type PartReads } from "./parts/part-read.ts";
import type { FindableRow } from "./postings.ts";
import { findableRow, type TableRow } from "./row-table.ts";
import { filterKeysOfRow } from "./stored-row.ts";

/** What was found: one line a fault, and the rows that were looked at. */
export type PostingFaults = Readonly<{ faults: readonly string[]; rows: number }>;

const rowsPerRead = 1_000;
/** Sealed rows of which every key is looked for in the parts: each costs a few reads a key and part. */
const sealedRowsChecked = 20_000;

/**
 * Checks that each row has its postings and that the B-tree has no others. Of sealed rows a sample is checked,
 * spread over all of them.
 *
 * @param checkpoint - Called every thousand rows; throws to end the check.
 */
export function checkFindable(db: Database, checkpoint: () => void): PostingFaults {
  const keys = keysOf(db);
  const parts = createPartReads(db);
  const infos = parts.list();
  const faults: string[] = [];
  const counts = prepareQuery<{ rows: number; unsealed: number }>(
    db,
    "SELECT (SELECT count(*) FROM items) AS rows, (SELECT count(*) FROM unsealed) AS unsealed",
  ).get() ?? { rows: 0, unsealed: 0 };
  const every = Math.max(1, Math.floor((counts.rows - counts.unsealed) / sealedRowsChecked));
  const has = prepareQuery<{ found: number }>(
    db,
    "SELECT count(*) AS found FROM postings WHERE key IN (SELECT value FROM json_each(?)) AND n = (? << 31) | ?",
  );
  let rows = 0;
  let expected = 0;
  for (const { row, isUnsealed } of eachRow(db, checkpoint)) {
    rows += 1;
    const filters = [...new Set(filterKeysOfRow(keys, row))];
    const wanted = isUnsealed ? [keys.id(row.id), ...filters] : [keys.id(row.id)];
    expected += wanted.length;
    const found = has.get(JSON.stringify(wanted), row.high, row.low)?.found;
    if (found !== wanted.length) faults.push(`a row has ${found} of ${wanted.length} postings: ${row.high}`);
    if (!isUnsealed && rows % every === 0 && !isInParts(parts, infos, keys, row))
      faults.push(`a row is found by no part: ${row.high}`);
  }
  const all = prepareQuery<{ n: number }>(db, "SELECT count(*) AS n FROM postings").get()?.n;
  if (all !== expected) faults.push(`there are ${all} postings, the rows have ${expected}`);
  return { faults, rows };
}

function* eachRow(
  db: Database,
  checkpoint: () => void,
): Generator<Readonly<{ row: FindableRow; isUnsealed: boolean }>> {
  const query = prepareQuery<TableRow & Readonly<{ unsealed: number }>>(
    db,
    `SELECT r.n >> 31 AS high, r.n & 0x7fffffff AS low, r.id, r.target, r.sig, r.parent, r.tags, r.ingested,
       coalesce(o.address, zeroblob(32)) AS address, r.n IN (SELECT n FROM unsealed) AS unsealed
     FROM items r LEFT JOIN owners o USING (owner) WHERE r.n > (? << 31) | ? ORDER BY r.n LIMIT ${rowsPerRead}`,
  );
  let last = { high: -1, low: 0 };
  for (;;) {
    checkpoint();
    const rows = query.all(last.high, last.low);
    for (const row of rows) yield { row: findableRow(row), isUnsealed: row.unsealed === 1 };
    const end = rows.at(-1);
    if (end === undefined) return;
    last = end;
  }
}

/** Whether some part has the row under all of its keys. */
function isInParts(parts: PartReads, infos: readonly PartInfo[], keys: FilterKeys, row: FindableRow): boolean {
  const marks = row.sig < 0 ? [keys.transaction()] : [];
  const groups = [...filterKeysOfRow(keys, row), ...marks].map((key) => [key]);
  const place = { high: row.high, low: row.low };
  const query = { order: "asc", first: place, last: place, groups, excluded: [] } as const;
  return infos.some((info) => parts.find(info, { ...query, checkpoint: () => undefined }).next().done === false);
}

function keysOf(db: Database): FilterKeys {
  const found = prepareQuery<{ value: Uint8Array }>(db, "SELECT value FROM meta WHERE name = 'filter_secret'").get();
  if (found === undefined) throw new Error("the index has no secret: its writer never opened it");
  return createFilterKeys(found.value);
}
