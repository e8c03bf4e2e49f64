/**
 * First segments of the path that are never content, and the other spellings that clients use for them.
 * Source: docs/reference/gateway.md#which-route-serves-a-request.
 * @module
 */

/**
 * On a host that is no content's own, these win over every id, name and apex. A test compares them with all
 * routes.
 */
export const reservedSegments: ReadonlySet<string> = new Set([
  "svc",
  "ar-io",
  "local",
  "raw",
  "graphql",
  "chunk",
  "tx",
  "block",
  "current_block",
  "price",
  "wallet",
  "info",
  "peers",
  "height",
  "tx_anchor",
  "unconfirmed_tx",
  "payment",
  "upload",
  "health",
  "ready",
  "metrics",
  "openapi.json",
  "api-docs",
]);

/** Both spellings of the gateway's own prefix: the neutral word, and the one that deployed clients send. */
export const servicePrefixes = ["/svc", "/ar-io"] as const;

/** Paths that clients join to base addresses with a "/" too many. Administration is never among them. */
const joinedPath = /^\/{1,2}((?:svc|ar-io)\/info|graphql)\/?$/;

/**
 * The path that is meant: `/svc/info`, `/ar-io/info` and `/graphql` also with a doubled first slash or one at the end;
 * any other path as it is.
 */
export function normalizedPath(path: string): string {
  const meant = joinedPath.exec(path)?.[1];
  return meant === undefined ? path : `/${meant}`;
}
