/**
 * One transaction's JSON as bytes, from whichever node has it; nothing of it is believed yet.
 *
 * Bytes, not text: a transaction of format 1 has up to 15 MiB, and reading it is a thread's work.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { trouble } from "../chain/http.ts";
import type { Node, NodeAnswer } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { type RetryPlan, retry } from "../lib/retry.ts";

/** What came of asking. */
export type AskedTransaction =
  | Readonly<{ kind: "ok"; bytes: Uint8Array; node: Node }>
  /** Every node answered, and none has it (yet). */
  | Readonly<{ kind: "absent"; reason: string }>
  /** At least one node might have it, but could not be asked. */
  | Readonly<{ kind: "trouble"; reason: string }>;

/** One question. */
export type TransactionQuestion = Readonly<{
  id: Id;
  /** `tx` for a mined one, `unconfirmed_tx` for one in the mempool too. */
  route: "tx" | "unconfirmed_tx";
  /** Nodes that gave something wrong before, and are not asked. */
  wrong: ReadonlySet<Node>;
}>;

/** Three attempts within about a second ride out a node that is busy; longer troubles are the caller's to wait out. */
const attempts: RetryPlan = { attempts: 3, firstMs: 150, longestMs: 600 };

/**
 * Asks nodes for a transaction until one gives it; again for a while when one is in trouble.
 *
 * @returns Bytes that begin and end as a JSON object does.
 * @throws The signal's reason.
 */
export function askTransaction(
  question: TransactionQuestion,
  nodes: Pick<Nodes, "ask">,
  random: () => number,
  signal: AbortSignal,
): Promise<AskedTransaction> {
  return retry(
    attempts,
    signal,
    random,
    () => askOnce(question, nodes, signal),
    ({ kind }) => kind !== "trouble",
  );
}

async function askOnce(
  question: TransactionQuestion,
  nodes: Pick<Nodes, "ask">,
  signal: AbortSignal,
): Promise<AskedTransaction> {
  const answer = await nodes.ask((node, own) => askNode(question, node, own), signal);
  if (answer.kind === "ok") return { kind: "ok", ...answer.value };
  return answer.kind === "trouble"
    ? { kind: "trouble", reason: answer.detail }
    : { kind: "absent", reason: describeAnswer(answer) };
}

type Given = Readonly<{ bytes: Uint8Array; node: Node }>;

async function askNode(
  { id, route, wrong }: TransactionQuestion,
  node: Node,
  signal: AbortSignal,
): Promise<NodeAnswer<Given>> {
  if (wrong.has(node)) return { kind: "absent" };
  const answer = await node.relay({ method: "GET", path: `/${route}/${id}` }, signal);
  if (answer.kind === "trouble") return answer;
  const { status, body: bytes } = answer.value;
  if (status === 202) return { kind: "pending" };
  if (status !== 200)
    return absentStatuses.has(status) ? { kind: "absent" } : trouble("status", `status ${status}`, status);
  return isObject(bytes)
    ? { kind: "ok", value: { bytes, node } }
    : trouble("malformed", "the body is no whole JSON object", status);
}

/** Says in a few words what an answer without a value is. */
export function describeAnswer(answer: Exclude<NodeAnswer<unknown>, { kind: "ok" }>): string {
  switch (answer.kind) {
    case "trouble":
      return answer.detail;
    case "refused":
      return `status ${answer.status}: ${answer.text.slice(0, 100)}`;
    default:
      return answer.kind;
  }
}

/** Refused as malformed, not there, rejected by the mempool. */
const absentStatuses: ReadonlySet<number> = new Set([400, 404, 410]);

const braceOpen = 0x7b;
const braceClose = 0x7d;
const spaces: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Whether the bytes begin and end as an object does: what was cut short is no answer at all. */
function isObject(bytes: Uint8Array): boolean {
  let start = 0;
  let end = bytes.length - 1;
  while (spaces.has(bytes[start])) start += 1;
  while (spaces.has(bytes[end])) end -= 1;
  return bytes[start] === braceOpen && bytes[end] === braceClose && end > start;
}
