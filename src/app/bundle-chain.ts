/**
 * The chain for the bundle pipeline: the nodes, and our own index, which reads seeded bundles back.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import { laterStatuses, type NodeResponse, policyStatuses } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { createSpread, isTaken, type PostResult } from "../gateway/spread.ts";
import { isJsonObject, readJson } from "../lib/json.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { IndexWriterCalls } from "../store/index/index-writer-calls.ts";
import type { Anchor, BundleChain, Posted } from "../upload/pipeline/pipeline-context.ts";

type BundleChainParts = Readonly<{
  nodes: Nodes;
  reader: Pick<IndexReader, "block" | "bundleStatus" | "dueMissing" | "tip" | "transactionStatus">;
  index: Pick<IndexWriterCalls, "removePending">;
  /** Address of the wallet that pays. */
  address: string;
  wantBundle: (id: Id) => Promise<void>;
}>;

/** Depth of anchors: ordinary forks are shorter, so every node knows the block. */
const anchorDepth = 6;

/** An index further behind the nodes gives anchors that expire too soon. Blocks. */
const behindMax = 10;

/** Most transactions without a header that are searched; with more, no transaction counts as unknown. */
const missingMax = 1_000;

/** Rows of one write, so that other writes of the index need not wait long. */
const rowsPerRemoval = 500;

export function openBundleChain(parts: BundleChainParts): BundleChain {
  const { nodes, reader, index, address, wantBundle } = parts;
  const spread = createSpread(nodes);
  const nodesHeight = async (signal: AbortSignal) =>
    given(await nodes.ask((node, own) => node.height(own), signal), "its height");
  return {
    anchor: async (signal) => anchorIn(reader, await nodesHeight(signal)),
    price: async (size, signal) =>
      given(await nodes.ask((node, own) => node.price(size, undefined, own), signal), "a price"),
    balance: async (signal) => given(await nodes.ask((node, own) => node.balance(address, own), signal), "a balance"),
    nodesHeight,
    post: async (path, body, signal) => postedOf(await spread.post(path, body, signal)),
    height: () => reader.tip()?.height,
    status: reader.transactionStatus,
    isUnknown: async (id, signal) => {
      // A block may name a transaction whose header no node has sent yet.
      const missing = reader.dueMissing(Number.MAX_SAFE_INTEGER, missingMax);
      if (missing.length === missingMax || missing.some((row) => row.id === id)) return false;
      const { kind } = await nodes.ask((node, own) => node.txStatus(id, own), signal);
      return kind === "absent";
    },
    isReadBack: (id, itemCount) => {
      const status = reader.bundleStatus(id);
      // Filters may exclude items; `wantIndexed` requests the bundle without filters.
      return (status?.lastFullyIndexedAt ?? null) !== null && status?.matchedDataItemCount === itemCount;
    },
    wantIndexed: wantBundle,
    forgetPending: async (ids) => {
      for (let at = 0; at < ids.length; at += rowsPerRemoval)
        await index.removePending(ids.slice(at, at + rowsPerRemoval));
    },
  };
}

/** A block of our own index, so that its height is certain. @throws Failure `not_synced`. */
function anchorIn(reader: Pick<IndexReader, "tip" | "block">, nodesHeight: number): Anchor {
  const tip = reader.tip();
  if (tip === undefined || nodesHeight - tip.height > behindMax)
    throw new Failure("not_synced", {
      reason: `the index is at height ${tip?.height ?? "none"}, the nodes are at ${nodesHeight}`,
    });
  for (let height = Math.max(0, tip.height - anchorDepth); height < tip.height; height += 1) {
    const block = reader.block(height);
    if (block !== undefined) return { hash: block.hash, height };
  }
  return { hash: tip.hash, height: tip.height };
}

function given<Value>(response: NodeResponse<Value>, what: string): Value {
  if (response.kind === "ok") return response.value;
  throw new Failure("source_failed", { reason: `no node returned ${what}: ${response.kind}` });
}

/** Combines the responses of all nodes to a post. */
export function postedOf(results: readonly PostResult[]): Posted {
  const responses = results.flatMap((result) => (result.kind === "response" ? [result.response] : []));
  if (responses.some(isTaken)) return { kind: "taken" };
  const rejections = responses.filter(({ status }) => isRejection(status));
  const [rejection] = rejections;
  if (rejection === undefined) return { kind: "fault", reason: `none of ${results.length} nodes accepted it` };
  const text = new TextDecoder().decode(rejection.body.subarray(0, textBytesMax));
  return {
    kind: "rejected",
    reason: `${rejection.status} ${text}`,
    word: wordOf(text),
    isByAll: rejections.length === results.length,
  };
}

/** Whether a status is a final rejection, unlike a request to retry. */
function isRejection(status: number): boolean {
  return status >= 400 && status < 500 && !laterStatuses.has(status) && !policyStatuses.has(status);
}

const textBytesMax = 500;

/** The `error` of a node's JSON; "" for a plain text. */
function wordOf(text: string): string {
  const fields = text.startsWith("{") ? readJson(text) : undefined;
  const word = isJsonObject(fields) ? fields["error"] : undefined;
  return typeof word === "string" ? word : "";
}
