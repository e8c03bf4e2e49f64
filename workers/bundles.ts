/**
 * Thread entry: creates bundles. Reads the items once to compare and hash them, signs the transaction, and later reads
 * them once more to return the chunks with their proofs.
 * Source: docs/reference/upload.md#from-an-item-to-the-chain; docs/reference/node-api.md#posting-chunks.
 * @module
 */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { MessagePort } from "node:worker_threads";
import { writeBundleHeader } from "../src/arweave/bundle.ts";
import { createItemHash, readItemHeader, verifyItem } from "../src/arweave/data-item.ts";
import type { Id } from "../src/arweave/id.ts";
import {
  buildTree,
  type ChunkSpan,
  chunkSize,
  chunkSpans,
  createDataRoot,
  type DataRootHash,
  type MerkleTree,
} from "../src/arweave/merkle.ts";
import { signTransaction } from "../src/arweave/transaction-sign.ts";
import { readWallet } from "../src/arweave/wallet.ts";
import { Failure } from "../src/failures.ts";
import { assert } from "../src/lib/assert.ts";
import { decodeBase64url, encodeBase64url, encodedSize } from "../src/lib/base64url.ts";
import { isJsonObject, readJson } from "../src/lib/json.ts";
import { replaceFile } from "../src/store/durable-file.ts";
import type { PendingRow } from "../src/store/index/index-types.ts";
import {
  type BundleLayout,
  layoutFolder,
  readLayout,
  runsOf,
  runsWithin,
  writeLayout,
} from "../src/store/uploads/bundle-layout.ts";
import { type ItemReader, openItemReader, pieceBytesMax } from "../src/store/uploads/item-reader.ts";
import { sendParcel } from "../src/threads/parcel.ts";
import { ping } from "../src/threads/ping.ts";

export { ping };

/** An item of a bundle, and the place of its bytes. */
export type BundleItem = Readonly<{
  id: string;
  /** Below the folder of uploads. */
  file: string;
  offset: number;
  size: number;
  headerSize: number;
  /** SHA-256 of the payload, base64url: passing text to a thread takes a quarter of the time of arrays. */
  digest: string;
}>;

/** Files could not be read, for a reason other than their bytes. The caller tries again. */
export type FilesFault = Readonly<{ kind: "fault"; reason: string }>;

/** Computes the layout of a planned bundle: reads, compares and hashes each item once. */
export type LayoutJob = Readonly<{ folder: string; bundleId: string; items: readonly BundleItem[] }>;

export type LayoutResult =
  | LayoutSummary
  /** Items whose bytes have changed; the others are valid. */
  | Readonly<{ kind: "poisoned"; items: readonly Readonly<{ id: string; reason: string }>[] }>
  | FilesFault;

/** The data root of a stored layout. */
export type LayoutSummary = Readonly<{
  kind: "layout";
  /** base64url. */
  dataRoot: string;
  /** Of the transaction's data. Bytes. */
  dataSize: number;
}>;

/** The fields of a bundle's transaction. */
export type SignBundleJob = Readonly<{
  walletFile: string;
  /** base64url. */
  anchor: string;
  /** Winston. */
  reward: bigint;
  tags: readonly Readonly<{ name: string; value: string }>[];
  /** base64url. */
  dataRoot: string;
  dataSize: number;
}>;

/** A signed transaction, and its JSON without data. */
export type SignBundleResult = Readonly<{ transactionId: string; text: string }>;

/** A run of chunks of a bundle with a layout. */
export type BundleChunksJob = Readonly<{
  folder: string;
  bundleId: string;
  /** Of its transaction, base64url. */
  dataRoot: string;
  /** Index among the posted chunks, which exclude the empty one at the end. */
  first: number;
  count: number;
  /** Receives the chunks as JSON bodies (threads/parcel.ts). */
  port: MessagePort;
}>;

export type BundleChunksResult =
  | Readonly<{ kind: "chunks" }>
  /** No layout with this data root is stored. */
  | Readonly<{ kind: "no-layout" }>
  | FilesFault;

/** Items to read and verify again for the index. */
export type ReadItemsJob = Readonly<{ folder: string; items: readonly BundleItem[] }>;

/** Rows of the readable and unchanged items. */
export type ReadItemsResult = Readonly<{ rows: readonly PendingRow[] }>;

const hashSize = 32;

/** A layout in memory, with its tree: 1 MB for 10,000 items, and 10 ms for 2 GiB. */
type LoadedLayout = Readonly<{
  layout: BundleLayout;
  tree: MerkleTree;
  dataRoot: string;
  spans: readonly ChunkSpan[];
}>;

/** Most loaded layouts: few bundles are seeded at once. */
const loadedLayoutsMax = 4;
const loadedLayouts = new Map<string, LoadedLayout>();

/** Computes a bundle's layout: compares every item with its digest, and stores the layout for seeding. */
export function layoutBundle({ folder, bundleId, items }: LayoutJob): LayoutResult {
  const header = writeBundleHeader(items.map(({ id, size }) => ({ id: id as Id, size })));
  const dataSize = items.reduce((sum, { size }) => sum + size, header.length);
  const reader = openItemReader(folder);
  try {
    const root = createDataRoot(dataSize, "halved");
    root.update(header);
    const poisoned = findPoisoned(reader, items, root);
    if (poisoned.length > 0) return readAgain(reader, items, poisoned);
    const tree = root.finish();
    const layout = { header, runs: runsOf(items, header.length), dataSize, hashes: hashesOf(tree) };
    storeLayout(folder, bundleId, layout);
    return { kind: "layout", dataRoot: encodeBase64url(tree.root), dataSize };
  } catch (error) {
    return faultOf(error);
  } finally {
    reader.close();
  }
}

/** Signs the transaction of a bundle. */
export function signBundle(job: SignBundleJob): SignBundleResult {
  const { walletFile, anchor, reward, tags, dataSize } = job;
  const jwk = readJson(readFileSync(walletFile, "utf8"));
  if (!isJsonObject(jwk)) throw new Failure("malformed_input", { reason: "the wallet's file is not a JSON object" });
  const dataRoot = decodeBase64url(job.dataRoot);
  assert(dataRoot !== undefined, "a data root is base64url");
  const unsigned = { format: 2, lastTx: anchor, reward, tags, stated: { dataSize, dataRoot } } as const;
  const signed = signTransaction(unsigned, readWallet(jwk));
  return { transactionId: signed.id, text: signed.text };
}

/** Creates the bodies of `POST /chunk` for a run of chunks. */
export function bundleChunks(job: BundleChunksJob): BundleChunksResult {
  const { folder, bundleId, dataRoot, first, count, port } = job;
  const found = loadLayout(folder, bundleId);
  if (found === undefined || found.dataRoot !== dataRoot) return { kind: "no-layout" };
  const reader = openItemReader(folder);
  try {
    const spans = found.spans.slice(first, first + count);
    const bodies = spans.map((span, index) => {
      const chunk = bytesOf(reader, found.layout, span);
      return bodyOf(found, span, encodeBase64url(found.tree.path(first + index)), chunk);
    });
    sendParcel(port, bodies);
    return { kind: "chunks" };
  } catch (error) {
    return faultOf(error);
  } finally {
    reader.close();
  }
}

/** Reads and verifies items again, for an index without them. */
export function readItems({ folder, items }: ReadItemsJob): ReadItemsResult {
  const reader = openItemReader(folder);
  try {
    return { rows: items.flatMap((item) => readableItem(reader, item) ?? []) };
  } finally {
    reader.close();
  }
}

/** A changed item, and the reason. */
type Poisoned = Readonly<{ id: string; reason: string }>;

/** Reads all items in order. After the first changed item the root is incomplete. */
function findPoisoned(reader: ItemReader, items: readonly BundleItem[], root: DataRootHash): Poisoned[] {
  const poisoned: Poisoned[] = [];
  for (const item of items) {
    const reason = walkItem(reader, item, poisoned.length === 0 ? root.update : ignore);
    if (reason !== undefined) poisoned.push({ id: item.id, reason });
  }
  return poisoned;
}

/** Reads poisoned items again, so that a single wrong read does not fail an upload. */
function readAgain(reader: ItemReader, items: readonly BundleItem[], poisoned: readonly Poisoned[]): LayoutResult {
  const ids = new Set(poisoned.map(({ id }) => id));
  reader.close();
  const isWell = items.some((item) => ids.has(item.id) && walkItem(reader, item, ignore) === undefined);
  if (isWell) return { kind: "fault", reason: "the disk gives different bytes at different times" };
  return { kind: "poisoned", items: poisoned };
}

function ignore(): void {
  // These bytes are only compared.
}

/** Reads an item's bytes. @returns Why it has changed, if so. @throws Errors that do not concern its bytes. */
function walkItem(
  reader: ItemReader,
  { file, offset, size, headerSize, digest }: BundleItem,
  take: (piece: Uint8Array) => void,
): string | undefined {
  const hasher = new Bun.SHA256();
  for (let at = 0; at < size; ) {
    const wanted = Math.min(pieceBytesMax, size - at);
    const piece = readPiece(reader, file, offset + at, wanted);
    if (piece === undefined) return "its file is not there";
    if (piece.length < wanted) return "its file is cut short";
    take(piece);
    if (at + piece.length > headerSize) hasher.update(piece.subarray(Math.max(0, headerSize - at)));
    at += piece.length;
  }
  return hasher.digest("base64url") === digest ? undefined : "its bytes have changed on the disk";
}

/** @returns `undefined` when the file is not there. */
function readPiece(reader: ItemReader, file: string, offset: number, size: number): Uint8Array | undefined {
  try {
    return reader.read(file, offset, size);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** @returns `undefined` for an unreadable or changed item; its bundle reports it. */
function readableItem(reader: ItemReader, item: BundleItem): PendingRow | undefined {
  try {
    return readItem(reader, item);
  } catch (error) {
    // A file that the disk cannot read must not prevent the announcement of the other items.
    if (error instanceof Error && "syscall" in error) return undefined;
    throw error;
  }
}

/** @returns `undefined` for a missing or changed item. */
function readItem(reader: ItemReader, { file, offset, size, headerSize }: BundleItem): PendingRow | undefined {
  const begun = readPiece(reader, file, offset, Math.min(headerSize, pieceBytesMax));
  const read = begun === undefined ? undefined : readItemHeader(begun.slice(), "strict", size);
  if (read?.kind !== "header") return undefined;
  const hash = createItemHash(read.header, size - headerSize);
  for (let at = headerSize; at < size; ) {
    const piece = readPiece(reader, file, offset + at, Math.min(pieceBytesMax, size - at));
    if (piece === undefined || piece.length === 0) return undefined;
    hash.update(piece);
    at += piece.length;
  }
  const { message, digest } = hash.finish();
  if (!verifyItem(read.header, message).valid) return undefined;
  const { id, signatureType, signature, owner, ownerAddress, target, anchor, tags } = read.header;
  const named = { kind: "item", id, signatureType, owner, ownerAddress, target, anchor, tags } as const;
  return { ...named, headerSize, size: size - headerSize, digest, verified: true, signature };
}

/** The buffer of the current chunk. */
const chunkScratch = new Uint8Array(chunkSize);

/** The bytes of a span of a bundle, of its header and its items; valid until the next call. */
function bytesOf(reader: ItemReader, layout: BundleLayout, { start, end }: ChunkSpan): Uint8Array {
  const bytes = chunkScratch.subarray(0, end - start);
  bytes.set(layout.header.subarray(start, end));
  for (const run of runsWithin(layout, start, end)) {
    const wanted = bytes.subarray(run.start - start, run.end - start);
    if (fillFrom(reader, run.file, run.offset, wanted) !== wanted.length)
      throw new Failure("source_failed", { reason: `the file ${run.file} is not there, or cut short` });
  }
  return bytes;
}

/** @returns The number of bytes read; 0 when the file is missing. */
function fillFrom(reader: ItemReader, file: string, offset: number, bytes: Uint8Array): number {
  try {
    return reader.fill(file, offset, bytes);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return 0;
    throw error;
  }
}

/** A multiple of three bytes, so that pieces of base64url can be joined. Short texts are cheap to collect. */
const encodedAtOnce = 48 * 2 ** 10;

/** The JSON body for nodes, in Latin-1, so that it needs no second encoding pass. */
function bodyOf(
  { dataRoot, layout }: LoadedLayout,
  { start }: ChunkSpan,
  dataPath: string,
  chunk: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const head =
    `{"data_root":"${dataRoot}","data_size":"${layout.dataSize}","data_path":"${dataPath}",` +
    `"offset":"${start}","chunk":"`;
  const body = Buffer.allocUnsafeSlow(head.length + encodedSize(chunk.length) + bodyEnd.length);
  let at = body.write(head, 0, "latin1");
  for (let from = 0; from < chunk.length; from += encodedAtOnce)
    at += body.write(encodeBase64url(chunk.subarray(from, from + encodedAtOnce)), at, "latin1");
  at += body.write(bodyEnd, at, "latin1");
  assert(at === body.length, "a body has the computed size");
  return body;
}

const bodyEnd = '"}';

/** A path ends with the hash and the end offset of its leaf, so the tree provides the hashes. */
function hashesOf(tree: MerkleTree): Uint8Array {
  const hashes = new Uint8Array(tree.leafCount * hashSize);
  for (let index = 0; index < tree.leafCount; index += 1) {
    const path = tree.path(index);
    hashes.set(path.subarray(path.length - 2 * hashSize, path.length - hashSize), index * hashSize);
  }
  return hashes;
}

function storeLayout(folder: string, bundleId: string, layout: BundleLayout): void {
  const path = join(folder, layoutFolder, bundleId);
  mkdirSync(join(folder, layoutFolder), { recursive: true, mode: 0o700 });
  replaceFile(path, writeLayout(layout));
  loadedLayouts.delete(bundleId);
}

function loadLayout(folder: string, bundleId: string): LoadedLayout | undefined {
  const known = loadedLayouts.get(bundleId);
  if (known !== undefined) return known;
  const layout = readStoredLayout(folder, bundleId);
  if (layout === undefined) return undefined;
  const spans = chunkSpans(layout.dataSize, "halved");
  assert(layout.hashes.length === spans.length * hashSize, "a layout has as many hashes as chunks");
  const tree = buildTree(
    spans.map(({ end }, index) => ({
      hash: layout.hashes.subarray(index * hashSize, (index + 1) * hashSize),
      end,
    })),
  );
  const [oldest] = loadedLayouts.keys();
  if (loadedLayouts.size >= loadedLayoutsMax && oldest !== undefined) loadedLayouts.delete(oldest);
  const found = { layout, tree, dataRoot: encodeBase64url(tree.root), spans };
  loadedLayouts.set(bundleId, found);
  return found;
}

/** @returns `undefined` when the file is not there, or cannot be read: the layout is then made again. */
function readStoredLayout(folder: string, bundleId: string): BundleLayout | undefined {
  try {
    return readLayout(new Uint8Array(readFileSync(join(folder, layoutFolder, bundleId))));
  } catch (error) {
    if (error instanceof Error && "syscall" in error) return undefined;
    throw error;
  }
}

function faultOf(error: unknown): FilesFault {
  if (error instanceof Failure && error.code === "source_failed")
    return { kind: "fault", reason: String(error.context["reason"]) };
  if (error instanceof Error && "syscall" in error) return { kind: "fault", reason: error.message };
  throw error;
}
