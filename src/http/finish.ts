/**
 * The final step of a response: headers of every response, and HEAD.
 * Source: docs/reference/gateway.md#request-ids; RFC 9110 §9.3.2 (HEAD).
 * @module
 */
import type { RequestContext } from "./context.ts";
import { corsHeaders, isAdministration } from "./cors.ts";

/**
 * Adds the request's id, CORS outside of administration, whose responses are not stored, and `Connection: close`
 * when the listener is closing.
 */
export function finish(response: Response, context: RequestContext, draining: boolean): Response {
  const { headers } = response;
  headers.set("X-Request-Id", context.requestId);
  if (isAdministration(context.target.path)) headers.set("Cache-Control", "no-store");
  else if (!headers.has("Access-Control-Allow-Origin"))
    for (const [name, value] of Object.entries(corsHeaders)) headers.set(name, value);
  if (draining) headers.set("Connection", "close");
  return response;
}

/**
 * The headers of a response without its body, with the length of the body.
 *
 * Routes for whose bodies that would be costly leave the body out and set Content-Length themselves.
 */
export async function headersOnly(response: Response): Promise<Response> {
  const { status } = response;
  const headers = new Headers(response.headers);
  // Bun sets Date on every response except those to HEAD.
  if (!headers.has("Date")) headers.set("Date", new Date().toUTCString());
  if (!headers.has("Content-Length") && hasBody(status))
    headers.set("Content-Length", String((await response.arrayBuffer()).byteLength));
  else await response.body?.cancel();
  return new Response(null, { status, headers });
}

/** Whether responses of this status have a body. */
function hasBody(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 304;
}
