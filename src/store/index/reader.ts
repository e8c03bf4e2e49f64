/**
 * Reading the index: any thread, through a connection of its own that cannot write.
 *
 * Every call sees one state of the database. Calls are synchronous and short, but for `page`, which belongs in
 * the query threads.
 * @module
 */
import type { Database } from "bun:sqlite";
import { checkIntegrity, closeDatabase, inSnapshot, openForReading, prepareQuery } from "../sqlite.ts";
import { createBundlePassReads } from "./bundle-passes.ts";
import { createBundleReads } from "./bundle-reads.ts";
import { createChainReads } from "./chain-reads.ts";
import { createFilterKeys } from "./filter-key.ts";
import { createItemsWithin } from "./items-within.ts";
import { createLocating } from "./locate.ts";
import { createPages } from "./page.ts";
import { placeHigh, placeLow } from "./place.ts";
import { type WindowSizes, windowSizesDefault } from "./place-windows.ts";
import { createSums } from "./sums.ts";
import type { IndexReader } from "./types.ts";

/** How a reader is opened. */
export type IndexReaderOptions = Readonly<{
  /** Page cache, bytes; the operating system caches the rest. */
  cacheBytes?: number;
  /** Size of the steps of `page` and `count`. */
  windows?: WindowSizes;
}>;

const cacheBytesDefault = 32 * 2 ** 20;
const integrityFaultsMax = 20;

/**
 * Opens the index for reading.
 *
 * @throws Error when the file does not exist yet (the writer makes it), or is damaged where it is read first.
 */
export function openIndexReader(path: string, options: IndexReaderOptions = {}): IndexReader {
  const db = openForReading(path, options.cacheBytes ?? cacheBytesDefault);
  const keys = createFilterKeys(filterSecretOf(db, path));
  const chain = createChainReads(db);
  const locating = createLocating(db, keys);
  const pages = createPages(db, keys, options.windows ?? windowSizesDefault);
  const itemsWithin = createItemsWithin(db);
  const pendingSignature = prepareQuery<{ signature: Uint8Array }>(
    db,
    "SELECT signature FROM pending_signatures WHERE n = (? << 31) | ?",
  );
  const { bundleRowAt, ...bundleReads } = createBundleReads(db);

  return {
    tip: chain.tip,
    block: chain.block,
    blockText: chain.blockText,
    blocks: chain.blocks,
    heightsWithItems: chain.heightsWithItems,
    transactionStatus: (id) =>
      inSnapshot(db, () => {
        const place = locating.placeOf(id);
        const tip = chain.tip();
        const block = place?.offset === -1 ? chain.block(place.height) : undefined;
        // A block above the tip stands there for single transactions that an operator asked for.
        if (block === undefined || tip === undefined || block.height > tip.height) return undefined;
        return { height: block.height, hash: block.hash, confirmations: tip.height - block.height + 1 };
      }),
    transactionText: (id) => {
      const place = locating.placeOf(id);
      return place === undefined ? undefined : chain.textAt(place);
    },
    pendingSignature: (place) => pendingSignature.get(placeHigh(place), placeLow(place))?.signature,
    locate: (id) => inSnapshot(db, () => locating.locate(id)),
    placeOf: locating.placeOf,
    placesOf: (id) => inSnapshot(db, () => locating.placesOf(id)),
    row: pages.row,
    page: pages.page,
    count: pages.count,
    snapshot: (work) => inSnapshot(db, work),
    itemsWithin: (root, start, end, limit) => inSnapshot(db, () => itemsWithin(root, start, end, limit)),
    transactionAt: chain.transactionAt,
    weaveSpan: (id) => {
      const place = locating.placeOf(id);
      return place?.offset === -1 ? chain.weaveSpanAt(place) : undefined;
    },
    transactionsOfBlock: chain.transactionsOfBlock,
    dueMissing: chain.dueMissing,
    ...bundleReads,
    bundlePasses: createBundlePassReads(db),
    bundleRow: (id) =>
      inSnapshot(db, () => {
        const located = locating.locate(id);
        return located === undefined ? undefined : bundleRowAt(located);
      }),
    ...sumsInSnapshot(db),
    integrity: () => checkIntegrity(db, integrityFaultsMax),
    close: () => closeDatabase(db),
  };
}

function sumsInSnapshot(db: Database): Pick<IndexReader, "counts" | "times"> {
  const sums = createSums(db);
  return { counts: () => inSnapshot(db, sums.counts), times: () => inSnapshot(db, sums.times) };
}

function filterSecretOf(db: Database, path: string): Uint8Array {
  const found = prepareQuery<{ value: Uint8Array }>(db, "SELECT value FROM meta WHERE name = 'filter_secret'").get();
  if (found === undefined) throw new Error(`the index ${path} was never opened by its writer`);
  return found.value;
}
