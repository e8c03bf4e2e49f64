/**
 * Metrics in the text format of Prometheus.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { type Metrics, metricsContentType } from "../lib/metrics.ts";
import { text } from "./reference/words.ts";
import { servicePrefixes } from "./reserved-paths.ts";
import { noStore, withBodySize } from "./responses.ts";
import { described } from "./route-schema.ts";

/** Where the gateway has its metrics: for collectors, and under the peer's address in both spellings. */
export const gatewayMetricsPaths = ["/metrics", ...servicePrefixes.map((prefix) => `${prefix}/__gateway_metrics`)];

/** Where the other services have them. */
export const serviceMetricsPaths = ["/metrics"];

/** Pages of so many bytes are written in quick succession: 8 of the largest, hundreds of a program's that has begun. */
const bytesAtOnce = 4 * 2 ** 20;

/** Later ones are written at this rate: one of the largest a second. Bytes a millisecond. */
const bytesPerMs = bytesAtOnce / 8_000;

/** What a page is taken for until one was written. Bytes. */
const firstPageBytes = 64 * 2 ** 10;

/** The API reference has one spelling of the path. */
const documentedPath = "/metrics";

const detail = described({
  tag: "Information",
  summary: "Metrics",
  responses: { 200: text("The metrics in the exposition format of Prometheus.") },
});

/**
 * Creates the routes.
 *
 * @param metrics - Undefined: they are served elsewhere, and there are no routes.
 * @param now - Milliseconds of a steady clock.
 */
export function createMetricsRoutes(
  metrics: Metrics | undefined,
  paths: readonly string[],
  now: () => number = () => performance.now(),
): AnyElysia {
  const routes = new Elysia({ strictPath: true });
  if (metrics === undefined) return routes;
  const page = createPage(metrics, now);
  const respond = async () => {
    const body = await page();
    const headers = { "Content-Type": metricsContentType, ...noStore };
    return withBodySize(new Response(body, { headers }), body);
  };
  for (const path of paths) routes.get(path, respond, path === documentedPath ? { detail } : {});
  return routes;
}

/**
 * Writes pages, a few at once and then some a second by their size; who asks for more gets the last one. A page can
 * have half a megabyte, and responses that share it share its bytes (body-memory.ts).
 */
function createPage(metrics: Metrics, now: () => number): () => Promise<Blob> {
  let last: Promise<Blob> | undefined;
  let size = firstPageBytes;
  let left = bytesAtOnce;
  let filledAt = now();
  const write = async () => {
    left -= size;
    const page = new Blob([await metrics.text()]);
    size = page.size;
    return page;
  };
  return () => {
    const at = now();
    left = Math.min(bytesAtOnce, left + (at - filledAt) * bytesPerMs);
    filledAt = at;
    if (last === undefined || left > 0) last = write();
    return last;
  };
}
