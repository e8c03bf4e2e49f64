/**
 * A request as a signature may cover it: its method and its path as its caller sent them.
 * Source: docs/reference/payment.md#signed-requests.
 * @module
 */
import type { SignedRequest } from "../../payment/access/signed-request.ts";
import { contextOf } from "../request-context.ts";

/** Responses to signed requests are not stored by others; a balance changes at any moment. */
export const noStore = { "Cache-Control": "no-store" } as const;

/**
 * The parts of a request that may be signed.
 *
 * @param body - What was read of it, where the method has one.
 */
export function signedRequestOf(request: Request, body?: Uint8Array): SignedRequest {
  const { headOnly, target } = contextOf(request);
  const query = target.query === "" ? "" : `?${target.query}`;
  return {
    headers: request.headers,
    method: headOnly ? "HEAD" : request.method,
    pathWithQuery: `${target.path}${query}`,
    body,
  };
}
