/**
 * The cached contiguous files of an ar-io-node: data of transactions, proven by its data root before it is taken.
 *
 * The cache of this gateway has the data of root transactions, because every item is a slice of it. Files of single
 * data items are therefore not taken: their bytes are in the file of their bundle, or are fetched with their proof.
 * Source: docs/reference/ar-io-node-folder.md.
 * @module
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { idFromBytes, idSize } from "../../arweave/id.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { equalBytes } from "../../lib/bytes.ts";
import { type AdoptedFiles, readAdopted } from "../extents/adopted-files.ts";
import type { RootSpec } from "../root-spec.ts";
import type { SourceDatabase } from "./source-database.ts";

export type ContentImport = Readonly<{
  linked: number;
  copied: number;
  /** Bytes of linked and copied files. */
  bytes: number;
  /** Files whose data is in the cache already. */
  present: number;
  /** Files that were not taken, by reason. */
  skipped: Readonly<Record<string, number>>;
}>;

export type ContentParts = Readonly<{
  /** `data.db`. */
  data: SourceDatabase;
  /** `core.db`. */
  core: SourceDatabase;
  /** The folder `contiguous/data`. */
  folder: string;
  files: AdoptedFiles;
  signal: AbortSignal;
  onProgress: (done: number, total: number) => void;
}>;

const reasons = {
  item: "not the data of a transaction: the bytes of data items are read from their bundle",
  invalid: "not a valid row of contiguous_data_ids",
  absent: "the file does not exist, or has another size",
  damaged: "the SHA-256 of the file is not the one that data.db states",
  unproven: "the file does not have the data root of its transaction",
  unsigned: "the transaction has no data root: its data is fetched and verified by the signature",
  full: "no space left: raise CACHE_BYTES_MAX, or free disk space, and run the command again",
} as const;

type Reason = keyof typeof reasons;

/** Rows read at a time. */
const rowsPerStep = 1_000;

type FileRow = Readonly<{ id: Uint8Array; hash: unknown; size: unknown }>;

/** Takes the files. A file that was taken before is not read again. */
export async function importContent(parts: ContentParts): Promise<ContentImport> {
  const { data, signal, onProgress } = parts;
  const counts = { linked: 0, copied: 0, bytes: 0, present: 0 };
  const skipped: Record<string, number> = {};
  if (data.columns("contiguous_data_ids").size === 0) return { ...counts, skipped };
  const total = data.query<{ n: number }>("SELECT count(*) AS n FROM contiguous_data_ids").get()?.n ?? 0;
  const rootOf = createRootLookup(parts.core);
  let done = 0;
  for (const row of fileRows(data)) {
    signal.throwIfAborted();
    const found = rootOf(row);
    const outcome = typeof found === "string" ? found : await takeFile(parts, found);
    if (outcome === "linked" || outcome === "copied" || outcome === "present") counts[outcome] += 1;
    else skipped[reasons[outcome]] = (skipped[reasons[outcome]] ?? 0) + 1;
    if (typeof found !== "string" && (outcome === "linked" || outcome === "copied")) counts.bytes += found.spec.size;
    done += 1;
    onProgress(done, total);
  }
  return { ...counts, skipped };
}

function* fileRows(data: SourceDatabase): Generator<FileRow> {
  const hash = data.column("contiguous_data_ids", ["contiguous_data_hash", "hash"]);
  const size = data.column("contiguous_data", ["data_size", "size"]);
  const page = data.query<FileRow>(
    `SELECT i.id AS id, i.${hash} AS hash, d.${size} AS size
     FROM contiguous_data_ids i JOIN contiguous_data d ON d.hash = i.${hash}
     WHERE i.id > ? ORDER BY i.id LIMIT ${rowsPerStep}`,
  );
  for (let after = new Uint8Array(); ; ) {
    const rows = page.all(after);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < rowsPerStep) return;
    after = new Uint8Array(last.id);
  }
}

/** A file that may have the data of a root. */
type Candidate = Readonly<{ spec: RootSpec; hash: Uint8Array }>;

/** Returns the root whose data a row names, or why it names none. */
function createRootLookup(core: SourceDatabase): (row: FileRow) => Candidate | Reason {
  const tables = ["stable_transactions", "new_transactions"].filter((table) => core.columns(table).size > 0);
  const queries = tables.map((table) =>
    core.query<{ dataRoot: unknown; size: unknown }>(
      `SELECT data_root AS dataRoot, data_size AS size FROM ${table} WHERE id = ?`,
    ),
  );
  return ({ id, hash, size }) => {
    if (!isDigest(id) || !isDigest(hash) || !isSize(size)) return "invalid";
    const found = queries.map((query) => query.get(id)).find((row) => row !== undefined);
    if (found === undefined) return "item";
    const { dataRoot } = found;
    if (dataRoot === null || (dataRoot instanceof Uint8Array && dataRoot.length === 0)) return "unsigned";
    if (!isDigest(dataRoot) || found.size !== size) return "unproven";
    return { spec: { id: idFromBytes(id), dataRoot: encodeBase64url(dataRoot), size }, hash };
  };
}

function isDigest(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array && value.length === idSize;
}

function isSize(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

async function takeFile(
  { folder, files, signal }: ContentParts,
  { spec, hash }: Candidate,
): Promise<Reason | "linked" | "copied" | "present"> {
  if (files.has(spec)) return "present";
  const path = fileOf(folder, hash);
  const stats = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false });
  if (path === undefined || stats === undefined || stats.size !== spec.size) return "absent";
  if (!files.hasSpaceFor(path, spec.size)) return "full";
  const read = await readAdopted(path, spec.size, signal);
  if (read === undefined) return "absent";
  if (!equalBytes(read.digest, hash)) return "damaged";
  if (!read.dataRoots.includes(spec.dataRoot)) return "unproven";
  return files.adopt(path, spec, read, Math.floor(stats.atimeMs));
}

/** The path of a file: its folder is named by the first four characters of its hash. */
function fileOf(folder: string, hash: Uint8Array): string | undefined {
  return [encodeBase64url(hash), hash.toHex()]
    .map((name) => join(folder, name.slice(0, 2), name.slice(2, 4), name))
    .find((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true);
}
