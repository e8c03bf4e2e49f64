/**
 * Sending a body to every node: answered when enough of them took it; the others are waited for in the
 * background, each for a bounded time, all of them with a bounded number of bytes.
 *
 * One silent node would else cost every chunk of an upload the whole time-out. A node in trouble is left out
 * while others are not.
 * @module
 */

import type { Node, Relayed } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { type Fault, fault } from "../lib/http-client.ts";
import { ignoreRejection, isTimeout, linkedController, untilStopped, withDeadline } from "../lib/stop.ts";
import { nodesWaitMsMax, type RelayResponse, relayResponse } from "./relay.ts";

/** What one node made of something that was sent to all of them. */
export type PostResult = Readonly<{ peer: string }> &
  (
    | Readonly<{ kind: "answer"; response: RelayResponse }>
    | Readonly<{ kind: "trouble"; fault: Fault }>
    /** Not asked, or not waited for; why. */
    | Readonly<{ kind: "skipped"; reason: string }>
  );

/** Sends to nodes. */
export type Spread = Readonly<{
  /**
   * Sends a body to every node.
   *
   * @param signal - Ends the sending; not what goes on in the background.
   * @param accept - The media type to ask nodes for; any, unless given.
   * @returns How each node took it, in the nodes' order. While none has taken it all are waited for.
   */
  post: (
    path: string,
    body: Uint8Array<ArrayBuffer>,
    signal: AbortSignal,
    accept?: string,
  ) => Promise<readonly PostResult[]>;
}>;

/** How long. Milliseconds. */
export type SpreadTimes = Readonly<{
  /** Longest wait for a node. */
  waitMs: number;
  /** Longest wait for the others once one has taken it. */
  graceMs: number;
}>;

/** A node that has taken it is as far away as others are: who takes longer than this is slow, or dead. */
const timesDefault: SpreadTimes = { waitMs: nodesWaitMsMax, graceMs: 1_000 };

/** So many that took it are enough: what one node has reaches all in time. */
const enough = 3;

/** Bodies that are held for nodes nobody waits for any more; beyond, the sender waits for them. Bytes. */
const backgroundBytesMax = 64 * 2 ** 20;

/** Statuses by which a node says that it has what was posted: taken, known already, kept for a time. */
const takenStatuses: ReadonlySet<number> = new Set([200, 208, 303]);

/** Whether a node has what was posted. */
export function isTaken({ status }: RelayResponse): boolean {
  return takenStatuses.has(status);
}

/** What is sent to a node. */
type Post = Readonly<{ path: string; body: Uint8Array<ArrayBuffer>; accept: string | undefined }>;

/** One body on its way. */
type Sending = Readonly<{
  /** By node; absent while it has not answered. */
  results: ReadonlyMap<Node, PostResult>;
  /** When enough have taken it, or one has and the grace is over, or all have answered. */
  answerable: Promise<void>;
  all: Promise<unknown>;
}>;

/** Creates the sender. @param note - Told of each sending, once it is answered. */
export function createSpread(
  nodes: Pick<Nodes, "all" | "rests" | "noteResponse" | "noteFault">,
  times = timesDefault,
  note: (path: string, results: readonly PostResult[]) => void = () => undefined,
): Spread {
  let backgroundBytes = 0;

  /** Sends to one node, and notes how it did. Rejects with the signal's reason only. */
  async function sendTo(node: Node, post: Post, signal: AbortSignal) {
    const startedAt = performance.now();
    const said = await askWithin(node, post, times.waitMs, signal);
    const peer = node.url;
    if (said.kind === "trouble") {
      if (said.reason !== "busy") nodes.noteFault(node);
      return { peer, kind: "trouble", fault: said } as const;
    }
    if (said.value.status >= 500) nodes.noteFault(node);
    else nodes.noteResponse(node, performance.now() - startedAt);
    return { peer, kind: "answer", response: relayResponse(said.value) } as const;
  }

  function send(asked: readonly Node[], post: Post, signal: AbortSignal): Sending {
    const results = new Map<Node, PostResult>();
    const { promise: answerable, resolve, reject } = Promise.withResolvers<void>();
    let takenCount = 0;
    let grace: Timer | undefined;
    const note = (node: Node, result: PostResult) => {
      results.set(node, result);
      if (result.kind === "answer" && isTaken(result.response)) takenCount += 1;
      if (takenCount > 0) grace ??= setTimeout(resolve, times.graceMs);
      if (takenCount >= enough) resolve();
    };
    const all = Promise.all(asked.map(async (node) => note(node, await sendTo(node, post, signal)))).finally(() =>
      clearTimeout(grace),
    );
    all.then(() => resolve(), reject);
    return { results, answerable, all };
  }

  /** Waits as long as the sender must; afterwards the rest, if any, goes on without it. */
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
      const skipped = (node: Node) =>
        asked.includes(node) ? "it has not answered yet" : "it was in trouble a moment ago";
      const results = nodes.all.map(
        (node): PostResult => sending.results.get(node) ?? { peer: node.url, kind: "skipped", reason: skipped(node) },
      );
      note(path, results);
      return results;
    },
  };
}

/** Sends for as long as there is time: a node that is slow is trouble, as one is that says nothing. */
async function askWithin(node: Node, { path, body, accept }: Post, ms: number, signal: AbortSignal): Promise<Relayed> {
  const headers = { "content-type": "application/json", ...(accept !== undefined && { accept }) };
  try {
    return await withDeadline(signal, ms, (own) => node.relay({ method: "POST", path, headers, body }, own));
  } catch (error) {
    if (signal.aborted || !isTimeout(error)) throw error;
    return fault("timeout", `${node.url} did not answer in time`);
  }
}
