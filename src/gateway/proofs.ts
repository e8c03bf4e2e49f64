/**
 * Proofs of content from the followed chain: the block, the paths, partial chunks, the walk to an item.
 *
 * Bytes enter a proof only through `content`, which rejects blocked ones. A chunk that also contains other blocked
 * content is sent without its bytes.
 * Source: docs/reference/gateway.md#proofs.
 * @module
 */
import { readBlock } from "../arweave/block.ts";
import { bundleCountSize, bundleEntrySize, firstEntry, readBundleCount, readBundleEntries } from "../arweave/bundle.ts";
import { type ItemHeader, itemSizeMin, readItemHeader } from "../arweave/data-item.ts";
import type { Id } from "../arweave/id.ts";
import {
  type Proof,
  type ProofBlock,
  type ProofItem,
  type ProofPlace,
  type ProofSignature,
  type ProofTransaction,
  proofItemsMax,
  proofRangeSizeMax,
} from "../arweave/proof.ts";
import type { Chunks as ProvenChunks } from "../chain/chunks.ts";
import type { Content } from "../content/content.ts";
import type { OpenContent } from "../content/opened-content.ts";
import { Failure } from "../failures.ts";
import { decodeBase64url } from "../lib/base64url.ts";
import type { Composing } from "../lib/event-loop.ts";
import { type ByteSpan, readRange } from "../lib/range.ts";
import type { IndexReader, ItemSpan, Located } from "../store/index/index-types.ts";
import type { ChunkProofs } from "./chunk-proofs.ts";
import { collectChunks } from "./proof-chunks.ts";

export type Proofs = Readonly<{
  /**
   * @param range - The value of a Range header; null for all of the content.
   * @throws Failure `blocked`, `not_found`, `range_not_satisfiable` also for more than one range, `proof_too_large`,
   *   `source_failed`, `source_timeout`, `busy`.
   */
  of: (id: Id, range: string | null, composing: Composing) => Promise<Proof>;
}>;

export type ProofsOptions = Readonly<{
  reader: Pick<IndexReader, "block" | "blockText" | "itemsWithin" | "locate" | "transactionText" | "weaveSpan">;
  content: Pick<Content, "open">;
  chunkProofs: ChunkProofs;
  provenChunks: ProvenChunks;
}>;

/** Limit of all bundle indices in a proof, 65,000 entries. Bytes. */
const indexSizeMax = 4 * 2 ** 20;

/** Entries read in one go. */
const entriesAtOnce = 1_024;

/** Memory of a proof besides the proven bytes: partial chunks, paths, the block. Bytes. */
const partsHoldBytes = 2 ** 20;

/** Proven bytes are in memory twice: raw, and as base64url. */
const textsPerByte = 3;

const noBytes = new Uint8Array(0);

export function createProofs(options: ProofsOptions): Proofs {
  const { reader, content, chunkProofs } = options;

  const mined = async (located: Located, opened: OpenContent, span: ByteSpan, signal: AbortSignal): Promise<Proof> => {
    // The request for the span's file rejects blocked content within it.
    await opened.file(span, signal);
    const isItem = located.kind === "item";
    const root = isItem ? await content.open(located.rootId, signal) : opened;
    const walk = isItem ? await walkTo(reader, located, root, signal) : { items: [], shown: [] };
    const weaveSpan = reader.weaveSpan(located.rootId);
    const txProof = weaveSpan === undefined ? undefined : await chunkProofs.txProof(weaveSpan, signal);
    const place =
      weaveSpan === undefined || txProof === undefined
        ? undefined
        : { start: weaveSpan.start, end: weaveSpan.end, txPath: txProof.path };
    const { dataOffset } = located;
    const asked = { start: dataOffset + span.start, end: dataOffset + span.end };
    const chunks =
      weaveSpan === undefined
        ? []
        : await collectChunks(options, { weaveSpan, root, asked, shown: walk.shown }, signal);
    return {
      ...subject(located, span),
      block: blockOf(located.place.height),
      transaction: transactionOf(reader, located, place, txProof?.dataRoot),
      items: walk.items,
      signature: walk.header === undefined ? undefined : signatureOf(walk.header),
      chunks,
    };
  };

  /** Content in no block yet is proven by its header alone; an item that was only announced, not at all. */
  const pending = async (located: Located, opened: OpenContent | undefined, span: ByteSpan): Promise<Proof> => ({
    ...subject(located, span),
    block: undefined,
    transaction: located.kind === "item" ? undefined : transactionOf(reader, located, undefined, undefined),
    items: [],
    signature: await pendingSignatureOf(located, opened),
    chunks: [],
  });

  const blockOf = (height: number): ProofBlock => {
    const text = reader.blockText(height)?.text;
    // Imported blocks have no text.
    if (text === undefined && reader.block(height) !== undefined) throw new Failure("not_found", { height });
    // A reorg removed the block after the item was looked up.
    if (text === undefined) throw new Failure("busy", { height });
    return { height, hash: readBlock(text).hash, text };
  };

  return {
    of: async (id, range, { signal, hold }) => {
      const located = reader.locate(id);
      // Opening rejects blocked content; content found elsewhere is in no followed block.
      const opened = await openUnlessAnnounced(content, located, id, signal);
      if (located === undefined) throw new Failure("not_found", { id });
      const span = spanOf(range, located.size);
      if (span.end - span.start > proofRangeSizeMax) throw new Failure("proof_too_large", { id, span });
      await hold(partsHoldBytes + textsPerByte * (span.end - span.start));
      return opened === undefined || located.pending
        ? await pending(located, opened, span)
        : await mined(located, opened, span, signal);
    },
  };
}

/** Opens an id; `undefined` for an announced item whose bytes no source has yet. */
async function openUnlessAnnounced(
  content: Pick<Content, "open">,
  located: Located | undefined,
  id: Id,
  signal: AbortSignal,
): Promise<OpenContent | undefined> {
  try {
    return await content.open(id, signal);
  } catch (error) {
    const isAnnounced = located?.pending === true && located.kind === "item";
    // Not an error here: without a source there is nothing to prove, and the response says so.
    if (isAnnounced && error instanceof Failure && error.code !== "blocked") return undefined;
    throw error;
  }
}

function subject({ id, kind, size, stable }: Located, range: ByteSpan) {
  return { id, kind: kind === "item" ? "data_item" : "transaction", size, stable, range } as const;
}

function transactionOf(
  reader: Pick<IndexReader, "locate" | "transactionText">,
  located: Located,
  place: ProofPlace | undefined,
  treeRoot: string | undefined,
): ProofTransaction {
  const stored = reader.transactionText(located.rootId);
  const owner = reader.locate(located.rootId)?.ownerAddress;
  if (stored === undefined || owner === undefined) throw new Failure("busy", { id: located.rootId });
  return {
    id: located.rootId,
    owner,
    text: stored.text,
    dataAt: stored.dataAt,
    dataSize: located.rootSize,
    dataRoot: decodeBase64url(treeRoot ?? located.dataRoot) ?? noBytes,
    place,
  };
}

function spanOf(range: string | null, size: number): ByteSpan {
  const meaning = readRange(range, size);
  if (meaning.kind === "whole" || size === 0) return { start: 0, end: size };
  const [only, ...others] = meaning.kind === "spans" ? meaning.spans : [];
  if (only === undefined || others.length > 0) throw new Failure("range_not_satisfiable", { range, size });
  return only;
}

type Walk = Readonly<{ items: readonly ProofItem[]; shown: readonly ByteSpan[]; header?: ItemHeader }>;

/** The walk from the transaction to an item; `shown` are the spans of the data that verify its steps. */
async function walkTo(
  reader: Pick<IndexReader, "itemsWithin">,
  located: Located,
  root: OpenContent,
  signal: AbortSignal,
): Promise<Walk> {
  const { itemOffset, place, rootId, rootSize } = located;
  // Every item that contains the first byte of this one, outermost first, then this one.
  const spans = reader.itemsWithin(place, itemOffset, itemOffset + 1, proofItemsMax + 1);
  const last = spans.at(-1);
  if (last?.start !== itemOffset || last.id !== located.id || spans.length > proofItemsMax)
    throw new Failure("busy", { id: located.id });
  let bundle: Bundle = { id: rootId, start: 0, end: rootSize };
  let indexSizeLeft = indexSizeMax;
  let header: ItemHeader | undefined;
  const items: ProofItem[] = [];
  const shown: ByteSpan[] = [];
  for (const span of spans) {
    const entry = await findEntry(root, bundle, span, indexSizeLeft, signal);
    if (entry !== undefined) {
      const index = { start: bundle.start, end: bundle.start + indexSizeTo(entry.index) };
      indexSizeLeft -= index.end - index.start;
      shown.push(index);
    }
    const read = await readHeader(root, span, signal);
    header = read.header;
    const { start, end } = span;
    const dataStart = start + read.bytes.length;
    const parts = { id: span.id, parent: bundle.id, bundleStart: bundle.start, entry };
    items.push({ ...parts, start, dataStart, end, header: read.bytes });
    shown.push({ start, end: dataStart });
    bundle = { id: span.id, start: dataStart, end };
  }
  return { items, shown, ...(header === undefined ? {} : { header }) };
}

type Bundle = Readonly<{ id: Id; start: number; end: number }>;

/** Finds an item in its bundle's index; `undefined` beyond its first `sizeMax` bytes. */
async function findEntry(
  root: OpenContent,
  bundle: Bundle,
  item: ItemSpan,
  sizeMax: number,
  signal: AbortSignal,
): Promise<ProofItem["entry"]> {
  const size = bundle.end - bundle.start;
  const read = (from: number, to: number) => root.bytes({ start: bundle.start + from, end: bundle.start + to }, signal);
  const head = readBundleCount(await read(0, Math.min(size, bundleCountSize)), size);
  if (head.kind === "invalid") return undefined;
  const { count, headerSize } = head;
  let at = firstEntry(count);
  while (at.index < count && indexSizeTo(at.index) <= sizeMax) {
    const from = indexSizeTo(at.index - 1);
    const bytes = await read(from, Math.min(headerSize, from + entriesAtOnce * bundleEntrySize));
    const { entries, next, fault } = readBundleEntries(bytes, at, count, size);
    const found = entries.find(({ id, offset }) => id === item.id && bundle.start + offset === item.start);
    if (found !== undefined) return indexSizeTo(found.index) <= sizeMax ? { index: found.index, count } : undefined;
    if (fault !== undefined) return undefined;
    at = next;
  }
  return undefined;
}

/** Bytes of an index up to and including an entry. */
function indexSizeTo(entry: number): number {
  return bundleCountSize + (entry + 1) * bundleEntrySize;
}

/** Reads a header and no byte beyond it: the bytes after it may be blocked. */
async function readHeader(root: OpenContent, { id, start, end }: ItemSpan, signal: AbortSignal) {
  for (let size = Math.min(itemSizeMin, end - start); ; ) {
    const bytes = await root.bytes({ start, end: start + size }, signal);
    const read = readItemHeader(bytes, "lenient", end - start);
    if (read.kind === "invalid") throw new Failure("source_failed", { id, reason: read.reason });
    if (read.kind === "need") size = read.bytes;
    else return { header: read.header, bytes: bytes.subarray(0, read.header.headerSize) };
  }
}

async function pendingSignatureOf({ id }: Located, opened: OpenContent | undefined) {
  const bytes = await opened?.header?.();
  if (bytes === undefined) return undefined;
  const read = readItemHeader(bytes, "lenient");
  if (read.kind !== "header" || read.header.id !== id)
    throw new Failure("source_failed", { id, reason: "the header of an upload was damaged" });
  return signatureOf(read.header);
}

function signatureOf(header: ItemHeader): ProofSignature {
  return {
    type: header.signatureType,
    signature: header.signature,
    owner: header.owner,
    target: header.targetBytes,
    anchor: header.anchorBytes,
    tags: header.rawTags,
  };
}
