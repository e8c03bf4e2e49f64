/**
 * Items' bundles as other gateways' GraphQL knows them: from the item to its bundle, from there on to the
 * transaction.
 * Source: docs/reference/gateway.md#items-on-demand.
 * @module
 */
import { LRUCache } from "lru-cache";
import { type Id, readId } from "../arweave/id.ts";
import type { GatewayAddress } from "../config/setting-readers.ts";
import { type Fault, type Http, type HttpTimeouts, openHttp, fault as problem } from "../lib/http-client.ts";
import { isJsonObject, type JsonValue, readJson } from "../lib/json.ts";
import type { Hint, HintSources } from "./hint.ts";
import type { NodeResponse } from "./node.ts";
import { createSources, type SourceParts } from "./sources.ts";

/** Bundles around an item. Source: the walk's own limit (src/content/bundle-walk.ts). */
const levelsMax = 4;

/** One record of a response. */
const responseBytesMax = 64 * 1_024;

const timeoutsDefault: HttpTimeouts = { firstByteMs: 4_000, stallMs: 2_000, totalMs: 5_000 };

/** A gateway without `/graphql` is asked again after this long. Milliseconds. */
const withoutQueriesMs = 600_000;

const query = "query($id: ID!) { transaction(id: $id) { id bundledIn { id } } }";

type Client = Readonly<{ url: string; priority: number; http: Http }>;

/** The record of a gateway for an id: the bundle that contains it, or none. */
type Bundled = Readonly<{ in: Id | undefined }>;

const inNoBundle: NodeResponse<Bundled> = { kind: "ok", value: { in: undefined } };

/** Opens gateways. */
export function openRootQueries(
  addresses: readonly GatewayAddress[],
  parts: SourceParts & Readonly<{ timeouts?: HttpTimeouts }>,
): HintSources {
  const timeouts = parts.timeouts ?? timeoutsDefault;
  const clients = addresses.map(({ url, priority }) => ({
    url: url.replace(/\/+$/, ""),
    priority,
    http: openHttp(timeouts),
  }));
  const sources = createSources<Client>(clients, parts);
  const without = new LRUCache<string, true>({
    max: Math.max(1, addresses.length),
    ttl: withoutQueriesMs,
    perf: { now: parts.clock },
  });

  async function ask(client: Client, id: Id, signal: AbortSignal): Promise<NodeResponse<Bundled>> {
    if (without.has(client.url)) return { kind: "absent" };
    const request = {
      method: "POST",
      url: `${client.url}/graphql`,
      headers: { "content-type": "application/json", accept: "application/json" },
      body: new TextEncoder().encode(JSON.stringify({ query, variables: { id } })),
    } as const;
    const response = await client.http.whole(request, responseBytesMax, signal);
    if (response.kind === "fault") return response;
    if ([404, 405, 410].includes(response.status)) {
      without.set(client.url, true); // it has no queries, and so no opinion
      return { kind: "absent" };
    }
    if (response.status !== 200) return problem("status", `status ${response.status}`, response.status);
    return readResponse(id, readJson(new TextDecoder().decode(response.body)));
  }

  /** Walks up from an item to a transaction. */
  async function climb(client: Client, id: Id, signal: AbortSignal): Promise<NodeResponse<Hint>> {
    const path: Id[] = [];
    for (let at: Id = id; ; ) {
      const response = await ask(client, at, signal);
      // Who knows the item but not its bundle may still know the bundle's id: it is taken for the transaction.
      const said = response.kind === "absent" && path.length > 0 ? inNoBundle : response;
      if (said.kind !== "ok") return said;
      const parent = said.value.in;
      if (parent === undefined) return hintOf(path);
      const fault = stepFault(id, path, parent);
      if (fault !== undefined) return fault;
      path.unshift(parent);
      at = parent;
    }
  }

  return {
    count: clients.length,
    find: (id, check, signal) => sources.ask((client, own) => climb(client, id, own), check, signal),
    close: () => {
      for (const { http } of clients) http.close();
    },
  };
}

/** Why the way up does not go on to a bundle. */
function stepFault(id: Id, path: readonly Id[], parent: Id): Fault | undefined {
  if (parent === id || path.includes(parent)) return problem("wrong", `${parent} is said to contain itself`);
  return path.length < levelsMax
    ? undefined
    : problem("malformed", `${id} is nested in more than ${levelsMax} bundles`);
}

/** An id outside of bundles is a transaction; the chain's nodes know more about it. */
function hintOf([rootId, ...path]: readonly Id[]): NodeResponse<Hint> {
  return rootId === undefined ? { kind: "absent" } : { kind: "ok", value: { rootId, path, itemOffset: undefined } };
}

function readResponse(id: Id, response: JsonValue | undefined): NodeResponse<Bundled> {
  if (!isJsonObject(response) || response["errors"] !== undefined)
    return problem("malformed", "the query has no result");
  const { data } = response;
  const transaction = isJsonObject(data) ? data["transaction"] : undefined;
  if (transaction === null) return { kind: "absent" };
  if (!isJsonObject(transaction) || transaction["id"] !== id)
    return problem("malformed", "the response has another shape");
  const bundle = transaction["bundledIn"];
  if (bundle === null) return inNoBundle;
  const parent = isJsonObject(bundle) ? bundle["id"] : undefined;
  const parentId = typeof parent === "string" ? readId(parent) : undefined;
  return parentId === undefined
    ? problem("malformed", "the bundle has no id")
    : { kind: "ok", value: { in: parentId } };
}
