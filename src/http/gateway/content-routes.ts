/**
 * `GET` and `HEAD` of `/{id}`, `/{id}/{path}`, `/raw/{id}`, and of everything on a host of an id's own.
 * Source: contract.md §0a, §2.
 * @module
 */
import { type AnyElysia, Elysia, NotFoundError } from "elysia";
import type { Id } from "../../arweave/id.ts";
import type { GatewayContentStore } from "../../content/content.ts";
import { Failure } from "../../failures.ts";
import { asksForServiceWorker, type IsolationRules, leavesSharedHost } from "../../gateway/isolation.ts";
import type { ItemPlace } from "../../gateway/item-place.ts";
import type { Resolver } from "../../gateway/resolve.ts";
import type { Clock } from "../../lib/clock.ts";
import { codeAnswer } from "../answers.ts";
import { contentAnswer, readWish } from "../content-answer.ts";
import { type ContentPolicy, sandboxClosed, sandboxWithScripts } from "../content-headers.ts";
import { contextOf, type RequestContext } from "../context.ts";
import { readFetchFacts } from "../fetch-facts.ts";
import { contentDisposition } from "../header-values.ts";
import { type HostMeaning, type Hosts, sandboxLabel } from "../hosts.ts";
import { hostPort } from "../target.ts";
import { type ContentPath, readContentAddress } from "./content-address.ts";
import { createContentFinder } from "./content-finder.ts";
import type { Hits } from "./hits.ts";

/** What the routes are made of. */
export type ContentRoutesOptions = Readonly<{
  resolver: Resolver;
  content: Pick<GatewayContentStore, "open" | "openIndexed">;
  itemPlaceOf: (id: Id) => ItemPlace | undefined;
  hits: Hits;
  hosts: Hosts;
  isolation: IsolationRules;
  /** Scheme of redirects to an id's own host; absent follows the request. */
  sandboxScheme: "http" | "https" | undefined;
  /** Content of the root, and of every path that names nothing else. */
  apex: Id | undefined;
  /** A body up to this size that is not on disk is answered when complete. Bytes. */
  coldBufferBytes: number;
  clock: Clock;
}>;

/** Content over HTTP. */
export type ContentRoutes = Readonly<{
  /** Answers at once from memory, or not at all. */
  hit: (request: Request) => Response | undefined;
  /** Takes every path that no other route takes, and everything on an id's own host. */
  routes: AnyElysia;
}>;

/** How long a source may keep a reader waiting before the connection is closed, in seconds. */
const sourceSilenceSeconds = 120;

const methods = "GET, HEAD, OPTIONS";

/** Creates the routes. */
export function createContentRoutes(options: ContentRoutesOptions): ContentRoutes {
  const { hits, hosts, isolation, apex } = options;
  const finder = createContentFinder(options);
  const isolates = isolation.mode !== "off" && isolation.hasRootHost;

  const serve = async (request: Request): Promise<Response> => {
    const context = contextOf(request);
    const host = hosts.meaningOf(context.target.host);
    const address = readContentAddress(context.segments, host, apex);
    if (address.kind === "none") throw new NotFoundError();
    if (request.method !== "GET") return codeAnswer("method_not_allowed", { Allow: methods });
    if (address.kind === "invalid id") throw new Failure("invalid_id", { path: context.target.path });
    if (address.kind === "absent") throw new Failure("not_found", { path: context.target.path });
    const elsewhere = redirectOf(address, host, request, context);
    return elsewhere ?? (await send(address, host, request, context));
  };

  const redirectOf = (address: ContentPath, host: HostMeaning, request: Request, context: RequestContext) => {
    const facts = readFetchFacts(request.headers);
    if (host.kind === "shared" && asksForServiceWorker(facts))
      throw new Failure("service_worker_refused", { id: address.id });
    const isHome = host.kind === "sandbox" && host.id === address.id;
    if (address.raw || address.changing || isHome || !leavesSharedHost(isolation, facts)) return undefined;
    const root = host.kind === "shared" ? hosts.roots[0] : host.root;
    const scheme = options.sandboxScheme ?? context.scheme;
    const { path, query, host: asked } = context.target;
    const origin = `${scheme}://${sandboxLabel(address.id)}.${root}${hostPort(asked)}`;
    const home = `${origin}${path}${queryPart(query)}`;
    return new Response(null, { status: 302, headers: { Location: home, Vary: "Sec-Fetch-Dest, Accept" } });
  };

  const send = async (address: ContentPath, host: HostMeaning, request: Request, context: RequestContext) => {
    context.allowSilence(sourceSilenceSeconds);
    const { headOnly, target } = context;
    const wish = readWish(request, headOnly);
    const found = await finder.find({
      address,
      policy: policyOf(address, host, isolation, isolates),
      key: host.kind === "shared" ? target.path : `${target.host}${target.path}`,
      wantsWhole: !headOnly && wish.range === null && wish.ifNoneMatch === null,
      isForGateway: /^[1-9]/.test(request.headers.get("x-ar-io-hops") ?? ""),
      signal: request.signal,
    });
    if (found.kind === "folder") return folderAnswer(context);
    const headers = target.query === "" ? found.headers : withDisposition(found.headers, target.query);
    return await contentAnswer(found.content, headers, wish, options.coldBufferBytes);
  };

  const hit = (request: Request): Response | undefined => {
    if (request.method !== "GET") return undefined;
    const { url } = request;
    const hostStart = url.indexOf("//") + 2;
    const pathStart = url.indexOf("/", hostStart);
    const host = hosts.meaningOf(url.slice(hostStart, pathStart));
    const found = hits.get(url.slice(host.kind === "shared" ? pathStart : hostStart));
    if (found === undefined || !isPlain(request.headers, isolates)) return undefined;
    return new Response(found.body, found);
  };

  const routes = new Elysia({ strictPath: true })
    .onRequest(({ request }) => {
      if (hosts.roots.length === 0) return undefined;
      return hosts.meaningOf(contextOf(request).target.host).kind === "shared" ? undefined : serve(request);
    })
    .all("/*", ({ request }) => serve(request), { parse: "none" });
  return { hit, routes };
}

/** Request headers with which an answer may be another than the whole body. */
const headersThatMatter = ["range", "if-none-match", "if-match", "x-request-id", "service-worker"] as const;

/** Whether nothing but the body is asked for, so that an answer from memory will do as it is. */
function isPlain(headers: Headers, isolates: boolean): boolean {
  for (const name of headersThatMatter) if (headers.has(name)) return false;
  return !isolates || !(headers.has("sec-fetch-dest") || (headers.get("accept") ?? "").includes("text/html"));
}

function policyOf(
  address: ContentPath,
  host: HostMeaning,
  isolation: IsolationRules,
  isolates: boolean,
): ContentPolicy {
  const onSharedHost = host.kind === "shared" && !address.raw;
  const withScripts = onSharedHost && isolation.mode === "csp" ? sandboxWithScripts : undefined;
  return {
    sandbox: address.raw ? sandboxClosed : withScripts,
    variesByDestination: onSharedHost && isolates,
  };
}

/** A manifest without its slash: links in its pages are relative to the slash. */
function folderAnswer({ target }: RequestContext): Response {
  const Location = `${target.path}/${queryPart(target.query)}`;
  return new Response(null, { status: 301, headers: { Location, "Cache-Control": "public, max-age=7200" } });
}

function queryPart(query: string): string {
  return query === "" ? "" : `?${query}`;
}

/** `?download=1` and `?filename=` say how a browser should take the bytes, as IPFS gateways do. */
function withDisposition(headers: Headers, query: string): Headers {
  const asked = new URLSearchParams(query);
  const fileName = asked.get("filename") ?? undefined;
  const download = asked.get("download") ?? "false";
  const attached = !["", "0", "false"].includes(download);
  if (!attached && fileName === undefined) return headers;
  const changed = new Headers(headers);
  changed.set("Content-Disposition", contentDisposition(attached ? "attachment" : "inline", fileName));
  return changed;
}
