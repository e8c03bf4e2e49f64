/**
 * Verifies a node's record of a transaction or a block before it is relayed.
 *
 * Runs in a thread (workers/verify.ts, `checkRelayed`): a record may have 15 MiB. docs/reference/relayed-routes.md
 * lists the parts of a record that cannot be verified.
 * @module
 */
import { readBlock } from "../arweave/block.ts";
import { verifyBlock } from "../arweave/block-check.ts";
import { dataRootOf, type TailRule } from "../arweave/merkle.ts";
import { readTransaction, type Transaction, verifyTransaction } from "../arweave/transaction.ts";
import { Failure } from "../failures.ts";
import { decodeBase64url, encodeBase64url } from "../lib/base64url.ts";

/** A node's response with status 200, and the requested resource. */
export type RelayedJob =
  | Readonly<{ kind: "transaction"; id: string; body: Uint8Array }>
  /** The data of format 2, as base64url. @see Transaction */
  | Readonly<{ kind: "data"; dataRoot: string; dataSize: number; body: Uint8Array }>
  | Readonly<{ kind: "block"; hash?: string; height?: number; body: Uint8Array }>;

/** Runs `relayedFault` in a thread. */
export type CheckRelayed = (job: RelayedJob, signal: AbortSignal) => Promise<string | undefined>;

/** Rules of splitting the last chunks; each gives another root. */
const tailRules: readonly TailRule[] = ["halved", "plain"];

/** Returns the fault of a response; `undefined` when it is the requested record. */
export function relayedFault(job: RelayedJob): string | undefined {
  try {
    switch (job.kind) {
      case "transaction":
        return transactionFault(job.id, readTransaction(textOf(job.body)));
      case "data":
        return dataFault(job, textOf(job.body).trim());
      case "block":
        return blockFault(job);
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return String(error.context["reason"] ?? error.message);
  }
}

function transactionFault(id: string, transaction: Transaction): string | undefined {
  if (transaction.id !== id) return "the transaction is another one";
  const verdict = verifyTransaction(transaction);
  if (!verdict.valid) return verdict.reason;
  // A signature of format 2 covers the data root, not the data in the record.
  if (transaction.format === 1 || transaction.data === "") return undefined;
  return dataFault(transaction, transaction.data);
}

function dataFault(
  { dataRoot, dataSize }: Pick<Transaction, "dataRoot" | "dataSize">,
  text: string,
): string | undefined {
  const data = decodeBase64url(text);
  if (data === undefined) return "the data is not base64url";
  if (data.length !== dataSize) return `the data has ${data.length} bytes instead of ${dataSize}`;
  if (data.length === 0) return undefined;
  const isRoot = tailRules.some((rule) => encodeBase64url(dataRootOf(data, rule)) === dataRoot);
  return isRoot ? undefined : "the data is not that of the transaction's data_root";
}

function blockFault({ hash, height, body }: Extract<RelayedJob, { kind: "block" }>): string | undefined {
  const block = readBlock(textOf(body));
  if (hash !== undefined && block.hash !== hash) return "the block is another one";
  if (height !== undefined && block.height !== height) return "the block is of another height";
  const verdict = verifyBlock(block, undefined, undefined);
  return verdict.kind === "rejected" ? verdict.reason : undefined;
}

function textOf(body: Uint8Array): string {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString();
}
