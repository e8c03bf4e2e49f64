/**
 * `GET` and `HEAD` of `/{id}`, `/{id}/{path}`, `/raw/{id}`, and of everything on a host of an id's or a name's own.
 * Source: docs/reference/gateway.md#content-responses; docs/reference/gateway.md#which-route-serves-a-request.
 * @module
 */
import { type AnyElysia, Elysia, NotFoundError } from "elysia";
import type { Id } from "../../arweave/id.ts";
import type { GatewayContentStore } from "../../content/content.ts";
import { Failure } from "../../failures.ts";
import { type IsolationRules, isServiceWorkerRequest, leavesSharedHost } from "../../gateway/isolation.ts";
import type { ItemPlace } from "../../gateway/item-place.ts";
import type { Names } from "../../gateway/names/names.ts";
import type { Resolver } from "../../gateway/resolve.ts";
import type { FindSignedContent } from "../../gateway/signed-content.ts";
import type { Clock } from "../../lib/clock.ts";
import { type ContentPolicy, sandboxClosed, sandboxWithScripts } from "../content-headers.ts";
import { readFetchMetadata } from "../header-values.ts";
import { type HostMeaning, type Hosts, sandboxLabel } from "../hosts.ts";
import { contextOf, type RequestContext } from "../request-context.ts";
import { hostPort } from "../request-target.ts";
import { codeResponse, withBodySize } from "../responses.ts";
import { type Apex, type ContentPath, type NamedPath, readContentAddress } from "./content-address.ts";
import { type ContentSender, createContentFinder, createContentSender, queryPart } from "./content-sender.ts";
import { createNamedContent, type NotFoundPage } from "./named-content.ts";
import type { Memory } from "./response-cache.ts";

export type ContentRoutesOptions = Readonly<{
  resolver: Resolver;
  content: Pick<GatewayContentStore, "open" | "openIndexed">;
  itemPlaceOf: (id: Id) => ItemPlace | undefined;
  /** Finds what was signed with content, for headers; undefined where those are switched off. */
  signedContentOf: FindSignedContent | undefined;
  memory: Pick<Memory, "get" | "bodies">;
  hosts: Hosts;
  isolation: IsolationRules;
  /** Scheme of redirects to an id's own host; absent follows the request. */
  sandboxScheme: "http" | "https" | undefined;
  apex: Apex | undefined;
  names: Names;
  notFoundPage: NotFoundPage;
  /** A body up to this size that is not on disk is sent when it is complete. Bytes. */
  coldBufferBytes: number;
  clock: Clock;
  /** Called with each content response, except those from the response cache. */
  note?: ((response: Response) => void) | undefined;
}>;

/** Content over HTTP. */
export type ContentRoutes = Readonly<{
  /** Responds from the response cache, or returns undefined. */
  hit: (request: Request) => Response | undefined;
  /** For routes that send content from addresses of their own. */
  sender: ContentSender;
  /** Takes every path that no other route takes, and everything on a host of an id's or a name's own. */
  routes: AnyElysia;
}>;

const methods = "GET, HEAD, OPTIONS";

/** Creates the routes. */
export function createContentRoutes(options: ContentRoutesOptions): ContentRoutes {
  const { memory, hosts, isolation, apex } = options;
  const { coldBufferBytes, names, notFoundPage } = options;
  const finder = createContentFinder({ ...options, responseCache: memory.bodies });
  const sender = createContentSender({ finder, coldBufferBytes, note: options.note });
  const named = createNamedContent({ names, sender, notFoundPage });
  const isolates = isolation.mode !== "off" && isolation.hasRootHost;

  const serve = async (request: Request): Promise<Response> => {
    const { segments, target } = contextOf(request);
    const host = hosts.meaningOf(target.host);
    const address = readContentAddress(segments, host, apex);
    if (address.kind === "none") throw new NotFoundError();
    if (request.method !== "GET") return codeResponse("method_not_allowed", { Allow: methods });
    if (address.kind === "invalid id") throw new Failure("invalid_id", { path: target.path });
    if (address.kind === "absent") throw new Failure("not_found", { path: target.path });
    return await serveContent(address, host, request);
  };

  const serveContent = async (address: ContentPath | NamedPath, host: HostMeaning, request: Request) => {
    const context = contextOf(request);
    const { target } = context;
    if (host.kind === "shared" && isServiceWorkerRequest(readFetchMetadata(request.headers)))
      throw new Failure("service_worker_rejected", { path: target.path });
    const policy = policyOf(address, host, isolation, isolates);
    if (address.kind === "named") return await named.response(request, address, policy);
    const elsewhere = redirectOf(address, host, request, context);
    if (elsewhere !== undefined) return elsewhere;
    const key = host.kind === "shared" ? target.path : `${target.host}${target.path}`;
    return await sender.send(request, { address, policy, key });
  };

  const redirectOf = (address: ContentPath, host: HostMeaning, request: Request, context: RequestContext) => {
    const metadata = readFetchMetadata(request.headers);
    const isHome = host.kind === "sandbox" && host.id === address.id;
    if (address.raw || address.changing || isHome || !leavesSharedHost(isolation, metadata)) return undefined;
    const scheme = options.sandboxScheme ?? context.scheme;
    const { path, query, host: asked } = context.target;
    const origin = `${scheme}://${sandboxLabel(address.id)}.${host.root}${hostPort(asked)}`;
    const home = `${origin}${path}${queryPart(query)}`;
    return new Response(null, { status: 302, headers: { Location: home, Vary: "Sec-Fetch-Dest, Accept" } });
  };

  const hit = (request: Request): Response | undefined => {
    if (request.method !== "GET") return undefined;
    const { url } = request;
    const hostStart = url.indexOf("//") + 2;
    const pathStart = url.indexOf("/", hostStart);
    const host = hosts.meaningOf(url.slice(hostStart, pathStart));
    const found = memory.get(url.slice(host.kind === "shared" ? pathStart : hostStart));
    if (found === undefined || !isPlain(request.headers)) return undefined;
    if (isolates && leavesSharedHost(isolation, readFetchMetadata(request.headers))) return undefined;
    return withBodySize(new Response(found.body, found), found.body);
  };

  const routes = new Elysia({ strictPath: true })
    .onRequest(({ request }) => {
      if (hosts.roots.length === 0) return undefined;
      return hosts.meaningOf(contextOf(request).target.host).kind === "shared" ? undefined : serve(request);
    })
    .all("/*", ({ request }) => serve(request), { parse: "none" });
  return { hit, sender, routes };
}

/** Request headers that may change the response from the whole body. */
const headersThatMatter = [
  "range",
  "if-none-match",
  "if-match",
  "x-request-id",
  "x-ar-io-hops",
  "service-worker",
] as const;

/** Whether the request is for the whole body, so that a cached response can be used unchanged. */
function isPlain(headers: Headers): boolean {
  for (const name of headersThatMatter) if (headers.has(name)) return false;
  return true;
}

function policyOf(
  address: ContentPath | NamedPath,
  host: HostMeaning,
  isolation: IsolationRules,
  isolates: boolean,
): ContentPolicy {
  const isRaw = address.kind === "content" && address.raw;
  const onSharedHost = host.kind === "shared" && !isRaw;
  const withScripts = onSharedHost && isolation.mode === "csp" ? sandboxWithScripts : undefined;
  return {
    sandbox: isRaw ? sandboxClosed : withScripts,
    variesByDestination: onSharedHost && isolates,
  };
}
