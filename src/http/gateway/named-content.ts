/**
 * What a name stands for, on the name's own host or as the apex of ours; and what is said where a name stands
 * for nothing.
 * Source: docs/reference/gateway.md#names-of-the-registry.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import { Failure, failures } from "../../failures.ts";
import type { Names, ResolvedName } from "../../gateway/names/names.ts";
import { type ContentPolicy, changingAgeSeconds } from "../content-headers.ts";
import { contextOf, type RequestContext } from "../context.ts";
import { codeResponse, textResponse } from "../responses.ts";
import { hostName } from "../target.ts";
import type { NamedPath } from "./content-address.ts";
import { type ContentSender, hopsOf } from "./content-sender.ts";
import { nameCacheControl, nameHeaders } from "./name-headers.ts";

/** The page for names that stand for nothing: an id, else a name; neither is a plain 404. */
export type NotFoundPage = Readonly<{ id: Id | undefined; name: string | undefined }>;

/** What is needed. */
export type NamedContentOptions = Readonly<{
  names: Names;
  sender: ContentSender;
  notFoundPage: NotFoundPage;
}>;

/** Answers for names. */
export type NamedContent = Readonly<{
  /** @throws Failure `not_found`, `blocked`, `source_failed`, `source_timeout`, `busy`. */
  response: (request: Request, address: NamedPath, policy: ContentPolicy) => Promise<Response>;
}>;

const noStore = { "Cache-Control": "no-store" } as const;

/** Creates the answers. */
export function createNamedContent({ names, sender, notFoundPage }: NamedContentOptions): NamedContent {
  const resolve = (name: string, request: Request) => names.resolve(name, hopsOf(request), request.signal);

  const sendResolved = async (
    request: Request,
    resolved: ResolvedName,
    { path, isApex }: NamedPath,
    policy: ContentPolicy,
  ): Promise<Response> => {
    const { id } = resolved.record;
    const own = nameHeaders(resolved);
    const decorate = (headers: Headers) => {
      const isFallback = headers.has("X-AR-IO-Manifest-Fallback");
      const keep = nameCacheControl(resolved, isFallback ? changingAgeSeconds : undefined);
      for (const [name, value] of Object.entries({ ...own, "Cache-Control": keep })) headers.set(name, value);
    };
    const address = { kind: "content", id, path, raw: false, changing: true } as const;
    // No host begins so: what memory holds of it is never given without asking what the name stands for.
    const key = `@${isApex ? "apex" : "name"} ${id}${contextOf(request).target.path}`;
    try {
      return await sender.send(request, { address, policy, key, decorate });
    } catch (error) {
      // The name is there though its content is not: who asks for the name must be able to tell.
      if (error instanceof Failure && error.code === "not_found") return codeResponse("not_found", own);
      throw error;
    }
  };

  /** The page's own id; undefined where there is no page, or nobody can say now. */
  const pageId = async (request: Request): Promise<Id | undefined> => {
    const { id, name } = notFoundPage;
    if (id !== undefined || name === undefined) return id;
    try {
      const meaning = await resolve(name, request);
      return meaning.kind === "resolved" ? meaning.resolved.record.id : undefined;
    } catch (error) {
      // That the name asked for is absent is true without a page.
      if (error instanceof Failure) return undefined;
      throw error;
    }
  };

  const respondAbsent = async (request: Request, path: string, policy: ContentPolicy): Promise<Response> => {
    const context = contextOf(request);
    const isRoot = context.target.path === "/";
    if (!isRoot && !isFromSameHost(request, context))
      return new Response(null, { status: 302, headers: { Location: "/", ...noStore } });
    const id = await pageId(request);
    if (id === undefined) throw new Failure("not_found", { host: context.target.host });
    const address = { kind: "content", id, path, raw: false, changing: true } as const;
    const key = `@absent ${id}${context.target.path}`;
    // The page stands at an address that somebody may have tomorrow.
    const decorate = (headers: Headers) => headers.set("Cache-Control", "no-store");
    const sending = { address, policy, key, decorate };
    try {
      return await sender.sendWhole(request, sending, isRoot ? failures.not_found.status : 200);
    } catch (error) {
      // That the name is absent is true also when its page cannot be had.
      if (error instanceof Failure) throw new Failure("not_found", { id, page: error.code }, error);
      throw error;
    }
  };

  return {
    response: async (request, address, policy) => {
      const meaning = await resolve(address.name, request);
      if (meaning.kind === "over limit") return overLimitResponse({});
      if (meaning.kind === "resolved") {
        const { resolved } = meaning;
        if (resolved.isOverLimit) return overLimitResponse(nameHeaders(resolved));
        return await sendResolved(request, resolved, address, policy);
      }
      if (address.isApex) throw new Failure("not_found", { apex: address.name });
      return await respondAbsent(request, address.path, policy);
    },
  };
}

/** An undername that its base name has not paid for. */
export function overLimitResponse(headers: Readonly<Record<string, string>>): Response {
  const { message, status } = failures.undername_limit;
  return textResponse(message, status, { ...headers, ...noStore });
}

/** Whether a page of the same host asks: it asks for its own parts, not for a page that is gone. */
function isFromSameHost(request: Request, { target }: RequestContext): boolean {
  const referer = URL.parse(request.headers.get("referer") ?? "");
  return referer !== null && hostName(referer.host) === hostName(target.host);
}
