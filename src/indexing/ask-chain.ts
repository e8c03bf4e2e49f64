/**
 * Requests the tip of the chain, the hash of a block, or the network from the nodes, in order until one responds.
 * @module
 */
import { readBlock } from "../arweave/block.ts";
import { mainNetGenesis } from "../arweave/block-check.ts";
import { type BlockHash, isBlockHash } from "../arweave/id.ts";
import type { Node, NodeResponse } from "../chain/node.ts";
import type { Check, Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { isJsonObject, readJson } from "../lib/json.ts";
import { describeResponse } from "./fetch-transaction.ts";

/** The tip of a node's chain; `hash` is undefined when the node does not report it. */
export type NodeTip = Readonly<{ height: number; hash: BlockHash | undefined }>;

/**
 * Requests to the chain. Each rejects with Failure `source_failed` when no node responds, or the
 * signal's reason.
 */
export type ChainQuestions = Readonly<{
  tip: (signal: AbortSignal) => Promise<NodeTip>;
  /** Undefined when the nodes have no block at that height. */
  hashAt: (height: number, signal: AbortSignal) => Promise<BlockHash | undefined>;
  /**
   * Whether the first block is the main network's; false while no node returns it. Rejects with the signal's
   * reason only.
   */
  isMainNet: (signal: AbortSignal) => Promise<boolean>;
}>;

export function createChainQuestions(nodes: Pick<Nodes, "ask">): ChainQuestions {
  let firstHash: BlockHash | undefined;

  /** Undefined when the nodes do not have the value. */
  const ask = async <Value>(
    question: string,
    call: (node: Node, signal: AbortSignal) => Promise<NodeResponse<Value>>,
    signal: AbortSignal,
    check?: Check<Value>,
  ): Promise<Value | undefined> => {
    const response = await nodes.ask(call, signal, check);
    if (response.kind === "ok") return response.value;
    if (response.kind === "fault")
      throw new Failure("source_failed", { question, responses: [describeResponse(response)] });
    return undefined;
  };

  const hashAt = async (height: number, signal: AbortSignal) => {
    const check = (text: string) => faultOfBlock(text, height);
    const text = await ask(`block ${height}`, (node, own) => node.blockText(height, own), signal, check);
    return text === undefined ? undefined : readBlock(text).hash;
  };

  return {
    tip: async (signal) => {
      const text = await ask("info", (node, own) => node.info(own), signal);
      const tip = text === undefined ? undefined : readTip(text);
      if (tip !== undefined) return tip;
      // A node without a valid `/info` may still report its height.
      const height = await ask("height", (node, own) => node.height(own), signal);
      if (height === undefined) throw new Failure("source_failed", { question: "height", responses: ["absent"] });
      return { height, hash: undefined };
    },
    hashAt,
    isMainNet: async (signal) => {
      try {
        firstHash ??= await hashAt(0, signal);
      } catch (error) {
        // A node that fails to serve its first block must not stop the follower.
        if (!(error instanceof Failure)) throw error;
      }
      return firstHash === mainNetGenesis;
    },
  };
}

/** The tip that one node states; undefined when it states none. Rejects with the signal's reason. */
export async function tipOfNode(
  nodes: Pick<Nodes, "ask">,
  node: Node,
  signal: AbortSignal,
): Promise<NodeTip | undefined> {
  const isIt = (each: Node) => each === node;
  const info = await nodes.ask((each, own) => each.info(own), signal, undefined, isIt);
  const tip = info.kind === "ok" ? readTip(info.value) : undefined;
  if (tip !== undefined) return tip;
  const height = await nodes.ask((each, own) => each.height(own), signal, undefined, isIt);
  return height.kind === "ok" ? { height: height.value, hash: undefined } : undefined;
}

function readTip(text: string): NodeTip | undefined {
  const info = readJson(text);
  if (!isJsonObject(info)) return undefined;
  const { height, current } = info;
  // A node that has not joined reports −1.
  if (typeof height !== "number" || !Number.isSafeInteger(height) || height < 0) return undefined;
  return { height, hash: typeof current === "string" && isBlockHash(current) ? current : undefined };
}

/** Why a text is not a block of this height; undefined when it is. */
function faultOfBlock(text: string, height: number): string | undefined {
  try {
    const block = readBlock(text);
    return block.height === height ? undefined : `block ${height}: a block of height ${block.height}`;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return `block ${height}: ${String(error.context["reason"] ?? error.message)}`;
  }
}
