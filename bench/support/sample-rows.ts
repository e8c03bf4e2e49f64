/**
 * Rows of an index for benches: only fields that differ between benches are given.
 * @module
 */
import type { BlockRow, TransactionRow } from "../../src/store/index/index-types.ts";

/** A block with one transaction. */
export function blockRow(fields: Pick<BlockRow, "height" | "hash" | "timestamp"> & Partial<BlockRow>): BlockRow {
  return {
    previous: "",
    txCount: 1,
    weaveSize: 0n,
    blockSize: 0n,
    text: "{}",
    checked: [],
    unchecked: [],
    ...fields,
  };
}

/** The first transaction of a block. */
export function transactionRow(
  fields: Pick<TransactionRow, "id" | "owner" | "ownerAddress" | "dataSize"> & Partial<TransactionRow>,
): TransactionRow {
  return {
    txIndex: 0,
    format: 2,
    lastTx: "",
    signatureType: "rsa",
    tags: [],
    target: "",
    quantity: 0n,
    reward: 0n,
    dataRoot: "",
    text: "{}",
    ...fields,
  };
}
