/**
 * Asking chain nodes in a reader's name: one after the other until one answers, many askers with one
 * question, answers kept for a moment.
 *
 * An answer that a node gave is passed on with its status and text; only when no node answers is it trouble
 * of ours.
 * @module
 */
import { LRUCache } from "lru-cache";
import { type Trouble, trouble } from "../chain/http.ts";
import type { Node, RawAnswer, RawRequest, Relayed } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import { isTimeout, withDeadline } from "../lib/stop.ts";

/** What a node answered. */
export type RelayAnswer = Readonly<{ status: number; body: Uint8Array<ArrayBuffer> }>;

/** What one node made of something that was sent to all of them. */
export type PostResult = Readonly<{ peer: string }> &
  (Readonly<{ answer: RelayAnswer }> | Readonly<{ trouble: Trouble }>);

/** Asks nodes. */
export type Relay = Readonly<{
  /**
   * Asks for a path.
   *
   * @param keptMs - How long an answer of 200 is given again without asking; 0 asks each time.
   * @throws Failure `source_failed`, `source_timeout`, `busy` when no node answered; also when one says that it has not
   * what is asked for while another could not be asked, which may have it.
   */
  get: (path: string, keptMs: number, signal: AbortSignal) => Promise<RelayAnswer>;
  /** Sends a body to every node; a node that does not answer is a result too. */
  post: (path: string, body: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<readonly PostResult[]>;
}>;

/** The longest that a reader waits for nodes. Milliseconds. */
const waitMsMax = 20_000;

/** Bytes of answers that are kept. */
const keptBytesMax = 16 * 2 ** 20;

/** Creates a relay to nodes, asked in the order of their standing. @param waitMs - Longest wait for nodes. */
export function createRelay(nodes: Nodes, waitMs = waitMsMax): Relay {
  const kept = new LRUCache<string, RelayAnswer>({ maxSize: keptBytesMax });
  const flights = createSingleFlight<RelayAnswer>();

  const ask = async (path: string, signal: AbortSignal): Promise<RelayAnswer> => {
    const troubles: Trouble[] = [];
    const endsAt = performance.now() + waitMs;
    let absent: RelayAnswer | undefined;
    for (const node of nodes.inOrder()) {
      const asked = await askWithin(node, { method: "GET", path }, endsAt - performance.now(), signal);
      const answer = asked.kind === "ok" ? troubleIn(asked.value) : asked;
      if (answer.kind === "trouble") troubles.push(answer);
      else if (answer.value.status === 404) absent = answered(answer.value);
      else return answered(answer.value);
    }
    if (absent !== undefined && troubles.length === 0) return absent;
    throw noAnswer(path, troubles);
  };

  return {
    get: async (path, keptMs, signal) => {
      const known = kept.get(path);
      if (known !== undefined) return known;
      const answer = await flights.run(path, signal, (own) => ask(path, own));
      if (keptMs > 0 && answer.status === 200)
        kept.set(path, answer, { ttl: keptMs, size: answer.body.byteLength + path.length + 1 });
      return answer;
    },
    post: async (path, body, signal) =>
      await Promise.all(
        nodes.all.map(async (node): Promise<PostResult> => {
          const headers = { "content-type": "application/json" };
          const answer = await askWithin(node, { method: "POST", path, headers, body }, waitMs, signal);
          const peer = node.url;
          return answer.kind === "trouble"
            ? { peer, trouble: answer }
            : { peer, answer: answered(answer.value) };
        }),
      ),
  };
}

/** The failure that troubles amount to: a time-out only when nothing else went wrong. */
export function noAnswer(asked: string, troubles: readonly Trouble[]): Failure {
  const reasons = troubles.map(({ reason, detail }) => `${reason}: ${detail}`);
  const every = (wanted: Trouble["reason"]) =>
    troubles.length > 0 && troubles.every(({ reason }) => reason === wanted);
  if (every("timeout")) return new Failure("source_timeout", { asked, reasons });
  return new Failure(every("busy") ? "busy" : "source_failed", { asked, reasons });
}

/** Asks a node for as long as there is time: one that is slow is trouble, as one is that says nothing. */
async function askWithin(node: Node, request: RawRequest, ms: number, signal: AbortSignal): Promise<Relayed> {
  try {
    return await withDeadline(signal, Math.max(0, ms), (own) => node.relay(request, own));
  } catch (error) {
    if (signal.aborted || !isTimeout(error)) throw error;
    return trouble("timeout", `${node.url} did not answer in time`);
  }
}

function answered({ status, body }: RawAnswer): RelayAnswer {
  return { status, body: new Uint8Array(body) };
}

/** Statuses of 4xx that say nothing about what was asked for: too slow, too early, too many. */
const laterStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

/** An answer that only says that the node is in trouble, as that trouble; every other one as it is. */
function troubleIn(value: RawAnswer): Relayed {
  const { status } = value;
  return status >= 500 || laterStatuses.has(status)
    ? trouble("status", `status ${status}`, status)
    : { kind: "ok", value };
}
