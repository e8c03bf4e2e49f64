/**
 * The largest bodies and heads of requests; the API reference shows them.
 *
 * Cookies do not count towards the size of a head. This program reads no cookies, and any page below a root host can
 * set cookies for every other page.
 * Source: docs/reference/gateway.md#limits; docs/reference/node-api.md#conventions; RFC 6585 §5 (431); RFC 6265 §5.3
 *   (Domain); W3C Clear Site Data §3.1; docs/decisions/093-request-heads.md.
 * @module
 */
import { Failure } from "../failures.ts";
import { bodyBytesMax as graphqlBytesMax } from "../graphql/query-limits.ts";
import type { Target } from "./request-target.ts";

/** Bytes; a larger body gets 413. */
export const limits = {
  /** JSON of administration. */
  adminBytesMax: 8 * 2 ** 20,
  /** A query, its variables included. */
  graphqlBytesMax,
  /** A signed transaction; one of format 1 carries its data. */
  transactionBytesMax: 15 * 2 ** 20,
  /** A chunk with its proof, as JSON. */
  chunkBytesMax: 750_000,
  /** A frame response. */
  frameBytesMax: 64 * 2 ** 10,
  /** JSON of the payment service. */
  paymentBytesMax: 64 * 2 ** 10,
  /** An event of the card provider. */
  webhookBytesMax: 2 ** 20,
  /** Request line and headers of a request without cookies; more gets 431. */
  headerBytesMax: 16 * 2 ** 10,
  /** The same with cookies: some 30 cookies of the largest size. The runtime itself responds 431. */
  headerBytesWithCookiesMax: 128 * 2 ** 10,
} as const;

/** Bytes of a header line besides name and value: ": " and the line end. */
const lineBytes = 4;

/** Bytes of a request line besides method and target: two spaces, "HTTP/1.1" and the line end. */
const requestLineBytes = 12;

/** The option by which the runtime accepts heads of `headerBytesWithCookiesMax`. The binary has it (build.ts). */
export const headSizeOption = `--max-http-header-size=${limits.headerBytesWithCookiesMax}`;

/**
 * Raises the runtime's limit on heads, for every listener of the process. Without effect, the runtime responds 431
 * above 16 KiB.
 */
export function allowCookies(): void {
  // From source nothing sets the option. The property has the same effect, but its module takes 8 ms (measured).
  if (process.execArgv.includes(headSizeOption)) return;
  Object.assign(process.getBuiltinModule("node:http"), { maxHeaderSize: limits.headerBytesWithCookiesMax });
}

/** Whether the head without its cookies is above the limit. */
export function hasLargeHead(request: Request, target: Target): boolean {
  return headSizeOf(request, target) > limits.headerBytesMax;
}

/** @throws Failure `headers_too_large` when the head without its cookies is above the limit. */
export function checkHeadSize(request: Request, target: Target): void {
  if (hasLargeHead(request, target)) throw new Failure("headers_too_large", { size: headSizeOf(request, target) });
}

/** Bytes of a head without its cookies. */
function headSizeOf({ method, headers }: Request, { path, query }: Target): number {
  let size = method.length + path.length + query.length + requestLineBytes;
  headers.forEach((value, name) => {
    if (name !== "cookie") size += name.length + value.length + lineBytes;
  });
  return size;
}

/** Asks the browser to delete its cookies if they alone exceed the limit on the rest of the head. */
export function clearLargeCookies({ headers }: Request, response: Response): void {
  const cookies = headers.get("cookie");
  if (cookies === null || cookies.length <= limits.headerBytesMax) return;
  response.headers.set("Clear-Site-Data", '"cookies"');
}
