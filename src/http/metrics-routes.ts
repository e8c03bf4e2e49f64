/**
 * Metrics in the text format of Prometheus.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { type Metrics, metricsContentType } from "../lib/metrics.ts";
import { text } from "./reference/openapi-types.ts";
import { servicePrefixes } from "./reserved-paths.ts";
import { noStore, withBodySize } from "./responses.ts";
import { described } from "./route-schema.ts";

/** Paths of the gateway's metrics: for collectors, and the path that peers use, in both spellings. */
export const gatewayMetricsPaths = ["/metrics", ...servicePrefixes.map((prefix) => `${prefix}/__gateway_metrics`)];

/** Paths of the metrics of the other services. */
export const serviceMetricsPaths = ["/metrics"];

/** Bytes of pages that may be written at once: 8 of the largest pages. */
const bytesAtOnce = 4 * 2 ** 20;

/** Rate at which further pages are written: one of the largest a second. Bytes a millisecond. */
const bytesPerMs = bytesAtOnce / 8_000;

/** Assumed size of the first page. Bytes. */
const firstPageBytes = 64 * 2 ** 10;

/** The API reference has one spelling of the prefix. */
const documentedPaths: readonly string[] = ["/metrics", "/svc/__gateway_metrics"];

const detail = described({
  tag: "Information",
  summary: "Metrics",
  responses: { 200: text("The metrics in the exposition format of Prometheus.") },
});

/**
 * @param metrics - Undefined when another listener serves them: no routes are created.
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
  for (const path of paths) routes.get(path, respond, documentedPaths.includes(path) ? { detail } : {});
  return routes;
}

/**
 * Writes pages at a limited rate; further requests get the last page. A page can have half a megabyte, and responses
 * that share a page share its bytes (body-memory.ts).
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
