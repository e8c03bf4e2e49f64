/**
 * CORS: pages of all origins may read responses except those of administration, never with credentials.
 * Source: docs/reference/gateway.md#cors; Fetch standard, "CORS protocol".
 * @module
 */

/** Response headers that pages may read: all; `Authorization` has to be named beside the wildcard. */
const exposedHeaders = "*, Authorization";

/** Headers of every response outside administration. */
export const corsHeaders = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": exposedHeaders,
} as const;

/** Request headers that pages may send. */
const allowedHeaders = [
  "Content-Type",
  "Range",
  "If-None-Match",
  "If-Range",
  "Authorization",
  "X-Signature",
  "X-Nonce",
  "X-Public-Key",
  "X-Signature-Type",
  "X-Payment",
  "Payment-Signature",
  "X-Paid-By",
  "X-Data-Item-Tags",
  "X-Chunking-Version",
  "X-Request-Id",
  "traceparent",
] as const;

/** Families of request headers: a preflight names the members it wants. */
const allowedPrefixes = ["x-turbo-source-", "x-ar-io-"] as const;

const headerNamePattern = /^[a-z0-9-]{1,64}$/;

/** Names of a family that one preflight may ask for. */
const familyNamesMax = 16;

/** How long a browser may remember a preflight, in seconds. */
const preflightAge = "86400";

/**
 * Responds to a preflight.
 *
 * @param methods - Methods of the path.
 * @param asked - The preflight's `Access-Control-Request-Headers`.
 */
export function preflightResponse(methods: readonly string[], asked: string | null): Response {
  return new Response(null, {
    status: 204,
    headers: {
      ...corsHeaders,
      "Access-Control-Allow-Methods": methods.join(", "),
      "Access-Control-Allow-Headers": [...allowedHeaders, ...familyNames(asked)].join(", "),
      "Access-Control-Max-Age": preflightAge,
      Allow: methods.join(", "),
      Vary: "Access-Control-Request-Headers",
    },
  });
}

/** Whether a path belongs to administration, which no page of another origin may read. */
export function isAdministration(path: string): boolean {
  return /^\/(svc|ar-io)\/(admin|console)(\/|$)/.test(path);
}

function familyNames(asked: string | null): string[] {
  return (asked ?? "")
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => headerNamePattern.test(name) && allowedPrefixes.some((prefix) => name.startsWith(prefix)))
    .slice(0, familyNamesMax);
}
