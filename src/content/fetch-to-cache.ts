/**
 * Fetches bytes of roots to the content cache on this disk. Concurrent requests for one byte share one fetch; the bytes
 * are checked and stored. A reader that leaves does not abort a fetch that others wait for.
 * @module
 */
import { LRUCache } from "lru-cache";
import { chunkSize } from "../arweave/merkle.ts";
import type { Chunks } from "../chain/chunks.ts";
import { Failure } from "../failures.ts";
import type { ByteSpan } from "../lib/range.ts";
import { createSemaphore, type Release } from "../lib/semaphore.ts";
import { createSingleFlight } from "../lib/single-flight.ts";
import { isTimeout, linkedController, withDeadline } from "../lib/stop.ts";
import { extentCallBytesMax } from "../store/extents/extent-reads.ts";
import type { Extents } from "../store/extents/extents.ts";
import type { RootSpec } from "../store/root-spec.ts";
import { type Bodies, isAbsence } from "./bodies.ts";

/** Checked bytes `[start, start + bytes.length)` of a root. */
export type FetchedPiece = Readonly<{ start: number; bytes: Uint8Array; isStored: boolean }>;

export type CacheFetcher = Readonly<{
  /**
   * Fetches checked bytes that cover a byte of a root; they are stored if there is space.
   * @throws Failure `source_failed`, `source_timeout`, `busy`; the signal's reason.
   */
  fetchAt: (root: RootSpec, at: number, signal: AbortSignal) => Promise<FetchedPiece>;
  /**
   * A piece that `fetchAt` returned and that no reader has read to its end yet, without a request. Few are in memory;
   * the others are on disk.
   */
  recent: (root: RootSpec, at: number) => FetchedPiece | undefined;
  /** Forgets a piece of `recent`, if a reader at this position has read it to its end. */
  forgetRecent: (root: RootSpec, piece: FetchedPiece | undefined, at: number) => void;
  /**
   * Permits a reader to return views of pieces. A view keeps all of a piece in memory until its reader takes it.
   * @returns Ends the permission; undefined: too many readers have one, this one must copy.
   */
  beginViews: () => Release | undefined;
  /**
   * Makes a span present. Throws as `fetchAt`; Failure `busy` when it cannot be stored.
   */
  ensure: (root: RootSpec, span: ByteSpan, signal: AbortSignal) => Promise<void>;
  /** Stores a whole body that is checked already. Returns false when some of it could not be stored. */
  keep: (root: RootSpec, body: Uint8Array) => Promise<boolean>;
  stats: () => FetchStats;
}>;

/** Fetches now, and since the start. */
export type FetchStats = Readonly<{
  fetching: number;
  waiting: number;
  fetched: number;
  /** Fetches that no source could carry out. */
  failed: number;
  bytes: number;
}>;

/** Fetches at once over all roots: 8 MiB on the way, enough for 1 Gbit/s at 60 ms. */
const fetchesAtOnceMax = 32;

/** Fetches that may wait; beyond, a request is rejected as busy. */
const fetchesWaitingMax = 4_096;

/** Fetches at once for one `ensure`, so that bulk work leaves capacity to readers. */
const fetchesPerEnsureMax = 8;

/** Longest time of a fetch: its wait, all sources and all attempts together. Milliseconds. */
const fetchMsDefault = 60_000;

/** Memory for pieces that were fetched ahead of their readers, and of an entry beside its bytes. Bytes. */
const recentBytesMax = 16 * 2 ** 20;
const recentEntryBytes = 512;

/** Readers that may return views: each holds at most the chunk that is sent and the next one. */
const viewersMax = 64;

/** A last chunk under this takes half of its predecessor where a client library cut the data. */
const lastChunkSizeMin = 32_768;

export type CacheFetcherParts = Readonly<{
  extents: Extents;
  chunks: Chunks;
  bodies: Bodies;
  /** Ends every fetch when it is aborted. */
  life: AbortSignal;
  /** Longest time of a fetch, its wait included. Milliseconds; a minute by default. */
  fetchMsMax?: number | undefined;
}>;

export function createCacheFetcher(parts: CacheFetcherParts): CacheFetcher {
  const { extents } = parts;
  const fetches = createFetches(parts);
  const recents = createRecents();
  const flights = createSingleFlight<FetchedPiece>();

  async function fetchAt(root: RootSpec, position: number, signal: AbortSignal): Promise<FetchedPiece> {
    // Most data is cut as client libraries do it: all who want a chunk ask under its first byte and share a flight.
    for (const key of [likelyChunk(root.size, position).start, position]) {
      const piece = await flights.run(`${keyOf(root)}:${key}`, signal, (own) => fetches.fetch(root, position, own));
      if (piece.start <= position && position < piece.start + piece.bytes.length) return piece;
    }
    throw new Failure("source_failed", { id: root.id, position, reason: "another chunk came twice" });
  }

  async function ensureOnce(root: RootSpec, span: ByteSpan, signal: AbortSignal): Promise<void> {
    const positions = positionsOf(root, extents.missing(root, span));
    const own = linkedController(signal);
    const worker = async () => {
      for (const { start, end } of positions) {
        for (let position = start; position < end; ) {
          const piece = await fetchAt(root, position, own.controller.signal);
          if (!piece.isStored) throw new Failure("busy", { id: root.id, reason: "no space for content" });
          position = piece.start + piece.bytes.length;
        }
      }
    };
    try {
      await Promise.all(Array.from({ length: fetchesPerEnsureMax }, worker));
    } finally {
      own.unlink();
      own.controller.abort(new DOMException("another part of it failed", "AbortError"));
    }
  }

  return {
    async fetchAt(root, position, signal) {
      const piece = await fetchAt(root, position, signal);
      recents.add(root, piece);
      return piece;
    },
    recent: recents.find,
    forgetRecent: recents.forget,
    beginViews: recents.beginViews,
    async ensure(root, span, signal) {
      // Parts of steps wait in bounded memory; where they fell out of it, a second round brings them again.
      for (let round = 0; round < 2 && !extents.present(root, span); round++) {
        await ensureOnce(root, span, signal);
      }
      if (!extents.present(root, span)) {
        throw new Failure("busy", { id: root.id, reason: "content was evicted" });
      }
    },
    keep: (root, body) => keepBody(extents, root, body),
    stats: fetches.stats,
  };
}

/** Pieces in memory until their readers have read them. */
function createRecents() {
  const pieces = new LRUCache<string, FetchedPiece>({
    maxSize: recentBytesMax,
    sizeCalculation: ({ bytes }) => bytes.length + recentEntryBytes,
  });
  const keyAt = (root: RootSpec, start: number) => `${keyOf(root)}:${start}`;
  let viewers = 0;
  return {
    add(root: RootSpec, piece: FetchedPiece): void {
      if (piece.bytes.length <= chunkSize) pieces.set(keyAt(root, piece.start), piece);
    },
    find(root: RootSpec, position: number): FetchedPiece | undefined {
      const piece = pieces.get(keyAt(root, likelyChunk(root.size, position).start));
      return piece !== undefined && position < piece.start + piece.bytes.length ? piece : undefined;
    },
    forget(root: RootSpec, piece: FetchedPiece | undefined, at: number): void {
      if (piece !== undefined && at >= piece.start + piece.bytes.length) pieces.delete(keyAt(root, piece.start));
    },
    beginViews(): Release | undefined {
      if (viewers >= viewersMax) return undefined;
      viewers += 1;
      return () => {
        viewers -= 1;
      };
    },
  };
}

/** Fetches within the limit of concurrent fetches, and stores the bytes. */
function createFetches({ extents, chunks, bodies, life, fetchMsMax = fetchMsDefault }: CacheFetcherParts) {
  const bodyFlights = createSingleFlight<FetchedPiece>();
  const semaphore = createSemaphore(fetchesAtOnceMax, fetchesWaitingMax);
  let fetched = 0;
  let failed = 0;
  let bytesFetched = 0;

  async function inOrder<Value>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    const own = linkedController(signal, life);
    let release: Release | undefined;
    try {
      return await withDeadline(own.controller.signal, fetchMsMax, async (bounded) => {
        const permit = semaphore.take(bounded);
        if (permit === undefined) throw new Failure("busy", { waiting: fetchesWaitingMax });
        release = await permit;
        return await work(bounded);
      });
    } catch (error) {
      if (!signal.aborted) failed += 1;
      if (!isTimeout(error)) throw error;
      // A fetch that never began says nothing about the sources.
      throw new Failure(release === undefined ? "busy" : "source_timeout", { withinMs: fetchMsMax }, error);
    } finally {
      own.unlink();
      release?.();
    }
  }

  function count(bytes: Uint8Array): void {
    fetched += 1;
    bytesFetched += bytes.length;
  }

  async function fetchChunk(root: RootSpec, position: number, signal: AbortSignal): Promise<FetchedPiece> {
    const { start, bytes } = await inOrder(signal, (own) => chunks.fetch(root, position, own));
    count(bytes);
    return { start, bytes, isStored: await extents.write(root, start, bytes) };
  }

  function fetchBody(root: RootSpec, signal: AbortSignal): Promise<FetchedPiece> {
    return bodyFlights.run(keyOf(root), signal, async (own) => {
      const bytes = await inOrder(own, (bounded) => bodies.whole(root, bounded));
      count(bytes);
      return { start: 0, bytes, isStored: await keepBody(extents, root, bytes) };
    });
  }

  return {
    /** A chunk; where no node gives it, the whole body if that may be had. */
    async fetch(root: RootSpec, position: number, signal: AbortSignal): Promise<FetchedPiece> {
      if (root.dataRoot === "") return fetchBody(root, signal);
      const startedAt = performance.now();
      try {
        return await fetchChunk(root, position, signal);
      } catch (error) {
        const leftMs = fetchMsMax - (performance.now() - startedAt); // for both together
        if (!isSourceFault(error) || !bodies.canHave(root) || leftMs < 1) throw error;
        return withDeadline(signal, leftMs, (own) => fetchBody(root, own)).catch((second: unknown) => {
          // What the nodes said is the better reason, unless it is that none of them has the data.
          if (isAbsence(error) && !isAbsence(second)) throw second;
          throw isSourceFault(second) || isTimeout(second) ? error : second;
        });
      }
    },
    stats: () => ({
      fetching: semaphore.atWork(),
      waiting: semaphore.waiting(),
      fetched,
      failed,
      bytes: bytesFetched,
    }),
  };
}

async function keepBody(extents: Extents, root: RootSpec, body: Uint8Array): Promise<boolean> {
  let isStored = true;
  for (let at = 0; at < body.length; at += extentCallBytesMax) {
    isStored = (await extents.write(root, at, body.subarray(at, at + extentCallBytesMax))) && isStored;
  }
  return isStored;
}

/**
 * The chunk of a byte if the data was split as client libraries do: by 256 KiB, with the last two of equal size when
 * the last one would be small.
 */
export function likelyChunk(size: number, position: number): ByteSpan {
  const rest = size % chunkSize;
  const tail = rest > 0 && rest < lastChunkSizeMin && size > chunkSize ? size - rest - chunkSize : size;
  if (position < tail) {
    const start = position - (position % chunkSize);
    return { start, end: Math.min(size, start + chunkSize) };
  }
  const half = tail + Math.ceil((size - tail) / 2);
  return position < half ? { start: tail, end: half } : { start: half, end: size };
}

/** Data of one root and size is the same bytes, whichever transaction names it. */
function keyOf({ id, dataRoot, size }: RootSpec): string {
  return dataRoot === "" ? id : `${dataRoot}:${size}`;
}

function isSourceFault(error: unknown): boolean {
  return error instanceof Failure && (error.code === "source_failed" || error.code === "source_timeout");
}

/** The parts of spans by likely chunk; shared by workers, each part is taken by one. */
function* positionsOf(root: RootSpec, spans: readonly ByteSpan[]): Generator<ByteSpan> {
  for (const span of spans) {
    for (let start = span.start; start < span.end; ) {
      const end = Math.min(span.end, likelyChunk(root.size, start).end);
      yield { start, end };
      start = end;
    }
  }
}
