/**
 * First segments of paths that are never content, and other spellings of them that clients use.
 * Source: docs/reference/gateway.md#which-route-serves-a-request.
 * @module
 */

/**
 * On hosts of the gateway, these take precedence over every id, name and apex. A test compares them with all routes.
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

/** Both spellings of the gateway's prefix: the neutral word, and the one that deployed clients send. */
export const servicePrefixes = ["/svc", "/ar-io"] as const;

/** Paths that clients join to base addresses with an extra "/". Paths of administration are not among them. */
const joinedPath = /^\/{1,2}((?:svc|ar-io)\/info|graphql)\/?$/;

/** Removes a doubled first slash and a trailing slash of `/svc/info`, `/ar-io/info` and `/graphql`. */
export function normalizedPath(path: string): string {
  const meant = joinedPath.exec(path)?.[1];
  return meant === undefined ? path : `/${meant}`;
}
