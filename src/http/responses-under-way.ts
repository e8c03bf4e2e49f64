/**
 * Responses in flight and the memory that each holds, until it is sent or its client disconnects.
 *
 * The runtime does not report that a response is sent, but it no longer returns the address of a request whose response
 * is complete or whose client has disconnected (Bun 1.4.5, over HTTP/1.1, TLS and HTTP/2). The addresses of requests in
 * flight are checked once a second, and at once when memory is needed.
 * Source: docs/decisions/091-body-memory.md.
 * @module
 */
import type { ByteBudget } from "../lib/byte-budget.ts";
import { inOrder } from "../lib/event-loop.ts";
import { openTcpConnections } from "../lib/tcp-connections.ts";
import { addressBlock } from "./client-address.ts";
import { bodySizeOf, countedBytes, countedBytesMin, heldMemoryOf } from "./responses.ts";
import { createSlowReaders, type PeerAddress, type Reader, type SlowReaders } from "./slow-readers.ts";

/** Connections of the requests of one listener. */
export type ListenerRequests = Readonly<{
  /** Address of the client, as trusted proxies report it. */
  clientAddressOf: (request: Request) => string;
  /** Whether the response to the request is not sent yet. */
  isInFlight: (request: Request) => boolean;
  /** The peer of the connection; undefined when the request is not in flight. */
  peerOf: (request: Request) => PeerAddress | undefined;
  /** With TLS the runtime reads files piece by piece; without, the kernel sends them (responses.ts). */
  isEncrypted: boolean;
}>;

/** A response in flight, and the memory that it holds. */
type TrackedResponse = Readonly<{
  request: Request;
  listener: ListenerRequests;
  client: string;
  bytes: number; // own bytes
  blob: Blob | undefined; // shared with others
  isSmall: boolean; // counted only because it was not sent at once
  isStream: boolean; // may wait for its source, and has its own timeout for the client (content-response.ts)
}>;

/** A response that is not counted yet: made at once (immediate-responses.ts), or small. */
type Uncounted = Readonly<{ request: Request; listener: ListenerRequests; response: Response }>;

export type InFlightResponses = Readonly<{
  track: (entry: TrackedResponse) => void;
  /** Tracks a response that is counted only if it is still in flight at the next check. */
  trackUncounted: (entry: Uncounted) => void;
  /** Checks now, unless the last check is too recent, and more often while requests wait for memory. */
  collect: () => void;
}>;

type InFlightResponsesOptions = Readonly<{
  responses: ByteBudget;
  shared: SharedBlobs;
  /** Limit of `responses`. */
  responseBytesMax: number;
  /** Called with the number of connections that were cut. */
  onCut: (connections: number) => void;
}>;

/** Responses in flight that one check examines: 0.2 ms, so that requests are not delayed. */
const checksPerIteration = 100;

/** Completed responses that one check releases: each costs a tenth of a response in flight. */
const completedPerCheck = 1_000;

/** Time between two checks: with few responses, with many, and while requests wait for memory. Milliseconds. */
const checkIntervalsMs = { few: 1_000, many: 50, awaited: 5 } as const;

/** Shortest time between two checks on behalf of requests. Milliseconds. */
const checkGapMs = 5;

/** Responses that are not counted yet: 16 MiB at most. */
const uncountedMax = 64;

/** Small ones: 10 MiB with what their streams take. */
const smallUncountedMax = 512;

/** Time between two checks of the connections of responses that are held in memory. Milliseconds. */
const readerCheckIntervalMs = 15_000;

/** When more than `shortFrom` of the memory is used, slow readers are cut until `shortUntil` of it is used. */
const shortFrom = 7 / 8;
const shortUntil = 3 / 4;

/** Time between two checks of small responses that are not read. Milliseconds. */
const unreadCheckIntervalMs = 1_000;

/** Small responses may hold 1 / `client` of the memory for one client, and 1 / `all` of it together. */
const unreadShare = { client: 8, all: 2 } as const;

/** Memory of an HTTP/2 stream besides its body while its response is not read (measured). Bytes. */
const streamBytes = 16 * 2 ** 10;

export function createInFlightResponses(options: InFlightResponsesOptions): InFlightResponses {
  const { responses, shared } = options;
  const entries: TrackedResponse[] = [];
  const uncounted: Uncounted[] = [];
  const small: Uncounted[] = [];
  const checkReaders = createReaderWatch(entries, options);
  let cursor = 0;
  let timer: Timer | undefined;
  let timerMs = 0;
  let checkedAt = Number.NEGATIVE_INFINITY;

  const release = ({ client, bytes, blob }: TrackedResponse): void => {
    if (bytes > 0) responses.release(client, bytes);
    if (blob !== undefined) shared.leave(client, blob);
  };
  const countUncounted = (): void => {
    const sent = [...uncounted.splice(0), ...small.splice(0)];
    entries.push(...countStill(sent, responses, shared));
  };
  /** Releases the memory of completed responses. Examines some of the responses in flight; the next check, others. */
  const check = (): void => {
    checkedAt = performance.now();
    countUncounted();
    let still = 0;
    for (let left = Math.min(entries.length, completedPerCheck); left > 0 && still < checksPerIteration; left--) {
      if (cursor >= entries.length) cursor = 0;
      if (isInFlight(entries[cursor])) {
        still += 1;
        cursor += 1;
      } else for (const gone of removeAt(entries, cursor)) release(gone);
    }
  };
  const schedule = (isAwaited = responses.waiting() > 0): void => {
    const pace = isAwaited ? "awaited" : entries.length > checksPerIteration ? "many" : "few";
    if (timer !== undefined && checkIntervalsMs[pace] >= timerMs) return;
    clearTimeout(timer);
    timerMs = checkIntervalsMs[pace];
    timer = setTimeout(run, timerMs);
    timer.unref();
  };
  const run = (): void => {
    timer = undefined;
    check();
    checkReaders();
    if (entries.length > 0 || responses.waiting() > 0) schedule();
  };

  return {
    track: (entry) => {
      entries.push(entry);
      schedule();
    },
    trackUncounted: (entry) => {
      if (bodySizeOf(entry.response) < countedBytesMin) small.push(entry);
      else uncounted.push(entry);
      if (uncounted.length >= uncountedMax || small.length >= smallUncountedMax) countUncounted();
      schedule();
    },
    collect: () => {
      if (performance.now() - checkedAt >= checkGapMs) check();
      schedule(true);
    },
  };
}

function isInFlight(entry: TrackedResponse | undefined): boolean {
  return entry?.listener.isInFlight(entry.request) ?? false;
}

/** Removes an entry; the last entry takes its place. */
function removeAt(entries: TrackedResponse[], index: number): readonly TrackedResponse[] {
  const [taken, last] = [entries[index], entries.pop()];
  if (taken === undefined || last === undefined) return [];
  if (index < entries.length) entries[index] = last;
  return [taken];
}

/** Counts responses that are still in flight, even if the memory is exceeded. */
function countStill(
  sent: readonly Uncounted[],
  responses: ByteBudget,
  shared: SharedBlobs,
): readonly TrackedResponse[] {
  return sent.flatMap(({ request, listener, response }): readonly TrackedResponse[] => {
    if (!listener.isInFlight(request)) return [];
    const held = heldMemoryOf(response);
    const client = addressBlock(listener.clientAddressOf(request));
    const known = { request, listener, client, isStream: false };
    const size = bodySizeOf(response);
    if (size < countedBytesMin) {
      responses.add(client, size + streamBytes);
      return [{ ...known, bytes: size + streamBytes, blob: undefined, isSmall: true }];
    }
    if (held === undefined) return [];
    if (held.kind !== "shared") {
      const bytes = countedBytes(held, listener.isEncrypted);
      responses.add(client, bytes);
      return [{ ...known, bytes, blob: undefined, isSmall: false }];
    }
    if (!shared.join(client, held.blob)) shared.add(client, held.blob);
    return [{ ...known, bytes: 0, blob: held.blob, isSmall: false }];
  });
}

/** Cuts the connections of clients that read too slowly. */
function createReaderWatch(entries: readonly TrackedResponse[], options: InFlightResponsesOptions): () => void {
  const { responses, responseBytesMax, onCut } = options;
  const connections = openTcpConnections();
  const readers = connections && createSlowReaders(connections);
  let checkedAt = performance.now();
  let unreadAt = performance.now();
  const checkUnread = async (watch: SlowReaders): Promise<void> => {
    const peers = overfullPeers(entries, responseBytesMax);
    const cuts = peers.length === 0 ? 0 : await watch.cut(peers);
    if (cuts > 0) onCut(cuts);
  };
  const checkSlow = async (watch: SlowReaders): Promise<void> => {
    const under: Reader[] = [];
    for await (const { request, listener, bytes, blob, isStream } of inOrder([...entries], checksPerIteration)) {
      const peer = isStream ? undefined : listener.peerOf(request);
      if (peer !== undefined) under.push({ peer, bytes: bytes + (blob?.size ?? 0) });
    }
    const used = responses.bytes();
    const freeBytes = used > responseBytesMax * shortFrom ? used - responseBytesMax * shortUntil : 0;
    const cuts = under.length === 0 ? 0 : await watch.check(under, performance.now(), freeBytes);
    if (cuts > 0) onCut(cuts);
  };
  return () => {
    const now = performance.now();
    if (readers === undefined) return;
    if (now - unreadAt >= unreadCheckIntervalMs) {
      unreadAt = now;
      void checkUnread(readers);
    }
    if (now - checkedAt < readerCheckIntervalMs) return;
    checkedAt = now; // a check takes much less than the time until the next one
    void checkSlow(readers);
  };
}

/** Small responses on one connection that are not read. */
type Unread = {
  readonly request: Request;
  readonly listener: ListenerRequests;
  readonly client: string;
  bytes: number;
};

/**
 * The connections whose small responses exceed their memory, the largest first. HTTP/2 buffers bytes beyond the window
 * of a stream in the process, and a client may have hundreds of streams on each connection.
 */
function overfullPeers(entries: readonly TrackedResponse[], responseBytesMax: number): readonly PeerAddress[] {
  const byPeer = new Map<string, Unread>();
  const byClient = new Map<string, number>();
  let all = 0;
  for (const { request, listener, client, bytes, isSmall } of entries) {
    const peer = isSmall ? listener.peerOf(request) : undefined;
    if (peer === undefined) continue;
    const key = `${peer.address} ${peer.port}`;
    const unread = byPeer.get(key) ?? { request, listener, client, bytes: 0 };
    unread.bytes += bytes;
    byPeer.set(key, unread);
    byClient.set(client, (byClient.get(client) ?? 0) + bytes);
    all += bytes;
  }
  const cut: PeerAddress[] = [];
  for (const { request, listener, client, bytes } of [...byPeer.values()].sort((a, b) => b.bytes - a.bytes)) {
    const own = byClient.get(client) ?? 0;
    if (own <= responseBytesMax / unreadShare.client && all <= responseBytesMax / unreadShare.all) continue;
    const peer = listener.peerOf(request);
    if (peer !== undefined) cut.push(peer);
    byClient.set(client, own - bytes);
    all -= bytes;
  }
  return cut;
}

/** Blobs that several responses send. Each is counted once, for one of the clients that read it. */
export type SharedBlobs = Readonly<{
  /** Adds a response to those that send a blob; false when no other response sends it. */
  join: (client: string, blob: Blob) => boolean;
  /** Adds the first response of a blob, whose bytes are taken already. */
  took: (client: string, blob: Blob) => void;
  /** Adds the first response of a blob, even if the memory is exceeded. */
  add: (client: string, blob: Blob) => void;
  /** Removes a response to a client. While others read the blob, it is counted for one of them. */
  leave: (client: string, blob: Blob) => void;
}>;

/** Number of responses that send one blob, by client, and the client for which the blob is counted. */
type Readers = { readonly counts: Map<string, number>; counted: string };

export function createSharedBlobs(responses: ByteBudget): SharedBlobs {
  const blobs = new Map<Blob, Readers>();
  const join = (client: string, blob: Blob): boolean => {
    const readers = blobs.get(blob);
    if (readers === undefined) return false;
    readers.counts.set(client, (readers.counts.get(client) ?? 0) + 1);
    return true;
  };
  const took = (client: string, blob: Blob): void => {
    // Another response may have added the blob during the wait for its bytes.
    if (join(client, blob)) responses.release(client, blob.size);
    else blobs.set(blob, { counts: new Map([[client, 1]]), counted: client });
  };
  return {
    join,
    took,
    add: (client, blob) => {
      responses.add(client, blob.size);
      took(client, blob);
    },
    leave: (client, blob) => {
      const readers = blobs.get(blob);
      const count = readers?.counts.get(client);
      if (readers === undefined || count === undefined) return;
      if (count > 1) {
        readers.counts.set(client, count - 1);
        return;
      }
      readers.counts.delete(client);
      if (readers.counted !== client) return;
      const [next] = readers.counts.keys();
      if (next === undefined) blobs.delete(blob);
      else {
        readers.counted = next;
        responses.add(next, blob.size); // before the release, which would give the bytes to a waiting request
      }
      responses.release(client, blob.size);
    },
  };
}
