/**
 * The API reference of the gateway: its routes, and what holds for all of them.
 * Source: docs/reference/gateway.md.
 * @module
 */
import { limits } from "../request-limits.ts";
import type { Reference } from "./document.ts";
import { records } from "./records.ts";

const kibibyte = 2 ** 10;

const limitRows: readonly (readonly [string, string])[] = [
  ["JSON of administration", sizeText(limits.adminBytesMax)],
  ["Headers of one `queue-data-item`", "10,000"],
  ["GraphQL request", sizeText(limits.graphqlBytesMax)],
  ["`POST /tx`", sizeText(limits.transactionBytesMax)],
  ["`POST /chunk`", `${grouped(limits.chunkBytesMax)} bytes`],
  ["Frame response", sizeText(limits.frameBytesMax)],
  ["All headers of a request without cookies (431)", sizeText(limits.headerBytesMax)],
];

const introduction = `Content of a permanent chain, verified; the chain itself; queries over it.

Every path below \`/svc\` also exists below \`/ar-io\`. Failures are a JSON string; chain routes respond as a node
does. Every \`GET\` route accepts \`HEAD\`, with the same headers. A wrong method is 405 with \`Allow\`. A failure with
\`Retry-After\` may be retried after that time. With rate limits, any route may respond with 429 and
\`{"error": "Too Many Requests", "message": …}\`. If the operator sells reading beyond the limits, a \`GET\` is 402
instead, with x402 requirements in its body (version 1) and in \`PAYMENT-REQUIRED\` (version 2); with \`X-PAYMENT\` or
\`PAYMENT-SIGNATURE\` the response is complete.

| Limit | At most |
|---|---|
${limitRows.map(([what, most]) => `| ${what} | ${most} |`).join("\n")}

A larger body is 413.`;

/** Digits in groups of three. `toLocaleString` would load the tables of all languages at each start (6 ms). */
function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

function sizeText(size: number): string {
  return size % kibibyte ** 2 === 0 ? `${size / kibibyte ** 2} MiB` : `${size / kibibyte} KiB`;
}

export const gatewayReference: Reference = {
  title: "Cairn gateway",
  introduction,
  records,
  securitySchemes: { key: { type: "http", scheme: "bearer", description: "ADMIN_API_KEY" } },
};
