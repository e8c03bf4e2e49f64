/**
 * Requests one transaction's unverified JSON from the nodes.
 *
 * The JSON stays bytes, because a transaction of format 1 has up to 15 MiB and a thread parses it.
 * @module
 */
import type { CheckedTransaction, CheckTransactionsJob } from "../../workers/verify.ts";
import type { Id } from "../arweave/id.ts";
import type { Node, NodeResponse, RawRequest } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { fault } from "../lib/http-client.ts";
import { type RetryPlan, retry } from "../lib/retry.ts";
import type { Semaphore } from "../lib/semaphore.ts";
import type { Pool, Workers } from "../threads/pool.ts";

/** The result of a request. */
export type AskedTransaction =
  | Readonly<{ kind: "ok"; bytes: Uint8Array; node: Node }>
  /** Every node responded, and none has it (yet). */
  | Readonly<{ kind: "absent"; reason: string }>
  /** At least one node failed, and might have it. */
  | Readonly<{ kind: "fault"; reason: string }>;

/** A request for a transaction. */
export type TransactionQuestion = Readonly<{
  id: Id;
  /** `tx` for a mined transaction, `unconfirmed_tx` also for one in the mempool. */
  route: "tx" | "unconfirmed_tx";
  /** Nodes that returned an invalid transaction before and are skipped. */
  wrong?: ReadonlySet<Node>;
  /** Where the bytes of the response are counted; a response that does not fit is a fault. */
  memory?: ResponseMemory;
}>;

/** Memory for responses. The bytes of a transaction that was returned stay counted. */
export type ResponseMemory = Readonly<{
  /** Returns false when the bytes do not fit. */
  take: (bytes: number) => boolean;
  release: (bytes: number) => void;
}>;

/**
 * Three attempts within about a second suffice for a busy node. The caller retries after longer faults.
 */
const attempts: RetryPlan = { attempts: 3, firstMs: 150, longestMs: 600 };

/** The dependencies of `askTransaction`. */
export type AskParts = Readonly<{
  nodes: Pick<Nodes, "ask">;
  /** Limits concurrent requests for transactions. */
  semaphore: Semaphore;
  random: () => number;
}>;

/**
 * Requests a transaction from the nodes, in order, until one returns it; retries when one fails.
 *
 * @returns Bytes that begin and end like a JSON object.
 * @throws Failure `busy` when too many requests wait; the signal's reason.
 */
export async function askTransaction(
  question: TransactionQuestion,
  { nodes, semaphore, random }: AskParts,
  signal: AbortSignal,
): Promise<AskedTransaction> {
  const permit = semaphore.take(signal);
  if (permit === undefined) throw new Failure("busy", { transaction: question.id });
  const release = await permit;
  try {
    return await retry(
      attempts,
      signal,
      random,
      () => askOnce(question, nodes, signal),
      ({ kind }) => kind !== "fault",
    );
  } finally {
    release();
  }
}

async function askOnce(
  question: TransactionQuestion,
  nodes: Pick<Nodes, "ask">,
  signal: AbortSignal,
): Promise<AskedTransaction> {
  const { wrong } = question;
  let isAsked = false;
  const call = (node: Node, own: AbortSignal) => {
    isAsked = true;
    return askWithin(question, node, own);
  };
  const response = await nodes.ask(call, signal, undefined, (node) => wrong?.has(node) !== true);
  if (!isAsked) return { kind: "absent", reason: "no other node is left" };
  if (response.kind === "ok") return { kind: "ok", ...response.value };
  return response.kind === "fault"
    ? { kind: "fault", reason: response.detail }
    : { kind: "absent", reason: describeResponse(response) };
}

/**
 * Verifies transactions in a thread.
 *
 * @returns One outcome per transaction, in order.
 * @throws Failure `busy`, `worker_failed`; the signal's reason. The thread still finishes its job.
 */
export function checkTransactions(
  transactions: CheckTransactionsJob["transactions"],
  pool: Pick<Pool<Workers["verify"]>, "run">,
  signal: AbortSignal,
): Promise<readonly CheckedTransaction[]> {
  const job: CheckTransactionsJob = { transactions };
  if (transactions.length === 0) return Promise.resolve([]);
  return pool.run("checkTransactions", job, { signal });
}

type Given = Readonly<{ bytes: Uint8Array; node: Node }>;

/** Asks one node, and counts the bytes of its response. */
async function askWithin(question: TransactionQuestion, node: Node, signal: AbortSignal): Promise<NodeResponse<Given>> {
  const { memory } = question;
  if (memory === undefined) return await askNode(question, node, undefined, signal);
  let held = 0;
  let isOver = false;
  const hold = async (bytes: number) => {
    isOver = !memory.take(bytes);
    if (isOver) throw new Failure("busy", { transaction: question.id });
    held += bytes;
  };
  let isReturned = false;
  try {
    const response = await askNode(question, node, hold, signal);
    isReturned = response.kind === "ok";
    return response;
  } catch (error) {
    if (!isOver) throw error;
    return fault("too_large", "too many bytes of transactions are under way");
  } finally {
    if (!isReturned) memory.release(held);
  }
}

async function askNode(
  { id, route }: TransactionQuestion,
  node: Node,
  hold: RawRequest["hold"],
  signal: AbortSignal,
): Promise<NodeResponse<Given>> {
  const response = await node.relay({ method: "GET", path: `/${route}/${id}`, ...(hold && { hold }) }, signal);
  if (response.kind === "fault") return response;
  const { status, body: bytes } = response.value;
  if (status === 202) return { kind: "pending" };
  if (status !== 200)
    return absentStatuses.has(status) ? { kind: "absent" } : fault("status", `status ${status}`, status);
  return isObject(bytes)
    ? { kind: "ok", value: { bytes, node } }
    : fault("malformed", "the body is not a complete JSON object", status);
}

/** Describes a response without a value in a few words. */
export function describeResponse(response: Exclude<NodeResponse<unknown>, { kind: "ok" }>): string {
  switch (response.kind) {
    case "fault":
      return response.detail;
    case "rejected":
      return `status ${response.status}: ${response.text.slice(0, 100)}`;
    default:
      return response.kind;
  }
}

/** Malformed, not found, dropped from the mempool. */
const absentStatuses: ReadonlySet<number> = new Set([400, 404, 410]);

const braceOpen = 0x7b;
const braceClose = 0x7d;
const spaces: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Whether the bytes begin and end like an object: a truncated response is a fault. */
function isObject(bytes: Uint8Array): boolean {
  let start = 0;
  let end = bytes.length - 1;
  while (spaces.has(bytes[start])) start += 1;
  while (spaces.has(bytes[end])) end -= 1;
  return bytes[start] === braceOpen && bytes[end] === braceClose && end > start;
}
