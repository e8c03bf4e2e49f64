/**
 * What administration is asked, read from JSON at the edge: each reader gives values that are right, or fails with the
 * message that the specification has for its endpoint.
 * Source: specification 4A, part 7; contract.md §1.
 * @module
 */
import { type Id, isId } from "../../arweave/id.ts";
import { Failure, type FailureCode } from "../../failures.ts";
import type { ExportWish } from "../../gateway/administration/exports.ts";
import type { PruneWish } from "../../gateway/administration/prune.ts";
import type { RefusedData } from "../../gateway/administration/refusals.ts";
import { type BlockedPosition, type BlockNote, isContentHash } from "../../store/moderation.ts";
import { readBody } from "../body.ts";
import { limits } from "../limits.ts";

/** Fields of a JSON object, none of them looked at yet. */
export type Fields = Readonly<Record<string, unknown>>;

/** Notes are for people. Characters. */
const noteLengthMax = 4_096;

/** A name is a label of a host. Characters. */
const nameLengthMax = 63;

/** Heights that share the files of an export, unless told. Source: reference/gateway.md §1.6. */
const heightPartitionDefault = 1_000;

/** Refusals on one page of the list, and unless told. */
const pageMax = 10_000;
const pageDefault = 1_000;

/**
 * Reads a body as a JSON object; what is no object has no fields.
 *
 * @throws Failure `too_large`, `malformed_json`.
 */
export async function readFields(request: Request): Promise<Fields> {
  const bytes = await readBody(request, limits.adminBytesMax);
  if (bytes.byteLength === 0) return {};
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new Failure("malformed_json", { size: bytes.byteLength }, error);
  }
  return typeof body === "object" && body !== null && !Array.isArray(body) ? { ...body } : {};
}

/** Reads the id of a transaction. @throws Failure `missing_id`. */
export function readTransactionId({ id }: Fields): Id {
  return idOr(id, "missing_id");
}

/** Reads a bundle that is to be queued. @throws Failure `missing_id`, `invalid_bypass_filter`. */
export function readBundleWish(fields: Fields): Readonly<{ id: Id; bypassFilter: boolean }> {
  const id = readTransactionId(fields);
  const { bypassFilter = true } = fields;
  if (typeof bypassFilter !== "boolean") throw new Failure("invalid_bypass_filter");
  return { id, bypassFilter };
}

/** Reads the id in the path of a bundle's status. @throws Failure `invalid_bundle_id`. */
export function readBundleId(text: string | undefined): Id {
  return idOr(text, "invalid_bundle_id");
}

/** Reads content that is to be refused, or not any more. @throws Failure `missing_id_or_hash`. */
export function readRefusedData({ id, hash }: Fields): RefusedData {
  if (isAbsent(id) && isAbsent(hash)) throw new Failure("missing_id_or_hash");
  const isHash = isAbsent(hash) || (typeof hash === "string" && isContentHash(hash));
  if (!isHash) throw new Failure("missing_id_or_hash", { hash });
  return {
    id: isAbsent(id) ? undefined : idOr(id, "missing_id_or_hash"),
    hash: typeof hash === "string" ? hash : undefined,
  };
}

/** Reads a name; names of hosts know no capitals. @throws Failure `missing_name`. */
export function readName({ name }: Fields): string {
  if (typeof name !== "string" || name === "" || name.length > nameLengthMax)
    throw new Failure("missing_name", { name });
  return name.toLowerCase();
}

/** Reads what is said beside a refusal. @throws Failure `malformed_input`. */
export function readNote({ source, notes }: Fields): BlockNote {
  return { ...noteOf("source", source), ...noteOf("notes", notes) };
}

/** Reads what to export, and where to. @throws Failure `export_refused`. */
export function readExportWish(fields: Fields): ExportWish {
  const { outputDir, startHeight, endHeight, maxFileRows } = fields;
  const {
    heightPartitionSize = heightPartitionDefault,
    skipL1Transactions = true,
    skipL1Tags = true,
  } = fields;
  const isWhole = isCount(startHeight) && isCount(endHeight) && isCount(maxFileRows);
  const isPartition = isCount(heightPartitionSize) && heightPartitionSize > 0;
  if (typeof outputDir !== "string" || !isWhole || !isPartition) throw new Failure("export_refused", fields);
  if (typeof skipL1Transactions !== "boolean" || typeof skipL1Tags !== "boolean" || startHeight > endHeight)
    throw new Failure("export_refused", fields);
  return {
    outputDir,
    startHeight,
    endHeight,
    maxFileRows,
    heightPartitionSize,
    skipL1Transactions,
    skipL1Tags,
  };
}

/** Reads what to prune. @throws Failure `invalid_threshold`, `invalid_start_height`, `invalid_end_height`. */
export function readPruneWish(fields: Fields): PruneWish {
  const { indexedAtThreshold, startHeight = 0, endHeight = Number.MAX_SAFE_INTEGER } = fields;
  if (!isCount(indexedAtThreshold)) throw new Failure("invalid_threshold", fields);
  if (!isCount(startHeight)) throw new Failure("invalid_start_height", fields);
  if (!isCount(endHeight) || endHeight < startHeight) throw new Failure("invalid_end_height", fields);
  return { indexedBefore: indexedAtThreshold, startHeight, endHeight };
}

/** Reads which page of the list of refusals is wanted. @throws Failure `malformed_input`. */
export function readPage(query: URLSearchParams): Readonly<{
  limit: number;
  after: BlockedPosition | undefined;
}> {
  const limit = Number(query.get("limit") ?? pageDefault);
  if (!isCount(limit) || limit < 1 || limit > pageMax) throw new Failure("malformed_input", { limit });
  const cursor = query.get("after");
  return { limit, after: cursor === null ? undefined : readCursor(cursor) };
}

/** Writes where in the list a page ended. */
export function writeCursor({ blockedAt, kind, value }: BlockedPosition): string {
  return Buffer.from(JSON.stringify([blockedAt, kind, value])).toString("base64url");
}

function readCursor(text: string): BlockedPosition {
  const [blockedAt, kind, value]: unknown[] = cursorParts(text);
  const isKind = kind === "id" || kind === "hash" || kind === "name";
  if (!isCount(blockedAt) || !isKind || typeof value !== "string")
    throw new Failure("malformed_input", { cursor: text });
  return { blockedAt, kind, value };
}

function cursorParts(text: string): unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, "base64url").toString());
    return Array.isArray(parts) ? parts : [];
  } catch {
    return []; // it is no cursor, as the caller says
  }
}

function idOr(value: unknown, otherwise: FailureCode): Id {
  if (typeof value !== "string" || !isId(value)) throw new Failure(otherwise, { id: value });
  return value;
}

function noteOf<Name extends "source" | "notes">(name: Name, value: unknown): { [name in Name]?: string } {
  if (isAbsent(value)) return {};
  if (typeof value !== "string" || value.length > noteLengthMax)
    throw new Failure("malformed_input", { name });
  const note: { [name in Name]?: string } = {};
  note[name] = value;
  return note;
}

function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

/** A whole number, 0 or more. */
function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
