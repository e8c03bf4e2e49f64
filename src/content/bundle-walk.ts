/**
 * Walks through bundles to a data item. Reads only pages of bundle indexes, and the item headers that are needed.
 *
 * A hint may name the nested bundles around the item, or the byte at which the item begins: then only those bundles are
 * entered. Without a hint every nested bundle is entered, level by level. The bytes are proven to be the root's data;
 * an item is accepted only if the hash of the signature in its header is the id.
 * Source: docs/reference/gateway.md#items-on-demand; ANS-104 §1.
 * @module
 */
import {
  type BundleEntry,
  bundleCountSize,
  bundleEntrySize,
  firstEntry,
  isBundleTags,
  readBundleCount,
  readBundleEntries,
} from "../arweave/bundle.ts";
import { type ItemHeader, itemSizeMin, readItemHeader } from "../arweave/data-item.ts";
import type { Id } from "../arweave/id.ts";
import type { Hint } from "../chain/hint.ts";
import { assert } from "../lib/assert.ts";
import type { ByteSpan } from "../lib/range.ts";

/** Data to walk in. */
export type WalkedData = Readonly<{
  /** Bytes. */
  size: number;
  /** Gives bytes of the data, at most 2 MiB; throws what reading content throws. */
  read: (span: ByteSpan) => Promise<Uint8Array>;
  /** Where the piece ends that is fetched as one with a byte: reading up to there costs no more. */
  pieceEnd: (at: number) => number;
}>;

/** An item in a root's data. */
export type WalkedItem = Readonly<{
  header: ItemHeader;
  /** Byte of the root's data at which the header begins. */
  itemOffset: number;
  /** Bytes of header and payload. */
  itemSize: number;
  /** Nested bundles around it, the outermost first. */
  parents: readonly Id[];
  /** Byte of the root's data at which the payload of the bundle around it begins. */
  parentStart: number;
}>;

/** Outcome of a walk. */
export type Walked =
  | Readonly<{ kind: "found"; item: WalkedItem }>
  | Readonly<{ kind: "not there"; reason: string }> // the hint was wrong
  | Readonly<{ kind: "too far"; reason: string }>; // a limit ended the walk

/** Bundles in bundles. */
export const walkLevelsMax = 4;

/** Reads of one walk. */
export const walkReadsMax = 64;

/** Entries of an index are read by so much: 16,384 of them. 64 such pages are an index of a million items. */
export const pageBytes = 2 ** 20;

/** Entries are read out of a page by so much: 4,096 of them, 2 ms. */
const sliceBytes = pageBytes / 4;

/** Nearly every header fits; a longer one takes another read. */
const headerGuessBytes = 4_096;

/** A header of 1 MiB of tags fits (`tagLimits.lenient`). */
const headerBytesMax = 2 * 2 ** 20;

/** A bundle: its payload in the root's data. */
type Bundle = ByteSpan & Readonly<{ parents: readonly Id[] }>;

/** A walk under way. */
type Walk = Readonly<{
  data: WalkedData;
  id: Id;
  hint: Hint;
  /** Takes one read from what is left; false when nothing is. */
  mayRead: () => boolean;
}>;

/** Outcome of a search in one bundle: the end of the walk, or the nested bundles to search next. */
type Look = Walked | Readonly<{ kind: "go on"; bundles: readonly Bundle[] }>;

const readsUsedUp: Walked = { kind: "too far", reason: `more than ${walkReadsMax} reads` };

/**
 * Walks to an item.
 *
 * @param data - Of the transaction that the hint names.
 * @throws What `data.read` throws.
 */
export async function walkToItem(data: WalkedData, id: Id, hint: Hint): Promise<Walked> {
  let readsLeft = walkReadsMax;
  const mayRead = () => readsLeft-- > 0;
  const walk: Walk = { data, id, hint, mayRead };
  let bundles: readonly Bundle[] = [{ start: 0, end: data.size, parents: [] }];
  for (let level = 0; bundles.length > 0; level += 1) {
    if (level === walkLevelsMax) return { kind: "too far", reason: `more than ${walkLevelsMax} levels` };
    const next: Bundle[] = [];
    for (const bundle of bundles) {
      const look = await lookInto(walk, bundle);
      if (look.kind === "go on") next.push(...look.bundles);
      else if (look.kind !== "not there" || isGuided(hint)) return look;
    }
    bundles = next;
  }
  return { kind: "not there", reason: `${id} is in no bundle of ${hint.rootId}` };
}

function isGuided({ path, itemOffset }: Hint): boolean {
  return path.length > 0 || itemOffset !== undefined;
}

/** Looks for the item in a bundle's index, and for the bundles that may lead to it. */
async function lookInto(walk: Walk, bundle: Bundle): Promise<Look> {
  const isWay = wayIn(walk.hint, bundle);
  const ways: BundleEntry[] = [];
  for await (const page of pagesOf(walk, bundle)) {
    if (page.kind !== "entries") return page;
    const look = await lookAtPage(walk, bundle, page.entries, isWay);
    if (look !== undefined) return look;
    // One more than can be entered shows that it was too many.
    if (!isGuided(walk.hint) && ways.length <= walkReadsMax)
      ways.push(...page.entries.filter(isWay).slice(0, walkReadsMax + 1));
  }
  if (isGuided(walk.hint)) return { kind: "not there", reason: `no entry leads to ${walk.id}` };
  return await enter(walk, bundle, ways);
}

/** The item, or the one way to it, if either is named here. */
async function lookAtPage(
  walk: Walk,
  bundle: Bundle,
  entries: readonly BundleEntry[],
  isWay: (entry: BundleEntry) => boolean,
): Promise<Look | undefined> {
  for (const entry of entries) {
    if (entry.id === walk.id) {
      const found = await itemAt(walk, bundle, entry);
      if (found !== undefined) return found;
    } else if (isGuided(walk.hint) && isWay(entry)) return await enter(walk, bundle, [entry]);
  }
  return undefined;
}

/** Whether an entry that is not the item leads to it. */
function wayIn(hint: Hint, bundle: Bundle): (entry: BundleEntry) => boolean {
  const { path, itemOffset } = hint;
  const nextId = path[bundle.parents.length];
  if (nextId !== undefined) return ({ id }) => id === nextId;
  if (path.length > 0) return () => false; // the path has ended: the item itself must be here
  if (itemOffset !== undefined)
    return ({ offset, size }) => bundle.start + offset < itemOffset && itemOffset < bundle.start + offset + size;
  return ({ size }) => size > itemSizeMin + bundleCountSize + bundleEntrySize + itemSizeMin;
}

type Page = Walked | Readonly<{ kind: "entries"; entries: readonly BundleEntry[] }>;

/** The entries of a bundle's index, by pages; its end is `not there` for an invalid index. */
async function* pagesOf(walk: Walk, bundle: Bundle): AsyncGenerator<Page> {
  const { data } = walk;
  const size = bundle.end - bundle.start;
  if (!walk.mayRead()) return yield readsUsedUp;
  const firstEnd = Math.max(bundle.start + bundleCountSize, data.pieceEnd(bundle.start));
  const first = await data.read({ start: bundle.start, end: Math.min(bundle.end, firstEnd) });
  const head = readBundleCount(first, size);
  if (head.kind === "invalid") return yield { kind: "not there", reason: head.reason };
  let place = firstEntry(head.count);
  let bytes = first.subarray(bundleCountSize, head.headerSize);
  while (place.index < head.count) {
    const step = readBundleEntries(bytes.subarray(0, sliceBytes), place, head.count, size);
    yield { kind: "entries", entries: step.entries };
    if (step.fault !== undefined) return yield { kind: "not there", reason: step.fault };
    bytes = bytes.subarray((step.next.index - place.index) * bundleEntrySize);
    place = step.next;
    if (place.index === head.count) return;
    if (bytes.length >= bundleEntrySize) await yieldToEventLoop();
    else {
      if (!walk.mayRead()) return yield readsUsedUp;
      const from = bundleCountSize + place.index * bundleEntrySize;
      const to = Math.min(head.headerSize, from + pageBytes);
      bytes = await data.read({ start: bundle.start + from, end: bundle.start + to });
    }
  }
}

/** Lets others have the thread. */
function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Reads the item that an entry names; `undefined` when other bytes are there. */
async function itemAt(walk: Walk, bundle: Bundle, entry: BundleEntry): Promise<Walked | undefined> {
  const read = await readHeader(walk, bundle, entry);
  if (read.kind === "too far") return read;
  if (read.kind !== "header" || read.header.id !== walk.id) return undefined;
  const item: WalkedItem = {
    header: read.header,
    itemOffset: bundle.start + entry.offset,
    itemSize: entry.size,
    parents: bundle.parents,
    parentStart: bundle.start,
  };
  return { kind: "found", item };
}

/** The entries that are bundles, with the positions of their payloads. */
async function enter(walk: Walk, bundle: Bundle, entries: readonly BundleEntry[]): Promise<Look> {
  const bundles: Bundle[] = [];
  for (const entry of entries) {
    const read = await readHeader(walk, bundle, entry);
    if (read.kind === "too far") return read;
    const isBundle = read.kind === "header" && read.header.id === entry.id && isBundleTags(read.header.tags);
    if (!isBundle) {
      if (isGuided(walk.hint)) return { kind: "not there", reason: `${entry.id} is not a bundle` };
      continue;
    }
    const start = bundle.start + entry.offset;
    bundles.push({
      start: start + read.header.headerSize,
      end: start + entry.size,
      parents: [...bundle.parents, entry.id],
    });
  }
  return { kind: "go on", bundles };
}

type ReadHeader =
  | Readonly<{ kind: "header"; header: ItemHeader }>
  | Readonly<{ kind: "no item" }>
  | Readonly<{ kind: "too far"; reason: string }>;

async function readHeader({ data, mayRead }: Walk, bundle: Bundle, entry: BundleEntry): Promise<ReadHeader> {
  const start = bundle.start + entry.offset;
  for (let size = Math.min(entry.size, headerGuessBytes); ; ) {
    if (!mayRead()) return { kind: "too far", reason: `more than ${walkReadsMax} reads` };
    const bytes = await data.read({ start, end: start + size });
    const read = readItemHeader(bytes, "lenient", entry.size);
    if (read.kind === "invalid" || (read.kind === "need" && read.bytes > headerBytesMax)) return { kind: "no item" };
    if (read.kind === "header") return read;
    assert(read.bytes > size, "a header that needs more bytes needs more than it was given");
    size = read.bytes;
  }
}
