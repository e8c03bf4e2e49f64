/**
 * One transaction's JSON as bytes, from whichever node has it; nothing of it is believed yet.
 *
 * Bytes, not text: a transaction of format 1 has up to 15 MiB, and reading it is a thread's work.
 * @module
 */

import type { CheckedTransaction, CheckTransactionsJob } from "../../workers/verify.ts";
import type { Id } from "../arweave/id.ts";
import type { Node, NodeResponse } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { fault } from "../lib/http-client.ts";
import { type RetryPlan, retry } from "../lib/retry.ts";
import type { Semaphore } from "../lib/semaphore.ts";
import type { Pool, Workers } from "../threads/pool.ts";

/** What came of asking. */
export type AskedTransaction =
  | Readonly<{ kind: "ok"; bytes: Uint8Array; node: Node }>
  /** Every node responded, and none has it (yet). */
  | Readonly<{ kind: "absent"; reason: string }>
  /** At least one node might have it, but could not be asked. */
  | Readonly<{ kind: "fault"; reason: string }>;

/** One question. */
export type TransactionQuestion = Readonly<{
  id: Id;
  /** `tx` for a mined one, `unconfirmed_tx` for one in the mempool too. */
  route: "tx" | "unconfirmed_tx";
  /** Nodes that gave something wrong before, and are not asked. */
  wrong: ReadonlySet<Node>;
}>;

/**
 * Three attempts within about a second ride out a node that is busy; longer faults are the caller's to wait
 * out.
 */
const attempts: RetryPlan = { attempts: 3, firstMs: 150, longestMs: 600 };

/** What is needed to ask. */
export type AskParts = Readonly<{
  nodes: Pick<Nodes, "ask">;
  /** Bounds how many transactions are asked for at once. */
  semaphore: Semaphore;
  random: () => number;
}>;

/**
 * Asks nodes for a transaction, in order, until one returns it; retries for a while when one fails.
 *
 * @returns Bytes that begin and end as a JSON object does.
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
  const response = await nodes.ask((node, own) => askNode(question, node, own), signal);
  if (response.kind === "ok") return { kind: "ok", ...response.value };
  return response.kind === "fault"
    ? { kind: "fault", reason: response.detail }
    : { kind: "absent", reason: describeResponse(response) };
}

/**
 * Verifies transactions in a thread.
 *
 * @returns One outcome a transaction, in order.
 * @throws Failure `busy`, `worker_failed`; the signal's reason. The thread finishes its job all the same.
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

async function askNode(
  { id, route, wrong }: TransactionQuestion,
  node: Node,
  signal: AbortSignal,
): Promise<NodeResponse<Given>> {
  if (wrong.has(node)) return { kind: "absent" };
  const response = await node.relay({ method: "GET", path: `/${route}/${id}` }, signal);
  if (response.kind === "fault") return response;
  const { status, body: bytes } = response.value;
  if (status === 202) return { kind: "pending" };
  if (status !== 200)
    return absentStatuses.has(status) ? { kind: "absent" } : fault("status", `status ${status}`, status);
  return isObject(bytes)
    ? { kind: "ok", value: { bytes, node } }
    : fault("malformed", "the body is no whole JSON object", status);
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

/** Rejected as malformed, not found, rejected by the mempool. */
const absentStatuses: ReadonlySet<number> = new Set([400, 404, 410]);

const braceOpen = 0x7b;
const braceClose = 0x7d;
const spaces: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Whether the bytes begin and end as an object does: a truncated response is not a response. */
function isObject(bytes: Uint8Array): boolean {
  let start = 0;
  let end = bytes.length - 1;
  while (spaces.has(bytes[start])) start += 1;
  while (spaces.has(bytes[end])) end -= 1;
  return bytes[start] === braceOpen && bytes[end] === braceClose && end > start;
}
