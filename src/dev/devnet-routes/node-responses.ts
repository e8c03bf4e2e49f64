/**
 * Responses in the form of a node of the chain: plain text or JSON, open to CORS. The network name of the chain.
 * Source: ArweaveTeam/arweave, ar_http_iface_middleware.
 * @module
 */
import type { Context } from "elysia";
import { acceptsOnlyJson } from "../../http/header-values.ts";

/** Headers that pages may read. The reason of a rejection is an extension: a node does not send it. */
const pageHeaders = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": "X-Reject-Reason, arweave-denomination, arweave-absolute-end-offset",
} as const;

type HeaderRecord = Readonly<Record<string, string>>;

export function nodeText(text: string, status = 200, headers: HeaderRecord = {}): Response {
  return new Response(text, {
    status,
    headers: { "Content-Type": "text/plain; charset=utf-8", ...pageHeaders, ...headers },
  });
}

export function nodeJson(text: string, status = 200, headers: HeaderRecord = {}): Response {
  return new Response(text, {
    status,
    headers: { "Content-Type": "application/json; charset=utf-8", ...pageHeaders, ...headers },
  });
}

export function nodeBytes(bytes: Uint8Array<ArrayBuffer>, contentType: string, headers: HeaderRecord = {}): Response {
  return new Response(bytes, { headers: { "Content-Type": contentType, ...pageHeaders, ...headers } });
}

export function nodeEmpty(status: number): Response {
  return new Response("", { status, headers: pageHeaders });
}

/** A response with `{"error": name}`. */
export function nodeError(name: string, status = 400, details: Readonly<Record<string, unknown>> = {}): Response {
  return nodeJson(JSON.stringify({ error: name, ...details }), status);
}

/** One fault: the node's code for it, and a readable detail. */
export type Reason = Readonly<{ code: string; detail: string }>;

/**
 * The response to a rejected post, with the body of a node. The reasons are in a header, and in the body for clients
 * that accept only JSON; other clients expect the node's text.
 */
export function rejection(request: Request, body: string, reasons: readonly Reason[], status = 400): Response {
  const headers = { "X-Reject-Reason": reasonHeader(reasons) };
  const isJson = body.startsWith("{");
  if (!acceptsOnlyJson(request)) return isJson ? nodeJson(body, status, headers) : nodeText(body, status, headers);
  const error: unknown = isJson ? JSON.parse(body) : { error: body };
  return nodeJson(JSON.stringify({ ...Object(error), reasons }), status, headers);
}

/** The reasons as one line of ASCII. */
function reasonHeader(reasons: readonly Reason[]): string {
  const line = reasons.map(({ code, detail }) => `${code}: ${detail}`).join("; ");
  return line.replace(/[^\x20-\x7e]/g, "?").slice(0, 1_000);
}

/** Differs from the main net, so that a request for one network is not served by the other. */
export const networkName = "cairn.devnet.1";

/** Rejects requests that name another network. A request need not name one. */
export function rejectOtherNetwork({ request }: Pick<Context, "request">): Response | undefined {
  const named = request.headers.get("x-network");
  return named === null || named === networkName ? undefined : nodeError("wrong_network", 412);
}
