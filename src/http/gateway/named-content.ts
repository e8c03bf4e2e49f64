/**
 * Content of names, on their own hosts or as the apex; and the response for unknown names.
 * Source: docs/reference/gateway.md#names-of-the-registry.
 * @module
 */
import type { Id } from "../../arweave/id.ts";
import { Failure, failures } from "../../failures.ts";
import type { Names, ResolvedName } from "../../gateway/names/names.ts";
import { contextOf, type RequestContext } from "../request-context.ts";
import { hostName } from "../request-target.ts";
import { codeResponse, textResponse } from "../responses.ts";
import type { NamedPath } from "./content-address.ts";
import { type ContentPolicy, changingMaxAgeSeconds } from "./content-headers.ts";
import { type ContentSender, hopsOf } from "./content-sender.ts";
import { nameCacheControl, nameHeaders } from "./name-headers.ts";

/** The page for unknown names: an id, else a name; without either, a plain 404. */
export type NotFoundPage = Readonly<{ id: Id | undefined; name: string | undefined }>;

export type NamedContentOptions = Readonly<{
  names: Names;
  sender: ContentSender;
  notFoundPage: NotFoundPage;
}>;

export type NamedContent = Readonly<{
  /** @throws Failure `not_found`, `blocked`, `source_failed`, `source_timeout`, `busy`. */
  response: (request: Request, address: NamedPath, policy: ContentPolicy) => Promise<Response>;
}>;

const noStore = { "Cache-Control": "no-store" } as const;

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
      const keep = nameCacheControl(resolved, isFallback ? changingMaxAgeSeconds : undefined);
      for (const [name, value] of Object.entries({ ...own, "Cache-Control": keep })) headers.set(name, value);
    };
    const address = { kind: "content", id, path, raw: false, changing: true } as const;
    // No host begins so: a cached entry is never used without resolving the name first.
    const key = `@${isApex ? "apex" : "name"} ${id}${contextOf(request).target.path}`;
    try {
      return await sender.send(request, { address, policy, key, decorate });
    } catch (error) {
      // The name exists although its content does not: clients must be able to distinguish this.
      if (error instanceof Failure && error.code === "not_found") return codeResponse("not_found", own);
      throw error;
    }
  };

  /** The page's id; undefined without a page, or when it cannot be resolved now. */
  const pageId = async (request: Request): Promise<Id | undefined> => {
    const { id, name } = notFoundPage;
    if (id !== undefined || name === undefined) return id;
    try {
      const meaning = await resolve(name, request);
      return meaning.kind === "resolved" ? meaning.resolved.record.id : undefined;
    } catch (error) {
      // Without a page, the requested name is still absent.
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
    // The name of this address may be registered later.
    const decorate = (headers: Headers) => headers.set("Cache-Control", "no-store");
    const sending = { address, policy, key, decorate };
    try {
      return await sender.sendWhole(request, sending, isRoot ? failures.not_found.status : 200);
    } catch (error) {
      // The name is absent even if its page is not available.
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
