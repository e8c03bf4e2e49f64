/**
 * Header values: those that are written from tags and queries of clients, which are validated or replaced, never an
 * error; and the fetch metadata of browsers.
 * Source: RFC 9110 §5.6, §8.3.1 (media types), §8.4 (codings); RFC 6266 and RFC 8187 (file names); RFC 9530
 *   (digests); Fetch Metadata Request Headers (W3C).
 * @module
 */
import type { FetchMetadata } from "../gateway/isolation.ts";

/** The type of content whose tag is absent or is not a valid media type. */
export const unknownType = "application/octet-stream";

/** Longer values are not media types. Characters. */
const mediaTypeLengthMax = 255;

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const quoted = '"(?:[\\t \\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\t \\x21-\\x7e])*"';
const parameter = `(${token})=(?:${token}|${quoted})`;
const separator = "[ \\t]*(?:;[ \\t]*)+";

/** In each text, white space belongs to one part of the pattern: where it could to two, hostile text took seconds. */
const mediaTypePattern = new RegExp(`^(${token})/(${token})(?:${separator}${parameter})*(?:${separator})?$`);

/**
 * Codings that a client may know; a tag with another coding is not sent. Source: IANA registry of content codings.
 */
const codings: ReadonlySet<string> = new Set([
  "aes128gcm",
  "br",
  "compress",
  "dcb",
  "dcz",
  "deflate",
  "gzip",
  "identity",
  "x-compress",
  "x-gzip",
  "zstd",
]);

/** Nested codings in one tag. */
const codingsMax = 3;

/** Types that a browser runs or renders with scripts of their own. */
const activeTypes: ReadonlySet<string> = new Set([
  "application/pdf",
  "application/xml",
  "text/html",
  "text/xml",
  "text/xsl",
]);

/** One parameter of a media type, whose value may be quoted. */
const parameterPattern = new RegExp(`;[ \\t]*(?:${parameter})?[ \\t]*`, "gy");

/** Textual types besides `text/*`; without a charset, old browsers decode them as windows-1252. */
const textualTypes: ReadonlySet<string> = new Set([
  "application/ecmascript",
  "application/javascript",
  "application/json",
  "application/x-javascript",
  "application/xml",
]);

/**
 * Validates the value of a Content-Type tag.
 *
 * @returns The value, with the charset of {@link withCharset}, when it is one media type that describes one body;
 * otherwise {@link unknownType}. Multipart types are not sent: they would change the meaning of the bytes.
 */
export function mediaTypeOf(tag: string | undefined): string {
  if (tag === undefined || tag.length > mediaTypeLengthMax) return unknownType;
  const match = mediaTypePattern.exec(tag);
  return match === null || match[1]?.toLowerCase() === "multipart" ? unknownType : withCharset(tag);
}

/**
 * Appends `; charset=utf-8` to text, JSON, JavaScript and XML that names no charset: a browser reads such bytes as
 * windows-1252 otherwise. Structured suffixes (`image/svg+xml`, `…manifest+json`) are left alone: their formats
 * define the encoding, and deployed gateways send those types bare.
 *
 * @param mediaType - One valid media type of at most 255 characters.
 */
export function withCharset(mediaType: string): string {
  const bare = bareMediaType(mediaType);
  if (!bare.startsWith("text/") && !textualTypes.has(bare)) return mediaType;
  if (namesCharset(mediaType)) return mediaType;
  return `${mediaType.replace(/[; \t]+$/, "")}; charset=utf-8`;
}

function namesCharset(mediaType: string): boolean {
  const at = mediaType.indexOf(";");
  if (at === -1) return false;
  return [...mediaType.slice(at).matchAll(parameterPattern)].some(([, name]) => name?.toLowerCase() === "charset");
}

/** A media type in lower case, without its parameters. */
export function bareMediaType(mediaType: string): string {
  return (mediaType.split(";")[0] ?? "").trim().toLowerCase();
}

/** Whether a browser that opens this type runs its scripts or renders its markup. */
export function isActiveType(mediaType: string): boolean {
  const bare = bareMediaType(mediaType);
  return activeTypes.has(bare) || bare.endsWith("+xml");
}

/** Reads a Content-Encoding tag: the codings in lower case, or `undefined` when one of them is unknown. */
export function contentCodingsOf(tag: string | undefined): string | undefined {
  if (tag === undefined) return undefined;
  const listed = tag.split(",").map((coding) => coding.trim().toLowerCase());
  const known = listed.length <= codingsMax && listed.every((coding) => codings.has(coding));
  return known && listed.some((coding) => coding !== "identity") ? listed.join(", ") : undefined;
}

/** Characters of a file name; file systems allow 255 bytes. */
const fileNameLengthMax = 128;

/**
 * Writes a Content-Disposition value.
 *
 * @param fileName - Any text; control characters and path separators become "_". The ASCII form is for old
 * clients, the RFC 8187 form for all others.
 */
export function contentDisposition(kind: "inline" | "attachment", fileName: string | undefined): string {
  const name = [...(fileName ?? "").toWellFormed()]
    .slice(0, fileNameLengthMax)
    .join("")
    .replace(unsafeInName, "_")
    .trim();
  if (name === "" || /^\.+$/.test(name)) return kind;
  const ascii = name.replace(/[^\x20-\x7e]|["%]/gu, "_");
  const plain = `${kind}; filename="${ascii}"`;
  return ascii === name ? plain : `${plain}; filename*=UTF-8''${encodeExtended(name)}`;
}

/** Writes a digest in the format of RFC 9530. */
export function digestField(sha256: Uint8Array): string {
  return `sha-256=:${sha256.toBase64()}:`;
}

// Control characters, path separators, and bidirectional formatting characters, which could disguise an extension.
const unsafeInName = /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069/\\]/gu;

/** Percent-encodes all characters outside RFC 8187's attr-char; encodeURIComponent leaves four of them. */
function encodeExtended(text: string): string {
  return encodeURIComponent(text).replace(/['()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Whether a client accepts only JSON. */
export function acceptsOnlyJson(request: Request): boolean {
  const accept = request.headers.get("accept") ?? "";
  return accept.includes("application/json") && !accept.includes("*/*") && !accept.includes("text/");
}

/** Reads the metadata that isolates content (gateway/isolation.ts). */
export function readFetchMetadata(headers: Headers): FetchMetadata {
  return {
    destination: headers.get("sec-fetch-dest"),
    otherFetchMetadata: headers.has("sec-fetch-mode") || headers.has("sec-fetch-site"),
    accept: headers.get("accept"),
    serviceWorker: headers.get("service-worker"),
  };
}
