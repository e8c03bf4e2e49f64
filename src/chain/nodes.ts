/**
 * Several nodes of the chain: which to ask first, and one question to as many of them as it takes.
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { fault } from "../lib/http-client.ts";
import type { Log } from "../lib/log.ts";
import { askInOrder, summarize } from "./ask.ts";
import type { Node, NodeResponse } from "./node.ts";
import { createRanking, type Standing } from "./ranking.ts";

/** Why a value that a node gave is not true; undefined when it is. */
export type Check<Value> = (value: Value, node: Node) => string | undefined;

/** Several nodes. */
export type Nodes = Readonly<{
  /** Those it was made of. */
  all: readonly Node[];
  /**
   * The nodes in the order in which to ask them: better ones mostly first, then some of those that help out,
   * those that were in trouble or lied last.
   */
  inOrder: () => readonly Node[];
  /** Whether a node was in trouble, or lied, a short time ago. */
  rests: (node: Node) => boolean;
  /** Takes in a node that helps out: one that nobody here has chosen, so that whatever it says must be proven. */
  join: (node: Node) => void;
  /** Lets such a node go; it is closed by who opened it. */
  leave: (node: Node) => void;
  /**
   * Asks nodes until one answers with a value that passes its check; the next one also when one is slow. A
   * call may check for itself and answer trouble `wrong`: the node is then distrusted.
   * @returns The value; else `pending`, trouble if anyone was in trouble, a refusal, or `absent` when all say so.
   */
  ask: <Value>(
    call: (node: Node, signal: AbortSignal) => Promise<NodeResponse<Value>>,
    signal: AbortSignal,
    check?: Check<Value>,
  ) => Promise<NodeResponse<Value>>;
  /** Notes that a node said something that is provably not true. */
  distrust: (node: Node, reason: string) => void;
  /** Notes how a node did that was asked otherwise than through `ask`. */
  noteResponse: (node: Node, ms: number) => void;
  noteFault: (node: Node) => void;
  /** Of all, also of those that help out. */
  standing: () => readonly (Standing & Readonly<{ url: string }>)[];
  /** Ends every call under way. */
  close: () => void;
}>;

/** Nodes that help out with one question: strangers may be slow by intent, and each costs a wait. */
const helpersAskedMax = 5;

/** Joins nodes. @param random - in [0, 1). */
export function createNodes(
  all: readonly Node[],
  parts: Readonly<{ clock: Clock; random: () => number; log: Log }>,
): Nodes {
  const { clock, random, log } = parts;
  const ranking = createRanking(all, clock, random);
  const helpers = new Set<Node>();

  const rests = (node: Node): boolean => ranking.standing(node).restsUntil > clock();

  function inOrder(): readonly Node[] {
    const ordered = ranking.inOrder();
    if (helpers.size === 0) return ordered;
    const own = ordered.filter((node) => !helpers.has(node));
    const helping = ordered.filter((node) => helpers.has(node)).slice(0, helpersAskedMax);
    return [...own.filter((node) => !rests(node)), ...helping, ...own.filter(rests)];
  }

  function distrust(node: Node, reason: string): void {
    ranking.noteWrong(node);
    log.warn("a node said what is not true", { node: node.url, reason });
  }

  /** Asks one node and notes how it did. */
  async function askOne<Value>(
    node: Node,
    call: (node: Node, signal: AbortSignal) => Promise<NodeResponse<Value>>,
    check: Check<Value>,
    signal: AbortSignal,
  ): Promise<NodeResponse<Value>> {
    const startedAt = performance.now();
    const response = await call(node, signal);
    if (response.kind === "trouble") {
      if (response.reason === "wrong") distrust(node, response.detail);
      else if (response.reason !== "busy") ranking.noteFault(node);
      return response;
    }
    ranking.noteResponse(node, performance.now() - startedAt);
    const untruth = response.kind === "ok" ? check(response.value, node) : undefined;
    if (untruth === undefined) return response;
    distrust(node, untruth);
    return fault("wrong", `${node.url}: ${untruth}`);
  }

  return {
    all,
    inOrder,
    rests,
    join: (node) => {
      helpers.add(node);
      ranking.add(node);
    },
    leave: (node) => {
      if (helpers.delete(node)) ranking.remove(node);
    },
    async ask(call, signal, check = () => undefined) {
      const { final, others } = await askInOrder(
        {
          sources: inOrder(),
          ask: (node, own) => askOne(node, call, check, own),
          isFinal: ({ kind }) => kind === "ok",
          hedgeAfterMs: ranking.hedgeAfterMs,
          onOutrun: ranking.noteOutrun,
        },
        signal,
      );
      return final ?? summarize(others);
    },
    distrust,
    noteResponse: ranking.noteResponse,
    noteFault: ranking.noteFault,
    standing: () => [...all, ...helpers].map((node) => ({ url: node.url, ...ranking.standing(node) })),
    close: () => {
      for (const node of all) node.close();
    },
  };
}
