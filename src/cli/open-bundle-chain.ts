/**
 * The chain as bundles see it: our own nodes, and our own index, which reads back what was seeded.
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { NodeAnswer } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { createSpread, isTaken, type PostResult } from "../gateway/spread.ts";
import type { IndexReader } from "../store/index-types.ts";
import type { BundleChain, Posted } from "../upload/pipeline-parts.ts";

/** What it is made of. */
export type BundleChainParts = Readonly<{
  nodes: Nodes;
  reader: Pick<IndexReader, "tip" | "transactionStatus" | "bundleStatus">;
  /** Of the wallet that pays. */
  address: string;
  wantBundle: (id: Id) => Promise<void>;
}>;

/** Puts it together; it owns nothing. */
export function openBundleChain({ nodes, reader, address, wantBundle }: BundleChainParts): BundleChain {
  const spread = createSpread(nodes);
  return {
    anchor: async (signal) => given(await nodes.ask((node, own) => node.anchor(own), signal), "an anchor"),
    price: async (size, signal) =>
      given(await nodes.ask((node, own) => node.price(size, undefined, own), signal), "a price"),
    balance: async (signal) =>
      given(await nodes.ask((node, own) => node.balance(address, own), signal), "a balance"),
    post: async (path, body, signal) => postedOf(await spread.post(path, body, signal)),
    height: () => reader.tip()?.height,
    status: reader.transactionStatus,
    isKnown: async (id, signal) => {
      const { kind } = await nodes.ask((node, own) => node.txStatus(id, own), signal);
      // Trouble is no word about the transaction: whoever cannot know must not act as if it were gone.
      return kind !== "absent";
    },
    isReadBack: (id) => (reader.bundleStatus(id)?.lastFullyIndexedAt ?? null) !== null,
    wantIndexed: wantBundle,
  };
}

function given<Value>(answer: NodeAnswer<Value>, what: string): Value {
  if (answer.kind === "ok") return answer.value;
  throw new Failure("source_failed", { reason: `no node gives ${what}: ${answer.kind}` });
}

function postedOf(results: readonly PostResult[]): Posted {
  const answers = results.flatMap((result) => (result.kind === "answer" ? [result.answer] : []));
  if (answers.some(isTaken)) return { kind: "taken" };
  const refusal = answers.find(({ status }) => status >= 400 && status < 500 && status !== 429);
  if (refusal !== undefined) {
    const text = new TextDecoder().decode(refusal.body).slice(0, textLengthMax);
    return { kind: "refused", reason: `${refusal.status} ${text}` };
  }
  return { kind: "trouble", reason: `none of ${results.length} nodes answered` };
}

const textLengthMax = 200;
