/**
 * Asking chain nodes in a reader's name: those of best standing first, the next one also when one is slow,
 * many askers with one question, answers kept for a moment.
 *
 * An answer that a node gave is passed on with its status and text; only when no node answers is it trouble
 * of ours.
 * @module
 */
import { LRUCache } from "lru-cache";
import { type Trouble, trouble } from "../chain/http.ts";
import type { Node, NodeAnswer, RawAnswer, Relayed } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import { isTimeout, withDeadline } from "../lib/stop.ts";

/** What a node answered. */
export type RelayAnswer = Readonly<{ status: number; body: Uint8Array<ArrayBuffer> }>;

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
}>;

/** The longest that a reader waits for nodes. Milliseconds. */
export const nodesWaitMsMax = 20_000;

/** Bytes of answers that are kept. */
const keptBytesMax = 16 * 2 ** 20;

/** Creates a relay to nodes. @param waitMs - Longest wait for all of them. */
export function createRelay(nodes: Pick<Nodes, "ask">, waitMs = nodesWaitMsMax): Relay {
  const kept = new LRUCache<string, RelayAnswer>({ maxSize: keptBytesMax });
  const flights = createSingleFlight<RelayAnswer>();

  const ask = async (path: string, signal: AbortSignal): Promise<RelayAnswer> => {
    const troubles: Trouble[] = [];
    let absent: RelayAnswer | undefined;
    const askOne = async (node: Node, own: AbortSignal): Promise<NodeAnswer<RelayAnswer>> => {
      const said = readRelayed(await node.relay({ method: "GET", path }, own));
      if (said.kind === "trouble") troubles.push(said);
      else if (said.value.status === 404) absent = said.value;
      return said.kind === "ok" && said.value.status === 404 ? { kind: "absent" } : said;
    };
    try {
      const found = await withDeadline(signal, waitMs, (own) => nodes.ask(askOne, own));
      if (found.kind === "ok") return found.value;
    } catch (error) {
      if (signal.aborted || !isTimeout(error)) throw error;
      troubles.push(trouble("timeout", `no node answered within ${waitMs} ms`));
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

/** Statuses of 4xx that say nothing about what was asked for: too slow, too early, too many. */
const laterStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

/** An answer that only says that the node is in trouble, as that trouble; every other one as it is. */
function readRelayed(said: Relayed): Readonly<{ kind: "ok"; value: RelayAnswer }> | Trouble {
  if (said.kind === "trouble") return said;
  const { status } = said.value;
  return status >= 500 || laterStatuses.has(status)
    ? trouble("status", `status ${status}`, status)
    : { kind: "ok", value: relayAnswer(said.value) };
}

/** What is passed on of a node's answer. */
export function relayAnswer({ status, body }: RawAnswer): RelayAnswer {
  return { status, body: new Uint8Array(body) };
}
