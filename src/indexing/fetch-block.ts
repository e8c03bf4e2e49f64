/**
 * Fetches and verifies one block with its transactions from the nodes.
 *
 * A node with an invalid block is distrusted, and the next one is tried. An invalid transaction is requested from the
 * other nodes, and is missing when none has it. A transaction whose nodes have faults is not counted as missing, unless
 * the caller's patience is over.
 * Source: docs/reference/node-api.md#following.
 * @module
 */
import type { CarriedData, CheckBlockJob, CheckBlockResult } from "../../workers/verify.ts";
import { type Block, readBlock } from "../arweave/block.ts";
import type { BlockHash, Id } from "../arweave/id.ts";
import type { Node, NodeResponse } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { assert } from "../lib/assert.ts";
import type { ByteBudget } from "../lib/byte-budget.ts";
import type { Log } from "../lib/log.ts";
import type { SerializedRows } from "../store/index/index-types.ts";
import type { Pool, Workers } from "../threads/pool.ts";
import {
  type AskedTransaction,
  type AskParts,
  askTransaction,
  describeResponse,
  type ResponseMemory,
} from "./fetch-transaction.ts";

/** The dependencies of `fetchBlock`. */
export type FetchParts = AskParts &
  Readonly<{
    nodes: Pick<Nodes, "all" | "ask" | "distrust">;
    pool: Pick<Pool<Workers["verify"]>, "run">;
    /** Bounds the bytes of transactions that are requested or checked, of one block and of all together. */
    bytes: ByteBudget;
    log: Log;
  }>;

/**
 * The default of `bytes`. Consensus allows 12 MiB of data in the transactions of a block, which are 16 MiB of JSON, and
 * 8 MiB of other fields; 16 blocks are fetched at a time.
 */
export const bytesUnderWay = { bytesMax: 512 * 2 ** 20, clientBytesMax: 256 * 2 ** 20, waitMsMax: 0 } as const;

/** The JSON of the previous block; undefined when it is not known. */
export type PreviousBlock = Readonly<{
  /** Resolves when a node has returned it, so that the check of this block need not wait for that of the previous. */
  text: () => Promise<string | undefined>;
  /** Resolves when it is verified. */
  verifiedText: () => Promise<string | undefined>;
}>;

/** A previous block of the index. */
export function indexedPrevious(text: string | undefined): PreviousBlock {
  const known = () => Promise.resolve(text);
  return { text: known, verifiedText: known };
}

/** A request for a block. */
export type BlockQuestion = Readonly<{
  height: number;
  previous: PreviousBlock;
  /**
   * The required hash of the previous block; undefined when the caller checks the link.
   */
  follows: BlockHash | undefined;
  /** Called with the block's JSON as soon as it has arrived, so that the next block can be checked against it. */
  onText: (text: string) => void;
  /** Whether the chain's first block is the main network's. */
  isMainNet: boolean;
  /** Whether transactions that nodes fail to serve count as missing. */
  isPatienceOver: boolean;
}>;

/** A verified block, ready to be stored. */
export type FetchedBlock = Readonly<{
  height: number;
  hash: BlockHash;
  previous: BlockHash | "";
  ids: readonly Id[];
  /** Serialized `BlockRows`. */
  rows: SerializedRows;
  bundleCount: number;
  missing: readonly Readonly<{ id: Id; reason: string }>[];
  /** Data of format 1, to be stored. */
  data: readonly CarriedData[];
  checked: readonly string[];
  unchecked: readonly string[];
  /** Memory of the block until it is stored, bytes. */
  heldBytes: number;
}>;

/**
 * Fetches and verifies one block.
 *
 * @throws Failure `source_failed` when no node returns a valid block, with the reasons in `context.responses`; the
 *   signal's reason.
 */
export async function fetchBlock(
  question: BlockQuestion,
  parts: FetchParts,
  signal: AbortSignal,
): Promise<FetchedBlock> {
  const { height } = question;
  const rejected = new Set<Node>();
  const responses: string[] = [];
  for (;;) {
    const given = await askBlock(height, parts.nodes, rejected, signal);
    if (typeof given === "string") throw new Failure("source_failed", { height, responses: [...responses, given] });
    const { node, text } = given;
    assert(!rejected.has(node), "a node whose block was rejected is not asked again");
    question.onText(text);
    const memory = createBlockMemory(parts.bytes, height);
    const outcome = await fetchFrom(text, question, { ...parts, memory }, signal).finally(memory.close);
    if (typeof outcome !== "string") return outcome;
    responses.push(`${node.url}: ${outcome}`);
    parts.log.error("block rejected", { height, node: node.url, reason: outcome });
    parts.nodes.distrust(node, `block ${height}: ${outcome}`);
    rejected.add(node);
  }
}

/** The memory of one block's transactions until it is checked. A request that was outrun may end after that. */
function createBlockMemory(bytes: ByteBudget, height: number): ResponseMemory & Readonly<{ close: () => void }> {
  const client = `block ${height}`;
  let held = 0;
  let isClosed = false;
  const release = (count: number) => {
    if (isClosed) return;
    held -= count;
    bytes.release(client, count);
  };
  return {
    take: (count) => {
      if (isClosed || !bytes.take(client, count)) return false;
      held += count;
      return true;
    },
    release,
    close: () => {
      release(held);
      isClosed = true;
    },
  };
}

/** As `FetchParts`, for one block. */
type BlockParts = FetchParts & Readonly<{ memory: ResponseMemory }>;

type GivenBlock = Readonly<{ node: Node; text: string }>;

/** A block's JSON from a node whose block was not rejected, or the reason of the failure. */
async function askBlock(
  height: number,
  nodes: FetchParts["nodes"],
  rejected: ReadonlySet<Node>,
  signal: AbortSignal,
): Promise<GivenBlock | string> {
  if (nodes.all.every((node) => rejected.has(node))) return "no other node is left";
  const call = async (node: Node, own: AbortSignal): Promise<NodeResponse<GivenBlock>> => {
    const response = await node.blockText(height, own);
    return response.kind === "ok" ? { kind: "ok", value: { node, text: response.value } } : response;
  };
  const response = await nodes.ask(call, signal, undefined, (node) => !rejected.has(node));
  return response.kind === "ok" ? response.value : describeResponse(response);
}

/** The state of one transaction: the last response, and the nodes with invalid responses. */
type Slot = {
  readonly id: Id;
  asked: AskedTransaction | undefined;
  readonly wrong: Set<Node>;
  fault: string;
};

/** The block with its transactions, or why the node's block is rejected. */
async function fetchFrom(
  text: string,
  question: BlockQuestion,
  parts: BlockParts,
  signal: AbortSignal,
): Promise<FetchedBlock | string> {
  const block = readRequested(text, question);
  if (typeof block === "string") return block;
  const slots = block.txs.map((id): Slot => ({ id, asked: undefined, wrong: new Set(), fault: "" }));
  let previousOf = question.previous.text;
  // Each round but one excludes at least one node for at least one transaction.
  for (;;) {
    await fetchSlots(slots, question, parts, signal);
    const heldBytes = slots.reduce((sum, slot) => sum + sizeOf(slot), text.length);
    const previous = await previousOf();
    const response = await check(text, slots, previous, question, parts, signal);
    if (response.kind === "accepted") return fetchedOf(block, slots, response, heldBytes);
    if (response.kind === "rejected") {
      // The fault may be in the previous block, which another node may have altered.
      if ((await question.previous.verifiedText()) === previous) return response.reason;
      previousOf = question.previous.verifiedText;
    } else for (const { txIndex, reason } of response.transactions) blame(slots[txIndex], reason, parts);
  }
}

function readRequested(text: string, { height, follows }: BlockQuestion): Block | string {
  try {
    const block = readBlock(text);
    if (block.height !== height) return `the block has height ${block.height}`;
    return follows !== undefined && block.previous !== follows ? "the block does not follow the one before it" : block;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return String(error.context["reason"] ?? error.message);
  }
}

/** Requests every absent transaction: new, invalid, or with its buffer moved to a thread. */
async function fetchSlots(
  slots: readonly Slot[],
  question: BlockQuestion,
  parts: BlockParts,
  signal: AbortSignal,
): Promise<void> {
  const lacking = slots.filter(({ asked }) => asked === undefined || (asked.kind === "ok" && asked.bytes.length === 0));
  await Promise.all(
    lacking.map(async (slot) => {
      const asked = { id: slot.id, route: "tx", wrong: slot.wrong, memory: parts.memory } as const;
      slot.asked = await askTransaction(asked, parts, signal);
    }),
  );
  const faulty = slots.find(({ asked }) => asked?.kind === "fault");
  if (faulty?.asked?.kind === "fault" && !question.isPatienceOver)
    throw new Failure("source_failed", {
      height: question.height,
      transaction: faulty.id,
      responses: [faulty.asked.reason],
    });
}

async function check(
  text: string,
  slots: readonly Slot[],
  previous: string | undefined,
  question: BlockQuestion,
  parts: FetchParts,
  signal: AbortSignal,
): Promise<CheckBlockResult> {
  const transactions = slots.map(({ asked }) => (asked?.kind === "ok" ? asked.bytes : null));
  const job: CheckBlockJob = {
    block: text,
    transactions,
    previous,
    isMainNet: question.isMainNet,
  };
  const transfer = transactions.flatMap((bytes) => (bytes === null ? [] : largeBuffer(bytes)));
  return parts.pool.run("checkBlock", job, { transfer, signal });
}

/** Buffers of this size are moved to the thread; copying smaller ones costs less. */
const movedBytesMin = 256 * 1024;

function largeBuffer({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  const isWhole = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
  return isWhole && byteLength >= movedBytesMin ? [buffer] : [];
}

function blame(slot: Slot | undefined, reason: string, parts: FetchParts): void {
  if (slot?.asked?.kind !== "ok") return;
  const { node } = slot.asked;
  parts.log.error("transaction rejected", { id: slot.id, node: node.url, reason });
  parts.nodes.distrust(node, `transaction ${slot.id}: ${reason}`);
  slot.wrong.add(node);
  slot.fault = `${node.url}: ${reason}`;
  slot.asked = undefined;
}

function sizeOf({ asked }: Slot): number {
  return asked?.kind === "ok" ? asked.bytes.length : 0;
}

function fetchedOf(
  { height, hash, previous, txs }: Block,
  slots: readonly Slot[],
  response: Extract<CheckBlockResult, { kind: "accepted" }>,
  heldBytes: number,
): FetchedBlock {
  const { rows, bundleCount, data, checked, unchecked } = response;
  const missing = slots.flatMap(({ id, asked, fault }) =>
    asked === undefined || asked.kind === "ok" ? [] : [{ id, reason: fault === "" ? asked.reason : fault }],
  );
  return {
    height,
    hash,
    previous,
    ids: txs,
    rows,
    bundleCount,
    missing,
    data,
    checked,
    unchecked,
    heldBytes,
  };
}
