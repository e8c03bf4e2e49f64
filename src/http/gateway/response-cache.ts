/**
 * The response cache: bodies up to 1 MiB in memory with prebuilt headers, so that a frequent response costs no more
 * than a static file.
 *
 * The key of an entry is the requested URL, so that a hit is one lookup. An entry lists its dependencies, so that a
 * block-list change or a reorganisation removes it at once.
 * Source: docs/reference/gateway.md#request-ids.
 * @module
 */
import { LRUCache } from "lru-cache";
import type { Id } from "../../arweave/id.ts";
import type { HotContent } from "../../content/opened-content.ts";
import type { Clock } from "../../lib/clock.ts";
import { entryLimit } from "../../lib/entry-limit.ts";
import { sendfileBytesMin } from "../responses.ts";
import { arweaveHeaderBytes } from "./content-headers.ts";

/** Fields of every entry. */
type Entry = Readonly<{
  /** The content, its root transaction, and the manifest through which it was found. */
  dependsOn: readonly Id[];
  /** Expiry of content whose state may change. Milliseconds since the epoch. */
  goodUntil: number;
}>;

export type Hit = Entry &
  Readonly<{
    /**
     * A Blob, because the runtime shares its bytes among responses; it copies a Uint8Array for each (15 µs for
     * 256 KiB).
     */
    body: Blob;
    /** Of the whole response, without its length. */
    headers: Headers;
    /**
     * Whether it may be sent now. Absent: a change of the block list by this process empties the cache, and one by
     * another process is not seen (it would be a tenth of the cost of a small body).
     */
    isClear?: () => boolean;
  }>;

/** Content in the disk cache that is too large for this one, or of which ranges are requested. */
export type DiskHit = Entry &
  Readonly<{
    size: number;
    /** Reads all of the content. Rejects as `OpenContent.bytes`. */
    bytes: (signal: AbortSignal) => Promise<Uint8Array>;
    /** Of the whole response, and of one with a range, without its length and `Content-Range`. */
    headers: Readonly<{ whole: Headers; part: Headers }>;
    hot: HotContent;
  }>;

export type ResponseCache<Cached extends Entry = Hit> = Readonly<{
  get: (address: string) => Cached | undefined;
  /**
   * Caches a response, unless its content was invalidated since the response began.
   * @param since - The `moment` before the first read of the data behind the response.
   */
  put: (address: string, hit: Cached, since: number) => void;
  /** Leaves behind what depends on an id, and what is under way. */
  forget: (id: Id) => void;
  clear: () => void;
  /** A growing number; read it before a response begins. */
  moment: () => number;
  bytes: () => number;
  count: () => number;
}>;

/** Largest body of content or a record; content up to 1 MiB has another cache (medium-bodies.ts). Bytes. */
export const hitBytesMax = 256 * 2 ** 10;

/**
 * Overhead of an entry: headers, keys, tables of the cache. Bytes (measured: 3,600 for an item with its 23 headers,
 * 2,400 for a record).
 */
const entryBytes = 3_584;

/** Second headers of content on disk, and the functions that read it. Bytes (measured). */
const diskHitBytes = 2_560;

/** Invalidated ids that are remembered (1 MiB); a response that began before all of them is not cached. */
const forgottenMax = 10_000;

/**
 * Creates an empty cache of bodies.
 *
 * @param bytesMax - Total size, bytes; 0 disables the cache.
 * @param bodyBytesMax - The largest body in it.
 * @param forgotten - Shared by caches that forget the same ids.
 */
export function createResponseCache(
  bytesMax: number,
  clock: Clock,
  bodyBytesMax = hitBytesMax,
  forgotten: Forgotten = createForgotten(),
): ResponseCache {
  return createCache<Hit>(bytesMax, clock, forgotten, ({ body, headers }) =>
    body.size > bodyBytesMax ? undefined : body.size + arweaveHeaderBytes(headers),
  );
}

/** @param sizeOf - Bytes of an entry beside `entryBytes`; undefined: it is too large. */
function createCache<Cached extends Entry>(
  bytesMax: number,
  clock: Clock,
  forgotten: Forgotten,
  sizeOf: (hit: Cached) => number | undefined,
): ResponseCache<Cached> {
  const byId: AddressesById = new Map();
  const entries = new LRUCache<string, Cached>({
    maxSize: Math.max(1, bytesMax),
    dispose: ({ dependsOn }, address) => {
      for (const id of dependsOn) unlink(byId, id, address);
    },
  });
  return {
    get: (address) => {
      const hit = entries.get(address);
      return hit !== undefined && hit.goodUntil > clock() ? hit : undefined;
    },
    put: (address, hit, since) => {
      const size = sizeOf(hit);
      if (size === undefined || hit.dependsOn.some((id) => forgotten.isAfter(since, id))) return;
      entries.set(address, hit, { size: size + 2 * address.length + entryBytes });
      if (entries.has(address)) for (const id of hit.dependsOn) link(byId, id, address);
    },
    forget: (id) => {
      forgotten.add(id);
      for (const address of addressesOf(byId, id)) entries.delete(address);
    },
    clear: () => {
      forgotten.addAll();
      entries.clear();
    },
    moment: forgotten.moment,
    bytes: () => entries.calculatedSize,
    count: () => entries.size,
  };
}

/** Separate caches, so that sequential reads of chunks do not evict frequent content. */
export type ResponseCaches = Readonly<{
  /** Content of up to 256 KiB by its address. */
  bodies: ResponseCache;
  /** Content of 256 KiB to 1 MiB by its address (medium-bodies.ts). */
  mediumBodies: ResponseCache;
  /** Content in the disk cache, by its address. */
  onDisk: ResponseCache<DiskHit>;
  /** Responses of `/chunk` by their path. */
  chunks: ResponseCache;
  /** Responses of `/block` and `/tx` by their path. */
  records: ResponseCache;
  /** Bodies, chunks and records, by address. */
  get: ResponseCache["get"];
  forget: ResponseCache["forget"];
  clear: ResponseCache["clear"];
  bytes: ResponseCache["bytes"];
  count: ResponseCache["count"];
}>;

/** A chunk as JSON with its paths is larger than any cached content. Bytes. */
const chunkResponseBytesMax = 512 * 2 ** 10;

/** Of all memory, chunks get one part in so many, and records another. */
const smallShare = 8;

/** Of all memory, bodies of 256 KiB to 1 MiB get one part in so many: they do not evict a hundred small ones each. */
const mediumShare = 4;

/** For headers of about 1,000 contents on disk. */
const onDiskBytesMax = 8 * 2 ** 20;

/** Creates empty caches of at most `bytesMax` bytes together. */
export function createResponseCaches(bytesMax: number, clock: Clock): ResponseCaches {
  const small = Math.floor(bytesMax / smallShare);
  const medium = Math.floor(bytesMax / mediumShare);
  const forgotten = createForgotten();
  const bodies = createResponseCache(bytesMax - medium - 2 * small, clock, hitBytesMax, forgotten);
  const mediumBodies = createResponseCache(medium, clock, sendfileBytesMin, forgotten);
  // They have none of the headers that tell tags, whose bytes count.
  const plain = (bodyBytesMax: number) =>
    createCache<Hit>(small, clock, forgotten, ({ body }) => (body.size > bodyBytesMax ? undefined : body.size));
  const chunks = plain(chunkResponseBytesMax);
  const records = plain(hitBytesMax);
  const onDisk = createCache<DiskHit>(
    onDiskBytesMax,
    clock,
    forgotten,
    ({ headers }) => diskHitBytes + arweaveHeaderBytes(headers.whole) * 2,
  );
  const inMemory = [bodies, mediumBodies, chunks, records] as const;
  const all = [...inMemory, onDisk] as const;
  const cacheOf = (address: string) => {
    if (address.startsWith("/chunk/")) return chunks;
    return address.startsWith("/tx/") || address.startsWith("/block/") ? records : bodies;
  };
  return {
    bodies,
    mediumBodies,
    onDisk,
    chunks,
    records,
    get: (address) => {
      const cache = cacheOf(address);
      return cache.get(address) ?? (cache === bodies ? mediumBodies.get(address) : undefined);
    },
    forget: (id) => {
      for (const responseCache of all) responseCache.forget(id);
    },
    clear: () => {
      for (const responseCache of all) responseCache.clear();
    },
    bytes: () => inMemory.reduce((sum, each) => sum + each.bytes(), 0),
    count: () => inMemory.reduce((sum, each) => sum + each.count(), 0),
  };
}

type Forgotten = ReturnType<typeof createForgotten>;

/** When ids were forgotten, in steps of a counter. */
function createForgotten() {
  let now = 0;
  let allBefore = 0; // every id counts as forgotten at this step
  const steps = new LRUCache<Id, number>({
    ...entryLimit(forgottenMax),
    dispose: (step, _id, reason) => {
      if (reason === "evict") allBefore = Math.max(allBefore, step);
    },
  });
  return {
    add: (id: Id) => {
      now += 1;
      steps.set(id, now);
    },
    addAll: () => {
      now += 1;
      allBefore = now;
      steps.clear();
    },
    isAfter: (moment: number, id: Id) => allBefore > moment || (steps.peek(id) ?? 0) > moment,
    moment: () => now,
  };
}

/** Addresses of what depends on an id. Most ids have one, which needs no set (measured: 3 µs an entry). */
type AddressesById = Map<Id, string | Set<string>>;

function addressesOf(byId: AddressesById, id: Id): readonly string[] {
  const addresses = byId.get(id) ?? [];
  return typeof addresses === "string" ? [addresses] : [...addresses];
}

function link(byId: AddressesById, id: Id, address: string): void {
  const addresses = byId.get(id);
  if (addresses === undefined || addresses === address) byId.set(id, address);
  else if (typeof addresses === "string") byId.set(id, new Set([addresses, address]));
  else addresses.add(address);
}

function unlink(byId: AddressesById, id: Id, address: string): void {
  const addresses = byId.get(id);
  if (addresses === address) byId.delete(id);
  if (addresses === undefined || typeof addresses === "string") return;
  addresses.delete(address);
  if (addresses.size === 0) byId.delete(id);
}
