/**
 * A node that serves a scripted chain over a real socket, and fails as the script says.
 * @module
 */
import type { Id } from "../../src/arweave/id.ts";
import { chainTo, type ScriptedBlock, type ScriptedTransaction } from "./scripted-chain.ts";

/** What a request meets instead of its answer; undefined: its answer. */
export type Fault =
  | Readonly<{ kind: "status"; status: number; body?: string }>
  | Readonly<{ kind: "delay"; ms: number }>
  | Readonly<{ kind: "truncate" }>
  | Readonly<{ kind: "cut" }>
  | Readonly<{ kind: "spoil"; at: number }>
  | undefined;

/** A node under the script's control. */
export type ScriptedNode = Readonly<{
  url: string;
  /** Makes a block the tip; the chain is what leads to it. */
  setTip: (tip: ScriptedBlock) => void;
  /** Ids that the node does not have, and ids that it has only in its mempool, though blocks name them. */
  missing: Set<Id>;
  pendingOnly: Set<Id>;
  /** Transactions of the mempool. */
  mempool: Map<Id, ScriptedTransaction>;
  /** Asked of every request. */
  setFault: (fault: (path: string) => Fault) => void;
  /** Requests so far, by path. */
  requests: () => ReadonlyMap<string, number>;
  stop: () => Promise<void>;
}>;

/** Opens a node on a free port of this machine. */
export function openScriptedNode(tip: ScriptedBlock): ScriptedNode {
  let blocks: readonly ScriptedBlock[] = [];
  let byHash = new Map<string, ScriptedBlock>();
  let transactions = new Map<string, ScriptedTransaction>();
  let faultOf: (path: string) => Fault = () => undefined;
  const missing = new Set<Id>();
  const pendingOnly = new Set<Id>();
  const mempool = new Map<Id, ScriptedTransaction>();
  const counts = new Map<string, number>();

  const setTip = (block: ScriptedBlock) => {
    blocks = chainTo(block);
    byHash = new Map(blocks.map((one) => [one.hash, one]));
    transactions = new Map(
      blocks.flatMap((one) => one.transactions.map((each) => [each.transaction.id as string, each] as const)),
    );
  };
  setTip(tip);

  const blockAnswer = (block: ScriptedBlock | undefined) =>
    block === undefined ? new Response("Block not found.", { status: 404 }) : new Response(block.text);

  const transactionAnswer = (id: string, isMempoolShown: boolean) => {
    const waiting = mempool.get(id as Id);
    if (waiting !== undefined)
      return isMempoolShown ? new Response(waiting.text) : new Response("Pending", { status: 202 });
    if (pendingOnly.has(id as Id)) return new Response("Pending", { status: 202 });
    const found = missing.has(id as Id) ? undefined : transactions.get(id);
    return found === undefined ? new Response("Not Found.", { status: 404 }) : new Response(found.text);
  };

  const answer = (path: string): Response => {
    const [, first = "", second = "", third = ""] = path.split("/");
    const top = blocks.at(-1);
    switch (first) {
      case "info":
        return Response.json({
          network: "scripted.1",
          height: top?.height ?? -1,
          current: top?.hash ?? "",
          blocks: blocks.length,
        });
      case "height":
        return new Response(String(top?.height ?? -1));
      case "block":
        return blockAnswer(second === "height" ? blocks[Number(third)] : byHash.get(third));
      case "unconfirmed_tx":
        return transactionAnswer(second, true);
      case "tx":
        return second === "pending" ? Response.json([...mempool.keys()]) : transactionAnswer(second, false);
      default:
        return new Response("Request type not found.", { status: 400 });
    }
  };

  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const path = new URL(request.url).pathname;
      counts.set(path, (counts.get(path) ?? 0) + 1);
      const fault = faultOf(path);
      if (fault === undefined) return answer(path);
      switch (fault.kind) {
        case "status":
          return new Response(fault.body ?? "", { status: fault.status });
        case "delay":
          await Bun.sleep(fault.ms);
          return answer(path);
        default:
          return spoiled(await answer(path).bytes(), fault);
      }
    },
  });

  return {
    url: `http://127.0.0.1:${server.port}`,
    setTip,
    missing,
    pendingOnly,
    mempool,
    setFault: (fault) => {
      faultOf = fault;
    },
    requests: () => counts,
    stop: () => server.stop(true),
  };
}

function spoiled(
  body: Uint8Array,
  fault: Readonly<{ kind: "truncate" | "cut" } | { kind: "spoil"; at: number }>,
): Response {
  const half = body.slice(0, Math.floor(body.length / 2));
  switch (fault.kind) {
    case "truncate":
      return new Response(half);
    case "cut":
      return new Response(
        new ReadableStream({
          start(controller) {
            controller.enqueue(half);
            controller.error(new Error("cut by the script"));
          },
        }),
      );
    case "spoil": {
      const changed = body.slice();
      const at = fault.at % changed.length;
      changed[at] = (changed[at] ?? 0) ^ 1;
      return new Response(changed);
    }
  }
}
