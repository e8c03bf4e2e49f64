/**
 * The index of an ar-io-node: its final blocks, their transactions and data items, added by the index writer.
 *
 * Some blocks with their transactions and items are one database transaction. The tip of the index shows how far an
 * import came: the same call continues it there, and adds the items of the last block again, which changes nothing.
 * Source: docs/reference/ar-io-node-folder.md.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import type { BlockRows, ImportedItemRow, IndexReader, TransactionRow } from "../index/index-types.ts";
import type { IndexWriter } from "../index/index-writer.ts";
import type { SourceDatabase } from "./source-database.ts";
import {
  type BlockSource,
  createBlockSource,
  createItemSource,
  type InvalidItem,
  type ItemSource,
  invalidItems,
  type SourceBlock,
  type SourceHeights,
} from "./source-rows.ts";

export type RowsImport = Readonly<{
  /** Heights of the final blocks, both inclusive; null without blocks. */
  heights: SourceHeights | null;
  /** Blocks that are left out, because one above them is absent. */
  blocksBelow: number;
  blocks: number;
  transactions: number;
  /** Transactions that core.db does not have complete: they are fetched from nodes. */
  missing: number;
  items: number;
  /** Items whose id is at a lower place, too. */
  duplicates: number;
  /** Items that were left out, by reason. */
  skipped: Readonly<Record<string, number>>;
}>;

export type RowsParts = Readonly<{
  core: SourceDatabase;
  /** Undefined without bundles.db. */
  bundles: SourceDatabase | undefined;
  index: Pick<IndexWriter, "addImported">;
  reader: Pick<IndexReader, "tip" | "block">;
  signal: AbortSignal;
  /** Blocks of one database transaction; default 200. */
  blocksPerStep?: number;
  onProgress: (heights: SourceHeights, height: number) => void;
}>;

type Counts = {
  -readonly [Name in keyof Omit<RowsImport, "heights" | "skipped">]: number;
} & { skipped: Record<string, number> };

/** Limits of one database transaction. */
const itemsPerStep = 2_000;
const transactionsPerStep = 2_000;
const blocksPerStepDefault = 200;

/**
 * Adds the rows that the index does not have.
 *
 * @throws Error when the index follows another chain or ends below the first block, or when a block is not valid; the
 *   signal's reason.
 */
export async function importRows(parts: RowsParts): Promise<RowsImport> {
  const { core, reader, signal, onProgress } = parts;
  const none = { blocksBelow: 0, blocks: 0, transactions: 0, missing: 0, items: 0, duplicates: 0, skipped: {} };
  if (core.columns("stable_blocks").size === 0) return { heights: null, ...none };
  const source = createBlockSource(core);
  const items = parts.bundles === undefined ? undefined : createItemSource(parts.bundles);
  const heights = source.heights();
  if (heights === undefined) return { heights: null, ...none };
  const counts: Counts = { ...none, blocksBelow: source.countBelow(heights.first), skipped: {} };
  const batch = createBatch(parts.index, parts.blocksPerStep ?? blocksPerStepDefault, counts);
  const tip = reader.tip()?.height ?? -1;
  let before: SourceBlock | undefined;
  for (let height = firstToImport(reader, source, heights); height <= heights.last; height++) {
    const block = readFollowing(source, height, before);
    const transactions = readTransactions(block, source);
    if (height > tip) batch.addBlock(block, transactions);
    if (items !== undefined) addItems(batch, block, transactions, items);
    before = block;
    if (!batch.isFull() && height < heights.last) continue;
    batch.flush();
    onProgress(heights, height);
    // Ctrl-C is an event.
    await new Promise<void>((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
  }
  return { heights, ...counts };
}

/** The height at which to begin: that of the tip, because a stopped import may lack items of it. */
function firstToImport(reader: RowsParts["reader"], source: BlockSource, { first, last }: SourceHeights): number {
  const tip = reader.tip();
  if (tip === undefined) return first;
  const common = Math.min(tip.height, last);
  if (common < first - 1)
    throw new Error(`the index ends at height ${tip.height} and core.db begins at ${first}: use an empty DATA_DIR`);
  const hash = common < first ? source.block(first).block.previous : source.block(common).block.hash;
  const known = reader.block(common);
  if (known !== undefined && known.hash !== hash)
    throw new Error(`the index and core.db have different blocks at height ${common}: use an empty DATA_DIR`);
  return tip.height > last ? last + 1 : Math.max(first, tip.height);
}

/** @throws Error when the block does not follow the one before. */
function readFollowing(source: BlockSource, height: number, before: SourceBlock | undefined): SourceBlock {
  const found = source.block(height);
  if (before !== undefined && found.block.previous !== before.block.hash)
    throw new Error(`core.db: block ${height} does not follow block ${height - 1}`);
  return found;
}

function readTransactions({ ids }: SourceBlock, source: BlockSource): ReadonlyMap<Id, TransactionRow> {
  return new Map(
    ids.flatMap((id, txIndex) => {
      const row = source.transaction(id, txIndex);
      return row === undefined ? [] : [[id, row] as const];
    }),
  );
}

/** Rows that are written together. */
type Batch = Readonly<{
  addBlock: (block: SourceBlock, transactions: ReadonlyMap<Id, TransactionRow>) => void;
  /** Writes the batch first when it has enough items. */
  addItem: (row: ImportedItemRow) => void;
  skip: (reason: InvalidItem, count: number) => void;
  /** Whether there are enough rows to write. */
  isFull: () => boolean;
  flush: () => void;
}>;

function createBatch(index: RowsParts["index"], blocksPerStep: number, counts: Counts): Batch {
  let blocks: BlockRows[] = [];
  let items: ImportedItemRow[] = [];
  let transactionCount = 0;
  const skip = (reason: InvalidItem, count: number): void => {
    const text = invalidItems[reason];
    if (count > 0) counts.skipped[text] = (counts.skipped[text] ?? 0) + count;
  };
  const flush = (): void => {
    const { added, duplicated, occupied } = index.addImported(blocks, items);
    counts.items += added;
    counts.duplicates += duplicated;
    skip("occupied", occupied);
    blocks = [];
    items = [];
    transactionCount = 0;
  };
  return {
    addBlock: ({ block, ids }, transactions) => {
      const missing = ids.flatMap((id, txIndex) => (transactions.has(id) ? [] : [{ id, txIndex }]));
      blocks.push({ block, transactions: [...transactions.values()], missing, bundles: [] });
      transactionCount += transactions.size;
      counts.blocks += 1;
      counts.transactions += transactions.size;
      counts.missing += missing.length;
    },
    addItem: (row) => {
      if (items.length === itemsPerStep) flush();
      items.push(row);
    },
    skip,
    isFull: () =>
      items.length >= itemsPerStep || transactionCount >= transactionsPerStep || blocks.length >= blocksPerStep,
    flush,
  };
}

function addItems(
  batch: Batch,
  block: SourceBlock,
  transactions: ReadonlyMap<Id, TransactionRow>,
  items: ItemSource,
): void {
  const rootSize = (id: Id): number => transactions.get(id)?.dataSize ?? 0;
  for (const stored of items.at(block.block.height)) {
    const row = items.read(stored, block, rootSize);
    if (typeof row === "string") batch.skip(row, 1);
    else batch.addItem(row);
  }
}
