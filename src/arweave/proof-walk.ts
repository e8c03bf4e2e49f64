/**
 * Verifies the chunks of a proof against a data root, and the walk through bundles to a data item against the bytes of
 * those chunks.
 * @module
 */
import { equalBytes } from "../lib/bytes.ts";
import type { ByteSpan } from "../lib/range.ts";
import {
  bundleCountSize,
  bundleEntrySize,
  firstEntry,
  isBundleTags,
  readBundleCount,
  readBundleEntries,
} from "./bundle.ts";
import { checkChunk } from "./chunk.ts";
import { type ItemHeader, readItemHeader } from "./data-item.ts";
import type { Ruleset } from "./merkle.ts";
import type { Proof, ProofChunk, ProofItem, ProofSignature, ProofTransaction } from "./proof.ts";
import { malformed } from "./wire.ts";

/** The requested part of the content, in the root transaction's data. */
export type PlacedBytes = Readonly<{ start: number; bytes: Uint8Array }>;

/** Bytes of the root transaction's data that were proven under its root. */
export type KnownBytes = Readonly<{
  /** A copy of a span; `undefined` when a byte of it is not known. */
  read: (start: number, end: number) => Uint8Array | undefined;
  has: (span: ByteSpan) => boolean;
  /** The number of verified chunks, and the chunks with missing bytes. */
  count: number;
  withheld: readonly ByteSpan[];
}>;

/** The result of the walk. */
export type Walked = Readonly<{
  header: ItemHeader;
  /** Whether proven bytes contain every header of the walk. */
  isPlaced: boolean;
  /** Sentences about missing parts. */
  open: readonly string[];
  /** One for each step. */
  says: readonly string[];
}>;

type KnownChunk = Readonly<{ start: number; end: number; bytes: Uint8Array }>;

/** No bytes are known. */
export const nothingKnown = knownOf([], []);

/** The place of the requested part of the content, according to the proof; the walk verifies it. */
export function placedBytes({ items, range }: Proof, bytes: Uint8Array): PlacedBytes {
  return { start: (items.at(-1)?.dataStart ?? 0) + range.start, bytes };
}

/**
 * Verifies every chunk of a proof.
 *
 * @throws Failure `malformed_input` with `context.reason` at the first invalid chunk.
 */
export function checkChunks(
  chunks: readonly ProofChunk[],
  transaction: ProofTransaction,
  content: PlacedBytes,
  ruleset: Ruleset,
): KnownBytes {
  const known: KnownChunk[] = [];
  const withheld: ByteSpan[] = [];
  let last = 0;
  for (const chunk of chunks) {
    checkBounds(chunk, last, transaction);
    last = chunk.end;
    const bytes = chunk.bytes ?? bytesWithin(content, chunk);
    if (bytes === undefined) {
      withheld.push(chunk);
      continue;
    }
    checkOne(chunk, bytes, transaction, ruleset);
    if (!agrees(chunk.start, bytes, content))
      throw malformed(`${nameOf(chunk)} does not hold the bytes that were given`);
    known.push({ start: chunk.start, end: chunk.end, bytes });
  }
  return knownOf(known, withheld);
}

/**
 * Follows a proof from the transaction through every bundle to the item.
 *
 * @throws Failure `malformed_input` with `context.reason` at the first invalid step.
 */
export function walkItems(proof: Proof, transaction: ProofTransaction, known: KnownBytes): Walked {
  let parent = { id: transaction.id, start: 0, end: transaction.dataSize };
  let header: ItemHeader | undefined;
  let isPlaced = true;
  const open: string[] = [];
  const says: string[] = [];
  for (const item of proof.items) {
    if (header !== undefined && !isBundleTags(header.tags))
      throw malformed(`item ${header.id} is not a bundle by its tags`);
    if (item.parent !== parent.id || item.bundleStart !== parent.start)
      throw malformed(`item ${item.id} does not name the bundle ${parent.id} as its parent`);
    header = checkHeader(item, parent);
    says.push(`${describe(item)} of bundle ${parent.id}: item ${item.id}`);
    if (!isHeaderKnown(item, known)) isPlaced = false;
    const unshown = checkEntry(item, parent, known);
    if (unshown !== undefined) open.push(unshown);
    parent = { id: item.id, start: item.dataStart, end: item.end };
  }
  if (header === undefined) throw malformed("the proof does not lead to the item");
  if (header.id !== proof.id) throw malformed(`the walk ends at item ${header.id}`);
  if (parent.end - parent.start !== proof.size)
    throw malformed(`the item's payload has ${parent.end - parent.start} bytes, not ${proof.size}`);
  checkSignatureFields(header, proof.signature);
  return { header, isPlaced, open, says };
}

/** Reads the header of the item that a proof is for; `undefined` when it is missing or invalid. */
export function provenHeader({ items }: Proof): ItemHeader | undefined {
  const last = items.at(-1);
  const read = last === undefined ? undefined : readItemHeader(last.header, "lenient");
  return read?.kind === "header" ? read.header : undefined;
}

function checkBounds(chunk: ProofChunk, last: number, { dataSize, place }: ProofTransaction): void {
  const { start, end, absoluteEnd } = chunk;
  if (start < last || start === end || end > dataSize)
    throw malformed(`${nameOf(chunk)} does not follow the one before within the data`);
  if (place !== undefined && absoluteEnd !== place.start + BigInt(end))
    throw malformed(`${nameOf(chunk)} does not end at the absolute offset ${absoluteEnd}`);
}

function checkOne(
  chunk: ProofChunk,
  bytes: Uint8Array,
  { dataRoot, dataSize }: ProofTransaction,
  ruleset: Ruleset,
): void {
  const { start, end, dataPath } = chunk;
  const verdict = checkChunk({ dataRoot, dataSize, offset: start, dataPath, chunk: bytes, ruleset });
  if (verdict.kind === "rejected") throw malformed(`${nameOf(chunk)}: ${verdict.reason}`);
  if (verdict.start !== start || verdict.end !== end)
    throw malformed(`${nameOf(chunk)} is proven at ${verdict.start} to ${verdict.end}`);
}

/** The bytes of a chunk that is completely within the given content. */
function bytesWithin(content: PlacedBytes, { start, end }: ByteSpan): Uint8Array | undefined {
  if (start < content.start || end > content.start + content.bytes.length) return undefined;
  return content.bytes.subarray(start - content.start, end - content.start);
}

/** Whether a chunk and the given content are the same where they overlap. */
function agrees(start: number, bytes: Uint8Array, content: PlacedBytes): boolean {
  const from = Math.max(start, content.start);
  const to = Math.min(start + bytes.length, content.start + content.bytes.length);
  if (from >= to) return true;
  const given = content.bytes.subarray(from - content.start, to - content.start);
  return equalBytes(bytes.subarray(from - start, to - start), given);
}

/** @param chunks - Ascending, apart from each other. */
function knownOf(chunks: readonly KnownChunk[], withheld: readonly ByteSpan[]): KnownBytes {
  const coveredTo = (start: number): number => {
    let at = start;
    for (const chunk of chunks) if (chunk.start <= at && at < chunk.end) at = chunk.end;
    return at;
  };
  const has = ({ start, end }: ByteSpan): boolean => start >= end || coveredTo(start) >= end;
  return {
    has,
    read: (start, end) => {
      if (!has({ start, end })) return undefined;
      const bytes = new Uint8Array(end - start);
      for (const chunk of chunks) {
        if (chunk.start >= end || chunk.end <= start) continue;
        const from = Math.max(start, chunk.start);
        const part = chunk.bytes.subarray(from - chunk.start, Math.min(end, chunk.end) - chunk.start);
        bytes.set(part, from - start);
      }
      return bytes;
    },
    count: chunks.length,
    withheld,
  };
}

type Bundle = Readonly<{ id: string; start: number; end: number }>;

/** Reads an item's header, and compares it with the place in the proof. */
function checkHeader(item: ProofItem, bundle: Bundle): ItemHeader {
  const { start, dataStart, end, header } = item;
  if (start < bundle.start + bundleCountSize + bundleEntrySize || end > bundle.end)
    throw malformed(`item ${item.id} is not within its bundle`);
  const read = readItemHeader(header, "lenient", end - start);
  if (read.kind === "invalid") throw malformed(`item ${item.id}: ${read.reason}`);
  if (read.kind === "need" || read.header.headerSize !== header.length)
    throw malformed(`the header of item ${item.id} is not as long as it says`);
  if (dataStart !== start + header.length) throw malformed(`the payload of item ${item.id} begins elsewhere`);
  if (read.header.id !== item.id) throw malformed(`the signature shown is that of item ${read.header.id}`);
  return read.header;
}

/** Whether proven bytes contain the header; throws when they contain other bytes. */
function isHeaderKnown({ id, start, dataStart, header }: ProofItem, known: KnownBytes): boolean {
  const bytes = known.read(start, dataStart);
  if (bytes === undefined) return false;
  if (!equalBytes(bytes, header)) throw malformed(`the header of item ${id} differs from the data`);
  return true;
}

/** Compares the bundle's index with the item. @returns A sentence about the missing parts, if any. */
function checkEntry(item: ProofItem, bundle: Bundle, known: KnownBytes): string | undefined {
  const { entry, id, start, end } = item;
  if (entry === undefined) return `the index of bundle ${bundle.id} is not shown: only that it contains item ${id}`;
  if (entry.index >= entry.count) throw malformed(`the bundle has no entry ${entry.index}`);
  const indexEnd = bundle.start + bundleCountSize + (entry.index + 1) * bundleEntrySize;
  if (indexEnd > start) throw malformed(`item ${id} begins within the index of its bundle`);
  const index = known.read(bundle.start, indexEnd);
  if (index === undefined) return `the index of bundle ${bundle.id} is in chunks that are not shown whole`;
  const size = bundle.end - bundle.start;
  const count = readBundleCount(index, size);
  if (count.kind === "invalid") throw malformed(`bundle ${bundle.id}: ${count.reason}`);
  if (count.count !== entry.count) throw malformed(`bundle ${bundle.id} has ${count.count} entries`);
  const first = firstEntry(count.count);
  const { entries, fault } = readBundleEntries(index.subarray(bundleCountSize), first, count.count, size);
  const found = entries[entry.index];
  if (found === undefined) throw malformed(`bundle ${bundle.id}: ${fault ?? "the entry is not there"}`);
  const isHere = found.id === id && bundle.start + found.offset === start && found.size === end - start;
  if (!isHere) throw malformed(`entry ${entry.index} of bundle ${bundle.id} names something else`);
  return undefined;
}

/** The separate signature fields must equal those of the header. */
function checkSignatureFields(header: ItemHeader, shown: ProofSignature | undefined): void {
  if (shown === undefined) throw malformed("the signature's fields are not shown");
  const isSame =
    shown.type === header.signatureType &&
    equalBytes(shown.signature, header.signature) &&
    equalBytes(shown.owner, header.owner) &&
    equalBytes(shown.target, header.targetBytes) &&
    equalBytes(shown.anchor, header.anchorBytes) &&
    equalBytes(shown.tags, header.rawTags);
  if (!isSame) throw malformed("the signature's fields are not those of the header");
}

function nameOf({ start, end }: ByteSpan): string {
  return `chunk ${start} to ${end}`;
}

function describe({ entry, start, end }: ProofItem): string {
  const place = `bytes ${start} to ${end}`;
  return entry === undefined ? place : `entry ${entry.index} (${place})`;
}
