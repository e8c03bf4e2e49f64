/**
 * Response headers of content: type, verification and caching; owner, signature and tags as `X-Arweave-…`.
 *
 * Signers choose names and values of tags freely, so each is validated and their total size is limited.
 * Source: docs/reference/gateway.md#content-responses; docs/operating.md, "Headers of tags"; RFC 9530 (digests);
 *   RFC 9110 §5.1, §5.5 (field names and values).
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import type { ItemPlace } from "../../gateway/item-place.ts";
import type { SignedContent } from "../../gateway/signed-content.ts";
import { encodeBase64url } from "../../lib/base64url.ts";
import { contentTag } from "../conditional-requests.ts";
import { corsHeaders } from "../cors.ts";
import { contentCodingsOf, digestField, isActiveType, mediaTypeOf } from "../header-values.ts";

type HeaderContext = Readonly<{
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
  cacheLifetime: CacheLifetime;
  policy: ContentPolicy;
}>;

/** How long caches may store a response: by the state of the bytes, or for a time because the address may change. */
export type CacheLifetime = Readonly<{ kind: "by content" }> | Readonly<{ kind: "for a time"; seconds: number }>;

/** Restrictions that a browser applies to content. */
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
 * Max-age of responses from an address that may change (apex, names without TTL, fallbacks), or that lack headers.
 * Seconds.
 */
export const changingMaxAgeSeconds = 300;

/** Bun names the file of a body in Content-Disposition for all types but these, and a few more, unless it is set. */
const namelessTypes = /^(?:audio|font|image|text|video)\//;

const immutableCacheControl = "public, max-age=2592000, immutable";
const mutableCacheControl = "public, max-age=7200";

/** Headers of a complete response (200), without its length. Those of 206, 304 and 416 are made from them. */
export function contentHeaders(description: HeaderContext): Headers {
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
  if (!namelessTypes.test(type)) headers.set("Content-Disposition", "inline");
  if (description.digest !== undefined) setDigest(headers, description.digest);
  if (description.item !== undefined) setItem(headers, description.item);
  if (description.policy.sandbox !== undefined && isActiveType(type))
    headers.set("Content-Security-Policy", description.policy.sandbox);
  if (description.policy.variesByDestination) headers.set("Vary", "Sec-Fetch-Dest, Accept");
  return headers;
}

/**
 * Headers of a partial response: without the digest of the content, which clients would read as the digest of the part.
 */
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

/** Headers of a 416, whose body is an error message. */
export function unsatisfiableHeaders(whole: Headers): Readonly<Record<string, string>> {
  const names = [
    "ETag",
    "Accept-Ranges",
    "X-AR-IO-Data-Id",
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
  ];
  return Object.fromEntries(names.map((name) => [name, whole.get(name) ?? ""]));
}

function cacheControl({ cacheLifetime, verified, stable }: HeaderContext): string {
  if (cacheLifetime.kind === "for a time") return `public, max-age=${cacheLifetime.seconds}`;
  return verified && stable ? immutableCacheControl : mutableCacheControl;
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

/** Bytes of all `X-Arweave-…` headers, names included: proxies reject heads of more than 8 to 16 KiB. */
export const arweaveHeaderBytesMax = 8_192;

/** Tags of one response. */
const tagsMax = 100;

/** Characters of a tag's name as part of a header's name. */
const nameLengthMax = 128;

/** Characters of a tag's value. */
const valueLengthMax = 4_096;

const tagPrefix = "X-Arweave-Tag-";

/** Own headers with the same prefix as those of tags: a tag may not imitate them. */
const reservedNames: ReadonlySet<string> = new Set(["count"]);

/** Bytes of a header line besides name and value: ": " and the line end. */
const lineBytes = 4;

/** Printable Latin-1 without spaces at the ends, which a reader of headers would remove. */
const valuePattern = /^(?:[\x21-\x7e\xa1-\xff](?:[\x20-\x7e\xa0-\xff]*[\x21-\x7e\xa1-\xff])?)?$/;

/** @param name - In lower case. */
function isArweaveHeader(name: string): boolean {
  return name.startsWith("x-arweave-");
}

/** Bytes of all `X-Arweave-…` headers of a response. */
export function arweaveHeaderBytes(headers: Headers): number {
  let bytes = 0;
  for (const [name, value] of headers) if (isArweaveHeader(name)) bytes += lineLength(name, value);
  return bytes;
}

/**
 * Sets the `X-Arweave-…` headers. Values that do not fit or cannot be a header are left out. If a tag is left out,
 * `X-Arweave-Tags-Truncated` is `true`; `X-Arweave-Tag-Count` is always the number of all tags.
 */
export function setArweaveHeaders(headers: Headers, signed: SignedContent): void {
  let bytesLeft = arweaveHeaderBytesMax - lineLength("X-Arweave-Tags-Truncated", "true");
  const add = (name: string, value: string): boolean => {
    const bytes = lineLength(name, value);
    if (bytes > bytesLeft) return false;
    bytesLeft -= bytes;
    headers.append(name, value);
    return true;
  };
  for (const [name, value] of fixedFields(signed)) add(`X-Arweave-${name}`, value);
  const sent = signed.tags.slice(0, tagsMax).filter(({ name, value }) => {
    const field = fieldName(name);
    if (field === undefined || value.length > valueLengthMax || !valuePattern.test(value)) return false;
    return add(`${tagPrefix}${field}`, value);
  });
  if (sent.length < signed.tags.length) headers.set("X-Arweave-Tags-Truncated", "true");
}

function fixedFields(signed: SignedContent): readonly (readonly [string, string])[] {
  const { ownerAddress, owner, signature, signatureType, target, anchor, tags } = signed;
  const fields = [
    ["Owner-Address", ownerAddress],
    ["Tag-Count", String(tags.length)],
    ["Signature-Type", String(signatureType ?? "")],
    ["Target", target],
    ["Anchor", anchor],
    ["Signature", signature],
    ["Owner", owner],
  ] as const;
  return fields.filter(([, value]) => value !== "" && valuePattern.test(value));
}

/** A tag's name as part of a header's name; undefined when no valid character is left, or the name is reserved. */
function fieldName(name: string): string | undefined {
  if (name.length > nameLengthMax) return undefined;
  const field = name.replace(/[^A-Za-z0-9_]+/g, "-").replace(/^-|-$/g, "");
  return field === "" || reservedNames.has(field.toLowerCase()) ? undefined : field;
}

function lineLength(name: string, value: string): number {
  return name.length + value.length + lineBytes;
}
