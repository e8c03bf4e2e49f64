/**
 * A parsed request URL: host, path and query as they arrived, segments decoded once.
 *
 * Bun returns `request.url` absolute and normalised (host in lower case, dot segments removed), but the bare path when
 * the Host header is missing or invalid.
 * Source: docs/reference/gateway.md#which-route-serves-a-request.
 * @module
 */
import { Failure } from "../failures.ts";
import { partOf } from "../lib/own-text.ts";

export type Target = Readonly<{
  scheme: string; // "http" or "https"
  host: string; // in lower case, its port included when it is not the scheme's own; "" when none was sent
  path: string; // begins with "/", still encoded, without the query
  query: string; // without the "?"; "" when absent
}>;

/** Splits an address without decoding it. */
export function readTarget(url: string): Target {
  const schemeEnd = url.startsWith("/") ? -1 : url.indexOf("://");
  const hostStart = schemeEnd === -1 ? 0 : schemeEnd + 3;
  const pathStart = url.indexOf("/", hostStart);
  const queryStart = url.indexOf("?", pathStart);
  return {
    scheme: schemeEnd === -1 ? "http" : url.slice(0, schemeEnd),
    // Hosts and paths are keys of caches.
    host: partOf(url, url.slice(hostStart, pathStart)),
    path: partOf(url, url.slice(pathStart, queryStart === -1 ? undefined : queryStart)),
    query: queryStart === -1 ? "" : url.slice(queryStart + 1),
  };
}

/** Segments of a path that may name something, such as `/svc/admin/{kind}/{id}`. */
const namingSegments = 4;

/**
 * Splits a path on "/" once and decodes each segment once. Empty segments stay.
 *
 * @param path - Begins with "/".
 * @throws Failure `malformed_path` for an invalid escape, or one that is not UTF-8.
 */
export function readSegments(path: string): string[] {
  const segments = path.slice(1).split("/");
  const decoded = path.includes("%") ? segments.map(decodeSegment) : segments;
  // Ids and names, which come first, are keys of caches.
  for (const [index, segment] of decoded.slice(0, namingSegments).entries()) decoded[index] = partOf(path, segment);
  return decoded;
}

/** Writes segments as a canonical path, which routes are compared with. */
export function writePath(segments: readonly string[]): string {
  return `/${segments.map(encodeURIComponent).join("/")}`;
}

/** The host without its port. */
export function hostName(host: string): string {
  return host.startsWith("[") ? host.slice(0, host.indexOf("]") + 1) : (host.split(":")[0] ?? "");
}

/** The port with its colon, or "" when the host names none. */
export function hostPort(host: string): string {
  return host.slice(hostName(host).length);
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch (error) {
    throw new Failure("malformed_path", { segment }, error);
  }
}
