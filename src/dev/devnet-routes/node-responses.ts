/**
 * Answers as a node of the chain gives them: bare text, bare JSON, open to every page.
 * Source: ArweaveTeam/arweave, ar_http_iface_middleware.
 * @module
 */
import { takesOnlyJson } from "../../http/header-values.ts";

/** What pages may read of an answer. The reason of a refusal is ours: a node keeps it to itself. */
const pageHeaders = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": "X-Reject-Reason, arweave-denomination, arweave-absolute-end-offset",
} as const;

type HeaderRecord = Readonly<Record<string, string>>;

/** Answers with text. */
export function nodeText(text: string, status = 200, headers: HeaderRecord = {}): Response {
  return new Response(text, {
    status,
    headers: { "Content-Type": "text/plain; charset=utf-8", ...pageHeaders, ...headers },
  });
}

/** Answers with text that is JSON. */
export function nodeJson(text: string, status = 200, headers: HeaderRecord = {}): Response {
  return new Response(text, {
    status,
    headers: { "Content-Type": "application/json; charset=utf-8", ...pageHeaders, ...headers },
  });
}

/** Answers with bytes of any type. */
export function nodeBytes(bytes: Uint8Array<ArrayBuffer>, contentType: string, headers: HeaderRecord = {}): Response {
  return new Response(bytes, { headers: { "Content-Type": contentType, ...pageHeaders, ...headers } });
}

/** Answers with nothing but a status. */
export function nodeEmpty(status: number): Response {
  return new Response("", { status, headers: pageHeaders });
}

/** Answers with `{"error": name}`. */
export function nodeError(name: string, status = 400, facts: Readonly<Record<string, unknown>> = {}): Response {
  return nodeJson(JSON.stringify({ error: name, ...facts }), status);
}

/** One thing that was wrong: the node's name for it, and what a person wants to know. */
export type Reason = Readonly<{ code: string; detail: string }>;

/**
 * Answers a refused post. The body is the node's; why goes into a header, and into the body for callers that take
 * JSON and nothing else (clients that take anything expect the node's text).
 */
export function refusal(request: Request, body: string, reasons: readonly Reason[], status = 400): Response {
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
