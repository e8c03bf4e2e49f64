/**
 * Responses from the response cache, before any route: the request is read only as far as they depend on it.
 * Source: docs/reference/gateway.md#which-route-serves-a-request.
 * @module
 */
import { type IsolationRules, leavesSharedHost, variesByDestination } from "../../gateway/isolation.ts";
import { readFetchMetadata } from "../header-values.ts";
import type { Hosts } from "../hosts.ts";
import { withBodySize } from "../responses.ts";
import { responseFromDisk } from "./content-response.ts";
import type { NoteContent } from "./content-sender.ts";
import { createMediumBodies } from "./medium-bodies.ts";
import type { DiskHit, Hit, ResponseCaches } from "./response-cache.ts";

type CachedContentOptions = Readonly<{
  memory: Pick<ResponseCaches, "get" | "mediumBodies" | "onDisk">;
  hosts: Hosts;
  isolation: IsolationRules;
  /** Called for each response from the disk. */
  note: NoteContent | undefined;
}>;

/** @returns Responds from the response cache, or returns undefined. */
export function createCachedContent(options: CachedContentOptions): (request: Request) => Response | undefined {
  const { memory, hosts, isolation, note } = options;
  const addressOf = createCachedAddresses(hosts);
  const bringToMemory = createMediumBodies(memory.mediumBodies);
  const isolates = variesByDestination(isolation);

  /** Whether a cached response can be sent to a request with these headers. */
  const canBeSent = (headers: Headers, range: string | null): boolean => {
    if (!isPlain(headers, range)) return false;
    return !(isolates && leavesSharedHost(isolation, readFetchMetadata(headers)));
  };
  const fromDisk = (address: string, found: DiskHit, range: string | null): Response | undefined => {
    const response = responseFromDisk(found, range);
    if (response === undefined) return undefined;
    note?.(range === null ? 200 : 206, true);
    if (range === null) bringToMemory(address, found);
    return response;
  };

  const fromMemory = ({ body, headers, isClear }: Hit): Response | undefined => {
    if (isClear?.() === false) return undefined;
    return withBodySize(new Response(body, { headers }), body);
  };

  return (request) => {
    const address = request.method === "GET" ? addressOf(request.url) : undefined;
    if (address === undefined) return undefined;
    const { headers } = request;
    const range = headers.get("range");
    const found = range === null ? memory.get(address) : undefined;
    const onDisk = found === undefined ? memory.onDisk.get(address) : undefined;
    if ((found ?? onDisk) === undefined || !canBeSent(headers, range)) return undefined;
    return found === undefined ? onDisk && fromDisk(address, onDisk, range) : fromMemory(found);
  };
}

/**
 * Finds the address of a URL in the response cache; undefined for a bare path, whose Host header is missing or invalid,
 * and for a URL without a path.
 * Most requests have the same shared host as the request before them, which saves the look-up of the host's meaning.
 */
function createCachedAddresses(hosts: Hosts): (url: string) => string | undefined {
  let lastShared: string | undefined; // an origin and "/"
  return (url) => {
    if (lastShared !== undefined && url.startsWith(lastShared)) return url.slice(lastShared.length - 1);
    if (url.startsWith("/")) return undefined;
    const hostStart = url.indexOf("//") + 2;
    const pathStart = url.indexOf("/", hostStart);
    if (pathStart === -1) return undefined;
    if (hosts.meaningOf(url.slice(hostStart, pathStart)).kind !== "shared") return url.slice(hostStart);
    lastShared = url.slice(0, pathStart + 1);
    return url.slice(pathStart);
  };
}

/**
 * Whether no header of a request but Range and X-Request-Id changes the response, so that a cached one is used. Without
 * a loop over the names, which takes longer (measured: 3 % of a cached body of 1 KiB).
 */
function isPlain(headers: Headers, range: string | null): boolean {
  if (headers.has("if-none-match") || headers.has("if-match")) return false;
  if (range !== null && headers.has("if-range")) return false; // ignored without Range (RFC 9110 §13.1.5)
  return !(headers.has("x-ar-io-hops") || headers.has("service-worker"));
}
