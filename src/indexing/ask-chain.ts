/**
 * Short questions about the chain, asked of the nodes in order until one responds: its tip, a block's hash,
 * its first block.
 * @module
 */
import { readBlock } from "../arweave/block.ts";
import { mainNetGenesis } from "../arweave/block-check.ts";
import { type BlockHash, isBlockHash } from "../arweave/id.ts";
import type { Node, NodeResponse } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { isJsonObject, readJson } from "../lib/json.ts";
import { describeResponse } from "./fetch-transaction.ts";

/** The top of a node's chain; the hash is undefined where the node does not say it. */
export type NodeTip = Readonly<{ height: number; hash: BlockHash | undefined }>;

/**
 * Requests to the chain. Every one rejects with Failure `source_failed` when no node responds, or the
 * signal's reason.
 */
export type ChainQuestions = Readonly<{
  tip: (signal: AbortSignal) => Promise<NodeTip>;
  /** Undefined when the nodes have no block at that height. */
  hashAt: (height: number, signal: AbortSignal) => Promise<BlockHash | undefined>;
  /**
   * Whether the first block is the main network's; false while no node gives it. Rejects with the signal's
   * reason only.
   */
  isMainNet: (signal: AbortSignal) => Promise<boolean>;
}>;

/** Makes the questions. */
export function createChainQuestions(nodes: Pick<Nodes, "ask">): ChainQuestions {
  let firstHash: BlockHash | undefined;

  /** Undefined when the nodes say that there is none. */
  const ask = async <Value>(
    question: string,
    call: (node: Node, signal: AbortSignal) => Promise<NodeResponse<Value>>,
    signal: AbortSignal,
  ): Promise<Value | undefined> => {
    const response = await nodes.ask(call, signal);
    if (response.kind === "ok") return response.value;
    if (response.kind === "fault")
      throw new Failure("source_failed", { question, responses: [describeResponse(response)] });
    return undefined;
  };

  const hashAt = async (height: number, signal: AbortSignal) => {
    const text = await ask(`block ${height}`, (node, own) => node.blockText(height, own), signal);
    return text === undefined ? undefined : hashOf(text, height);
  };

  return {
    tip: async (signal) => {
      const text = await ask("info", (node, own) => node.info(own), signal);
      const tip = text === undefined ? undefined : readTip(text);
      if (tip !== undefined) return tip;
      // A node without a readable record may still say its height.
      const height = await ask("height", (node, own) => node.height(own), signal);
      if (height === undefined) throw new Failure("source_failed", { question: "height", responses: ["absent"] });
      return { height, hash: undefined };
    },
    hashAt,
    isMainNet: async (signal) => {
      try {
        firstHash ??= await hashAt(0, signal);
      } catch (error) {
        // A node that only fails to serve its first block must not keep the others from being followed.
        if (!(error instanceof Failure)) throw error;
      }
      return firstHash === mainNetGenesis;
    },
  };
}

function readTip(text: string): NodeTip | undefined {
  const info = readJson(text);
  if (!isJsonObject(info)) return undefined;
  const { height, current } = info;
  // A node that has not joined says −1.
  if (typeof height !== "number" || !Number.isSafeInteger(height) || height < 0) return undefined;
  return { height, hash: typeof current === "string" && isBlockHash(current) ? current : undefined };
}

function hashOf(text: string, height: number): BlockHash {
  const block = readBlock(text);
  if (block.height !== height)
    throw new Failure("source_failed", {
      question: `block ${height}`,
      responses: [`a block of height ${block.height}`],
    });
  return block.hash;
}
