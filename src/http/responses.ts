/**
 * Responses in the formats of the API: JSON strings for failures, plain text where nodes send plain text.
 * Source: docs/reference/gateway.md#errors.
 * @module
 */
import { type Failure, type FailureCode, type FailureRow, failures } from "../failures.ts";
import { withBodySize } from "./body-size.ts";

export const jsonType = "application/json; charset=utf-8";
export const textType = "text/plain; charset=utf-8";

type HeaderRecord = Readonly<Record<string, string>>;

export function jsonResponse(value: unknown, status = 200, headers: HeaderRecord = {}): Response {
  return jsonTextResponse(JSON.stringify(value), status, headers);
}

/** Responds with text that is JSON already. */
export function jsonTextResponse(
  text: string | Uint8Array<ArrayBuffer> | Blob,
  status = 200,
  headers: HeaderRecord = {},
): Response {
  const reply = new Response(text, { status, headers: { "Content-Type": jsonType, ...headers } });
  return withBodySize(reply, sizeOf(text));
}

/** Size of a body in bytes; approximate for a text. */
export function sizeOf(body: string | Uint8Array | Blob): number {
  return body instanceof Blob ? body.size : body.length;
}

export function textResponse(text: string, status = 200, headers: HeaderRecord = {}): Response {
  const response = new Response(text, { status, headers: { "Content-Type": textType, ...headers } });
  return withBodySize(response, text.length);
}

/** Responds with an own page, which cannot be framed and loads nothing from other origins. */
export function pageResponse(html: string, contentSecurityPolicy: string): Response {
  return new Response(html, {
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": `${contentSecurityPolicy}; frame-ancestors 'none'`,
      "Cross-Origin-Opener-Policy": "same-origin",
      "X-Content-Type-Options": "nosniff",
    },
  });
}

/** The response of an expected failure: the fixed message as a JSON string, with the reason if it is public. */
export function failureResponse(failure: Failure, headers: HeaderRecord = {}): Response {
  const row: FailureRow = failures[failure.code];
  const reason = failure.context["reason"];
  if (row.explained === undefined || typeof reason !== "string") return codeResponse(failure.code, headers);
  const message = row.message === "" ? reason : `${row.message}: ${reason}`;
  return jsonResponse(message, row.status, { ...failureHeaders(row), ...headers });
}

/** The response of one row of the failures table. */
export function codeResponse(code: FailureCode, headers: HeaderRecord = {}): Response {
  const row: FailureRow = failures[code];
  const all = { ...failureHeaders(row), ...headers };
  if (row.message === "") return new Response(null, { status: row.status, headers: all });
  return jsonResponse(row.message, row.status, all);
}

/** Errors that may resolve by themselves (404, 5xx) are sent with `no-store`. */
function failureHeaders(row: FailureRow): HeaderRecord {
  return {
    ...(row.status === 404 || row.status >= 500 ? { "Cache-Control": "no-store" } : {}),
    ...(row.retryAfterSeconds === undefined ? {} : { "Retry-After": String(row.retryAfterSeconds) }),
    ...(row.challenge === undefined ? {} : { "WWW-Authenticate": row.challenge }),
    ...(row.status === 408 ? { Connection: "close" } : {}), // the rest of the body is not read any more
  };
}
