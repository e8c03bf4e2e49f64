/**
 * Status of the chain's nodes: their heights, and the furthest node.
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
import type { IndexReader, Tip } from "../store/index/index-types.ts";
import { noResponse } from "./relay.ts";

/** A node's last status. */
export type NodeState = Readonly<{
  url: string;
  height: number;
  blocks: number;
  /** Milliseconds since the epoch. */
  seenAt: number;
  /** The node's own `/info`, as JSON text. */
  text: string;
}>;

export type Network = Readonly<{
  /**
   * The `/info` record of the furthest node, or one made from the index.
   *
   * @throws Failure `not_synced` when no node responds and the index is empty.
   */
  infoText: (signal: AbortSignal) => Promise<string>;
  /** The greatest height that a node or the index knows. Throws as {@link Network.infoText}. */
  height: (signal: AbortSignal) => Promise<number>;
  /** Requests every node's status unless it is fresh; does not fail when no node responds. */
  look: (signal: AbortSignal) => Promise<void>;
  /** Drops the cached statuses: the chain has changed. */
  forget: () => void;
  /** Last status of each node; nodes that never responded are absent. */
  nodes: () => readonly NodeState[];
}>;

/** Time to live of the statuses. Milliseconds. */
const retentionMs = 1_000;

/**
 * Timeout of a status request; a slow node must not delay the response.
 * Milliseconds.
 */
const waitMsMax = 3_000;

/** Uses the index when no node responds, and when it is ahead of the nodes. */
export function createNetwork(nodes: Pick<Nodes, "all">, reader: Pick<IndexReader, "tip">, clock: Clock): Network {
  const states = new Map<string, NodeState>();
  const flights = createSingleFlight<NodeState | undefined>();
  let furthest: NodeState | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  /** Results of requests that began before a chain change are neither cached nor shared with later requests. */
  let generation = 0;

  const ask = async (node: Node, signal: AbortSignal): Promise<NodeState | Fault> => {
    const response = await node.info(signal);
    if (response.kind === "fault") return response;
    const state = response.kind === "ok" ? readState(node.url, response.value, clock()) : undefined;
    if (state === undefined) return { kind: "fault", reason: "malformed", detail: `${node.url} gave no /info` };
    states.set(node.url, state);
    return state;
  };

  const askAll = async (signal: AbortSignal): Promise<NodeState | undefined> => {
    const asked = generation;
    const responses = await Promise.all(
      nodes.all.map((node) => withDeadline(signal, waitMsMax, (own) => quiet(ask(node, own), own))),
    );
    signal.throwIfAborted(); // every caller has left
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

/** A timeout counts as no response; the wait ends when the caller leaves. */
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

/** The node status record of the specification, from the index. */
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
