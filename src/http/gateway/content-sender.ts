/**
 * Content by its address: found, cached in memory where small, and sent whole or in parts.
 * Source: docs/reference/gateway.md#content-responses.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import { type Hint, readHintHeaders } from "../../chain/hint.ts";
import type { Content, GatewayContentStore } from "../../content/content.ts";
import type { OpenContent } from "../../content/opened-content.ts";
import { itemPlaceOf } from "../../gateway/item-place.ts";
import { contentById, type Resolver } from "../../gateway/resolve.ts";
import type { FindSignedContent, SignedContent } from "../../gateway/signed-content.ts";
import type { Clock } from "../../lib/clock.ts";
import { sha256 } from "../../lib/hash.ts";
import type { ByteSpan } from "../../lib/range.ts";
import { contentDisposition } from "../header-values.ts";
import { contextOf, type RequestContext } from "../request-context.ts";
import type { ContentPath } from "./content-address.ts";
import {
  type CacheLifetime,
  type ContentPolicy,
  changingMaxAgeSeconds,
  contentHeaders,
  partHeaders,
  setArweaveHeaders,
} from "./content-headers.ts";
import { type ContentRequest, contentResponse, type ReadableContent, readContentRequest } from "./content-response.ts";
import { type DiskHit, type Hit, hitBytesMax, type ResponseCache } from "./response-cache.ts";

export type Found =
  | Readonly<{ kind: "folder" }>
  | Readonly<{ kind: "content"; content: ReadableContent; headers: Headers }>;

export type FindRequest = Readonly<{
  address: ContentPath;
  policy: ContentPolicy;
  /** Key of the address in the response cache. */
  key: string;
  /** Whether the whole body will be sent, so that it may be cached in memory. */
  wantsWhole: boolean;
  /** A request of another gateway: content that is not in the index is not requested from third ones. */
  isForGateway: boolean;
  /** The client's hint about the place of the id. */
  hint: Hint | undefined;
  signal: AbortSignal;
}>;

export type ContentFinder = Readonly<{
  /** @throws Failure `not_found`, `blocked`, `source_failed`, `source_timeout`, `busy`. */
  find: (request: FindRequest) => Promise<Found>;
}>;

export type ContentFinderOptions = Readonly<{
  resolver: Resolver;
  content: Pick<GatewayContentStore, "open" | "openIndexed">;
  /** Finds the signed fields of content for headers; undefined when these headers are disabled. */
  signedContentOf: FindSignedContent | undefined;
  responseCache: ResponseCache;
  onDisk: ResponseCache<DiskHit>;
  clock: Clock;
}>;

/** Time to live of cached content that is not yet stable or verified, or lacks headers. Milliseconds. */
const changeableTtlMs = 5_000;

/** Conditions of the request and its path on which the headers of a response depend, besides the content. */
type ResponseConditions = Readonly<{
  fallback: boolean;
  manifestId: Id | undefined;
  isPathVerified: boolean;
  cacheLifetime: CacheLifetime;
  policy: ContentPolicy;
  signed: SignedContent | undefined;
  /** Whether the signed fields were not available in time. */
  lacksSigned: boolean;
  /** Whether all of the body was on this disk before anything was read for the response. */
  wasCached: boolean;
}>;

export function createContentFinder(options: ContentFinderOptions): ContentFinder {
  const { responseCache, onDisk, clock } = options;

  const headersOf = (
    content: OpenContent,
    digest: Uint8Array | undefined,
    cached: boolean,
    about: ResponseConditions,
  ) => {
    const headers = contentHeaders({
      ...content,
      digest,
      cached,
      item: itemPlaceOf(content),
      cacheLifetime: about.cacheLifetime,
      policy: about.policy,
    });
    if (about.signed !== undefined) setArweaveHeaders(headers, about.signed);
    if (about.fallback) headers.set("X-AR-IO-Manifest-Fallback", "true");
    return headers;
  };

  const remember = async (
    content: OpenContent,
    about: ResponseConditions,
    request: FindRequest,
    since: number,
  ): Promise<Found> => {
    const bytes = await content.bytes({ start: 0, end: content.size }, request.signal);
    const cached = about.wasCached && !content.fetched();
    const digest = content.digest ?? sha256(bytes);
    const body = new Blob([new Uint8Array(bytes)]);
    const hit: Hit = {
      body,
      headers: headersOf(content, digest, true, about),
      dependsOn: dependenciesOf(content, about),
      goodUntil: isFinal(content, about) ? Number.POSITIVE_INFINITY : clock() + changeableTtlMs,
    };
    // Content that was blocked or changed meanwhile must not be cached in its old state.
    responseCache.put(request.key, hit, since);
    const headers = cached ? hit.headers : headersOf(content, digest, false, about);
    return { kind: "content", content: contentInMemory(body), headers };
  };

  return {
    find: async (request) => {
      const ready = responseCache.get(request.key);
      if (ready !== undefined) return { kind: "content", content: contentInMemory(ready.body), headers: ready.headers };
      const since = responseCache.moment();
      const found = await resolve(options, request);
      if (found.kind === "folder") return found;
      const { content, fallback, manifestId, isPathVerified } = found;
      const wasCached = content.cached({ start: 0, end: content.size });
      const signed = await options.signedContentOf?.(content, request.signal);
      const lacksSigned = options.signedContentOf !== undefined && signed === undefined;
      const cacheLifetime: CacheLifetime =
        fallback || request.address.changing || !isPathVerified || lacksSigned
          ? { kind: "for a time", seconds: changingMaxAgeSeconds }
          : { kind: "by content" };
      const { policy } = request;
      const about = { fallback, manifestId, isPathVerified, cacheLifetime, policy, signed, lacksSigned, wasCached };
      if (request.wantsWhole && content.size <= hitBytesMax) return await remember(content, about, request, since);
      const headers = headersOf(content, content.digest, wasCached, about);
      const hit = wasCached ? diskHit(content, headers, about, clock) : undefined;
      if (hit !== undefined) onDisk.put(request.key, hit, since);
      return { kind: "content", content, headers };
    },
  };
}

/** Content on this disk, so that it is sent again without another look-up. */
function diskHit(content: OpenContent, whole: Headers, about: ResponseConditions, clock: Clock): DiskHit | undefined {
  const { size, digest, hot } = content;
  // A digest that is learnt later must appear in the headers.
  const isComplete = digest !== undefined && isFinal(content, about);
  return (
    hot && {
      size,
      bytes: (signal) => content.bytes({ start: 0, end: size }, signal),
      hot,
      headers: { whole, part: partHeaders(whole) },
      dependsOn: dependenciesOf(content, about),
      goodUntil: isComplete ? Number.POSITIVE_INFINITY : clock() + changeableTtlMs,
    }
  );
}

/** The root too: what its bytes contain may become known later, and be blocked. */
function dependenciesOf({ id, root }: OpenContent, { manifestId }: ResponseConditions): readonly Id[] {
  return [...new Set([id, root?.id ?? id, manifestId ?? id])];
}

/** Whether neither the content, nor the path to it, nor the headers can change. */
function isFinal({ stable, verified }: Pick<OpenContent, "stable" | "verified">, about: ResponseConditions): boolean {
  return stable && verified && about.isPathVerified && !about.lacksSigned;
}

async function resolve({ resolver, content }: ContentFinderOptions, request: FindRequest) {
  const { address, signal } = request;
  const open = request.isForGateway ? content.openIndexed : openWith(content.open, address.id, request.hint);
  if (!address.raw) return await resolver.resolve(address.id, address.path, open, signal);
  return contentById(await open(address.id, signal));
}

/** The hint with its id. */
function openWith(open: Content["open"], about: Id, hint: Hint | undefined): Content["open"] {
  return hint === undefined ? open : (id, signal) => open(id, signal, id === about ? hint : undefined);
}

function contentInMemory(body: Blob): ReadableContent {
  const part = ({ start, end }: ByteSpan) => body.slice(start, end);
  return {
    root: undefined,
    size: body.size,
    // Cached content was checked when it was cached, and is dropped with every change of the block list.
    check: async () => undefined,
    cached: () => true,
    fetched: () => false,
    inMemory: body,
    bytes: (span) => part(span).bytes(),
    read: async function* (span) {
      yield await part(span).bytes();
    },
    file: async () => undefined,
  };
}

export type Sending = Readonly<{
  address: ContentPath;
  policy: ContentPolicy;
  /** Key of the address in the response cache. */
  key: string;
  /** Adds headers of the address; receives a copy of the headers. */
  decorate?: (headers: Headers) => void;
}>;

export type ContentSender = Readonly<{
  /** @throws Failure `not_found`, `blocked`, `source_failed`, `source_timeout`, `busy`. */
  send: (request: Request, sending: Sending) => Promise<Response>;
  /** Sends the whole content with the given status; ignores Range and conditional headers. */
  sendWhole: (request: Request, sending: Sending, status: number) => Promise<Response>;
}>;

/** Counts a response with content: its status, and whether all of its bytes were on this disk. */
export type NoteContent = (status: number, wasOnDisk: boolean) => void;

export type ContentSenderOptions = Readonly<{
  finder: ContentFinder;
  /** A body up to this size that is not on disk is sent when complete. Bytes. */
  coldBufferBytes: number;
  /** Called for each response of `send`. */
  note?: NoteContent | undefined;
}>;

/** Silence of a source before the connection is closed. Seconds. */
const sourceSilenceSeconds = 120;

export function createContentSender({ finder, coldBufferBytes, note }: ContentSenderOptions): ContentSender {
  const find = async (request: Request, sending: Sending, wantsWhole: boolean) => {
    const context = contextOf(request);
    context.extendIdleTimeout(sourceSilenceSeconds);
    const { address, policy, key } = sending;
    return await finder.find({
      address,
      policy,
      key,
      wantsWhole: wantsWhole && !context.headOnly,
      isForGateway: hopsOf(request) > 0,
      hint: readHintHeaders(request.headers),
      signal: request.signal,
    });
  };

  return {
    send: async (request, sending) => {
      const context = contextOf(request);
      const asked = readContentRequest(request, context);
      const found = await find(request, sending, isUnconditional(asked));
      if (found.kind === "folder") return folderResponse(context);
      const headers = decorated(found.headers, request, sending.decorate);
      const response = await contentResponse(found.content, headers, asked, coldBufferBytes);
      note?.(response.status, response.headers.get("X-Cache") === "HIT");
      return response;
    },
    sendWhole: async (request, sending, status) => {
      const context = contextOf(request);
      const found = await find(request, sending, true);
      if (found.kind === "folder") return folderResponse(context);
      const unconditional = { range: null, ifRange: null, ifMatch: null, ifNoneMatch: null };
      const asked = { ...readContentRequest(request, context), ...unconditional };
      const headers = decorated(found.headers, request, sending.decorate);
      return await contentResponse(found.content, headers, asked, coldBufferBytes, status);
    },
  };
}

/** Whether the response must be the whole body; otherwise it may need no body, and none is fetched. */
function isUnconditional({ range, ifNoneMatch, ifMatch }: ContentRequest): boolean {
  return range === null && ifNoneMatch === null && ifMatch === null;
}

/** Number of gateways that forwarded the request, by their headers. */
export function hopsOf(request: Request): number {
  const text = request.headers.get("x-ar-io-hops") ?? "";
  return /^\d{1,3}$/.test(text) ? Number(text) : 0;
}

/** The query of an address with its "?", where it has one. */
export function queryPart(query: string): string {
  return query === "" ? "" : `?${query}`;
}

/** Redirects a manifest without its slash: links in its pages are relative to the slash. */
function folderResponse({ target }: RequestContext): Response {
  const Location = `${target.path}/${queryPart(target.query)}`;
  return new Response(null, { status: 301, headers: { Location, "Cache-Control": "public, max-age=7200" } });
}

/** Cached headers are shared by responses, so they are copied before a change. */
function decorated(found: Headers, request: Request, decorate: Sending["decorate"]): Headers {
  const { query } = contextOf(request).target;
  const hops = hopsOf(request);
  if (decorate === undefined && query === "" && hops === 0) return found;
  const headers = new Headers(found);
  if (hops > 0) headers.set("X-AR-IO-Hops", String(hops + 1));
  decorate?.(headers);
  const disposition = query === "" ? undefined : dispositionOf(query);
  if (disposition !== undefined) headers.set("Content-Disposition", disposition);
  return headers;
}

/** `?download=1` and `?filename=` set Content-Disposition, as on IPFS gateways. */
function dispositionOf(query: string): string | undefined {
  const asked = new URLSearchParams(query);
  const fileName = asked.get("filename") ?? undefined;
  const download = asked.get("download") ?? "false";
  const attached = !["", "0", "false"].includes(download);
  if (!attached && fileName === undefined) return undefined;
  return contentDisposition(attached ? "attachment" : "inline", fileName);
}
