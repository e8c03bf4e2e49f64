/**
 * Response headers of content: type, verification, and caching.
 * Source: docs/reference/gateway.md#content-responses; RFC 9530 (digests).
 * @module
 */
import type { Id } from "../arweave/id.ts";
import type { ItemPlace } from "../gateway/item-place.ts";
import { encodeBase64url } from "../lib/base64url.ts";
import { isArweaveHeader } from "./arweave-headers.ts";
import { contentTag } from "./conditional.ts";
import { corsHeaders } from "./cors.ts";
import { contentCodingsOf, digestField, isActiveType, mediaTypeOf, unknownType } from "./header-values.ts";

export type ContentDescription = Readonly<{
  id: Id;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  digest: Uint8Array | undefined; // SHA-256
  verified: boolean;
  stable: boolean;
  trusted: boolean;
  cached: boolean;
  item: ItemPlace | undefined;
  /** How long caches may store the response. */
  keep: Keep;
  /** What a browser may do with it. */
  policy: ContentPolicy;
}>;

/**
 * How long caches may store a response: by the state of the bytes, or for a time because the address may change.
 */
export type Keep = Readonly<{ kind: "by content" }> | Readonly<{ kind: "for a time"; seconds: number }>;

/** What a browser may do with content. */
export type ContentPolicy = Readonly<{
  /** Sandbox for active types; `undefined` leaves them free. */
  sandbox: string | undefined;
  /** Whether the response varies by destination, so that shared caches separate them. */
  variesByDestination: boolean;
}>;

/** No scripts: for `/raw` of an active type. */
export const sandboxClosed = "sandbox";

/** Scripts run in an origin of their own that stores nothing. */
export const sandboxWithScripts = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads";

/**
 * Max-age of responses from an address that may change: apex, names without TTL, fallbacks. Seconds.
 */
export const changingAgeSeconds = 300;

const immutableAge = "public, max-age=2592000, immutable";
const mutableAge = "public, max-age=7200";

/** Headers of a whole response (200), without its length. */
export function contentHeaders(description: ContentDescription): Headers {
  const type = mediaTypeOf(description.contentType);
  const codings = contentCodingsOf(description.contentEncoding);
  const headers = new Headers({
    "Content-Type": type,
    ETag: contentTag(description.id, description.verified),
    "Cache-Control": cacheControl(description),
    "Accept-Ranges": "bytes",
    "X-Content-Type-Options": "nosniff",
    "X-AR-IO-Data-Id": description.id,
    "X-AR-IO-Verified": String(description.verified),
    "X-AR-IO-Stable": String(description.stable),
    "X-AR-IO-Trusted": String(description.trusted),
    "X-AR-IO-Hops": "1",
    "X-Cache": description.cached ? "HIT" : "MISS",
    ...corsHeaders,
  });
  if (codings !== undefined) headers.set("Content-Encoding", codings);
  // Bun names the cache's file in Content-Disposition of this type unless the header is set.
  if (type === unknownType) headers.set("Content-Disposition", "inline");
  if (description.digest !== undefined) setDigest(headers, description.digest);
  if (description.item !== undefined) setItem(headers, description.item);
  if (description.policy.sandbox !== undefined && isActiveType(type))
    headers.set("Content-Security-Policy", description.policy.sandbox);
  if (description.policy.variesByDestination) headers.set("Vary", "Sec-Fetch-Dest, Accept");
  return headers;
}

/** Headers of a partial response: without the digest of the content, which would be taken for one of the part. */
export function partHeaders(whole: Headers): Headers {
  const headers = new Headers(whole);
  headers.delete("Content-Digest");
  return headers;
}

/** Headers of a 304: those that describe a body are removed. Source: RFC 9110 §15.4.5. */
export function notModifiedHeaders(whole: Headers): Headers {
  const headers = new Headers(whole);
  for (const name of ["Content-Type", "Content-Encoding", "Content-Digest", "Repr-Digest", "Content-Disposition"])
    headers.delete(name);
  for (const name of [...headers.keys()]) if (isArweaveHeader(name)) headers.delete(name);
  return headers;
}

function cacheControl({ keep, verified, stable }: ContentDescription): string {
  if (keep.kind === "for a time") return `public, max-age=${keep.seconds}`;
  return verified && stable ? immutableAge : mutableAge;
}

function setDigest(headers: Headers, digest: Uint8Array): void {
  const field = digestField(digest);
  headers.set("X-AR-IO-Digest", encodeBase64url(digest));
  headers.set("Content-Digest", field);
  headers.set("Repr-Digest", field);
}

function setItem(headers: Headers, item: ItemPlace): void {
  headers.set("X-AR-IO-Root-Transaction-Id", item.rootId);
  headers.set("X-AR-IO-Root-Data-Item-Offset", String(item.rootItemOffset));
  headers.set("X-AR-IO-Root-Data-Offset", String(item.rootDataOffset));
  headers.set("X-AR-IO-Data-Item-Root-Parent-Offset", String(item.rootItemOffset - item.itemOffset));
  headers.set("X-AR-IO-Data-Item-Offset", String(item.itemOffset));
  headers.set("X-AR-IO-Data-Item-Size", String(item.itemSize));
  headers.set("X-AR-IO-Data-Item-Data-Offset", String(item.itemDataOffset));
}
