/**
 * Finds items within uploaded bundles that the gateway has not unbundled yet, in the bytes of the newest uploads.
 *
 * Only the direct items of an upload are searched. Items of nested bundles are found when the gateway has unbundled
 * them.
 * @module
 */
import { LRUCache } from "lru-cache";
import {
  type BundleEntry,
  bundleCountSize,
  bundleEntrySize,
  firstEntry,
  readBundleCount,
  readBundleEntries,
} from "../arweave/bundle.ts";
import { readItemHeader } from "../arweave/data-item.ts";
import type { Id } from "../arweave/id.ts";
import { tagValue } from "../arweave/tags.ts";
import type { OpenContent } from "../content/opened-content.ts";
import { Failure } from "../failures.ts";
import type { Clock } from "../lib/clock.ts";
import { isTimeout, withDeadline } from "../lib/stop.ts";
import { type IndexReader, noColumns } from "../store/index/index-types.ts";
import type { FindUnbundled, NestedItem } from "./nested-offsets.ts";
import type { UploadStatus } from "./upload-rows.ts";

export type UnbundledParts = Readonly<{
  reader: Pick<IndexReader, "page">;
  /** `undefined` for an item that was never accepted here. */
  findStatus: (id: Id) => Promise<UploadStatus | undefined>;
  open: (id: Id, signal: AbortSignal) => Promise<OpenContent>;
  clock: Clock;
  /** Timeout of a search, milliseconds; five seconds by default. */
  readMs?: number;
}>;

/** Most bundles that are searched, newest first. Items of older bundles are found when they are unbundled. */
const bundlesMax = 200;

/** Time to live of the list of bundles. Milliseconds. */
const listTtlMs = 1_000;

/** Most entries of a bundle that are searched. */
const entriesMax = 10_000;
/** Most cached entries of all bundles: about 30 MiB. */
const entriesStoredMax = 200_000;

/** Timeout of a search: a mined bundle may have to be read from nodes. Milliseconds. */
const readMsMax = 5_000;

/** Largest header: at most 1 MiB of tags, and a little more. Bytes. */
const headerBytesMax = 2 * 2 ** 20;

type Entries = ReadonlyMap<Id, BundleEntry>;

export function createUnbundledSearch(parts: UnbundledParts): FindUnbundled {
  const { reader, findStatus, open, clock, readMs = readMsMax } = parts;
  const known = new LRUCache<Id, Entries>({
    maxSize: entriesStoredMax,
    sizeCalculation: ({ size }) => size + 1,
  });
  let listed: Readonly<{ ids: readonly Id[]; until: number }> = { ids: [], until: 0 };

  const bundles = (): readonly Id[] => {
    if (clock() < listed.until) return listed.ids;
    const columns = noColumns;
    const tags = [{ name: "Bundle-Format", values: ["binary"], op: "EQ" }] as const;
    const { rows } = reader.page({ tags, order: "desc", limit: bundlesMax, columns });
    const ids = rows.filter(({ kind }) => kind === "item").map(({ id }) => id);
    listed = { ids, until: clock() + listTtlMs };
    return ids;
  };

  const entriesOf = async (id: Id, signal: AbortSignal): Promise<Entries> => {
    const before = known.get(id);
    if (before !== undefined) return before;
    const upload = (await findStatus(id))?.upload;
    const isHere = upload !== undefined && upload.state !== "failed" && upload.state !== "permanent";
    const entries = isHere ? await readEntries(await open(id, signal), signal) : noEntries;
    known.set(id, entries);
    return entries;
  };

  const findIn = async (id: Id, bundleId: Id, signal: AbortSignal): Promise<NestedItem | undefined> => {
    const entry = (await entriesOf(bundleId, signal)).get(id);
    const parent = entry === undefined ? undefined : await findStatus(bundleId);
    if (entry === undefined || parent === undefined) return undefined;
    const header = await readHeader(await open(bundleId, signal), entry, signal);
    if (header?.id !== id) return undefined;
    const { headerSize, place } = parent.upload;
    const { offset } = place ?? {};
    return {
      size: entry.size,
      headerSize: header.headerSize,
      contentType: tagValue(header.tags, "Content-Type"),
      startInRoot: offset === undefined ? undefined : offset + headerSize + entry.offset,
      parentId: bundleId,
      startInParent: entry.offset,
      rootId: parent.transactionId,
      isStable: false,
    };
  };

  /** An unreadable or blocked bundle does not end the search. */
  const tryIn = async (id: Id, bundleId: Id, signal: AbortSignal): Promise<NestedItem | undefined> => {
    try {
      return await findIn(id, bundleId, signal);
    } catch (error) {
      if (signal.aborted || !(error instanceof Failure)) throw error;
      return undefined;
    }
  };

  const search = (id: Id) =>
    withDeadline(new AbortController().signal, readMs, async (signal) => {
      for (const bundleId of bundles()) {
        const found = await tryIn(id, bundleId, signal);
        if (found !== undefined) return found;
      }
      return undefined;
    });

  return async (id) => {
    try {
      return await search(id);
    } catch (error) {
      if (isTimeout(error)) throw new Failure("source_timeout", { id, readMs }, error);
      throw error;
    }
  };
}

const noEntries: Entries = new Map();

/** The entries in the header of a bundle; none if the content is not a bundle. */
async function readEntries(content: OpenContent, signal: AbortSignal): Promise<Entries> {
  const { size } = content;
  const first = await content.bytes({ start: 0, end: Math.min(size, bundleCountSize) }, signal);
  const counted = readBundleCount(first, size);
  if (counted.kind === "invalid") return noEntries;
  const end = bundleCountSize + Math.min(counted.count, entriesMax) * bundleEntrySize;
  const bytes = await content.bytes({ start: bundleCountSize, end }, signal);
  const { entries } = readBundleEntries(bytes, firstEntry(counted.count), counted.count, size);
  return new Map(entries.map((entry) => [entry.id, entry]));
}

async function readHeader(content: OpenContent, { offset, size }: BundleEntry, signal: AbortSignal) {
  for (let wanted = Math.min(size, 4_096); wanted <= headerBytesMax; ) {
    const bytes = await content.bytes({ start: offset, end: offset + wanted }, signal);
    const read = readItemHeader(bytes, "lenient", size);
    if (read.kind === "header") return read.header;
    if (read.kind === "invalid" || read.bytes <= wanted) return undefined;
    wanted = read.bytes;
  }
  return undefined;
}
