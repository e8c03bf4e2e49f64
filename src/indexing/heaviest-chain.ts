/**
 * The chain to follow when nodes disagree: the one with the greatest cumulative difficulty.
 *
 * Every node that the operator named states its tip. Where the tips differ, a tip counts only with its verified header,
 * and the index leaves its own branch only for headers that were verified from the common ancestor on, until their
 * cumulative difficulty exceeds that of the index. Proof of work is not computed again: headers are as honest as the
 * least honest node that the operator named.
 * Source: docs/reference/node-api.md#disagreeing-nodes.
 * @module
 */
import { type Block, readBlock } from "../arweave/block.ts";
import type { Node } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { withDeadline } from "../lib/stop.ts";
import type { IndexReader } from "../store/index/index-types.ts";
import type { Pool, Workers } from "../threads/pool.ts";
import { type ChainQuestions, createChainQuestions, type NodeTip, tipOfNode } from "./ask-chain.ts";

type ChainChoiceParts = Readonly<{
  nodes: Pick<Nodes, "all" | "ask" | "distrust" | "rests">;
  reader: Pick<IndexReader, "tip" | "block" | "blockText">;
  pool: Pick<Pool<Workers["verify"]>, "run">;
  clock: Clock;
  log: Log;
}>;

/** The tip to follow, and the nodes that have it. */
export type ChosenChain = Readonly<{
  tip: NodeTip;
  /** The nodes that stated this tip. */
  backers: ReadonlySet<Node>;
  /** Requests to the nodes that stated this tip; others only for what these lack. */
  nodes: Pick<Nodes, "all" | "ask" | "distrust">;
  questions: ChainQuestions;
  /** Whether nodes disagree, so that the index may leave its branch only for a heavier one. */
  isDisputed: boolean;
  /** Whether its header states a greater cumulative difficulty than ours. */
  isHeavier: boolean;
}>;

export type ChainChoice = Readonly<{
  /** Rejects with Failure `source_failed` when no node states a tip that counts; with the signal's reason. */
  choose: (signal: AbortSignal) => Promise<ChosenChain>;
  /**
   * Verifies headers of the chosen chain from a height on, whose parent the index has.
   * @returns Whether their cumulative difficulty exceeds that of the index. Otherwise the tip is rejected for a while.
   */
  outweighs: (chosen: ChosenChain, from: number, signal: AbortSignal) => Promise<boolean>;
  /** Rejects a tip for a while: a block of its branch is invalid, or cannot be had. */
  reject: (chosen: ChosenChain, reason: string) => void;
}>;

/** Limit of the nodes whose tips are requested at once. */
const nodesMax = 16;

/**
 * Wait for more tips after the first one: a slow node counts with its last tip, which none has at first. Milliseconds.
 */
const slowerMs = 500;
const firstMs = 3_000;
const tipTimeoutMs = 10_000;

/** Age at which a stated tip counts no longer. Milliseconds. */
const statedMs = 60_000;

/** Interval at which a node in backoff is asked too: its tip counts by its header, not by trust. Milliseconds. */
const restingMs = 5_000;

/** Time for which a tip is not considered: of an invalid chain, and of one whose blocks cannot be had. Milliseconds. */
const rejectedMs = { invalid: 5 * 60_000, lacking: 15_000 } as const;

/** Rejected tips and weights in memory. */
const tipsMax = 256;

/** Headers that are verified in one job. */
const headersAtOnce = 16;

/** Why a tip or a branch does not count. */
type Fault = Readonly<{ kind: keyof typeof rejectedMs; reason: string }>;

type Stated = Readonly<{ tip: NodeTip; at: number }>;

/** A tip, those who state it, and its verified header; without one where nodes agree. */
type Candidate = Readonly<{ tip: NodeTip; backers: ReadonlySet<Node>; weight: bigint | undefined }>;

export function createChainChoice(parts: ChainChoiceParts): ChainChoice {
  const { nodes, reader, clock, log } = parts;
  const rejected = new Map<string, Readonly<{ kind: Fault["kind"]; until: number }>>();
  const statedTips = createStatedTips(nodes, clock);
  const weights = createWeights(parts);

  const rejectionOf = (tip: NodeTip): Fault["kind"] | undefined => {
    const { kind, until } = rejected.get(nameOf(tip)) ?? {};
    return (until ?? 0) > clock() ? kind : undefined;
  };
  const reject = (tip: NodeTip, { kind, reason }: Fault): void => {
    if (rejectionOf(tip) === undefined)
      log.warn("a chain is not followed", { height: tip.height, hash: tip.hash, reason });
    if (rejected.size >= tipsMax) rejected.clear();
    rejected.set(nameOf(tip), { kind, until: clock() + rejectedMs[kind] });
  };

  /** The tips that count, with their weights. The tip of the index and its ancestors have the weight of the index. */
  const weigh = async (tips: readonly Candidate[], signal: AbortSignal): Promise<readonly Candidate[]> => {
    const ours = weights.ours();
    const weighed = tips.map(async (candidate): Promise<Candidate | undefined> => {
      const { tip, backers } = candidate;
      if (rejectionOf(tip) !== undefined) return undefined;
      if (tip.hash !== undefined && reader.block(tip.height)?.hash === tip.hash) return { ...candidate, weight: ours };
      const weight = await weights.ofTip(tip, backers, signal);
      if (typeof weight === "bigint") return { ...candidate, weight };
      reject(tip, weight);
      return undefined;
    });
    return (await Promise.all(weighed)).filter((candidate) => candidate !== undefined);
  };

  const chosenOf = ({ tip, backers, weight }: Candidate, isDisputed: boolean): ChosenChain => {
    const own = isDisputed ? backedBy(nodes, backers) : nodes;
    const isHeavier = weight !== undefined && weight > (weights.ours() ?? -1n);
    return { tip, backers, nodes: own, questions: createChainQuestions(own), isDisputed, isHeavier };
  };

  /** The tip of whichever node responds. */
  const chosenAlone = async (signal: AbortSignal): Promise<ChosenChain> => {
    const tip = await createChainQuestions(nodes).tip(signal);
    return chosenOf({ tip, backers: new Set(nodes.all), weight: undefined }, false);
  };

  return {
    choose: async (signal) => {
      if (nodes.all.length === 1) return await chosenAlone(signal);
      const tips = await statedTips(signal);
      const [only, ...others] = tips;
      // What all nodes have by now is followed also if it could not be had before.
      const isAgreed = only !== undefined && others.length === 0;
      if (isAgreed && rejectionOf(only.tip) !== "invalid") return chosenOf(only, false);
      const heaviest = heaviestOf(await weigh(tips, signal), reader.tip());
      if (heaviest !== undefined) return chosenOf(heaviest, true);
      if (only === undefined) await chosenAlone(signal); // rejects with the faults of the nodes, unless one came back
      throw new Failure("source_failed", { question: "tip", responses: [only === undefined ? "late" : "rejected"] });
    },
    outweighs: async (chosen, from, signal) => {
      const found = await weights.ofBranch(chosen, from, signal);
      if (found !== undefined) reject(chosen.tip, found);
      return found === undefined;
    },
    reject: ({ tip }, reason) => reject(tip, { kind: "lacking", reason }),
  };
}

/** Returns a function that requests the tips of the nodes, grouped by tip. */
function createStatedTips(nodes: ChainChoiceParts["nodes"], clock: Clock) {
  const stated = new Map<Node, Stated>();
  const asked = new Set<Node>();
  const askedAt = new Map<Node, number>();

  /**
   * Notes the tip of a node, also when it comes late. Never rejects. The last tip of a node that fails counts for a
   * while: a fault of one node must not leave the choice to the others.
   */
  const ask = async (node: Node, signal: AbortSignal): Promise<void> => {
    if (asked.has(node)) return;
    asked.add(node);
    askedAt.set(node, clock());
    try {
      const tip = await withDeadline(signal, tipTimeoutMs, (own) => tipOfNode(nodes, node, own));
      if (tip !== undefined) stated.set(node, { tip, at: clock() });
    } catch {
      // It is too slow, or the program stops.
    } finally {
      asked.delete(node);
    }
  };

  return async (signal: AbortSignal): Promise<readonly Candidate[]> => {
    for (const [node, { at }] of stated) if (clock() - at > statedMs) stated.delete(node);
    const isFirst = stated.size === 0;
    const isDue = (node: Node) => isFirst || !nodes.rests(node) || clock() - (askedAt.get(node) ?? 0) > restingMs;
    const requests = nodes.all
      .filter(isDue)
      .slice(0, nodesMax)
      .map((node) => ask(node, signal));
    if (requests.length > 0) await Promise.race(requests);
    await Promise.race([Promise.all(requests), Bun.sleep(isFirst ? firstMs : slowerMs)]);
    signal.throwIfAborted();
    const found = [...stated].map(([node, { tip }]) => ({ node, tip }));
    const groups = Map.groupBy(found, ({ tip }) => nameOf(tip));
    return [...groups.values()].flatMap((group) => {
      const tip = group[0]?.tip;
      return tip === undefined ? [] : [{ tip, backers: new Set(group.map(({ node }) => node)), weight: undefined }];
    });
  };
}

function nameOf({ height, hash = "" }: { height: number; hash?: string | undefined }): string {
  return `${height} ${hash}`;
}

/** The heaviest; of equal ones that of the index, then the highest, then the one with the most nodes. */
function heaviestOf(candidates: readonly Candidate[], ours: Readonly<{ hash: string }> | undefined) {
  const rank = ({ tip, backers }: Candidate) => [tip.hash === ours?.hash ? 1 : 0, tip.height, backers.size] as const;
  return candidates.toSorted((one, other) => {
    const [first, second] = [one.weight ?? 0n, other.weight ?? 0n];
    if (first !== second) return first > second ? -1 : 1;
    const [a, b] = [rank(one), rank(other)];
    return b[0] - a[0] || b[1] - a[1] || b[2] - a[2];
  })[0];
}

/** The nodes with their backers first; the others are asked only for what the backers do not give. */
function backedBy(nodes: ChainChoiceParts["nodes"], backers: ReadonlySet<Node>): ChosenChain["nodes"] {
  return {
    all: nodes.all,
    distrust: nodes.distrust,
    ask: async (call, signal, check, among = () => true) => {
      const isBacker = (node: Node) => backers.has(node) && among(node);
      const isOther = (node: Node) => !backers.has(node) && among(node);
      if (!nodes.all.some(isBacker)) return await nodes.ask(call, signal, check, isOther);
      const response = await nodes.ask(call, signal, check, isBacker);
      if (response.kind === "ok" || !nodes.all.some(isOther)) return response;
      const other = await nodes.ask(call, signal, check, isOther);
      return other.kind === "ok" ? other : response;
    },
  };
}

/** Cumulative difficulties, from headers. Blocks of the first years have none; their height is used. */
function createWeights({ nodes, reader, pool }: ChainChoiceParts) {
  const weightOf = ({ cumulativeDifficulty, height }: Block): bigint => cumulativeDifficulty ?? BigInt(height);
  /** Of verified tips, by name: a tip is fetched once. */
  const known = new Map<string, bigint>();

  /** Of the tip of the index: each round of following reads it. */
  let indexed: Readonly<{ hash: string; weight: bigint }> | undefined;

  const ours = (): bigint | undefined => {
    const tip = reader.tip();
    if (tip === undefined) return undefined;
    if (indexed?.hash === tip.hash) return indexed.weight;
    const text = reader.blockText(tip.height)?.text;
    indexed = text === undefined ? undefined : { hash: tip.hash, weight: weightOf(readBlock(text)) };
    return indexed?.weight;
  };

  const headerOf = async (height: number, backers: ReadonlySet<Node>, signal: AbortSignal) => {
    const isBacker = (node: Node) => backers.has(node);
    const response = await nodes.ask((node, own) => node.blockText(height, own), signal, undefined, isBacker);
    return response.kind === "ok" ? response.value : undefined;
  };

  const verify = async (headers: readonly string[], before: string | undefined, signal: AbortSignal) =>
    await pool.run("checkHeaders", { headers, before }, { signal });

  return {
    ours,
    /** The weight of a tip, or why it does not count. */
    ofTip: async (tip: NodeTip, backers: ReadonlySet<Node>, signal: AbortSignal): Promise<bigint | Fault> => {
      const name = nameOf(tip);
      const found = known.get(name);
      if (found !== undefined) return found;
      const text = await headerOf(tip.height, backers, signal);
      if (text === undefined) return { kind: "lacking", reason: "its nodes do not have its block" };
      const reason = await verify([text], undefined, signal);
      if (reason !== undefined) return { kind: "invalid", reason };
      const block = readBlock(text);
      if (block.height !== tip.height || (tip.hash !== undefined && block.hash !== tip.hash))
        return { kind: "lacking", reason: "its nodes have another block at its height" };
      if (known.size >= tipsMax) known.clear();
      known.set(name, weightOf(block));
      return weightOf(block);
    },
    /** Why the headers of a branch do not outweigh the index; undefined when they do. */
    ofBranch: async ({ tip, backers }: ChosenChain, from: number, signal: AbortSignal): Promise<Fault | undefined> => {
      const needed = ours();
      let before = reader.blockText(from - 1)?.text;
      for (let height = from; needed !== undefined && height <= tip.height; height += headersAtOnce) {
        const count = Math.min(headersAtOnce, tip.height - height + 1);
        // Headers of another node would be those of another branch, which show nothing about this one.
        const asked = Array.from({ length: count }, (_, at) => headerOf(height + at, backers, signal));
        const headers = (await Promise.all(asked)).filter((each) => each !== undefined);
        if (headers.length < count) return { kind: "lacking", reason: "its nodes do not have all of its blocks" };
        const reason = await verify(headers, before, signal);
        if (reason !== undefined) return { kind: "invalid", reason };
        before = headers.at(-1);
        if (before !== undefined && weightOf(readBlock(before)) > needed) return undefined;
      }
      return { kind: "invalid", reason: "its verified blocks do not outweigh those of the index" };
    },
  };
}
