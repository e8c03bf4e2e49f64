/**
 * The file of a manifest's index: pages of 4 KiB, each with a checksum; a head, then records ascending by digest.
 *
 * Readers use only pages with a valid checksum. A page with another checksum, or a file with another size than its
 * head states, is damaged, and the index is built again.
 * Source: docs/decisions/090-manifest-indexes.md.
 * @module
 */
import { type FileHandle, open } from "node:fs/promises";
import { type Id, idBytes, idFromBytes, idSize } from "../../arweave/id.ts";
import { keysOfPath, type ResolvedPath } from "../../arweave/manifest.ts";
import { pathDigestOf, pathDigestSize, saltSize } from "../../arweave/manifest-scan.ts";
import { compareBytes, equalBytes } from "../../lib/bytes.ts";

/** Fields of the head. */
export type IndexHead = Readonly<{
  /** Id of the manifest. */
  id: Id;
  /** When it was built, Unix milliseconds. */
  builtAt: number;
  salt: Uint8Array;
  /** Number of records. */
  count: number;
  /** Id of the empty path. */
  index: Id | undefined;
  fallback: Id | undefined;
  /** Why an unreadable manifest resolves no path; at most {@link reasonSizeMax} bytes. */
  unreadable: string | undefined;
}>;

/** Result of a look-up. */
export type IndexResult =
  | Readonly<{ kind: "found"; resolved: ResolvedPath | undefined; builtAt: number }>
  | Readonly<{ kind: "unreadable"; reason: string; builtAt: number }>
  /** The file is missing. */
  | Readonly<{ kind: "absent" }>
  | Readonly<{ kind: "damaged" }>;

/** A record: the digest of a path, and its id. Bytes. */
export const recordSize = pathDigestSize + idSize;

/** Size of a page, the unit of reading. Bytes. */
export const pageSize = 4_096;
const checksumSize = 8;
const recordsPerPage = Math.floor((pageSize - checksumSize) / recordSize);

/** Ends with the version of the format. */
const magic = Buffer.from("cairn manifest index 1\n");
const reasonSizeMax = 1_024;

/** Offsets of the fields of the head, after its checksum. Numbers are little-endian. */
const idAt = checksumSize + 32;
const builtAtAt = idAt + idSize;
const saltAt = builtAtAt + 8;
const countAt = saltAt + saltSize;
const flagsAt = countAt + 4;
const indexAt = flagsAt + 4;
const fallbackAt = indexAt + idSize;
const reasonSizeAt = fallbackAt + idSize;
const reasonAt = reasonSizeAt + 4;

const [hasIndex, hasFallback, isUnreadable] = [1, 2, 4];

/** The checksum of a page covers its position, so that no page can take the place of another. */
function checksumOf(page: Uint8Array, number: number, salt: Uint8Array): bigint {
  const seed = new DataView(salt.buffer, salt.byteOffset).getBigUint64(0, true);
  return Bun.hash.xxHash3(page.subarray(checksumSize), BigInt.asUintN(64, seed + BigInt(number)));
}

const headSeed = new Uint8Array(saltSize);

/** Number of pages of records. */
function pagesOf(count: number): number {
  return Math.ceil(count / recordsPerPage);
}

/** Size of a file with `count` records, bytes. */
export function indexSizeOf(count: number): number {
  return (1 + pagesOf(count)) * pageSize;
}

export function writeHead(head: IndexHead, page: Uint8Array): void {
  const view = new DataView(page.buffer, page.byteOffset, pageSize);
  page.fill(0, 0, pageSize);
  page.set(magic, checksumSize);
  page.set(idBytes(head.id), idAt);
  view.setBigUint64(builtAtAt, BigInt(Math.floor(head.builtAt)), true);
  page.set(head.salt, saltAt);
  view.setUint32(countAt, head.count, true);
  if (head.index !== undefined) page.set(idBytes(head.index), indexAt);
  if (head.fallback !== undefined) page.set(idBytes(head.fallback), fallbackAt);
  const reason = new TextEncoder().encode(head.unreadable ?? "").subarray(0, reasonSizeMax);
  view.setUint32(reasonSizeAt, reason.length, true);
  page.set(reason, reasonAt);
  const flags =
    (head.index === undefined ? 0 : hasIndex) |
    (head.fallback === undefined ? 0 : hasFallback) |
    (head.unreadable === undefined ? 0 : isUnreadable);
  view.setUint32(flagsAt, flags, true);
  view.setBigUint64(0, checksumOf(page.subarray(0, pageSize), 0, headSeed), true);
}

/** Writes records into consecutive pages. @param take - Receives each page; the buffer is reused after the call. */
export function writePages(records: Iterable<Uint8Array>, salt: Uint8Array, take: (page: Uint8Array) => void): void {
  const page = new Uint8Array(pageSize);
  const view = new DataView(page.buffer);
  let inPage = 0;
  let number = 1;
  const end = () => {
    page.fill(0, checksumSize + inPage * recordSize);
    view.setBigUint64(0, checksumOf(page, number, salt), true);
    take(page);
    inPage = 0;
    number += 1;
  };
  for (const record of records) {
    page.set(record, checksumSize + inPage * recordSize);
    inPage += 1;
    if (inPage === recordsPerPage) end();
  }
  if (inPage > 0) end();
}

/** Parses the head; `undefined` when it is damaged or belongs to another manifest. */
function readHead(page: Uint8Array, id: Id): IndexHead | undefined {
  const view = new DataView(page.buffer, page.byteOffset, pageSize);
  if (view.getBigUint64(0, true) !== checksumOf(page, 0, headSeed)) return undefined;
  if (!equalBytes(page.subarray(checksumSize, checksumSize + magic.length), magic)) return undefined;
  const idHere = idFromBytes(page.subarray(idAt, idAt + idSize));
  if (idHere !== id) return undefined;
  const flags = view.getUint32(flagsAt, true);
  const idUnder = (flag: number, at: number) =>
    (flags & flag) === 0 ? undefined : idFromBytes(page.subarray(at, at + idSize));
  const reason = page.subarray(reasonAt, reasonAt + view.getUint32(reasonSizeAt, true));
  return {
    id,
    builtAt: Number(view.getBigUint64(builtAtAt, true)),
    salt: page.slice(saltAt, saltAt + saltSize),
    count: view.getUint32(countAt, true),
    index: idUnder(hasIndex, indexAt),
    fallback: idUnder(hasFallback, fallbackAt),
    unreadable: (flags & isUnreadable) === 0 ? undefined : new TextDecoder().decode(reason),
  };
}

/**
 * Looks up a path in a file.
 *
 * @param id - Id of the manifest. @param path - As for `resolvePath`.
 * @throws Error from the system, unless the file is missing.
 */
export async function lookUpPath(file: string, id: Id, path: string): Promise<IndexResult> {
  let handle: FileHandle;
  try {
    handle = await open(file, "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return { kind: "absent" };
    throw error;
  }
  try {
    return await lookUp(handle, id, path);
  } finally {
    await handle.close();
  }
}

async function lookUp(handle: FileHandle, id: Id, path: string): Promise<IndexResult> {
  const page = new Uint8Array(pageSize); // the only one of this look-up
  const head = (await readPage(handle, 0, page)) ? readHead(page, id) : undefined;
  if (head === undefined) return { kind: "damaged" };
  const { builtAt, unreadable, fallback } = head;
  if (unreadable !== undefined) return { kind: "unreadable", reason: unreadable, builtAt };
  const found = (resolved: ResolvedPath | undefined): IndexResult => ({ kind: "found", resolved, builtAt });
  const keys = keysOfPath(path);
  if (keys.length === 0 && head.index !== undefined) return found({ id: head.index, fallback: false });
  for (const key of keys) {
    const target = await findRecord(handle, head, pathDigestOf(head.salt, key), page);
    if (target === "damaged") return { kind: "damaged" };
    if (target !== undefined) return found({ id: target, fallback: false });
  }
  return found(fallback === undefined ? undefined : { id: fallback, fallback: true });
}

/**
 * Interpolation search over pages. Digests are spread evenly, so each guess is near: a million paths take two page
 * reads. After `guessesMax` guesses, binary search bounds the number of reads.
 */
async function findRecord(
  handle: FileHandle,
  { count, salt }: IndexHead,
  digest: Uint8Array,
  page: Uint8Array,
): Promise<Id | undefined | "damaged"> {
  const pages = pagesOf(count);
  const pagesBetween = (lead: number) => Math.trunc(((leadOf(digest, 0) - lead) * pages) / 2 ** 32);
  let [low, high, guess] = [0, pages - 1, pagesBetween(0)];
  for (let looks = 0; low <= high; looks += 1) {
    const middle = looks < guessesMax ? Math.max(low, Math.min(high, guess)) : (low + high) >>> 1;
    if (!(await readPage(handle, middle + 1, page)) || !isIntact(page, middle + 1, salt)) return "damaged";
    const records = Math.min(recordsPerPage, count - middle * recordsPerPage);
    if (compareDigest(page, 0, digest) > 0) high = middle - 1;
    else if (compareDigest(page, records - 1, digest) < 0) low = middle + 1;
    else return recordIn(page, records, digest);
    guess = middle + pagesBetween(leadOf(page, checksumSize));
  }
  return undefined;
}

/** Guesses before binary search. */
const guessesMax = 6;

function recordIn(page: Uint8Array, records: number, digest: Uint8Array): Id | undefined {
  let low = 0;
  let high = records - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const side = compareDigest(page, middle, digest);
    if (side === 0) {
      const at = checksumSize + middle * recordSize + pathDigestSize;
      return idFromBytes(page.subarray(at, at + idSize));
    }
    if (side < 0) low = middle + 1;
    else high = middle - 1;
  }
  return undefined;
}

function leadOf(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(at);
}

/** Negative when the record's digest is smaller. */
function compareDigest(page: Uint8Array, record: number, digest: Uint8Array): number {
  const at = checksumSize + record * recordSize;
  return compareBytes(page.subarray(at, at + pathDigestSize), digest);
}

function isIntact(page: Uint8Array, number: number, salt: Uint8Array): boolean {
  return new DataView(page.buffer).getBigUint64(0, true) === checksumOf(page, number, salt);
}

/** Returns false when the file ends within the page. */
async function readPage(handle: FileHandle, number: number, page: Uint8Array): Promise<boolean> {
  for (let at = 0; at < pageSize; ) {
    const { bytesRead } = await handle.read(page, at, pageSize - at, number * pageSize + at);
    if (bytesRead === 0) return false;
    at += bytesRead;
  }
  return true;
}
