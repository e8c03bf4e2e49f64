/**
 * What an index must hold after it has followed a scripted chain, worked out from the script alone; and the
 * comparison.
 * @module
 */
import { expect } from "bun:test";
import { firstEntry, isBundleTags, readBundleCount, readBundleEntries } from "../../src/arweave/bundle.ts";
import { checkItem } from "../../src/arweave/data-item.ts";
import type { Id } from "../../src/arweave/id.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { type IndexReader, noColumns } from "../../src/store/index/index-types.ts";
import { chainTo, type ScriptedBlock } from "./scripted-chain.ts";

/** One row that must be there. */
type ExpectedRow = Readonly<{ id: Id; place: string; size: number; digest: string; parent: Id | undefined }>;

const depthMax = 10;

/** Every row of a chain, transactions and items, in the order of places. */
export function expectedRows(tip: ScriptedBlock, from = 0): readonly ExpectedRow[] {
  return chainTo(tip)
    .filter(({ height }) => height >= from)
    .flatMap((block) =>
      block.transactions.flatMap(({ transaction, data }, txIndex) => {
        const at = `${block.height}/${txIndex}`;
        const row = {
          id: transaction.id,
          place: `${at}/-1`,
          size: transaction.dataSize,
          digest: "",
          parent: undefined,
        };
        return isBundleTags(transaction.tags) ? [row, ...itemsOf(data, 0, at, transaction.id, 0)] : [row];
      }),
    );
}

function itemsOf(bundle: Uint8Array, start: number, at: string, parent: Id, depth: number): ExpectedRow[] {
  const counted = readBundleCount(bundle, bundle.length);
  if (counted.kind !== "count") return [];
  const { entries } = readBundleEntries(bundle.subarray(32), firstEntry(counted.count), counted.count, bundle.length);
  return entries.flatMap(({ offset, size, id }) => {
    const item = checkItem(bundle.subarray(offset, offset + size), "lenient");
    if (item.kind !== "item" || item.header.id !== id) return [];
    const { header, data } = item;
    const row = {
      id,
      place: `${at}/${start + offset}`,
      size: data.length,
      digest: sha256(data).toHex(),
      parent,
    };
    const isNested = isBundleTags(header.tags) && depth < depthMax;
    return isNested ? [row, ...itemsOf(data, start + offset + header.headerSize, at, id, depth + 1)] : [row];
  });
}

/** Compares an index with the chain: every row that must be there, and no other. */
export function expectIndexToEqual(reader: IndexReader, tip: ScriptedBlock, from = 0): void {
  const expected = expectedRows(tip, from);
  const columns = { ...noColumns, parent: true, block: true };
  const rows: ExpectedRow[] = [];
  let after: Parameters<IndexReader["page"]>[0]["after"];
  for (;;) {
    const page = reader.page({ order: "asc", limit: 500, columns, ...(after !== undefined && { after }) });
    for (const { id, place, size, parentId } of page.rows) {
      const digest = reader.locate(id)?.digest?.toHex() ?? "";
      rows.push({
        id,
        place: `${place.height}/${place.txIndex}/${place.offset}`,
        size,
        digest,
        parent: parentId,
      });
      after = place;
    }
    if (!page.hasNextPage) break;
  }
  expect(rows).toEqual([...expected]);
  const blocks = chainTo(tip).filter(({ height }) => height >= from);
  for (const block of blocks) {
    expect(reader.block(block.height)?.hash).toBe(block.hash);
    expect(reader.blockText(block.height)?.text).toBe(block.text);
    for (const { transaction, text } of block.transactions) {
      const located = reader.locate(transaction.id);
      expect(located?.weaveStart !== undefined).toBe(transaction.dataSize > 0);
      if (transaction.format === 2) expect(reader.transactionText(transaction.id)?.text).toBe(text);
    }
  }
  const items = expected.filter(({ place }) => !place.endsWith("/-1")).length;
  expect(reader.counts()).toMatchObject({
    blocks: blocks.length,
    transactions: expected.length - items,
    items,
    pendingTransactions: 0,
    duplicates: 0,
  });
  expect(reader.block(tip.height + 1)).toBeUndefined();
  expect(reader.integrity()).toEqual([]);
}
