/**
 * Staged transactions: an operator requested them. Each is searched for on the chain, verified with its block, and
 * indexed, independently of the follower's height.
 *
 * Until the follower reaches its height, such a block is in the index for these transactions only. The block and its
 * list of transactions are verified; that the block is on the chain is trusted to the nodes.
 * Source: docs/reference/gateway.md#queueing.
 * @module
 */
import { deserialize } from "bun:jsc";
import type { CheckBlockJob } from "../../workers/verify.ts";
import { readBlock } from "../arweave/block.ts";
import type { Id } from "../arweave/id.ts";
import type { Node, NodeResponse, TransactionStatus } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import type { Content } from "../content/content.ts";
import { explainError, Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import { type Clock, unixSeconds } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { type Loop, openLoop, type StepOutcome } from "../lib/loop.ts";
import { type RetryPlan, retryWaitMs } from "../lib/retry.ts";
import type { Staged, StagedRow } from "../store/administration-database.ts";
import {
  type BlockRows,
  type BundleRow,
  type IndexReader,
  stableDepth,
  type TransactionRow,
} from "../store/index/index-types.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import type { Pool, Workers } from "../threads/pool.ts";
import { createChainQuestions } from "./ask-chain.ts";
import { describeResponse } from "./fetch-transaction.ts";
import { isUnfinishedBundle } from "./pending-requests.ts";

export type StagedOptions = Readonly<{
  staged: Staged;
  nodes: Pick<Nodes, "ask" | "distrust">;
  /** Threads of `workers/verify.ts`. */
  verify: Pick<Pool<Workers["verify"]>, "run">;
  index: Pick<IndexWriterCalls, "addStrayBlock" | "hurryMissing" | "queueBundle">;
  reader: Pick<IndexReader, "block" | "bundleRow" | "bundleStatus" | "row" | "tip">;
  content: Pick<Content, "keep">;
  /**
   * Called with a transaction that is now in the index: whether it is a bundle that is now queued, and whether this
   * search added it. Called again when the process ended before the request was removed.
   */
  onFound: (id: Id, outcome: StagedOutcome) => void;
  clock: Clock;
  random: () => number;
  log: Log;
}>;

/** The outcome of a request. */
export type StagedOutcome = Readonly<{ hasBundle: boolean; isNew: boolean }>;

/** Requests that are processed at once. */
const atOnce = 4;

/** Interval between two polls of the list without a wake-up. Milliseconds. */
const intervalMs = 60_000;

/** A transaction may not be mined yet, or its nodes may be down. */
const waits: Omit<RetryPlan, "attempts"> = { firstMs: 1_000, longestMs: 60 * 60_000 };

/** A request is dropped after this time without success. Seconds. */
const patienceSeconds = 48 * 60 * 60;

/** Starts the search. */
export function openStagedSearch(options: StagedOptions): Loop {
  const { staged, clock, random, log } = options;
  const { isMainNet } = createChainQuestions(options.nodes);
  const step = async (signal: AbortSignal): Promise<StepOutcome> => {
    const rows = staged.due(clock(), atOnce);
    if (rows.length === 0) {
      const nextAt = staged.nextDueAt() ?? Number.POSITIVE_INFINITY;
      return { restMs: Math.min(intervalMs, Math.max(0, nextAt - clock())) };
    }
    await Promise.all(rows.map((row) => settle(row, { ...options, isMainNet }, signal)));
    return "again";
  };
  return openLoop({
    name: "staged transactions",
    step,
    intervalMs,
    clock,
    random,
    log,
  });
}

type Parts = StagedOptions & Readonly<{ isMainNet: (signal: AbortSignal) => Promise<boolean> }>;

/** Processes one request and stores the outcome. */
async function settle(row: StagedRow, parts: Parts, signal: AbortSignal): Promise<void> {
  const { staged, clock, random, log } = parts;
  const { id } = row;
  let reason: string | undefined;
  try {
    reason = (await queueKnown(row, parts)) ? undefined : await findAndAdd(row, parts, signal);
  } catch (error) {
    signal.throwIfAborted();
    reason = explainError(error);
  }
  if (reason === undefined) {
    staged.remove(row);
    log.info("staged transaction indexed", { id });
  } else if (unixSeconds(clock) - row.lastStagedAt > patienceSeconds) {
    staged.remove(row);
    log.warn("staged transaction dropped", { id, reason });
  } else {
    const waitMs = retryWaitMs({ ...waits, attempts: 1 }, row.attempts + 1, random);
    staged.postpone(row, clock() + waitMs, reason);
    log.debug("staged transaction postponed", { id, reason, waitMs });
  }
}

/** Queues a transaction that is in the index by now; false when it is not. */
async function queueKnown(row: StagedRow, { reader, index, onFound }: Parts): Promise<boolean> {
  const { id, isBundle, bypassFilter, isFound } = row;
  const known = reader.bundleRow(id);
  if (known === undefined) return false;
  const isWanted = isBundle || isUnfinishedBundle(id, reader);
  if (isWanted && (await index.queueBundle({ ...known, bypassFilter })) === "gone") return false;
  onFound(id, { hasBundle: isWanted, isNew: isFound });
  return true;
}

/** Finds and adds a transaction. @returns The reason when it is not in the index yet. */
async function findAndAdd(row: StagedRow, parts: Parts, signal: AbortSignal): Promise<string | undefined> {
  const { nodes, reader } = parts;
  const { id } = row;
  const status = await nodes.ask((node, own) => statusFrom(node, id, own), signal);
  if (status.kind !== "ok") return describeResponse(status);
  const { height, confirmations } = status.value;
  const tip = reader.tip()?.height ?? -1;
  // Only the follower indexes blocks that a reorg may still remove.
  if (height > tip && confirmations <= stableDepth) return `block ${height} has not been followed yet`;
  const found = await fetchWithBlock(id, status.value, parts, signal);
  if (typeof found === "string") return found;
  return await add(row, found, parts);
}

/** The status of a transaction, and the node that stated it. */
type Stated = TransactionStatus & Readonly<{ by: Node }>;

async function statusFrom(node: Node, id: Id, signal: AbortSignal): Promise<NodeResponse<Stated>> {
  const status = await node.txStatus(id, signal);
  return status.kind === "ok" ? { kind: "ok", value: { ...status.value, by: node } } : status;
}

/** Why block and transaction are not used, and what is false: the block or transaction, the status, or one of them. */
type Fault = Readonly<{ reason: string; falsehood: "given" | "status" | "either" }>;

/** A transaction with its block, both verified. */
type Found = Readonly<{ rows: BlockRows; transaction: TransactionRow; data: Uint8Array | undefined }>;

type Given = Readonly<{ node: Node; text: string; bytes: Uint8Array }>;

/** Requests block and transaction from the same node, so that they match. @returns A reason when that fails. */
async function fetchWithBlock(
  id: Id,
  { height, blockHash, by }: Stated,
  { nodes, verify, isMainNet }: Parts,
  signal: AbortSignal,
): Promise<Found | string> {
  const call = async (node: Node, own: AbortSignal): Promise<NodeResponse<Given>> => {
    const block = await node.blockText(height, own);
    if (block.kind !== "ok") return block;
    const transaction = await node.txJson(id, own);
    if (transaction.kind !== "ok") return transaction;
    return { kind: "ok", value: { node, text: block.value, bytes: transaction.value } };
  };
  const given = await nodes.ask(call, signal);
  if (given.kind !== "ok") return describeResponse(given);
  const { node, text, bytes } = given.value;
  const response = await check(id, blockHash, text, bytes, { verify, isMainNet }, signal);
  if ("rows" in response) return response;
  const { reason, falsehood } = response;
  const blamed = falsehood === "status" ? by : node;
  if (falsehood !== "either" || node === by) nodes.distrust(blamed, `transaction ${id} in block ${height}: ${reason}`);
  return reason;
}

async function check(
  id: Id,
  blockHash: string,
  text: string,
  bytes: Uint8Array,
  { verify, isMainNet }: Pick<Parts, "verify" | "isMainNet">,
  signal: AbortSignal,
): Promise<Found | Fault> {
  const ids = idsOf(text, blockHash);
  if ("reason" in ids) return ids;
  const transactions = ids.map((each) => (each === id ? bytes : null));
  const job: CheckBlockJob = {
    block: text,
    transactions,
    previous: undefined,
    isMainNet: await isMainNet(signal),
  };
  const response = await verify.run("checkBlock", job, { signal });
  if (response.kind === "rejected") return { reason: response.reason, falsehood: "given" };
  if (response.kind === "faulty")
    return { reason: response.transactions[0]?.reason ?? "the transaction is not valid", falsehood: "given" };
  if (!ids.includes(id)) {
    // The hash of a block covers the ids of its transactions; before 2.0 it cannot be computed.
    const falsehood = response.checked.includes("hash") ? "status" : "either";
    return { reason: "the block does not name the transaction", falsehood };
  }
  const rows: BlockRows = deserialize(response.rows);
  const [transaction] = rows.transactions;
  assert(transaction !== undefined, "an accepted block has the transaction that came with it");
  return { rows, transaction, data: response.data[0]?.bytes };
}

function idsOf(text: string, blockHash: string): readonly Id[] | Fault {
  try {
    const { hash, txs } = readBlock(text);
    return hash === blockHash ? txs : { reason: "another block is at the height", falsehood: "either" };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { reason: String(error.context["reason"] ?? error.message), falsehood: "given" };
  }
}

/** Stores the found transaction. @returns A reason when that fails. */
async function add(row: StagedRow, found: Found, parts: Parts): Promise<string | undefined> {
  const { reader, index, content, staged, onFound, clock } = parts;
  const { rows, transaction, data } = found;
  const { block } = rows;
  const followed = reader.block(block.height);
  if (followed !== undefined && followed.hash !== block.hash)
    return `the index has another block at height ${block.height}`;
  const place = { height: block.height, txIndex: transaction.txIndex, offset: -1 };
  const bundles = bundlesOf(row, transaction, { ...rows, place });
  if (data !== undefined) await content.keep({ id: row.id, dataRoot: "", size: data.length }, data);
  // The search for missing transactions adds and reports it: it computes the places of the block's data first.
  if (await index.hurryMissing(place, row.id, clock())) return "its block was followed without it";
  const isNew = reader.bundleRow(row.id) === undefined;
  if (isNew) staged.found(row.id);
  await index.addStrayBlock({ block, transactions: [transaction], missing: [], bundles });
  onFound(row.id, { hasBundle: bundles.length > 0, isNew });
  return undefined;
}

/** The bundle to queue, when the tags or the operator declare one. */
function bundlesOf(
  { isBundle, bypassFilter }: StagedRow,
  { id, dataSize }: TransactionRow,
  { bundles, place }: Readonly<{ bundles: readonly BundleRow[]; place: BundleRow["place"] }>,
): BundleRow[] {
  if (dataSize === 0 || !(isBundle || bundles.length > 0)) return [];
  return [{ id, place, parentOffset: null, headerSize: 0, size: dataSize, depth: 0, bypassFilter }];
}
