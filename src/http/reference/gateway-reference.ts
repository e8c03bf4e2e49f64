/**
 * The API reference of the gateway: its routes, and what holds for all of them.
 * Source: docs/reference/gateway.md.
 * @module
 */
import { limits } from "../request-limits.ts";
import { adminDescriptions } from "./admin-descriptions.ts";
import type { Reference } from "./document.ts";
import { gatewayDescriptions } from "./gateway-descriptions.ts";
import { records } from "./records.ts";

const kibibyte = 2 ** 10;

const limitRows: readonly (readonly [string, string])[] = [
  ["JSON of administration", sizeText(limits.adminBytesMax)],
  ["Headers of one `queue-data-item`", "10,000"],
  ["GraphQL request", sizeText(limits.graphqlBytesMax)],
  ["`POST /tx`", sizeText(limits.transactionBytesMax)],
  ["`POST /chunk`", `${limits.chunkBytesMax.toLocaleString("en")} bytes`],
  ["Frame response", sizeText(limits.frameBytesMax)],
  ["All headers of a request without cookies (431)", sizeText(limits.headerBytesMax)],
];

const introduction = `Content of a permanent chain, verified; the chain itself; queries over it.

Every path below \`/svc\` is also answered below \`/ar-io\`. Failures are a JSON string, but the chain's part answers
as a node does. Every \`GET\` is answered to \`HEAD\` with the same headers. A wrong method is answered 405 with
\`Allow\`; what waits may be asked again after \`Retry-After\`. Where the operator has set limits for clients, any
route may answer 429 with \`{"error": "Too Many Requests", "message": …}\`. Where the operator sells what is beyond
them, a \`GET\` is answered 402 instead, with requirements of x402 in its body (version 1) and in
\`PAYMENT-REQUIRED\` (version 2); with \`X-PAYMENT\` or \`PAYMENT-SIGNATURE\` it is answered in full.

| Limit | At most |
|---|---|
${limitRows.map(([what, most]) => `| ${what} | ${most} |`).join("\n")}

A larger body is answered 413.`;

function sizeText(size: number): string {
  return size % kibibyte ** 2 === 0 ? `${size / kibibyte ** 2} MiB` : `${size / kibibyte} KiB`;
}

export const gatewayReference: Reference = {
  title: "Cairn gateway",
  introduction,
  descriptions: [...gatewayDescriptions, ...adminDescriptions],
  records,
  securitySchemes: { key: { type: "http", scheme: "bearer", description: "ADMIN_API_KEY" } },
};
