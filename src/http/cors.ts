/**
 * CORS: pages of all origins may read responses except those of administration, never with credentials.
 * Source: docs/reference/gateway.md#cors; Fetch standard, "CORS protocol".
 * @module
 */

/** Response headers that pages may read: all; the wildcard does not include `Authorization`. */
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

/** Prefixes of further request headers; a preflight names the headers. */
const allowedPrefixes = ["x-turbo-source-", "x-ar-io-"] as const;

const headerNamePattern = /^[a-z0-9-]{1,64}$/;

/** Headers with these prefixes that one preflight may request. */
const familyNamesMax = 16;

/** How long a browser may remember a preflight, in seconds. */
const preflightAge = "86400";

/**
 * Responds to a preflight.
 *
 * @param methods - Methods of the path.
 * @param requested - The preflight's `Access-Control-Request-Headers`.
 */
export function preflightResponse(methods: readonly string[], requested: string | null): Response {
  return new Response(null, {
    status: 204,
    headers: {
      ...corsHeaders,
      "Access-Control-Allow-Methods": methods.join(", "),
      "Access-Control-Allow-Headers": [...allowedHeaders, ...familyNames(requested)].join(", "),
      "Access-Control-Max-Age": preflightAge,
      Allow: methods.join(", "),
      Vary: "Access-Control-Request-Headers",
    },
  });
}

/** Whether a path belongs to administration, which pages of other origins may not read. */
export function isAdministration(path: string): boolean {
  return /^\/(svc|ar-io)\/(admin|console)(\/|$)/.test(path);
}

function familyNames(requested: string | null): string[] {
  return (requested ?? "")
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => headerNamePattern.test(name) && allowedPrefixes.some((prefix) => name.startsWith(prefix)))
    .slice(0, familyNamesMax);
}
