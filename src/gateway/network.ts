/**
 * What the chain's nodes say of themselves: how far they are, and which of them is furthest.
 * @module
 */

import type { Node } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import type { Clock } from "../lib/clock.ts";
import type { Fault } from "../lib/http-client.ts";
import { isJsonObject, type JsonObject, readJson } from "../lib/json.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import { withDeadline } from "../lib/stop.ts";
import type { IndexReader, Tip } from "../store/index/types.ts";
import { noResponse } from "./relay.ts";

/** What a node last said of itself. */
export type NodeState = Readonly<{
  url: string;
  height: number;
  blocks: number;
  /** Milliseconds since the epoch. */
  seenAt: number;
  /** The node's own `/info`, as JSON text. */
  text: string;
}>;

/** The chain as seen from here. */
export type Network = Readonly<{
  /**
   * The `/info` record of the node that is furthest, else one made from the index.
   *
   * @throws Failure `not_synced` when no node answers and nothing was ever followed.
   */
  infoText: (signal: AbortSignal) => Promise<string>;
  /** The greatest height that a node or the index knows. Throws as {@link Network.infoText}. */
  height: (signal: AbortSignal) => Promise<number>;
  /** Asks every node for its state, unless that was done a moment ago; that none answers is not a failure. */
  look: (signal: AbortSignal) => Promise<void>;
  /** Asks again when it is asked next: the chain has changed. */
  forget: () => void;
  /** What each node last said; nodes that never answered are absent. */
  nodes: () => readonly NodeState[];
}>;

/** What nodes say is believed for this long. Milliseconds. */
const retentionMs = 1_000;

/**
 * The longest wait for a node's word on itself; a slow node must not hold up the others' answer.
 * Milliseconds.
 */
const waitMsMax = 3_000;

/** Creates the view; the index is asked when no node answers, and when it is ahead of them. */
export function createNetwork(nodes: Pick<Nodes, "all">, reader: Pick<IndexReader, "tip">, clock: Clock): Network {
  const states = new Map<string, NodeState>();
  const flights = createSingleFlight<NodeState | undefined>();
  let furthest: NodeState | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  /** Answers under way when the chain changed are not kept, and nobody who asks later waits for them. */
  let generation = 0;

  const ask = async (node: Node, signal: AbortSignal): Promise<NodeState | Fault> => {
    const response = await node.info(signal);
    if (response.kind === "trouble") return response;
    const state = response.kind === "ok" ? readState(node.url, response.value, clock()) : undefined;
    if (state === undefined) return { kind: "trouble", reason: "malformed", detail: `${node.url} gave no /info` };
    states.set(node.url, state);
    return state;
  };

  const askAll = async (signal: AbortSignal): Promise<NodeState | undefined> => {
    const asked = generation;
    const responses = await Promise.all(
      nodes.all.map((node) => withDeadline(signal, waitMsMax, (own) => quiet(ask(node, own), own))),
    );
    signal.throwIfAborted(); // nobody waits any more, and nothing was learnt
    const alive = responses.filter((response) => response !== undefined && "height" in response);
    const found = alive.toSorted((a, b) => b.height - a.height)[0];
    if (asked === generation) {
      furthest = found;
      askedAt = clock();
    }
    return found;
  };

  const fresh = async (signal: AbortSignal): Promise<NodeState | undefined> =>
    clock() - askedAt < retentionMs ? furthest : await flights.run(`info ${generation}`, signal, askAll);

  const nothingKnown = () => new Failure("not_synced", {}, noResponse("/info", []));

  return {
    infoText: async (signal) => {
      const best = await fresh(signal);
      if (best !== undefined) return best.text;
      const tip = reader.tip();
      if (tip === undefined) throw nothingKnown();
      return JSON.stringify(infoOfIndex(tip));
    },
    height: async (signal) => {
      const best = await fresh(signal);
      const heights = [best?.height, reader.tip()?.height].filter((height) => height !== undefined);
      if (heights.length === 0) throw nothingKnown();
      return Math.max(...heights);
    },
    look: async (signal) => {
      await fresh(signal);
    },
    forget: () => {
      generation += 1;
      askedAt = Number.NEGATIVE_INFINITY;
    },
    nodes: () => [...states.values()],
  };
}

/** A node that does not answer in time is like one that does not answer; a caller who left ends the wait. */
async function quiet<Value>(asking: Promise<Value>, own: AbortSignal): Promise<Value | undefined> {
  try {
    return await asking;
  } catch (error) {
    if (own.aborted) return undefined;
    throw error;
  }
}

function readState(url: string, text: string, seenAt: number): NodeState | undefined {
  const info = readJson(text);
  if (!isJsonObject(info)) return undefined;
  const height = wholeNumber(info, "height");
  return height === undefined
    ? undefined
    : { url, height, blocks: wholeNumber(info, "blocks") ?? height + 1, seenAt, text };
}

function wholeNumber(record: JsonObject, name: string): number | undefined {
  const value = record[name];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** The node status record of the specification, from what was followed. */
function infoOfIndex({ height, hash }: Tip): JsonObject {
  return {
    network: "arweave.N.1",
    version: 5,
    release: 0,
    height,
    current: hash,
    blocks: height + 1,
    peers: 0,
    queue_length: 0,
    node_state_latency: 0,
  };
}
