/**
 * Consecutive blocks with given contents.
 * @module
 */
import type { BlockHash } from "../../../src/arweave/id.ts";
import type { BlockRow, BlockRows, TransactionRow } from "../../../src/store/index/index-types.ts";
import type { IndexWriter } from "../../../src/store/index/index-writer.ts";
import type { Random } from "../../support/random.ts";
import { blockOf, type Owner, transactionOf } from "./rows-of.ts";

/** Given contents of a block; the other fields are derived. */
export type GivenBlock = Readonly<{
  /** Given fields of each transaction; its index is its position. */
  transactions?: readonly Partial<TransactionRow>[];
  missing?: BlockRows["missing"];
  bundles?: (height: number, rows: readonly TransactionRow[]) => BlockRows["bundles"];
  block?: Partial<BlockRow>;
}>;

/** A chain from a height on. */
export type GrowingChain = Readonly<{
  /** Rows of the next block, without writing them. */
  next: (given?: GivenBlock) => BlockRows;
  /** Adds the next block. */
  add: (given?: GivenBlock) => BlockRows;
  /** Rolls the chain and the index back, so that `add` adds the block at `height`. */
  rollback: (height: number) => Readonly<{ blocks: number; rows: number }>;
}>;

/** Starts a chain in an empty index. */
export function growingChain(writer: IndexWriter, random: Random, owner: Owner, start = 10): GrowingChain {
  let hashes: BlockHash[] = [];
  const next = ({ transactions = [], missing = [], bundles, block = {} }: GivenBlock = {}): BlockRows => {
    const height = start + hashes.length;
    const rows = transactions.map((given, txIndex) => transactionOf(random, owner, { txIndex, ...given }));
    const txCount = rows.length + missing.length;
    return {
      block: blockOf(random, { height, previous: hashes.at(-1) ?? "", txCount, ...block }),
      transactions: rows,
      missing,
      bundles: bundles?.(height, rows) ?? [],
    };
  };
  return {
    next,
    add: (given) => {
      const rows = next(given);
      writer.addBlock(rows);
      hashes.push(rows.block.hash);
      return rows;
    },
    rollback: (height) => {
      hashes = hashes.slice(0, height - start);
      return writer.rollback(height);
    },
  };
}
