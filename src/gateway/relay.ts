/**
 * Asking chain nodes in a reader's name: those of best standing first, the next one also when one is slow,
 * many askers with one question, answers kept for a moment.
 *
 * An answer that a node gave is passed on with its status and text; only when no node answers is it trouble
 * of ours.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { Node, NodeResponse, RawResponse, Relayed } from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { createByteBudget } from "../lib/byte-budget.ts";
import { type Fault, fault as problem } from "../lib/http-client.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import { isTimeout, withDeadline } from "../lib/stop.ts";

/** What a node answered. */
export type RelayResponse = Readonly<{
  status: number;
  body: Uint8Array<ArrayBuffer>;
  /** Why it refused a post, where the node says so in `X-Reject-Reason`: one bounded line of printable ASCII. */
  rejectReason?: string;
}>;

/** Asks nodes. */
export type Relay = Readonly<{
  /**
   * Asks for a path.
   *
   * @param keptMs - How long an answer of 200 is given again without asking; 0 asks each time.
   * @param check - Says why an answer of 200 cannot be true: then the node is distrusted and the next one asked. Always
   * the same for the same path.
   * @throws Failure `source_failed`, `source_timeout`, `busy` when no node answered; also when one says that it has not
   * what is asked for while another could not be asked, which may have it.
   */
  get: (path: string, retentionMs: number, signal: AbortSignal, check?: RelayCheck) => Promise<RelayResponse>;
  /** Forgets every answer, also those of questions under way: the chain has changed. */
  forgetAll: () => void;
}>;

/** Says why a node's answer of 200 is not one to the question; `undefined` when nothing is wrong with it. */
export type RelayCheck = (
  body: RelayResponse["body"],
  signal: AbortSignal,
) => Promise<string | undefined> | string | undefined;

/** The longest that a reader waits for nodes. Milliseconds. */
export const nodesWaitMsMax = 20_000;

/** Bytes of answers that are read at once. Of small ones there may be any number that nodes are asked for. */
const readBytesMax = 64 * 2 ** 20;
const smallBytesMax = 64 * 2 ** 10;

/** Longest wait until an answer may be read. Milliseconds. */
const readWaitMsMax = 3_000;

/** Bytes of answers that are kept. */
const storedBytesMax = 16 * 2 ** 20;

/**
 * Creates a relay to nodes.
 *
 * @param waitMs - Longest wait for all of them.
 * @param reads - Memory of answers that are being read.
 */
export function createRelay(
  nodes: Pick<Nodes, "ask">,
  waitMs = nodesWaitMsMax,
  reads = createByteBudget({
    bytesMax: readBytesMax,
    clientBytesMax: readBytesMax,
    waitMsMax: readWaitMsMax,
  }),
): Relay {
  const stored = new LRUCache<string, RelayResponse>({ maxSize: storedBytesMax });
  const flights = createSingleFlight<RelayResponse>();

  const ask = async (path: string, check: RelayCheck, signal: AbortSignal): Promise<RelayResponse> => {
    const faults: Fault[] = [];
    let absent: RelayResponse | undefined;
    let readBytes = 0;
    let heldBytes = 0;
    let isOver = false;
    const hold = async (bytes: number): Promise<void> => {
      readBytes += bytes;
      if (readBytes <= smallBytesMax) return;
      if (!(await reads.takeSoon(everybody, bytes, 0, signal)))
        throw new Failure("busy", { path, bytes, reason: "nodes' answers use all the memory that they may" });
      if (isOver)
        reads.release(everybody, bytes); // another node has answered meanwhile
      else heldBytes += bytes;
    };
    const askOne = async (node: Node, own: AbortSignal): Promise<NodeResponse<RelayResponse>> => {
      const said = await checked(readRelayed(await node.relay({ method: "GET", path, hold }, own)), check, own);
      if (said.kind === "trouble") faults.push(said);
      else if (said.value.status === 404) absent = said.value;
      return said.kind === "ok" && said.value.status === 404 ? { kind: "absent" } : said;
    };
    try {
      const found = await withDeadline(signal, waitMs, (own) => nodes.ask(askOne, own));
      if (found.kind === "ok") return found.value;
    } catch (error) {
      if (signal.aborted || !isTimeout(error)) throw error;
      faults.push(problem("timeout", `no node answered within ${waitMs} ms`));
    } finally {
      if (heldBytes > 0) reads.release(everybody, heldBytes);
      isOver = true;
    }
    if (absent !== undefined && faults.length === 0) return absent;
    throw noResponse(path, faults);
  };

  let generation = 0;

  return {
    forgetAll: () => {
      generation += 1;
      stored.clear();
    },
    get: async (path, retentionMs, signal, check = nothingKnown) => {
      const known = stored.get(path);
      if (known !== undefined) return known;
      const asked = generation;
      const response = await flights.run(`${asked} ${path}`, signal, (own) => ask(path, check, own));
      if (retentionMs > 0 && response.status === 200 && asked === generation)
        stored.set(path, response, { ttl: retentionMs, size: response.body.byteLength + path.length + 1 });
      return response;
    },
  };
}

/** Answers are shared by those who ask: no client of ours has a share of their memory. */
const everybody = "";

/** The failure that troubles amount to: a time-out only when nothing else went wrong. */
export function noResponse(asked: string, faults: readonly Fault[]): Failure {
  const reasons = faults.map(({ reason, detail }) => `${reason}: ${detail}`);
  const every = (wanted: Fault["reason"]) => faults.length > 0 && faults.every(({ reason }) => reason === wanted);
  if (every("timeout")) return new Failure("source_timeout", { asked, reasons });
  return new Failure(every("busy") ? "busy" : "source_failed", { asked, reasons });
}

/** Statuses of 4xx that say nothing about what was asked for: too slow, too early, too many. */
const laterStatuses: ReadonlySet<number> = new Set([408, 425, 429]);

/** An answer that only says that the node is in trouble, as that trouble; every other one as it is. */
function readRelayed(said: Relayed): Readonly<{ kind: "ok"; value: RelayResponse }> | Fault {
  if (said.kind === "trouble") return said;
  const { status } = said.value;
  return status >= 500 || laterStatuses.has(status)
    ? problem("status", `status ${status}`, status)
    : { kind: "ok", value: relayResponse(said.value) };
}

const nothingKnown: RelayCheck = () => undefined;

/** An answer that is not one to the question, as that trouble. */
async function checked(
  said: Readonly<{ kind: "ok"; value: RelayResponse }> | Fault,
  check: RelayCheck,
  signal: AbortSignal,
): Promise<Readonly<{ kind: "ok"; value: RelayResponse }> | Fault> {
  if (said.kind === "trouble" || said.value.status !== 200) return said;
  const fault = await check(said.value.body, signal);
  return fault === undefined ? said : problem("wrong", fault);
}

/** What is passed on of a node's answer. */
export function relayResponse({ status, headers, body }: RawResponse): RelayResponse {
  const rejectReason = rejectReasonOf(headers);
  return { status, body: new Uint8Array(body), ...(rejectReason !== undefined && { rejectReason }) };
}

/** Characters of a reason that are passed on. */
const rejectReasonLengthMax = 1_000;

function rejectReasonOf(headers: Headers): string | undefined {
  const text = headers.get("x-reject-reason")?.slice(0, rejectReasonLengthMax);
  const line = text?.replace(/[^\x20-\x7e]/g, "?").trim();
  return line === "" ? undefined : line;
}
