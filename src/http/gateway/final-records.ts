/**
 * Blocks and transactions of the index that never change: read at their first request before any route, which would
 * take longer than the reads do (measured, bench/http/routes.ts), and then sent from memory.
 * @module
 */
import type { IndexReader } from "../../store/index/index-types.ts";
import { corsHeaders } from "../cors.ts";
import { chainHeaders } from "./chain-routes.ts";
import { pathParameters } from "./parameters.ts";
import type { Hit, ResponseCache } from "./response-cache.ts";

const paths = { transaction: "/tx/", height: "/block/height/", hash: "/block/hash/" } as const;

const headers = new Headers({ ...corsHeaders, ...chainHeaders({ status: 200, form: "json", isFinal: true }) });

/**
 * @param memory - Responses by their path.
 * @returns Reads the record at a path, and caches it; undefined for a path without such a record.
 */
export function createFinalRecords(
  reader: Pick<IndexReader, "finalBlock" | "finalTransaction">,
  memory: Pick<ResponseCache, "moment" | "put">,
): (path: string) => Hit | undefined {
  const blockAt = (path: string) => {
    if (path.startsWith(paths.height)) {
      const height = path.slice(paths.height.length);
      return pathParameters.height.is(height) ? reader.finalBlock(Number(height)) : undefined;
    }
    const hash = path.startsWith(paths.hash) ? path.slice(paths.hash.length) : undefined;
    return pathParameters.blockHash.is(hash) ? reader.finalBlock(hash) : undefined;
  };
  return (path) => {
    const since = memory.moment();
    const id = path.startsWith(paths.transaction) ? path.slice(paths.transaction.length) : undefined;
    const isTransaction = pathParameters.transactionId.is(id);
    const bytes = isTransaction ? reader.finalTransaction(id) : blockAt(path);
    if (bytes === undefined) return undefined;
    const dependsOn = isTransaction ? [id] : [];
    const hit = { body: new Blob([bytes]), headers, dependsOn, goodUntil: Number.POSITIVE_INFINITY };
    memory.put(path, hit, since);
    return hit;
  };
}
