/**
 * Parses JSON bodies of the admin API. An invalid value throws the failure that the specification has for its endpoint.
 * The API reference shows the same fields.
 * Source: docs/reference/gateway.md#queueing; docs/reference/gateway.md#exports-and-pruning.
 * @module
 */
import { idFormat } from "../../arweave/id.ts";
import { Failure } from "../../failures.ts";
import type { BlockedData } from "../../gateway/administration/block-list-admin.ts";
import type { ExportOptions } from "../../gateway/administration/exports.ts";
import type { PruneOptions } from "../../gateway/administration/prune.ts";
import { isJsonArray, readJson } from "../../lib/json.ts";
import { booleanSchema, integerSchema, nullable, stringSchema } from "../../lib/value-schema.ts";
import type { BlockedPosition, BlockNote } from "../../store/block-list.ts";
import type { BundleRange } from "../../store/index/bundles/bundle-passes.ts";
import { bodyOf, type Fields, needed, optional } from "../body-fields.ts";
import { hashFormat } from "./parameter-formats.ts";
import { queryParameters } from "./parameters.ts";

/** Notes are for people. Characters. */
const noteLengthMax = 4_096;

/** A name is a label of a host. Characters. */
const nameLengthMax = 63;

/** Default number of heights that share the files of an export. */
const heightPartitionDefault = 1_000;

/** Default number of entries on one page of the block list. */
const pageDefault = 1_000;

const noteFormat = nullable(stringSchema({ maxLength: noteLengthMax }));
const note = {
  notes: optional(noteFormat, "malformed_input", null),
  source: optional(noteFormat, "malformed_input", null),
} as const;
const noteBody = bodyOf(note);
const data = {
  id: optional(nullable(idFormat), "missing_id_or_hash", null),
  hash: optional(nullable(hashFormat), "missing_id_or_hash", null),
} as const;
const name = { name: needed(stringSchema({ minLength: 1, maxLength: nameLengthMax }), "missing_name") } as const;
const bundle = {
  id: needed(idFormat, "missing_id"),
  bypassFilter: optional(booleanSchema, "invalid_bypass_filter", true),
} as const;

/** The bodies, as they are read and as the API reference shows them. */
export const adminBodies = {
  transaction: bodyOf({ id: bundle.id }),
  bundle: bodyOf(bundle),
  retriedBundle: bodyOf({ id: needed(stringSchema({ pattern: "^[0-9A-Za-z_-]{1,100}$" }), "missing_id") }),
  bundleRange: bodyOf({
    startHeight: needed(integerSchema(), "invalid_start_height"),
    endHeight: needed(integerSchema(), "invalid_end_height"),
    bypassFilter: optional(booleanSchema, "invalid_bypass_filter", false),
  }),
  blockedData: bodyOf({ ...data, ...note }),
  sparedData: bodyOf(data),
  blockedName: bodyOf({ ...name, ...note }),
  sparedName: bodyOf(name),
  export: bodyOf({
    outputDir: needed(stringSchema(), "export_rejected"),
    startHeight: needed(integerSchema(), "export_rejected"),
    endHeight: needed(integerSchema(), "export_rejected"),
    maxFileRows: needed(integerSchema(), "export_rejected"),
    heightPartitionSize: optional(integerSchema(1), "export_rejected", heightPartitionDefault),
    skipL1Transactions: optional(booleanSchema, "export_rejected", true),
    skipL1Tags: optional(booleanSchema, "export_rejected", true),
  }),
  pruning: bodyOf({
    indexedAtThreshold: needed(integerSchema(), "invalid_threshold"),
    startHeight: optional(integerSchema(), "invalid_start_height", 0),
    endHeight: optional(integerSchema(), "invalid_end_height", undefined),
  }),
} as const;

/** Reads content to block or unblock. @throws Failure `missing_id_or_hash`. */
export function readBlockedData(fields: Fields): BlockedData {
  const { id, hash } = adminBodies.sparedData.read(fields);
  if (id === null && hash === null) throw new Failure("missing_id_or_hash");
  return { id: id ?? undefined, hash: hash ?? undefined };
}

/** Reads a name; names of hosts know no capitals. @throws Failure `missing_name`. */
export function readName(fields: Fields): string {
  return adminBodies.sparedName.read(fields).name.toLowerCase();
}

/** Reads the notes and the source of a block. @throws Failure `malformed_input`. */
export function readNote(fields: Fields): BlockNote {
  const { source, notes } = noteBody.read(fields);
  return { ...(source === null ? {} : { source }), ...(notes === null ? {} : { notes }) };
}

/** Reads what to export, and where to. @throws Failure `export_rejected`. */
export function readExportOptions(fields: Fields): ExportOptions {
  const options = adminBodies.export.read(fields);
  if (options.startHeight > options.endHeight) throw new Failure("export_rejected", fields);
  return options;
}

/** Reads what to prune. @throws Failure `invalid_threshold`, `invalid_start_height`, `invalid_end_height`. */
export function readPruneOptions(fields: Fields): PruneOptions {
  const { indexedAtThreshold, startHeight, endHeight = Number.MAX_SAFE_INTEGER } = adminBodies.pruning.read(fields);
  if (endHeight < startHeight) throw new Failure("invalid_end_height", fields);
  return { indexedBefore: indexedAtThreshold, startHeight, endHeight };
}

/**
 * Reads which bundles to evaluate.
 *
 * @throws Failure `invalid_start_height`, `invalid_end_height`, `invalid_bypass_filter`.
 */
export function readBundleRange(fields: Fields): BundleRange {
  const range = adminBodies.bundleRange.read(fields);
  if (range.endHeight < range.startHeight) throw new Failure("invalid_end_height", fields);
  return range;
}

/** Reads the requested page of the block list. @throws Failure `malformed_input`. */
export function readPage(query: URLSearchParams): Readonly<{
  limit: number;
  after: BlockedPosition | undefined;
}> {
  const limit = query.get("limit") ?? String(pageDefault);
  if (!queryParameters.pageLimit.is(limit)) throw new Failure("malformed_input", { limit });
  const cursor = query.get("after");
  return { limit: Number(limit), after: cursor === null ? undefined : readCursor(cursor) };
}

/** Writes where in the list a page ended. */
export function writeCursor({ blockedAt, kind, value }: BlockedPosition): string {
  return Buffer.from(JSON.stringify([blockedAt, kind, value])).toString("base64url");
}

function readCursor(text: string): BlockedPosition {
  const parts = readJson(Buffer.from(text, "base64url").toString());
  const [blockedAt, kind, value] = isJsonArray(parts) ? parts : [];
  const isKind = kind === "id" || kind === "hash" || kind === "name";
  if (!isCount(blockedAt) || !isKind || typeof value !== "string")
    throw new Failure("malformed_input", { cursor: text });
  return { blockedAt, kind, value };
}

/** A whole number, 0 or more. */
function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
