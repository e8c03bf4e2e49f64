/**
 * The index of an ar-io-node: its final blocks, their transactions and data items, added by the index writer.
 *
 * A block is one database transaction, and its items follow. The tip of the index shows how far an import came: the
 * same call continues it there, and adds the items of the last block again, which changes nothing.
 * Source: docs/reference/ar-io-node-folder.md.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import type { ImportedItemRow, IndexReader, TransactionRow } from "../index/index-types.ts";
import type { IndexWriter } from "../index/index-writer.ts";
import type { SourceDatabase } from "./source-database.ts";
import {
  type BlockSource,
  createBlockSource,
  createItemSource,
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
  index: Pick<IndexWriter, "addBlock" | "addImportedItems" | "checkpoint">;
  reader: Pick<IndexReader, "tip" | "block">;
  signal: AbortSignal;
  onProgress: (heights: SourceHeights, height: number) => void;
}>;

type Counts = {
  -readonly [Name in keyof Omit<RowsImport, "heights" | "skipped">]: number;
} & { skipped: Record<string, number> };

/** Items of one database transaction. */
const itemsPerStep = 2_000;

/** Heights between two turns of the event loop, which sees Ctrl-C. */
const heightsPerTurn = 20;

/**
 * Adds the rows that the index does not have.
 *
 * @throws Error when the index follows another chain or ends below the first block, or when a block is not valid; the
 *   signal's reason.
 */
export async function importRows(parts: RowsParts): Promise<RowsImport> {
  const { core, signal, onProgress } = parts;
  const none = { blocksBelow: 0, blocks: 0, transactions: 0, missing: 0, items: 0, duplicates: 0, skipped: {} };
  if (core.columns("stable_blocks").size === 0) return { heights: null, ...none };
  const source = createBlockSource(core);
  const items = parts.bundles === undefined ? undefined : createItemSource(parts.bundles);
  const heights = source.heights();
  if (heights === undefined) return { heights: null, ...none };
  const counts: Counts = { ...none, blocksBelow: source.countBelow(heights.first), skipped: {} };
  let before: SourceBlock | undefined;
  for (let height = firstToImport(parts.reader, source, heights); height <= heights.last; height++) {
    if (height % heightsPerTurn === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
    const block = source.block(height);
    if (before !== undefined && block.block.previous !== before.block.hash)
      throw new Error(`core.db: block ${height} does not follow block ${height - 1}`);
    const transactions = readTransactions(block, source);
    if ((parts.reader.tip()?.height ?? -1) < height) addBlock(parts, block, transactions, counts);
    if (items !== undefined) addItems(parts, block, transactions, items, counts);
    before = block;
    onProgress(heights, height);
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

function readTransactions({ ids }: SourceBlock, source: BlockSource): ReadonlyMap<Id, TransactionRow> {
  return new Map(
    ids.flatMap((id, txIndex) => {
      const row = source.transaction(id, txIndex);
      return row === undefined ? [] : [[id, row] as const];
    }),
  );
}

function addBlock(
  { index }: RowsParts,
  { block, ids }: SourceBlock,
  transactions: ReadonlyMap<Id, TransactionRow>,
  counts: Counts,
): void {
  const missing = ids.flatMap((id, txIndex) => (transactions.has(id) ? [] : [{ id, txIndex }]));
  index.addBlock({ block, transactions: [...transactions.values()], missing, bundles: [] });
  counts.blocks += 1;
  counts.transactions += transactions.size;
  counts.missing += missing.length;
}

function addItems(
  { index }: RowsParts,
  block: SourceBlock,
  transactions: ReadonlyMap<Id, TransactionRow>,
  items: ItemSource,
  counts: Counts,
): void {
  const rootSize = (id: Id): number => transactions.get(id)?.dataSize ?? 0;
  let batch: ImportedItemRow[] = [];
  const skip = (reason: string, count: number): void => {
    if (count > 0) counts.skipped[reason] = (counts.skipped[reason] ?? 0) + count;
  };
  const flush = (): void => {
    const { added, duplicated, occupied } = index.addImportedItems(batch);
    counts.items += added;
    counts.duplicates += duplicated;
    skip(invalidItems.occupied, occupied);
    batch = [];
  };
  for (const stored of items.at(block.block.height)) {
    const row = items.read(stored, block, rootSize);
    if (typeof row === "string") skip(invalidItems[row], 1);
    else if (batch.push(row) === itemsPerStep) flush();
  }
  if (batch.length > 0) flush();
}
