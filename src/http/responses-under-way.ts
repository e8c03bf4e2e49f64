/**
 * Responses under way and the memory that each holds, until it has left or its client has gone.
 *
 * The runtime tells nobody when a response has left, but it no longer knows the address of a request whose response is
 * complete or whose client has gone (Bun 1.4.5, over HTTP/1.1, TLS and HTTP/2). Responses under way are asked for it
 * once a second, and at once when memory is wanted.
 * Source: docs/decisions/091-body-memory.md.
 * @module
 */
import type { ByteBudget } from "../lib/byte-budget.ts";
import { inOrder } from "../lib/event-loop.ts";
import { openTcpConnections } from "../lib/tcp-connections.ts";
import { addressBlock } from "./client-address.ts";
import { bodySizeOf, countedBytesMin, heldMemoryOf } from "./responses.ts";
import { createSlowReaders, type PeerAddress, type Reader, type SlowReaders } from "./slow-readers.ts";

/** What a listener knows of its requests. */
export type ListenerRequests = Readonly<{
  /** Address of the client, as trusted proxies tell it. */
  clientAddressOf: (request: Request) => string;
  /** Whether a response to the request is still to be made or sent. */
  isInFlight: (request: Request) => boolean;
  /** The other side of the request's connection; undefined when nothing is under way. */
  peerOf: (request: Request) => PeerAddress | undefined;
  /** With TLS the runtime reads files piece by piece; without, the kernel sends them (responses.ts). */
  isEncrypted: boolean;
}>;

/** A response under way, and what it holds. */
type TrackedResponse = Readonly<{
  request: Request;
  listener: ListenerRequests;
  client: string;
  bytes: number; // of its own
  blob: Blob | undefined; // shared with others
  isSmall: boolean; // was counted only because it did not leave
  isStream: boolean; // which may wait for its source, and has a time for its reader (content-response.ts)
}>;

/** A response that is not counted yet: from the response cache, or small. */
type Uncounted = Readonly<{ request: Request; listener: ListenerRequests; response: Response }>;

/** The responses under way. */
export type InFlightResponses = Readonly<{
  track: (entry: TrackedResponse) => void;
  /** Keeps a response that is counted only if it is still under way at the next look. */
  trackUncounted: (entry: Uncounted) => void;
  /** Looks now, if the last look is not too recent, and more often while memory is waited for. */
  collect: () => void;
}>;

/** What is needed. */
type InFlightResponsesOptions = Readonly<{
  responses: ByteBudget;
  shared: SharedBlobs;
  /** Limit of `responses`. */
  responseBytesMax: number;
  /** Called with the number of connections that were cut. */
  onCut: (connections: number) => void;
}>;

/** A look is at so many responses under way: 0.2 ms, so that it keeps nobody waiting. */
const checksPerIteration = 100;

/** Those that have left cost a tenth of that. */
const completedPerCheck = 1_000;

/** Time between two looks: at a few responses, at many, and while requests wait for bytes. Milliseconds. */
const checkIntervalsMs = { few: 1_000, many: 50, awaited: 5 } as const;

/** Two looks on behalf of requests are at least so far apart. Milliseconds. */
const checkGapMs = 5;

/** Responses that are not counted yet: 16 MiB at most. */
const uncountedMax = 64;

/** Small ones: 10 MiB with what their streams take. */
const smallUncountedMax = 512;

/** Connections of responses that are held in memory are looked at so often. Milliseconds. */
const readerCheckIntervalMs = 15_000;

/** From this part of the memory on, slow readers are cut for others, until it is down to the second part. */
const shortFrom = 7 / 8;
const shortUntil = 3 / 4;

/** Small responses that do not leave are looked at so often. Milliseconds. */
const unreadCheckIntervalMs = 1_000;

/** Of the memory of responses, small ones may hold one part in so many: of one client, and of all. */
const unreadShare = { client: 8, all: 2 } as const;

/** What a stream of HTTP/2 takes besides its body while its response does not leave (measured). Bytes. */
const streamBytes = 16 * 2 ** 10;

/** Creates an empty list. */
export function createInFlightResponses(options: InFlightResponsesOptions): InFlightResponses {
  const { responses, shared } = options;
  const entries: TrackedResponse[] = [];
  const uncounted: Uncounted[] = [];
  const small: Uncounted[] = [];
  const lookAtReaders = createReaderWatch(entries, options);
  let cursor = 0;
  let timer: Timer | undefined;
  let timerMs = 0;
  let lookedAt = Number.NEGATIVE_INFINITY;

  const release = ({ client, bytes, blob }: TrackedResponse): void => {
    if (bytes > 0) responses.release(client, bytes);
    if (blob !== undefined) shared.leave(client, blob);
  };
  const countUncounted = (): void => {
    const sent = [...uncounted.splice(0), ...small.splice(0)];
    entries.push(...countStill(sent, responses, shared));
  };
  /** Releases what responses held that have left; looks at some of those under way, the next time at others. */
  const look = (): void => {
    lookedAt = performance.now();
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
    look();
    lookAtReaders();
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
      if (performance.now() - lookedAt >= checkGapMs) look();
      schedule(true);
    },
  };
}

function isInFlight(entry: TrackedResponse | undefined): boolean {
  return entry?.listener.isInFlight(entry.request) ?? false;
}

/** Takes one out; the last takes its place. */
function removeAt(entries: TrackedResponse[], index: number): readonly TrackedResponse[] {
  const [taken, last] = [entries[index], entries.pop()];
  if (taken === undefined || last === undefined) return [];
  if (index < entries.length) entries[index] = last;
  return [taken];
}

/** Counts responses that are still under way, whether there is memory for them or not. */
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
    if (held?.kind !== "shared") return [];
    if (!shared.join(client, held.blob)) shared.add(client, held.blob);
    return [{ ...known, bytes: 0, blob: held.blob, isSmall: false }];
  });
}

/** Cuts the connections that take too little of what is held for them. */
function createReaderWatch(entries: readonly TrackedResponse[], options: InFlightResponsesOptions): () => void {
  const { responses, responseBytesMax, onCut } = options;
  const connections = openTcpConnections();
  const readers = connections && createSlowReaders(connections);
  let lookedAt = performance.now();
  let unreadAt = performance.now();
  const lookAtUnread = async (watch: SlowReaders): Promise<void> => {
    const peers = overfullPeers(entries, responseBytesMax);
    const cuts = peers.length === 0 ? 0 : await watch.cut(peers);
    if (cuts > 0) onCut(cuts);
  };
  const look = async (watch: SlowReaders): Promise<void> => {
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
      void lookAtUnread(readers);
    }
    if (now - lookedAt < readerCheckIntervalMs) return;
    lookedAt = now; // a look takes much less than the time until the next one
    void look(readers);
  };
}

/** Small responses that were sent over one connection and do not leave. */
type Unread = {
  readonly request: Request;
  readonly listener: ListenerRequests;
  readonly client: string;
  bytes: number;
};

/**
 * The connections whose small responses hold more than they may, those with the most first. HTTP/2 keeps what the
 * window of a stream cannot take in the process, and a client may have hundreds of streams on each connection.
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

/** Blobs that several responses send: each is counted once, for one of the clients that read it. */
export type SharedBlobs = Readonly<{
  /** Joins those that send a blob already; false when nobody does. */
  join: (client: string, blob: Blob) => boolean;
  /** Begins with a blob whose bytes were taken. */
  took: (client: string, blob: Blob) => void;
  /** Begins with a blob that is being sent, whether there are bytes for it or not. */
  add: (client: string, blob: Blob) => void;
  /** Ends a response to a client. While others read the blob, one of them has it counted. */
  leave: (client: string, blob: Blob) => void;
}>;

/** Responses that send one blob: how many by client, and the client for which it is counted. */
type Readers = { readonly counts: Map<string, number>; counted: string };

/** Creates the count, within the budget of responses. */
export function createSharedBlobs(responses: ByteBudget): SharedBlobs {
  const blobs = new Map<Blob, Readers>();
  const join = (client: string, blob: Blob): boolean => {
    const readers = blobs.get(blob);
    if (readers === undefined) return false;
    readers.counts.set(client, (readers.counts.get(client) ?? 0) + 1);
    return true;
  };
  const took = (client: string, blob: Blob): void => {
    // Another response may have begun with it during the wait for its bytes.
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
        responses.add(next, blob.size); // before the release, which would give the bytes to a request that waits
      }
      responses.release(client, blob.size);
    },
  };
}
