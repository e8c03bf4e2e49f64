/**
 * Blocks and transactions of the index that never change: read without the router, which takes as long as the reads do
 * (measured, bench/http/routes.ts), and sent from memory once they are requested repeatedly.
 *
 * A client that walks the chain requests each record once. To cache those would take 8 µs of 57 for a block and of
 * 68 for a transaction (measured), and evict what others request.
 * Source: docs/decisions/119-records.md.
 * @module
 */
import { type Id, readBlockHash, readId } from "../../arweave/id.ts";
import type { IndexReader } from "../../store/index/index-types.ts";
import { corsHeaders } from "../cors.ts";
import type { Target } from "../request-target.ts";
import { countedBytesMin, withBodySize } from "../responses.ts";
import type { RoutedResponse } from "../route-table.ts";
import { chainHeaders } from "./chain-routes.ts";
import { pathParameters } from "./parameters.ts";
import { hitBytesMax, type ResponseCache } from "./response-cache.ts";

export type FinalRecordsOptions = Readonly<{
  reader: Pick<IndexReader, "finalBlock" | "finalTransaction">;
  /** Responses by their path. */
  memory: Pick<ResponseCache, "moment" | "put">;
  /** Whether a host has the gateway's routes. */
  isOwnHost: (host: string) => boolean;
}>;

type FinalRecord = Readonly<{
  /** Of its route. */
  pattern: string;
  /** The id whose blocking or reorganisation changes the response. */
  dependsOn: readonly Id[];
  read: () => Uint8Array<ArrayBuffer> | undefined;
}>;

const headers = new Headers({ ...corsHeaders, ...chainHeaders({ status: 200, form: "json", isFinal: true }) });

/** @returns Finds the read of the record at a target; undefined for all other targets. */
export function createFinalRecords(
  options: FinalRecordsOptions,
): (target: Target) => (() => RoutedResponse | undefined) | undefined {
  const { reader, memory, isOwnHost } = options;
  const noteRequest = createRecentPaths();
  const respond = (path: string, { pattern, dependsOn, read }: FinalRecord): RoutedResponse | undefined => {
    const since = memory.moment();
    const bytes = read();
    if (bytes === undefined) return undefined;
    const isToCache = bytes.length <= hitBytesMax && noteRequest(path);
    // A small body is sent faster without a Blob, and one above the limit must have its memory before it is sent.
    // Between them, a Blob is sent at once and counted while it is still under way (docs/decisions/091-body-memory.md).
    if (!isToCache && (bytes.length < countedBytesMin || bytes.length > hitBytesMax))
      return { pattern, response: withBodySize(new Response(bytes, { headers }), bytes.length) };
    const body = new Blob([bytes]);
    if (isToCache) memory.put(path, { body, headers, dependsOn, goodUntil: Number.POSITIVE_INFINITY }, since);
    return { pattern, response: withBodySize(new Response(body, { headers }), body) };
  };
  return ({ host, path }) => {
    const record = findRecord(reader, path);
    return record !== undefined && isOwnHost(host) ? () => respond(path, record) : undefined;
  };
}

/** About as many as blocks of 16 KB fit into the default memory, an eighth of 128 MiB. */
const recentPathSlots = 1_024;

/**
 * Remembers paths by their hashes: a path replaces the one that had its slot, after as many others as there are slots
 * on average. Paths with equal hashes, or the hash 0, are cached a request too early.
 *
 * @returns Notes a path, and tells whether it was noted before.
 */
function createRecentPaths(): (path: string) => boolean {
  const hashes = new Uint32Array(recentPathSlots);
  return (path) => {
    const hash = Bun.hash.xxHash32(path);
    const slot = hash % recentPathSlots;
    if (hashes[slot] === hash) return true;
    hashes[slot] = hash;
    return false;
  };
}

const prefixes = { transaction: "/tx/", height: "/block/height/", hash: "/block/hash/" } as const;

function findRecord(reader: FinalRecordsOptions["reader"], path: string): FinalRecord | undefined {
  if (path.startsWith(prefixes.transaction)) {
    const id = readId(path.slice(prefixes.transaction.length));
    return id && { pattern: "/tx/:id", dependsOn: [id], read: () => reader.finalTransaction(id) };
  }
  if (path.startsWith(prefixes.height)) {
    const height = path.slice(prefixes.height.length);
    if (!pathParameters.height.is(height)) return undefined;
    return { pattern: "/block/height/:height", dependsOn: [], read: () => reader.finalBlock(Number(height)) };
  }
  const hash = path.startsWith(prefixes.hash) ? readBlockHash(path.slice(prefixes.hash.length)) : undefined;
  return hash && { pattern: "/block/hash/:hash", dependsOn: [], read: () => reader.finalBlock(hash) };
}
