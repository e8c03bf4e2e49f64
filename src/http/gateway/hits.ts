/**
 * Small bodies in memory, with headers that were built once: what makes an often-read answer as cheap as a
 * static file.
 *
 * An entry is found by the address as it is asked for, so that a hit is one look-up. It holds what it depends
 * on, so that a refusal or a reorganisation takes it away at once.
 * Source: design.md §5 "Small and hot".
 * @module
 */
import { LRUCache } from "lru-cache";
import type { Id } from "../../arweave/id.ts";
import type { Clock } from "../../lib/clock.ts";

/** An answer that is ready. */
export type Hit = Readonly<{
  /**
   * A Blob, because the runtime shares its bytes among answers; it copies a Uint8Array for each (15 µs for
   * 256 KiB).
   */
  body: Blob;
  /** Of the whole answer, without its length. */
  headers: Headers;
  /** The content, and the manifest through which it was found. */
  dependsOn: readonly Id[];
  /** What was said of the content can change; then the entry is left behind. Milliseconds since the epoch. */
  goodUntil: number;
}>;

/** Answers in memory. */
export type Hits = Readonly<{
  get: (address: string) => Hit | undefined;
  put: (address: string, hit: Hit) => void;
  /** Leaves behind what depends on an id. */
  forget: (id: Id) => void;
  clear: () => void;
  /** Changes with every `clear`: what was read before one may not be put after it. */
  era: () => number;
  bytes: () => number;
  count: () => number;
}>;

/** Largest body that is kept; a larger one gains less from memory than it takes from others. Bytes. */
export const hitBytesMax = 256 * 2 ** 10;

/**
 * What an entry takes beside its body: headers, keys, the cache's own tables. Bytes, estimated generously.
 */
const entryBytes = 2_048;

/** Creates an empty memory of at most `bytesMax` bytes; 0 keeps nothing. */
export function createHits(bytesMax: number, clock: Clock): Hits {
  const byId = new Map<Id, Set<string>>();
  let era = 0;
  const entries = new LRUCache<string, Hit>({
    maxSize: Math.max(1, bytesMax),
    sizeCalculation: ({ body }, address) => body.size + 2 * address.length + entryBytes,
    dispose: ({ dependsOn }, address) => {
      for (const id of dependsOn) unlink(byId, id, address);
    },
  });
  return {
    get: (address) => {
      const hit = entries.get(address);
      return hit !== undefined && hit.goodUntil > clock() ? hit : undefined;
    },
    put: (address, hit) => {
      if (hit.body.size > hitBytesMax) return;
      entries.set(address, hit);
      if (entries.has(address)) for (const id of hit.dependsOn) link(byId, id, address);
    },
    forget: (id) => {
      for (const address of [...(byId.get(id) ?? [])]) entries.delete(address);
    },
    clear: () => {
      era += 1;
      entries.clear();
    },
    era: () => era,
    bytes: () => entries.calculatedSize,
    count: () => entries.size,
  };
}

function link(byId: Map<Id, Set<string>>, id: Id, address: string): void {
  const addresses = byId.get(id);
  if (addresses === undefined) byId.set(id, new Set([address]));
  else addresses.add(address);
}

function unlink(byId: Map<Id, Set<string>>, id: Id, address: string): void {
  const addresses = byId.get(id);
  addresses?.delete(address);
  if (addresses?.size === 0) byId.delete(id);
}
