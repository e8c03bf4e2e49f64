/**
 * Whole data of a transaction that proven chunks cannot provide. Format 1: from the transaction itself, whose signature
 * covers the data. Format 2: from gateways, if the data root of their response is the transaction's.
 * @module
 */
import type { CheckedTransaction } from "../../workers/verify.ts";
import type { Id } from "../arweave/id.ts";
import { createDataRoot, type TailRule } from "../arweave/merkle.ts";
import type { Gateways } from "../chain/gateways.ts";
import type { NodeResponse } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { failureOf, fault } from "../lib/http-client.ts";
import type { RootSpec } from "../store/root-spec.ts";

/** Checks a transaction's JSON as a node sent it: that it is valid and the requested one. Runs in a thread. */
export type CheckTransaction = (id: Id, json: Uint8Array, signal: AbortSignal) => Promise<CheckedTransaction>;

/** A valid transaction. */
export type ValidTransaction = Extract<CheckedTransaction, { kind: "valid" }>;

/** Whole bodies. */
export type Bodies = Readonly<{
  /** Asks nodes for a transaction and checks it; a node that gives a wrong one is distrusted. */
  transaction: (id: Id, signal: AbortSignal) => Promise<NodeResponse<ValidTransaction>>;
  /**
   * Gives the whole data of a root, checked.
   * @throws Failure `source_failed`, `source_timeout`, `busy`.
   */
  whole: (root: RootSpec, signal: AbortSignal) => Promise<Uint8Array>;
  /** Whether `whole` may have the data of this root. */
  canHave: (root: RootSpec) => boolean;
}>;

/** A whole body is in memory until it is checked; larger data is fetched in chunks or not at all. */
const gatewayBodyBytesMax = 16 * 2 ** 20;

export function createBodies(nodes: Nodes, gateways: Gateways, checkTransaction: CheckTransaction): Bodies {
  async function transaction(id: Id, signal: AbortSignal): Promise<NodeResponse<ValidTransaction>> {
    return nodes.ask(async (node, own): Promise<NodeResponse<ValidTransaction>> => {
      const response = await node.txJson(id, own);
      if (response.kind !== "ok") return response;
      const checked = await checkTransaction(id, response.value, own);
      if (checked.kind === "valid") return { kind: "ok", value: checked };
      return fault("wrong", `transaction ${id}: ${checked.reason}`);
    }, signal);
  }

  async function ofTransaction(root: RootSpec, signal: AbortSignal): Promise<Uint8Array> {
    const response = await transaction(root.id, signal);
    if (response.kind === "ok" && response.value.data?.bytes.length === root.size) return response.value.data.bytes;
    throw bodyFailure(response, root);
  }

  async function ofGateway(root: RootSpec, signal: AbortSignal): Promise<Uint8Array> {
    const response = await gateways.body(root.id, root.size, (body) => rootProblem(root, body), signal);
    if (response.kind === "ok") return response.value;
    throw bodyFailure(response, root);
  }

  return {
    transaction,
    whole: (root, signal) => (root.dataRoot === "" ? ofTransaction(root, signal) : ofGateway(root, signal)),
    canHave: ({ dataRoot, size }) => dataRoot === "" || (gateways.urls.length > 0 && size <= gatewayBodyBytesMax),
  };
}

/** Why a body is not what a data root commits to, under either rule of cutting; undefined when it is. */
async function rootProblem(root: RootSpec, body: Uint8Array): Promise<string | undefined> {
  for (const rule of ["halved", "plain"] as const) {
    if ((await rootUnder(rule, body)) === root.dataRoot) return undefined;
  }
  return `the body of ${root.id} has another data root`;
}

/** The data root of a body, base64url, hashed in slices that leave the thread to others in between. */
async function rootUnder(rule: TailRule, body: Uint8Array): Promise<string> {
  const hash = createDataRoot(body.length, rule);
  for (let at = 0; at < body.length; at += sliceBytes) {
    hash.update(body.subarray(at, at + sliceBytes));
    await yieldToEventLoop();
  }
  return encodeBase64url(hash.finish().root);
}

/** Hashed at once: less than 1 ms. */
const sliceBytes = 2 ** 20;

function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Whether a failure says that every source responded, and that none has the data. */
export function isAbsence(error: unknown): boolean {
  return error instanceof Failure && error.context["isAbsent"] === true;
}

function bodyFailure(response: NodeResponse<unknown>, root: RootSpec): Failure {
  const context = { id: root.id, size: root.size };
  if (response.kind === "fault") return failureOf(response, context);
  const isAbsent = response.kind === "absent" || response.kind === "pending";
  return new Failure("source_failed", { ...context, sources: response.kind, ...(isAbsent && { isAbsent }) });
}
