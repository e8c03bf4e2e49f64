/**
 * Content that was asked for, sent: found, with the headers of its address, whole or in parts.
 * Source: docs/reference/gateway.md#content-responses.
 * @module
 */
import { readHintHeaders } from "../../chain/hint.ts";
import type { ContentPolicy } from "../content-headers.ts";
import { type ContentRequest, contentResponse, readContentRequest } from "../content-response.ts";
import { contextOf, type RequestContext } from "../context.ts";
import { contentDisposition } from "../header-values.ts";
import type { ContentPath } from "./content-address.ts";
import type { ContentFinder } from "./content-finder.ts";

/** What is to be sent, and how. */
export type Sending = Readonly<{
  address: ContentPath;
  policy: ContentPolicy;
  /** The address as memory knows it (hits.ts). */
  key: string;
  /** Adds what the address says of itself; gets headers of its own to change. */
  decorate?: (headers: Headers) => void;
}>;

/** Sends content. */
export type ContentSender = Readonly<{
  /** @throws Failure `not_found`, `blocked`, `source_failed`, `source_timeout`, `busy`. */
  send: (request: Request, sending: Sending) => Promise<Response>;
  /** Sends all of it, whatever part of it was asked for and whatever the reader has; a status of its own. */
  sendWhole: (request: Request, sending: Sending, status: number) => Promise<Response>;
}>;

/** What a sender is made of. */
export type ContentSenderOptions = Readonly<{
  finder: ContentFinder;
  /** A body up to this size that is not on disk is answered when complete. Bytes. */
  coldBufferBytes: number;
  /** Told of each answer that gives content. */
  note?: ((response: Response) => void) | undefined;
}>;

/** How long a source may keep a reader waiting before the connection is closed, in seconds. */
const sourceSilenceSeconds = 120;

/** Creates a sender. */
export function createContentSender({ finder, coldBufferBytes, note }: ContentSenderOptions): ContentSender {
  const find = async (request: Request, sending: Sending, wantsWhole: boolean) => {
    const context = contextOf(request);
    context.allowSilence(sourceSilenceSeconds);
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
      note?.(response);
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

/** Whether nothing but the whole body can be the answer; else it may be one without, for which none is fetched. */
function isUnconditional({ range, ifNoneMatch, ifMatch }: ContentRequest): boolean {
  return range === null && ifNoneMatch === null && ifMatch === null;
}

/** How many gateways stand between the reader and us, as far as they say. */
export function hopsOf(request: Request): number {
  const text = request.headers.get("x-ar-io-hops") ?? "";
  return /^\d{1,3}$/.test(text) ? Number(text) : 0;
}

/** The query of an address with its "?", where it has one. */
export function queryPart(query: string): string {
  return query === "" ? "" : `?${query}`;
}

/** A manifest without its slash: links in its pages are relative to the slash. */
function folderResponse({ target }: RequestContext): Response {
  const Location = `${target.path}/${queryPart(target.query)}`;
  return new Response(null, { status: 301, headers: { Location, "Cache-Control": "public, max-age=7200" } });
}

/** Headers in memory are shared by answers: they are copied before they change. */
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

/** `?download=1` and `?filename=` say how a browser should take the bytes, as IPFS gateways do. */
function dispositionOf(query: string): string | undefined {
  const asked = new URLSearchParams(query);
  const fileName = asked.get("filename") ?? undefined;
  const download = asked.get("download") ?? "false";
  const attached = !["", "0", "false"].includes(download);
  if (!attached && fileName === undefined) return undefined;
  return contentDisposition(attached ? "attachment" : "inline", fileName);
}
