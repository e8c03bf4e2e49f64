/**
 * Memory of bodies: of responses until the client has received them, of requests until the response. All listeners
 * share one budget for each, and each client address has a share of it. A body that several responses share is counted
 * once.
 * Source: docs/decisions/091-body-memory.md.
 * @module
 */
import { Failure } from "../failures.ts";
import { type ByteBudget, createByteBudget } from "../lib/byte-budget.ts";
import { type BlobThread, type Compositions, createCompositions } from "../lib/event-loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import { addressBlock } from "./client-address.ts";
import {
  bodySizeOf,
  codeResponse,
  countedBytes,
  countedBytesMin,
  fileHolds,
  type HeldMemory,
  heldMemoryOf,
} from "./responses.ts";
import {
  createInFlightResponses,
  createSharedBlobs,
  type InFlightResponses,
  type ListenerRequests,
  type SharedBlobs,
} from "./responses-under-way.ts";

export type BodyMemory = Readonly<{
  open: (request: Request, listener: ListenerRequests) => MemoryAccount;
  /** Counts a response that was made at once if it is still being sent at the next check. */
  noteSent: (request: Request, listener: ListenerRequests, response: Response) => void;
  /** Whether the memory is so full that any response must be counted before it is sent. */
  isExhausted: (request: Request, listener: ListenerRequests) => boolean;
  responseBytes: () => number;
  requestBytes: () => number;
}>;

type BodyMemoryOptions = Readonly<{
  responseBytesMax: number;
  requestBytesMax: number;
  metrics: Metrics;
  /** Creates large Blobs; absent: the calling thread does. */
  blobThread?: BlobThread;
  /** Longest wait for bytes; {@link waitMsDefault} unless set. Milliseconds. */
  waitMsMax?: number;
}>;

/** The part of response memory that one client may use is 1 / `responseShare`: 32 MiB by default. */
const responseShare = 8;

/** The part of request memory is larger, because a client that posts chunks sends dozens of 750 KB at once. */
const requestShare = 4;

/**
 * Waiting requests hold the bytes that the runtime has read ahead: at most 1 / `requestsWaitingShare` of the memory.
 * With the default, 42 chunks of 750 KB of one client are read while 32 wait.
 */
const requestsWaitingShare = 2;

/** Longer than most responses take, shorter than clients wait. Milliseconds. */
const waitMsDefault = 3_000;

export function createBodyMemory(options: BodyMemoryOptions): BodyMemory {
  const { responseBytesMax, requestBytesMax, metrics, waitMsMax = waitMsDefault } = options;
  const responses = createByteBudget({
    bytesMax: responseBytesMax,
    clientBytesMax: responseBytesMax / responseShare,
    waitMsMax,
    collect: () => underWay.collect(),
  });
  const requests = createByteBudget({
    bytesMax: requestBytesMax,
    clientBytesMax: requestBytesMax / requestShare,
    waitMsMax,
    heldBytesMax: requestBytesMax / requestsWaitingShare,
  });
  const shared = createSharedBlobs(responses);
  addGauges(metrics, responses.bytes, requests.bytes);
  const count = countersIn(metrics);
  const underWay = createInFlightResponses({ responses, shared, responseBytesMax, onCut: count.cut });
  const compositions = createCompositions(responseBytesMax, options.blobThread);
  const parts = { responses, requests, shared, underWay, count, compositions };

  return {
    open: (request, listener) => openMemoryAccount(parts, request, listener),
    noteSent: (request, listener, response) => {
      if (holdsCounted(response, listener) || mayBeBuffered(response, listener))
        underWay.trackUncounted({ request, listener, response });
    },
    isExhausted: (request, listener) => {
      const bytes = responses.bytes();
      if (bytes <= responseBytesMax / responseShare) return false; // no client exceeds its share
      if (bytes >= responseBytesMax) return true;
      return responses.isOverShare(addressBlock(listener.clientAddressOf(request)));
    },
    responseBytes: responses.bytes,
    requestBytes: requests.bytes,
  };
}

function addGauges(metrics: Metrics, responseBytes: () => number, requestBytes: () => number): void {
  metrics.gaugeOf({
    name: "http_response_body_bytes",
    help: "Memory that bodies of responses under way hold, in bytes.",
    read: responseBytes,
  });
  metrics.gaugeOf({
    name: "http_request_body_bytes",
    help: "Memory that bodies of requests under way hold, in bytes.",
    read: requestBytes,
  });
}

function countersIn(metrics: Metrics) {
  const response = metrics.counter({
    name: "http_response_body_refused_total",
    help: "Responses replaced by 503 because bodies of responses used all of their memory.",
  });
  const request = metrics.counter({
    name: "http_request_body_refused_total",
    help: "Requests rejected with 503 because bodies of requests used all of their memory.",
  });
  const cut = metrics.counter({
    name: "http_slow_readers_cut_total",
    help: "Connections that were cut because they took too little of what was held for them.",
  });
  return {
    rejectedResponse: () => response.inc(),
    rejectedRequest: () => request.inc(),
    cut: (connections: number) => cut.inc(connections),
  };
}

/** Memory that one request holds. */
export type RequestMemory = Compositions &
  Readonly<{
    /**
     * Takes bytes for a response body that is about to be composed.
     * @throws Failure `busy` when they are not free in time.
     */
    holdResponse: (bytes: number) => Promise<void>;
    /** Takes bytes for a response body that is already in memory. Throws as above. */
    holdComposed: (bytes: number) => Promise<void>;
    /**
     * Takes bytes for the request's body, before it is read.
     *
     * @param aheadBytes - As much of the body as the runtime may read during a wait.
     * @throws Failure `busy` when they are not free in time.
     */
    holdRequest: (bytes: number, aheadBytes: number) => Promise<void>;
  }>;

type MemoryAccount = RequestMemory &
  Readonly<{
    /**
     * Releases the memory of the request's body, and counts the memory of the response until it is sent.
     * @returns The response, or 503 `busy` in its place when its bytes are not free in time.
     */
    settle: (response: Response) => Promise<Response>;
  }>;

type AccountParts = Readonly<{
  compositions: Compositions;
  responses: ByteBudget;
  requests: ByteBudget;
  shared: SharedBlobs;
  underWay: Pick<InFlightResponses, "track" | "trackUncounted">;
  count: Readonly<{ rejectedResponse: () => void; rejectedRequest: () => void }>;
}>;

/** For requests that did not arrive at a listener: nothing is counted. */
export const unlimitedMemory: RequestMemory = {
  ...createCompositions(),
  holdResponse: async () => undefined,
  holdComposed: async () => undefined,
  holdRequest: async () => undefined,
};

function openMemoryAccount(parts: AccountParts, request: Request, listener: ListenerRequests): MemoryAccount {
  const { requests, shared, underWay, count, compositions } = parts;
  let client: string | undefined;
  const clientOf = (): string => {
    client ??= addressBlock(listener.clientAddressOf(request));
    return client;
  };
  const held = createHolding(parts.responses, clientOf, request.signal);
  let requestBytes = 0;
  let isRejected = false;
  let isSettled = false;

  /** Requests of disconnected clients are not rejected. */
  const countRejected = (): void => {
    if (!request.signal.aborted) count.rejectedResponse();
  };
  const holdResponse = async (bytes: number, heldBytes: number): Promise<void> => {
    if (bytes < countedBytesMin || (await held.set(held.bytes() + bytes, heldBytes))) return;
    if (request.signal.aborted) throw request.signal.reason;
    isRejected = true;
    countRejected();
    throw new Failure("busy", { bytes, reason: "response bodies use all of their memory" });
  };
  const track = (blob: Blob | undefined, isStream: boolean): void => {
    const bytes = held.pass();
    if (bytes > 0 || blob !== undefined)
      underWay.track({ request, listener, client: clientOf(), bytes, blob, isStream, isSmall: false });
  };
  /** Takes the memory of a response. */
  const takeFor = async (memory: HeldMemory): Promise<boolean> => {
    if (memory.kind !== "shared") {
      const bytes = countedBytes(memory, listener.isEncrypted);
      return await held.set(bytes, memory.kind === "bytes" ? bytes : 0);
    }
    const { blob } = memory;
    if (blob.size < countedBytesMin || shared.join(clientOf(), blob)) return await held.set(0, 0);
    // The memory held for composing it stays held: released first, it would go to a request that waits.
    if (!(await held.set(blob.size, blob.size))) return false;
    shared.took(clientOf(), blob);
    held.pass(); // counted for the blob from now on
    return true;
  };

  return {
    ...compositions,
    holdResponse: (bytes) => holdResponse(bytes, 0),
    holdComposed: (bytes) => holdResponse(bytes, bytes),
    holdRequest: async (bytes, aheadBytes) => {
      if (bytes < countedBytesMin) return;
      if (await requests.takeSoon(clientOf(), bytes, aheadBytes, request.signal)) {
        // The read of a body goes on for a moment after the time for it has ended.
        if (isSettled) requests.release(clientOf(), bytes);
        else requestBytes += bytes;
        return;
      }
      if (request.signal.aborted) throw request.signal.reason;
      count.rejectedRequest();
      throw new Failure("busy", { bytes, reason: "request bodies use all of their memory" });
    },
    settle: async (response) => {
      if (requestBytes > 0) requests.release(clientOf(), requestBytes);
      requestBytes = 0;
      isSettled = true;
      const memory = heldMemoryOf(response);
      // Thousands of clients without memory would hold their connections, too.
      if (isRejected) response.headers.set("Connection", "close");
      if (memory !== undefined && !(await takeFor(memory))) {
        await held.set(0, 0);
        countRejected();
        if (memory.kind === "stream") await response.body?.cancel();
        return codeResponse("busy", { Connection: "close" });
      }
      const isCountedBlob = memory?.kind === "shared" && memory.blob.size >= countedBytesMin;
      track(isCountedBlob ? memory.blob : undefined, memory?.kind === "stream");
      if (mayBeBuffered(response, listener)) underWay.trackUncounted({ request, listener, response });
      return response;
    },
  };
}

/** The part of the budget that a response of one request holds. */
function createHolding(responses: ByteBudget, clientOf: () => string, signal: AbortSignal) {
  let held = 0;
  return {
    bytes: () => held,
    /** Sets the number of bytes; false when they are not free in time. */
    set: async (bytes: number, heldBytes: number): Promise<boolean> => {
      const more = bytes - held;
      if (more > 0 && !(await responses.takeSoon(clientOf(), more, heldBytes, signal))) return false;
      if (more < 0) responses.release(clientOf(), -more);
      held = bytes;
      return true;
    },
    /** Returns the bytes, which the caller must release. */
    pass: (): number => {
      const bytes = held;
      held = 0;
      return bytes;
    },
  };
}

/** Whether a response that was made at once is counted while it is sent: the kernel sends some files by itself. */
function holdsCounted(response: Response, { isEncrypted }: ListenerRequests): boolean {
  if (bodySizeOf(response) < countedBytesMin) return false;
  const memory = heldMemoryOf(response);
  return memory?.kind !== "file" || fileHolds(memory.bytes, isEncrypted) > 0;
}

/** Whether a small response may stay in the process: HTTP/2 buffers what exceeds the window of its stream. */
function mayBeBuffered(response: Response, { isEncrypted }: ListenerRequests): boolean {
  const size = isEncrypted ? bodySizeOf(response) : 0;
  return size > 0 && size < countedBytesMin;
}
