/**
 * Memory of bodies: of responses until the client has received them, of requests until the response. All listeners
 * share one budget for each, and each client address has a share of it.
 * Source: docs/decisions/091-body-memory.md.
 * @module
 */
import { createByteBudget } from "../lib/byte-budget.ts";
import { type BlobThread, createCompositions } from "../lib/event-loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import { bodySizeOf, countedBytesMin } from "./body-size.ts";
import { addressBlock } from "./client-address.ts";
import { type MemoryAccount, mayStay, openMemoryAccount } from "./memory-account.ts";
import { createResponsesUnderWay, type ListenerRequests } from "./responses-under-way.ts";
import { createSharedBlobs } from "./shared-blobs.ts";

/** The memory of all bodies. */
export type BodyMemory = Readonly<{
  open: (request: Request, listener: ListenerRequests) => MemoryAccount;
  /** Counts a response from the response cache, unless it has left when it is looked at. */
  noteSent: (request: Request, listener: ListenerRequests, response: Response) => void;
  /** Whether a response from the response cache must be counted before it is sent. */
  isUsedUp: (request: Request, listener: ListenerRequests) => boolean;
  responseBytes: () => number;
  requestBytes: () => number;
}>;

/** Limits of all bodies together. */
export type BodyMemoryOptions = Readonly<{
  responseBytesMax: number;
  requestBytesMax: number;
  metrics: Metrics;
  /** Makes large Blobs; absent, they are made on the calling thread. */
  blobThread?: BlobThread;
  /** Longest wait for bytes; {@link waitMsDefault} unless set. Milliseconds. */
  waitMsMax?: number;
}>;

/** One client gets one part in so many of what responses may hold: 32 MiB of the default. */
const responseShare = 8;

/** Of what requests may hold, a quarter: a client that posts chunks sends dozens of 750 KB at once. */
const requestShare = 4;

/**
 * Requests that wait hold what the runtime has read ahead of their bodies: half as much as those that are read. Then 42
 * chunks of 750 KB of one client are read and 32 wait.
 */
const requestsWaitingShare = 2;

/** Longer than most bodies take to leave, shorter than clients wait. Milliseconds. */
const waitMsDefault = 3_000;

/** Creates the accounts. */
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
  const underWay = createResponsesUnderWay({ responses, shared, responseBytesMax, onCut: count.cut });
  const compositions = createCompositions(responseBytesMax, options.blobThread);
  const parts = { responses, requests, shared, underWay, count, compositions };

  return {
    open: (request, listener) => openMemoryAccount(parts, request, listener),
    noteSent: (request, listener, response) => {
      if (bodySizeOf(response) >= countedBytesMin || mayStay(response, listener))
        underWay.keepUncounted({ request, listener, response });
    },
    isUsedUp: (request, listener) => {
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
