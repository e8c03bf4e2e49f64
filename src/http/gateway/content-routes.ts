/**
 * `GET` and `HEAD` of `/{id}`, `/{id}/{path}`, `/raw/{id}`, and of everything on a host of an id's or a name's own.
 * Source: docs/reference/gateway.md#content-responses; docs/reference/gateway.md#which-route-serves-a-request.
 * @module
 */
import { type AnyElysia, Elysia, NotFoundError } from "elysia";
import type { GatewayContentStore } from "../../content/content.ts";
import { Failure } from "../../failures.ts";
import {
  type IsolationRules,
  isServiceWorkerRequest,
  leavesSharedHost,
  variesByDestination,
} from "../../gateway/isolation.ts";
import type { Names } from "../../gateway/names/names.ts";
import type { Resolver } from "../../gateway/resolve.ts";
import type { FindSignedContent } from "../../gateway/signed-content.ts";
import type { Clock } from "../../lib/clock.ts";
import { readFetchMetadata } from "../header-values.ts";
import { type HostMeaning, type Hosts, sandboxLabel } from "../hosts.ts";
import type { Parameter } from "../parameter.ts";
import {
  bytes,
  empty,
  failureResponses,
  inPath,
  type Responses,
  sourceFault,
  textSchema,
} from "../reference/openapi-types.ts";
import { contextOf, type RequestContext } from "../request-context.ts";
import { hostPort } from "../request-target.ts";
import { codeResponse } from "../responses.ts";
import { describedAs } from "../route-schema.ts";
import { createCachedContent } from "./cached-content.ts";
import { type Apex, type ContentPath, type NamedPath, readContentAddress } from "./content-address.ts";
import { type ContentPolicy, sandboxClosed, sandboxWithScripts } from "./content-headers.ts";
import {
  type ContentSender,
  createContentFinder,
  createContentSender,
  type NoteContent,
  queryPart,
} from "./content-sender.ts";
import { createNamedContent, type NotFoundPage } from "./named-content.ts";
import { entityTagHeader, pathParameters, rangeHeader } from "./parameters.ts";
import type { ResponseCaches } from "./response-cache.ts";

export type ContentRoutesOptions = Readonly<{
  resolver: Resolver;
  content: Pick<GatewayContentStore, "open" | "openIndexed">;
  /** Finds what was signed with content, for headers; undefined where those are switched off. */
  signedContentOf: FindSignedContent | undefined;
  memory: Pick<ResponseCaches, "get" | "bodies" | "mediumBodies" | "onDisk">;
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
  /** Called for each response of `send`, and for each of `hit` from the disk; `sendWhole` does not call it. */
  note?: NoteContent | undefined;
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
  const finder = createContentFinder({ ...options, responseCache: memory.bodies, onDisk: memory.onDisk });
  const sender = createContentSender({ finder, coldBufferBytes, note: options.note });
  const named = createNamedContent({ names, sender, notFoundPage });

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
    const policy = policyOf(address, host, isolation);
    if (address.kind === "named") return await named.response(request, address, policy);
    const elsewhere = redirectOf(address, host, request, context);
    if (elsewhere !== undefined) return elsewhere;
    const key = host.kind === "shared" ? target.path : `${target.host}${target.path}`;
    return await sender.send(request, { address, policy, key });
  };

  const redirectOf = (address: ContentPath, host: HostMeaning, request: Request, context: RequestContext) => {
    const metadata = readFetchMetadata(request.headers);
    if (!hasOtherHost(address, host) || !leavesSharedHost(isolation, metadata)) return undefined;
    const scheme = options.sandboxScheme ?? context.scheme;
    const { path, query, host: asked } = context.target;
    const origin = `${scheme}://${sandboxLabel(address.id)}.${host.root}${hostPort(asked)}`;
    const home = `${origin}${path}${queryPart(query)}`;
    return new Response(null, { status: 302, headers: { Location: home, Vary: "Sec-Fetch-Dest, Accept" } });
  };

  const hit = createCachedContent({ memory, hosts, isolation, note: options.note });
  const routes = new Elysia({ strictPath: true })
    .onRequest(({ request }) => {
      if (hosts.roots.length === 0) return undefined;
      return hosts.isOwn(contextOf(request).target.host) ? undefined : serve(request);
    })
    .all("/*", ({ request }) => serve(request), { parse: "none", detail: contentDetail });
  return { hit, sender, routes };
}

const content: Responses = {
  200: bytes("The content. Headers state whether it was verified, its source, and its cache lifetime."),
  206: bytes("The requested ranges; several as multipart/byteranges."),
  302: empty("The content has a host of its own."),
  304: empty("The client has it."),
  ...failureResponses(
    "invalid_id",
    "service_worker_rejected",
    "not_found",
    "manifest_too_large",
    "precondition_failed",
    "blocked",
  ),
  ...failureResponses("range_not_satisfiable"),
  ...sourceFault,
};

const pathBelow = inPath("path", textSchema, "index.html", "Path within the manifest; it may hold slashes.");

function contentPath(method: "GET" | "HEAD", path: string, summary: string, below: readonly Parameter[] = []) {
  const parameters = [pathParameters.contentId, ...below, rangeHeader, entityTagHeader];
  return { method, path, tag: "Content", summary, parameters, responses: content };
}

/** One route serves all content, because the meaning of a path depends on the host. */
const contentDetail = describedAs(
  contentPath("GET", "/:txId", "Content; of a manifest, what it has for the empty path"),
  contentPath("HEAD", "/:txId", "Headers of content"),
  contentPath("GET", "/:txId/:path", "Content that a manifest has for a path", [pathBelow]),
  contentPath("GET", "/raw/:txId", "Content as it is, also of a manifest"),
  contentPath("HEAD", "/raw/:txId", "Headers of content as it is"),
);

/** Whether a page at an address has another host of its own, which it is sent to. */
function hasOtherHost(address: ContentPath, host: HostMeaning): boolean {
  const isHome = host.kind === "sandbox" && host.id === address.id;
  return !(address.raw || address.changing || isHome);
}

function policyOf(address: ContentPath | NamedPath, host: HostMeaning, isolation: IsolationRules): ContentPolicy {
  const isRaw = address.kind === "content" && address.raw;
  const onSharedHost = host.kind === "shared" && !isRaw;
  const isAway = address.kind === "content" && hasOtherHost(address, host);
  const withScripts = onSharedHost && isolation.mode === "csp" ? sandboxWithScripts : undefined;
  return {
    sandbox: isRaw ? sandboxClosed : withScripts,
    variesByDestination: (onSharedHost || isAway) && variesByDestination(isolation),
  };
}
