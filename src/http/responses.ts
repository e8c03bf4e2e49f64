/**
 * Responses in the formats of the API: JSON strings for failures, plain text where nodes send plain text. The size of a
 * body is noted beside its response, because the runtime writes Content-Length when it sends the response, and drops a
 * Content-Length that was set before a stream.
 * Source: docs/reference/gateway.md#errors.
 * @module
 */
import { type Failure, type FailureCode, type FailureRow, failures } from "../failures.ts";

export const jsonType = "application/json; charset=utf-8";
export const textType = "text/plain; charset=utf-8";

/** Keeps a response out of caches: its content may change at any moment, or is for one client. */
export const noStore = { "Cache-Control": "no-store" } as const;

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
  const headers = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": `${contentSecurityPolicy}; frame-ancestors 'none'`,
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
  };
  return withBodySize(new Response(html, { headers }), Buffer.byteLength(html));
}

/** The response of an expected failure: the fixed message as a JSON string, with the reason if it is public. */
export function failureResponse(failure: Failure, headers: HeaderRecord = {}): Response {
  const row: FailureRow = failures[failure.code];
  const reason = failure.context["reason"];
  if (row.explained === undefined || typeof reason !== "string") return codeResponse(failure.code, headers);
  const message = row.message === "" ? reason : `${row.message}: ${reason}`;
  return withMessage(jsonResponse(message, row.status, { ...failureHeaders(row), ...headers }), message);
}

/** The response of one row of the failures table. */
export function codeResponse(code: FailureCode, headers: HeaderRecord = {}): Response {
  const row: FailureRow = failures[code];
  const all = { ...failureHeaders(row), ...headers };
  if (row.message === "") return new Response(null, { status: row.status, headers: all });
  return withMessage(jsonResponse(row.message, row.status, all), row.message);
}

/** Messages of failures, for the pages that tell them to people. */
const messages = new WeakMap<Response, string>();

/** The message of a response that was made from a failure; undefined for any other response. */
export function failureMessageOf(response: Response): string | undefined {
  return messages.get(response);
}

function withMessage(response: Response, message: string): Response {
  messages.set(response, message);
  return response;
}

/**
 * Statuses of failures that a shared cache may store without Cache-Control; a blocked id may be unblocked.
 * Source: RFC 9110 §15.1; RFC 7725 §3.
 */
const storedByDefault: ReadonlySet<number> = new Set([404, 405, 451]);

/** Errors that may resolve by themselves are sent with `no-store`: 5xx, and those that caches store by default. */
function failureHeaders(row: FailureRow): HeaderRecord {
  return {
    ...(storedByDefault.has(row.status) || row.status >= 500 ? noStore : {}),
    ...(row.retryAfterSeconds === undefined ? {} : { "Retry-After": String(row.retryAfterSeconds) }),
    ...(row.challenge === undefined ? {} : { "WWW-Authenticate": row.challenge }),
    ...(row.status === 408 ? { Connection: "close" } : {}), // the rest of the body is not read any more
  };
}

/** The size of a body, and the memory that it holds while it is sent. */
type BodyNote = Readonly<{ size: number; held: HeldMemory }>;

/**
 * Memory that a body holds while it is sent: its own bytes, bytes that several responses may share, pieces of a file,
 * or pieces of a stream.
 */
export type HeldMemory =
  | Readonly<{ kind: "bytes"; bytes: number }>
  | Readonly<{ kind: "shared"; blob: Blob }>
  | Readonly<{ kind: "file"; bytes: number /* of the body */ }>
  | Readonly<{ kind: "stream"; bytes: number }>;

const bodyNote = Symbol("body");

/** A property of the response, because an entry of a WeakMap takes longer (measured: 0.25 µs, not 0.09). */
type NotedResponse = Response & {
  // A number is the size of own bytes, a Blob is shared bytes: neither needs an object.
  [bodyNote]?: number | Blob | BodyNote;
};

/** A body below this size is not counted if it is sent at once: it fits in the kernel's buffer of a connection. */
export const countedBytesMin = 16 * 2 ** 10;

/** From this size on, the kernel sends a file without TLS: the runtime reads no part of the file. Bytes. */
export const sendfileBytesMin = 2 ** 20;

/** Of any other file, the runtime holds one piece of this size while it sends the file (Bun 1.4.5, measured). Bytes. */
const filePieceBytes = 256 * 2 ** 10;

/** Memory that a body from a file holds while it is sent. Bytes. */
export function fileHolds(bytes: number, isEncrypted: boolean): number {
  return isEncrypted || bytes < sendfileBytesMin ? Math.min(bytes, filePieceBytes) : 0;
}

/** Memory of a request besides its bodies: connection, headers, promises (measured). Bytes. */
const exchangeBytes = 8 * 2 ** 10;

/** Bytes that are counted for a body that no other response shares, while it is sent; 0: it is not counted. */
export function countedBytes(memory: Exclude<HeldMemory, { kind: "shared" }>, isEncrypted: boolean): number {
  if (memory.kind === "file") return fileHolds(memory.bytes, isEncrypted) + exchangeBytes;
  return memory.bytes < countedBytesMin ? 0 : memory.bytes + exchangeBytes;
}

/** Notes the size of a body that is in memory. @param body - Its bytes, or the Blob that responses share. */
export function withBodySize(response: NotedResponse, body: number | Blob): Response {
  response[bodyNote] = body;
  return response;
}

/** Notes the size of a body, and what it holds in memory. */
export function withHeldMemory(response: NotedResponse, size: number, held: HeldMemory): Response {
  response[bodyNote] = { size, held };
  return response;
}

/** The noted size; 0 for a response without a note. */
export function bodySizeOf({ [bodyNote]: note }: NotedResponse): number {
  return typeof note === "object" ? note.size : (note ?? 0);
}

/** Memory that a response holds; undefined for a response without a note. */
export function heldMemoryOf({ [bodyNote]: note }: NotedResponse): HeldMemory | undefined {
  if (note === undefined) return undefined;
  if (typeof note === "number") return { kind: "bytes", bytes: note };
  return note instanceof Blob ? { kind: "shared", blob: note } : note.held;
}
