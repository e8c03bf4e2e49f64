/**
 * The block list of an ar-io-node, with its sources, notes and times.
 * @module
 */
import { idSize } from "../../arweave/id.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { type BlockNote, openBlockList } from "../block-list.ts";
import type { SourceDatabase } from "./source-database.ts";

/** Entries of each kind. */
export type BlockListImport = Readonly<{
  ids: number;
  hashes: number;
  names: number;
  /** Entries that this gateway had already; they stay unchanged. */
  present: number;
  /** Entries that are not valid: an id or a hash without 32 bytes, an empty name. */
  invalid: number;
}>;

type EntryRow = Readonly<{
  row: number;
  value: unknown;
  source: unknown;
  notes: unknown;
  blockedAt: unknown;
}>;

/** Entries read at a time. */
const entriesPerStep = 1_000;

/** Longer texts are shortened: they are shown in a list only. Characters. */
const noteLengthMax = 1_000;

const kinds = {
  id: { table: "blocked_ids", column: "id", count: "ids" },
  hash: { table: "blocked_hashes", column: "hash", count: "hashes" },
  name: { table: "blocked_names", column: "name", count: "names" },
} as const;

type Kind = keyof typeof kinds;

/**
 * Adds the entries of `moderation.db` to a block list. Each entry is synced on its own.
 *
 * @param path - The block list of this gateway.
 */
export function importBlockList(source: SourceDatabase, path: string): BlockListImport {
  let blockedAt = 0;
  const list = openBlockList(path, () => blockedAt);
  const counts = { ids: 0, hashes: 0, names: 0, present: 0, invalid: 0 };
  try {
    for (const kind of ["id", "hash", "name"] as const) {
      for (const entry of entriesOf(source, kind)) {
        const value = blockedValue(kind, entry.value);
        if (value === undefined) counts.invalid += 1;
        else if (list.isBlocked(kind, value)) counts.present += 1;
        else {
          blockedAt = timeOf(entry.blockedAt);
          list.block(kind, value, noteOf(entry));
          counts[kinds[kind].count] += 1;
        }
      }
    }
    return counts;
  } finally {
    list.close();
  }
}

function* entriesOf(source: SourceDatabase, kind: Kind): Generator<EntryRow> {
  const { table, column } = kinds[kind];
  const present = source.columns(table);
  if (present.size === 0) return;
  const value = source.column(table, [column]);
  const optional = (name: string) => (present.has(name) ? `b.${name}` : "NULL");
  const hasSources = present.has("block_source_id") && source.columns("block_sources").has("name");
  const page = source.query<EntryRow>(
    `SELECT b.rowid AS row, b.${value} AS value, ${hasSources ? "s.name" : "NULL"} AS source,
       ${optional("notes")} AS notes, ${optional("blocked_at")} AS blockedAt
     FROM ${table} b ${hasSources ? "LEFT JOIN block_sources s ON s.id = b.block_source_id" : ""}
     WHERE b.rowid > ? ORDER BY b.rowid LIMIT ${entriesPerStep}`,
  );
  for (let after = 0; ; ) {
    const rows = page.all(after);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < entriesPerStep) return;
    after = last.row;
  }
}

/** The value as this gateway writes it; undefined when it is not valid. */
function blockedValue(kind: Kind, value: unknown): string | undefined {
  if (kind === "name") return typeof value === "string" && value !== "" ? value : undefined;
  const bytes = typeof value === "string" ? decodeBase64url(value) : value;
  return bytes instanceof Uint8Array && bytes.length === idSize ? encodeBase64url(bytes) : undefined;
}

function noteOf({ source, notes }: EntryRow): BlockNote {
  const note: { source?: string; notes?: string } = {};
  if (typeof source === "string" && source !== "") note.source = source.slice(0, noteLengthMax);
  if (typeof notes === "string" && notes !== "") note.notes = notes.slice(0, noteLengthMax);
  return note;
}

/** Unix milliseconds of a time in seconds; 0 for a text or an absent time. */
function timeOf(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value * 1_000 : 0;
}
