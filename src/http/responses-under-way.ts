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
import { inTurns } from "../lib/next-turn.ts";
import { openTcpConnections } from "../lib/tcp-connections.ts";
import { heldMemoryOf } from "./body-size.ts";
import { addressBlock } from "./client-address.ts";
import type { SharedBlobs } from "./shared-blobs.ts";
import { createSlowReaders, type PeerAddress, type Reader, type SlowReaders } from "./slow-readers.ts";

/** What a listener knows of its requests. */
export type ListenerRequests = Readonly<{
  /** Address of the client, as trusted proxies tell it. */
  clientAddressOf: (request: Request) => string;
  /** Whether a response to the request is still to be made or sent. */
  isUnderWay: (request: Request) => boolean;
  /** The other side of the request's connection; undefined when nothing is under way. */
  peerOf: (request: Request) => PeerAddress | undefined;
  /** With TLS the runtime reads files piece by piece; without, the kernel sends them (body-size.ts). */
  isEncrypted: boolean;
}>;

/** A response under way, and what it holds. */
export type UnderWay = Readonly<{
  request: Request;
  listener: ListenerRequests;
  client: string;
  bytes: number; // of its own
  blob: Blob | undefined; // shared with others
  isStream: boolean; // which may wait for its source, and has a time for its reader (content-body.ts)
}>;

/** A response from the response cache that is not counted yet. */
export type Uncounted = Readonly<{ request: Request; listener: ListenerRequests; response: Response }>;

/** The responses under way. */
export type ResponsesUnderWay = Readonly<{
  keep: (entry: UnderWay) => void;
  /** Keeps a response that is counted only if it is still under way at the next look. */
  keepUncounted: (entry: Uncounted) => void;
  /** Looks now, if the last look is not too recent, and more often while memory is waited for. */
  collect: () => void;
}>;

/** What is needed. */
export type ResponsesUnderWayOptions = Readonly<{
  responses: ByteBudget;
  shared: SharedBlobs;
  /** Limit of `responses`. */
  responseBytesMax: number;
  /** Told how many connections were cut. */
  onCut: (connections: number) => void;
}>;

/** A look is at so many responses: 0.2 ms, so that it keeps nobody waiting. */
const looksAtOnce = 100;

/** Time between two looks: at a few responses, at many, and while requests wait for bytes. Milliseconds. */
const lookEveryMs = { few: 1_000, many: 50, awaited: 5 } as const;

/** Two looks on behalf of requests are at least so far apart. Milliseconds. */
const looksApartMs = 5;

/** Responses from the response cache that are not counted yet: 16 MiB at most. */
const uncountedMax = 64;

/** Connections of responses that are held in memory are looked at so often. Milliseconds. */
const readersEveryMs = 15_000;

/** From this part of the memory on, slow readers make room for others, until it is down to the second part. */
const shortFrom = 7 / 8;
const shortUntil = 3 / 4;

/** Creates an empty list. */
export function createResponsesUnderWay(options: ResponsesUnderWayOptions): ResponsesUnderWay {
  const { responses, shared } = options;
  const entries: UnderWay[] = [];
  const uncounted: Uncounted[] = [];
  const lookAtReaders = createReaderWatch(entries, options);
  let cursor = 0;
  let timer: Timer | undefined;
  let timerMs = 0;
  let lookedAt = Number.NEGATIVE_INFINITY;

  const release = ({ client, bytes, blob }: UnderWay): void => {
    if (bytes > 0) responses.release(client, bytes);
    if (blob !== undefined) shared.leave(client, blob);
  };
  /** Releases what responses held that have left; looks at some of those under way, the next time at others. */
  const look = (): void => {
    lookedAt = performance.now();
    entries.push(...countStill(uncounted.splice(0), shared));
    for (let left = Math.min(entries.length, looksAtOnce); left > 0; left--) {
      if (cursor >= entries.length) cursor = 0;
      if (isUnderWay(entries[cursor])) cursor += 1;
      else for (const gone of takeAt(entries, cursor)) release(gone);
    }
  };
  const schedule = (isAwaited = responses.waiting() > 0): void => {
    const pace = isAwaited ? "awaited" : entries.length > looksAtOnce ? "many" : "few";
    if (timer !== undefined && lookEveryMs[pace] >= timerMs) return;
    clearTimeout(timer);
    timerMs = lookEveryMs[pace];
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
    keep: (entry) => {
      entries.push(entry);
      schedule();
    },
    keepUncounted: (entry) => {
      uncounted.push(entry);
      if (uncounted.length >= uncountedMax) look();
      schedule();
    },
    collect: () => {
      if (performance.now() - lookedAt >= looksApartMs) look();
      schedule(true);
    },
  };
}

function isUnderWay(entry: UnderWay | undefined): boolean {
  return entry?.listener.isUnderWay(entry.request) ?? false;
}

/** Takes one out; the last takes its place. */
function takeAt(entries: UnderWay[], index: number): readonly UnderWay[] {
  const [taken, last] = [entries[index], entries.pop()];
  if (taken === undefined || last === undefined) return [];
  if (index < entries.length) entries[index] = last;
  return [taken];
}

/** Counts the responses from the response cache that are still under way, whether there is memory for them or not. */
function countStill(sent: readonly Uncounted[], shared: SharedBlobs): readonly UnderWay[] {
  return sent.flatMap(({ request, listener, response }) => {
    const held = listener.isUnderWay(request) ? heldMemoryOf(response) : undefined;
    if (held?.kind !== "shared") return [];
    const client = addressBlock(listener.clientAddressOf(request));
    if (!shared.join(client, held.blob)) shared.add(client, held.blob);
    return [{ request, listener, client, bytes: 0, blob: held.blob, isStream: false }];
  });
}

/** Cuts the connections that take too little of what is held for them. */
function createReaderWatch(entries: readonly UnderWay[], options: ResponsesUnderWayOptions): () => void {
  const { responses, responseBytesMax, onCut } = options;
  const connections = openTcpConnections();
  const readers = connections && createSlowReaders(connections);
  let lookedAt = performance.now();
  const look = async (watch: SlowReaders): Promise<void> => {
    const under: Reader[] = [];
    for await (const { request, listener, bytes, blob, isStream } of inTurns([...entries], looksAtOnce)) {
      const peer = isStream ? undefined : listener.peerOf(request);
      if (peer !== undefined) under.push({ peer, bytes: bytes + (blob?.size ?? 0) });
    }
    const used = responses.bytes();
    const freeBytes = used > responseBytesMax * shortFrom ? used - responseBytesMax * shortUntil : 0;
    const cuts = under.length === 0 ? 0 : await watch.look(under, performance.now(), freeBytes);
    if (cuts > 0) onCut(cuts);
  };
  return () => {
    const now = performance.now();
    if (readers === undefined || now - lookedAt < readersEveryMs) return;
    lookedAt = now; // a look takes much less than the time until the next one
    void look(readers);
  };
}
