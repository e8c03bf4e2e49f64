/**
 * Sends a body to every node and returns when enough of them accepted it. The others continue in the background,
 * with a timeout each and a limit on their bytes.
 *
 * Otherwise one silent node would cost every chunk of an upload the whole timeout. A failing node is skipped while
 * others work.
 * @module
 */
import type { Node, Relayed } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { type Fault, fault } from "../lib/http-client.ts";
import { ignoreRejection, isTimeout, linkedController, untilStopped, withDeadline } from "../lib/stop.ts";
import { nodesWaitMsMax, type RelayResponse, relayResponse } from "./relay.ts";

/** Result of one node. */
export type PostResult = Readonly<{ peer: string }> &
  (
    | Readonly<{ kind: "response"; response: RelayResponse }>
    | Readonly<{ kind: "fault"; fault: Fault }>
    /** Skipped, or not waited for; with the reason. */
    | Readonly<{ kind: "skipped"; reason: string }>
  );

export type Spread = Readonly<{
  /**
   * Sends a body to every node.
   *
   * @param signal - Aborts the call, but not the requests in the background.
   * @param accept - The media type to request; any by default.
   * @returns The result of each node, in the nodes' order. While no node has accepted, all are waited for.
   */
  post: (
    path: string,
    body: Uint8Array<ArrayBuffer>,
    signal: AbortSignal,
    accept?: string,
  ) => Promise<readonly PostResult[]>;
}>;

/** Timeouts. Milliseconds. */
export type SpreadTimes = Readonly<{
  /** Longest wait for a node. */
  waitMs: number;
  /** Longest wait for the others once one has accepted. */
  graceMs: number;
}>;

/** Grace after the first accepting node; slower nodes count as slow or dead. */
const timesDefault: SpreadTimes = { waitMs: nodesWaitMsMax, graceMs: 1_000 };

/** Number of accepting nodes that suffices: the network distributes the body from there. */
const enough = 3;

/** Memory of bodies sent in the background; beyond it, callers wait. Bytes. */
const backgroundBytesMax = 64 * 2 ** 20;

/** Statuses of acceptance: accepted, already known, stored temporarily. */
const takenStatuses: ReadonlySet<number> = new Set([200, 208, 303]);

/** Whether a node has the posted body. */
export function isTaken({ status }: RelayResponse): boolean {
  return takenStatuses.has(status);
}

type Post = Readonly<{ path: string; body: Uint8Array<ArrayBuffer>; accept: string | undefined }>;

type Sending = Readonly<{
  /** By node; absent until it has responded. */
  results: ReadonlyMap<Node, PostResult>;
  /** Fulfilled when enough nodes accepted, when one accepted and the grace is over, or when all responded. */
  answerable: Promise<void>;
  all: Promise<unknown>;
}>;

/** @param note - Called with the results of each post. */
export function createSpread(
  nodes: Pick<Nodes, "all" | "rests" | "noteResponse" | "noteFault">,
  times = timesDefault,
  note: (path: string, results: readonly PostResult[]) => void = () => undefined,
): Spread {
  let backgroundBytes = 0;

  /** Sends to one node and records the result. Rejects with the signal's reason only. */
  async function sendTo(node: Node, post: Post, signal: AbortSignal) {
    const startedAt = performance.now();
    const said = await askWithin(node, post, times.waitMs, signal);
    const peer = node.url;
    if (said.kind === "fault") {
      if (said.reason !== "busy") nodes.noteFault(node);
      return { peer, kind: "fault", fault: said } as const;
    }
    if (said.value.status >= 500) nodes.noteFault(node);
    else nodes.noteResponse(node, performance.now() - startedAt);
    return { peer, kind: "response", response: relayResponse(said.value) } as const;
  }

  function send(asked: readonly Node[], post: Post, signal: AbortSignal): Sending {
    const results = new Map<Node, PostResult>();
    const { promise: answerable, resolve, reject } = Promise.withResolvers<void>();
    let takenCount = 0;
    let grace: Timer | undefined;
    const note = (node: Node, result: PostResult) => {
      results.set(node, result);
      if (result.kind === "response" && isTaken(result.response)) takenCount += 1;
      if (takenCount > 0) grace ??= setTimeout(resolve, times.graceMs);
      if (takenCount >= enough) resolve();
    };
    const all = Promise.all(asked.map(async (node) => note(node, await sendTo(node, post, signal)))).finally(() =>
      clearTimeout(grace),
    );
    all.then(() => resolve(), reject);
    return { results, answerable, all };
  }

  /** Waits until the call may return; remaining requests continue in the background. */
  async function settle({ answerable, all }: Sending, size: number): Promise<void> {
    await answerable;
    if (backgroundBytes + size > backgroundBytesMax) await all;
    backgroundBytes += size;
    const done = () => {
      backgroundBytes -= size;
    };
    ignoreRejection(all.then(done, done));
  }

  return {
    async post(path, body, signal, accept) {
      const awake = nodes.all.filter((node) => !nodes.rests(node));
      const asked = awake.length > 0 ? awake : nodes.all;
      const own = linkedController(signal);
      const sending = send(asked, { path, body, accept }, own.controller.signal);
      try {
        await untilStopped(settle(sending, body.byteLength), signal);
      } finally {
        own.unlink();
      }
      const skipped = (node: Node) => (asked.includes(node) ? "it has not responded yet" : "it failed a moment ago");
      const results = nodes.all.map(
        (node): PostResult => sending.results.get(node) ?? { peer: node.url, kind: "skipped", reason: skipped(node) },
      );
      note(path, results);
      return results;
    },
  };
}

/** Sends within a timeout; a slow node counts as failed. */
async function askWithin(node: Node, { path, body, accept }: Post, ms: number, signal: AbortSignal): Promise<Relayed> {
  const headers = { "content-type": "application/json", ...(accept !== undefined && { accept }) };
  try {
    return await withDeadline(signal, ms, (own) => node.relay({ method: "POST", path, headers, body }, own));
  } catch (error) {
    if (signal.aborted || !isTimeout(error)) throw error;
    return fault("timeout", `${node.url} did not respond in time`);
  }
}
