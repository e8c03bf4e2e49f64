/**
 * Responses in the form of a node of the chain: bare text, bare JSON, CORS open.
 *
 * The name under which nodes of one chain know each other.
 * Source: ArweaveTeam/arweave, ar_http_iface_middleware.
 * @module
 */

import type { Context } from "elysia";
import { takesOnlyJson } from "../../http/header-values.ts";

/** Headers that pages may read. The reason of a rejection is our addition: a node does not send it. */
const pageHeaders = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": "X-Reject-Reason, arweave-denomination, arweave-absolute-end-offset",
} as const;

type HeaderRecord = Readonly<Record<string, string>>;

/** A plain text response. */
export function nodeText(text: string, status = 200, headers: HeaderRecord = {}): Response {
  return new Response(text, {
    status,
    headers: { "Content-Type": "text/plain; charset=utf-8", ...pageHeaders, ...headers },
  });
}

/** A response with JSON text. */
export function nodeJson(text: string, status = 200, headers: HeaderRecord = {}): Response {
  return new Response(text, {
    status,
    headers: { "Content-Type": "application/json; charset=utf-8", ...pageHeaders, ...headers },
  });
}

/** A response with bytes. */
export function nodeBytes(bytes: Uint8Array<ArrayBuffer>, contentType: string, headers: HeaderRecord = {}): Response {
  return new Response(bytes, { headers: { "Content-Type": contentType, ...pageHeaders, ...headers } });
}

/** A response without a body. */
export function nodeEmpty(status: number): Response {
  return new Response("", { status, headers: pageHeaders });
}

/** A response with `{"error": name}`. */
export function nodeError(name: string, status = 400, details: Readonly<Record<string, unknown>> = {}): Response {
  return nodeJson(JSON.stringify({ error: name, ...details }), status);
}

/** One thing that was wrong: the node's name for it, and what a person wants to know. */
export type Reason = Readonly<{ code: string; detail: string }>;

/**
 * The response to a rejected post. The body is the node's; the reasons go into a header, and into the body for
 * clients that accept JSON and nothing else (clients that take anything expect the node's text).
 */
export function rejection(request: Request, body: string, reasons: readonly Reason[], status = 400): Response {
  const headers = { "X-Reject-Reason": reasonHeader(reasons) };
  const isJson = body.startsWith("{");
  if (!takesOnlyJson(request)) return isJson ? nodeJson(body, status, headers) : nodeText(body, status, headers);
  const error: unknown = isJson ? JSON.parse(body) : { error: body };
  return nodeJson(JSON.stringify({ ...Object(error), reasons }), status, headers);
}

/** Header values are one line of ASCII. */
function reasonHeader(reasons: readonly Reason[]): string {
  const line = reasons.map(({ code, detail }) => `${code}: ${detail}`).join("; ");
  return line.replace(/[^\x20-\x7e]/g, "?").slice(0, 1_000);
}

/** Ours: not the main net's, so that nothing meant for the one reaches the other unnoticed. */
export const networkName = "cairn.devnet.1";

/** A client that names a network means it; one that names none is welcome. */
export function rejectOtherNetwork({ request }: Pick<Context, "request">): Response | undefined {
  const named = request.headers.get("x-network");
  return named === null || named === networkName ? undefined : nodeError("wrong_network", 412);
}
