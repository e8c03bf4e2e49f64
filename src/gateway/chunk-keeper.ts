/**
 * Chunks that readers posted, and data that came with transactions, kept on this disk: what was uploaded through this
 * gateway is read from it without asking anybody.
 *
 * Only what a node has taken is kept: a node takes chunks of transactions that it knows and that are paid for, so that
 * nobody can push others' content out of the cache for nothing.
 * @module
 */
import type { PostedChunk } from "../arweave/chunk.ts";
import { idFromBytes } from "../arweave/id.ts";
import type { Transaction } from "../arweave/transaction.ts";
import type { CheckTransaction } from "../content/bodies.ts";
import type { Content } from "../content/content.ts";
import { Failure } from "../failures.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import type { Log } from "../lib/log.ts";
import type { Extents } from "../store/extents/extents.ts";

/** Keeps a chunk that was proven; `start` is its first byte in the data. */
export type KeepChunk = (chunk: PostedChunk, start: number) => void;

/** Creates the keeper. A chunk for which there is no room is not kept; it can be had from nodes. */
export function createChunkKeeper(extents: Pick<Extents, "write">, log: Log): KeepChunk {
  return ({ dataRoot, dataSize, chunk }, start) => {
    // Data with a root is filed under it; which transaction brings it is not known yet, and not asked.
    const root = { id: idFromBytes(dataRoot), dataRoot: encodeBase64url(dataRoot), size: dataSize };
    extents.write(root, start, chunk).catch((error: unknown) => {
      log.warn("a posted chunk could not be kept", { dataRoot: root.dataRoot, start, error });
    });
  };
}

/** What the keeper of data works with; `check` runs in a thread. */
export type DataKeeperParts = Readonly<{ check: CheckTransaction; content: Pick<Content, "keep">; log: Log }>;

/** Keeps the data that a posted transaction carries; never rejects. */
export type KeepPostedData = (
  transaction: Transaction,
  body: Uint8Array<ArrayBuffer>,
  signal: AbortSignal,
) => Promise<void>;

/**
 * Creates the keeper of data that came with a transaction: nodes do not serve it before a block has the transaction.
 * Only data that the transaction's signature or data root proves is kept.
 */
export function createDataKeeper({ check, content, log }: DataKeeperParts): KeepPostedData {
  const keep: KeepPostedData = async ({ id }, body, signal) => {
    const checked = await check(id, body, signal);
    if (checked.kind !== "valid" || checked.data === undefined) return;
    const { dataRoot, dataSize } = checked.row;
    const isStored = await content.keep({ id, dataRoot, size: dataSize }, checked.data.bytes);
    if (!isStored) log.warn("data of a posted transaction was not kept", { id, size: dataSize });
  };
  return async (transaction, body, signal) => {
    if (transaction.data === "") return;
    try {
      await keep(transaction, body, signal);
    } catch (error) {
      // The node has taken it: its data can be read when a block has it.
      const isExpected = signal.aborted || error instanceof Failure;
      log[isExpected ? "debug" : "error"]("posted data was not kept", { id: transaction.id, error });
    }
  };
}
