/**
 * Relays requests to chain nodes: best rated first, the next one also after a timeout, concurrent requests shared,
 * responses cached briefly.
 *
 * A node's response is relayed with its status and text. Only when no node responds, the request fails.
 * of ours.
 * @module
 */
import { LRUCache } from "lru-cache";
import {
  laterStatuses,
  type Node,
  type NodeResponse,
  policyStatuses,
  type RawResponse,
  type Relayed,
} from "../chain/node.ts";
import type { Nodes } from "../chain/nodes.ts";
import { Failure } from "../failures.ts";
import { createByteBudget } from "../lib/byte-budget.ts";
import { type Fault, fault as problem } from "../lib/http-client.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import { isTimeout, withDeadline } from "../lib/stop.ts";

/** A node's response. */
export type RelayResponse = Readonly<{
  status: number;
  body: Uint8Array<ArrayBuffer>;
  /** Reason of a rejected post from `X-Reject-Reason`: one bounded line of printable ASCII. */
  rejectReason?: string;
}>;

export type Relay = Readonly<{
  /**
   * Requests a path.
   *
   * @param ttlMs - Time to live of a response with status 200; 0 disables the cache.
   * @param check - Finds the fault of a response with status 200: the node is then rated down and the next one asked.
   * Always the same for the same path.
   * @throws Failure `source_failed`, `source_timeout`, `busy` when no node responded; also when one responds 404 while
   * another, which may have the resource, is unreachable.
   */
  get: (path: string, retentionMs: number, signal: AbortSignal, check?: RelayCheck) => Promise<RelayResponse>;
  /** Drops cached and pending responses: the chain has changed. */
  forgetAll: () => void;
}>;

/** Returns the fault of a response with status 200; `undefined` when it is valid. */
export type RelayCheck = (
  body: RelayResponse["body"],
  signal: AbortSignal,
) => Promise<string | undefined> | string | undefined;

/** Timeout of a relayed request. Milliseconds. */
export const nodesWaitMsMax = 20_000;

/** Memory of responses being read. Small ones are not limited in number. */
const readBytesMax = 64 * 2 ** 20;
const smallBytesMax = 64 * 2 ** 10;

/** Longest wait for this memory. Milliseconds. */
const readWaitMsMax = 3_000;

/** Memory of cached responses, and of an entry beside its body and its path. Bytes. */
const storedBytesMax = 16 * 2 ** 20;
const entryBytes = 512;

/**
 * Creates a relay to nodes.
 *
 * @param waitMs - Timeout for all nodes together.
 * @param reads - Memory of responses being read.
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
        throw new Failure("busy", { path, bytes, reason: "responses of nodes use all of their memory" });
      if (isOver)
        reads.release(everybody, bytes); // another node has responded meanwhile
      else heldBytes += bytes;
    };
    const askOne = async (node: Node, own: AbortSignal): Promise<NodeResponse<RelayResponse>> => {
      const said = await checked(readRelayed(await node.relay({ method: "GET", path, hold }, own)), check, own);
      if (said.kind === "fault") faults.push(said);
      else if (said.value.status === 404) absent = said.value;
      return said.kind === "ok" && said.value.status === 404 ? { kind: "absent" } : said;
    };
    try {
      const found = await withDeadline(signal, waitMs, (own) => nodes.ask(askOne, own));
      if (found.kind === "ok") return found.value;
    } catch (error) {
      if (signal.aborted || !isTimeout(error)) throw error;
      faults.push(problem("timeout", `no node responded within ${waitMs} ms`));
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
        stored.set(path, response, {
          ttl: retentionMs,
          size: response.body.byteLength + path.length + (response.rejectReason?.length ?? 0) + entryBytes,
        });
      return response;
    },
  };
}

/** Responses are shared by requests, so their memory is not charged to a client. */
const everybody = "";

/** The failure for a list of faults: a timeout only when every fault is one. */
export function noResponse(asked: string, faults: readonly Fault[]): Failure {
  const reasons = faults.map(({ reason, detail }) => `${reason}: ${detail}`);
  const every = (wanted: Fault["reason"]) => faults.length > 0 && faults.every(({ reason }) => reason === wanted);
  if (every("timeout")) return new Failure("source_timeout", { asked, reasons });
  return new Failure(every("busy") ? "busy" : "source_failed", { asked, reasons });
}

/** Converts a response about the node's own state into a fault; returns others unchanged. */
function readRelayed(said: Relayed): Readonly<{ kind: "ok"; value: RelayResponse }> | Fault {
  if (said.kind === "fault") return said;
  const { status } = said.value;
  return status >= 500 || laterStatuses.has(status) || policyStatuses.has(status)
    ? problem("status", `status ${status}`, status)
    : { kind: "ok", value: relayResponse(said.value) };
}

const nothingKnown: RelayCheck = () => undefined;

/** Converts an invalid response into a fault. */
async function checked(
  said: Readonly<{ kind: "ok"; value: RelayResponse }> | Fault,
  check: RelayCheck,
  signal: AbortSignal,
): Promise<Readonly<{ kind: "ok"; value: RelayResponse }> | Fault> {
  if (said.kind === "fault" || said.value.status !== 200) return said;
  const fault = await check(said.value.body, signal);
  return fault === undefined ? said : problem("wrong", fault);
}

/** The parts of a node's response that are relayed. */
export function relayResponse({ status, headers, body }: RawResponse): RelayResponse {
  const rejectReason = rejectReasonOf(headers);
  return { status, body: new Uint8Array(body), ...(rejectReason !== undefined && { rejectReason }) };
}

/** Characters of a relayed reason. */
const rejectReasonLengthMax = 1_000;

function rejectReasonOf(headers: Headers): string | undefined {
  const text = headers.get("x-reject-reason")?.slice(0, rejectReasonLengthMax);
  const line = text?.replace(/[^\x20-\x7e]/g, "?").trim();
  return line === "" ? undefined : line;
}
