/**
 * From an address to content with its headers, in memory where it is small.
 * Source: docs/reference/gateway.md#content-responses.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import type { Hint } from "../../chain/hint.ts";
import type { Content, GatewayContentStore } from "../../content/content.ts";
import type { OpenContent } from "../../content/open-content.ts";
import { foundItemPlace, type ItemPlace } from "../../gateway/item-place.ts";
import type { Resolver } from "../../gateway/resolve.ts";
import type { FindSignedContent, SignedContent } from "../../gateway/signed-content.ts";
import type { Clock } from "../../lib/clock.ts";
import { sha256 } from "../../lib/hash.ts";
import type { ByteSpan } from "../../lib/range.ts";
import { setArweaveHeaders } from "../arweave-headers.ts";
import type { ReadableContent } from "../content-body.ts";
import { type ContentPolicy, changingAgeSeconds, contentHeaders, type Keep } from "../content-headers.ts";
import type { ContentPath } from "./content-address.ts";
import { type Hit, hitBytesMax, type ResponseCache } from "./response-cache.ts";

/** What an address led to. */
export type Found =
  | Readonly<{ kind: "folder" }>
  | Readonly<{ kind: "content"; content: ReadableContent; headers: Headers }>;

/** What is wanted of an address. */
export type FindRequest = Readonly<{
  address: ContentPath;
  policy: ContentPolicy;
  /** The address as {@link Hits} know it. */
  key: string;
  /** Whether the whole body is about to be sent, so that it may be read into memory. */
  wantsWhole: boolean;
  /** Asked by another gateway: what the index does not have is not looked for at third ones. */
  isForGateway: boolean;
  /** Where whoever asks says that the addressed id lies. */
  hint: Hint | undefined;
  signal: AbortSignal;
}>;

/** Finds content. */
export type ContentFinder = Readonly<{
  /** @throws Failure `not_found`, `blocked`, `source_failed`, `source_timeout`, `busy`. */
  find: (request: FindRequest) => Promise<Found>;
}>;

/** What a finder is made of. */
export type ContentFinderOptions = Readonly<{
  resolver: Resolver;
  content: Pick<GatewayContentStore, "open" | "openIndexed">;
  itemPlaceOf: (id: Id) => ItemPlace | undefined;
  /** Finds what was signed with content, for headers; undefined where those are switched off. */
  signedContentOf: FindSignedContent | undefined;
  responseCache: ResponseCache;
  clock: Clock;
}>;

/** What is not stable or not verified yet is looked at again after this long. Milliseconds. */
const changeableStoredMs = 5_000;

/** What was found of content, beside itself. */
type Circumstances = Readonly<{
  fallback: boolean;
  manifestId: Id | undefined;
  isPathVerified: boolean;
  keep: Keep;
  policy: ContentPolicy;
  signed: SignedContent | undefined;
  /** Whether all of the body was on this disk before anything was read for the response. */
  wasCached: boolean;
}>;

/** Creates a finder. */
export function createContentFinder(options: ContentFinderOptions): ContentFinder {
  const { responseCache, clock } = options;

  const headersOf = (content: OpenContent, digest: Uint8Array | undefined, cached: boolean, about: Circumstances) => {
    const item = options.itemPlaceOf(content.id) ?? foundItemPlace(content);
    const headers = contentHeaders({
      ...content,
      digest,
      cached,
      item,
      keep: about.keep,
      policy: about.policy,
    });
    if (about.signed !== undefined) setArweaveHeaders(headers, about.signed);
    if (about.fallback) headers.set("X-AR-IO-Manifest-Fallback", "true");
    return headers;
  };

  const remember = async (
    content: OpenContent,
    about: Circumstances,
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
      dependsOn: about.manifestId === undefined ? [content.id] : [content.id, about.manifestId],
      goodUntil:
        content.stable && content.verified && about.isPathVerified
          ? Number.POSITIVE_INFINITY
          : clock() + changeableStoredMs,
    };
    // What was refused or found anew meanwhile must not come back into memory as it was.
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
      const keep: Keep =
        fallback || request.address.changing || !isPathVerified
          ? { kind: "for a time", seconds: changingAgeSeconds }
          : { kind: "by content" };
      const wasCached = content.cached({ start: 0, end: content.size });
      const signed = await options.signedContentOf?.(content, request.signal);
      const { policy } = request;
      const about = { fallback, manifestId, isPathVerified, keep, policy, signed, wasCached };
      if (request.wantsWhole && content.size <= hitBytesMax) return await remember(content, about, request, since);
      return { kind: "content", content, headers: headersOf(content, content.digest, wasCached, about) };
    },
  };
}

async function resolve({ resolver, content }: ContentFinderOptions, request: FindRequest) {
  const { address, signal } = request;
  const open = request.isForGateway ? content.openIndexed : openWith(content.open, address.id, request.hint);
  if (!address.raw) return await resolver.resolve(address.id, address.path, open, signal);
  const found = await open(address.id, signal);
  return {
    kind: "content",
    content: found,
    fallback: false,
    manifestId: undefined,
    isPathVerified: true,
  } as const;
}

/** Passes a clue on with the id that it is about. */
function openWith(open: Content["open"], about: Id, hint: Hint | undefined): Content["open"] {
  return hint === undefined ? open : (id, signal) => open(id, signal, id === about ? hint : undefined);
}

function contentInMemory(body: Blob): ReadableContent {
  const part = ({ start, end }: ByteSpan) => body.slice(start, end);
  return {
    root: undefined,
    size: body.size,
    // What is in memory was asked about when it came, and leaves memory with every new refusal.
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
