/**
 * Stores posted chunks, and data that came with transactions, on this disk: uploads through this gateway are served
 * from it without a request to other machines.
 * Only data that a node accepted is stored. Nodes accept chunks of known and paid transactions, so evicting other
 * content costs money.
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

/** Stores a proven chunk; `start` is its first byte in the data. */
export type KeepChunk = (chunk: PostedChunk, start: number) => void;

/** A chunk that exceeds the free space is not stored; nodes still have it. */
export function createChunkKeeper(extents: Pick<Extents, "write">, log: Log): KeepChunk {
  return ({ dataRoot, dataSize, chunk }, start) => {
    // Data with a root is stored under that root; its transaction is not known yet.
    const root = { id: idFromBytes(dataRoot), dataRoot: encodeBase64url(dataRoot), size: dataSize };
    extents.write(root, start, chunk).catch((error: unknown) => {
      log.warn("a posted chunk could not be stored", { dataRoot: root.dataRoot, start, error });
    });
  };
}

/** `check` runs in a thread. */
export type DataKeeperParts = Readonly<{ check: CheckTransaction; content: Pick<Content, "keep">; log: Log }>;

/** Stores the data of a posted transaction; never rejects. */
export type KeepPostedData = (
  transaction: Transaction,
  body: Uint8Array<ArrayBuffer>,
  signal: AbortSignal,
) => Promise<void>;

/**
 * Stores data that came with a transaction: nodes do not serve it before a block contains the transaction.
 * Data that neither the transaction's signature nor its data root proves is not stored.
 */
export function createDataKeeper({ check, content, log }: DataKeeperParts): KeepPostedData {
  const keep: KeepPostedData = async ({ id }, body, signal) => {
    const checked = await check(id, body, signal);
    if (checked.kind !== "valid" || checked.data === undefined) return;
    const { dataRoot, dataSize } = checked.row;
    const isStored = await content.keep({ id, dataRoot, size: dataSize }, checked.data.bytes);
    if (!isStored) log.warn("data of a posted transaction was not stored", { id, size: dataSize });
  };
  return async (transaction, body, signal) => {
    if (transaction.data === "") return;
    try {
      await keep(transaction, body, signal);
    } catch (error) {
      // The node accepted it: its data can be read once a block contains it.
      const isExpected = signal.aborted || error instanceof Failure;
      log[isExpected ? "debug" : "error"]("posted data was not stored", { id: transaction.id, error });
    }
  };
}
