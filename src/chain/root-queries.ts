/**
 * Items' bundles as other gateways' GraphQL knows them: from the item to its bundle, from there on to the
 * transaction.
 * Source: docs/reference/gateway.md#items-on-demand.
 * @module
 */
import { LRUCache } from "lru-cache";
import { type Id, readId } from "../arweave/id.ts";
import type { GatewayAddress } from "../config/gateway-list.ts";
import { type Http, type HttpTimeouts, openHttp, type Trouble, trouble } from "../lib/http-client.ts";
import { isJsonObject, type JsonValue, readJson } from "../lib/json.ts";
import type { Clue } from "./clue.ts";
import type { ClueSources } from "./clue-sources.ts";
import type { NodeAnswer } from "./node.ts";
import { createSources, type SourceParts } from "./sources.ts";

/** Bundles around an item. Source: the walk's own limit (src/content/bundle-walk.ts). */
const levelsMax = 4;

/** One record of an answer. */
const answerBytesMax = 64 * 1_024;

const timeoutsDefault: HttpTimeouts = { firstByteMs: 4_000, stallMs: 2_000, totalMs: 5_000 };

/** A gateway without `/graphql` is asked again after this long. Milliseconds. */
const withoutQueriesMs = 600_000;

const query = "query($id: ID!) { transaction(id: $id) { id bundledIn { id } } }";

type Client = Readonly<{ url: string; priority: number; http: Http }>;

/** What a gateway says of an id: the bundle that it lies in, or that it lies in none. */
type Bundled = Readonly<{ in: Id | undefined }>;

const inNoBundle: NodeAnswer<Bundled> = { kind: "ok", value: { in: undefined } };

/** Opens gateways. */
export function openRootQueries(
  addresses: readonly GatewayAddress[],
  parts: SourceParts & Readonly<{ timeouts?: HttpTimeouts }>,
): ClueSources {
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

  async function ask(client: Client, id: Id, signal: AbortSignal): Promise<NodeAnswer<Bundled>> {
    if (without.has(client.url)) return { kind: "absent" };
    const request = {
      method: "POST",
      url: `${client.url}/graphql`,
      headers: { "content-type": "application/json", accept: "application/json" },
      body: new TextEncoder().encode(JSON.stringify({ query, variables: { id } })),
    } as const;
    const answer = await client.http.whole(request, answerBytesMax, signal);
    if (answer.kind === "trouble") return answer;
    if ([404, 405, 410].includes(answer.status)) {
      without.set(client.url, true); // it has no queries, and so no opinion
      return { kind: "absent" };
    }
    if (answer.status !== 200) return trouble("status", `status ${answer.status}`, answer.status);
    return readAnswer(id, readJson(new TextDecoder().decode(answer.body)));
  }

  /** Walks up from an item to a transaction. */
  async function climb(client: Client, id: Id, signal: AbortSignal): Promise<NodeAnswer<Clue>> {
    const path: Id[] = [];
    for (let at: Id = id; ; ) {
      const answer = await ask(client, at, signal);
      // Who knows the item but not its bundle may still know the bundle's id: it is taken for the transaction.
      const said = answer.kind === "absent" && path.length > 0 ? inNoBundle : answer;
      if (said.kind !== "ok") return said;
      const parent = said.value.in;
      if (parent === undefined) return clueOf(path);
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
function stepFault(id: Id, path: readonly Id[], parent: Id): Trouble | undefined {
  if (parent === id || path.includes(parent)) return trouble("wrong", `${parent} is said to lie in itself`);
  return path.length < levelsMax
    ? undefined
    : trouble("malformed", `${id} lies deeper than ${levelsMax} bundles`);
}

/** What is in no bundle is a transaction, of which the chain's nodes know more. */
function clueOf([rootId, ...path]: readonly Id[]): NodeAnswer<Clue> {
  return rootId === undefined
    ? { kind: "absent" }
    : { kind: "ok", value: { rootId, path, itemOffset: undefined } };
}

function readAnswer(id: Id, answer: JsonValue | undefined): NodeAnswer<Bundled> {
  if (!isJsonObject(answer) || answer["errors"] !== undefined)
    return trouble("malformed", "the query was not answered");
  const { data } = answer;
  const transaction = isJsonObject(data) ? data["transaction"] : undefined;
  if (transaction === null) return { kind: "absent" };
  if (!isJsonObject(transaction) || transaction["id"] !== id)
    return trouble("malformed", "the answer is of another shape");
  const bundle = transaction["bundledIn"];
  if (bundle === null) return inNoBundle;
  const parent = isJsonObject(bundle) ? bundle["id"] : undefined;
  const parentId = typeof parent === "string" ? readId(parent) : undefined;
  return parentId === undefined
    ? trouble("malformed", "the bundle has no id")
    : { kind: "ok", value: { in: parentId } };
}
