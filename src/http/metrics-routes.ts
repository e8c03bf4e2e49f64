/**
 * Metrics in the text format of Prometheus.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { type Metrics, metricsContentType } from "../lib/metrics.ts";
import { withBodySize } from "./body-size.ts";
import { servicePrefixes } from "./reserved.ts";

/** Where the gateway has its metrics: for collectors, and under the peer's address in both spellings. */
export const gatewayMetricsPaths = [
  "/metrics",
  ...servicePrefixes.map((prefix) => `${prefix}/__gateway_metrics`),
];

/** Where the other services have them. */
export const serviceMetricsPaths = ["/metrics"];

/** Pages that are written in quick succession. A collector asks for one every few seconds. */
const pagesAtOnce = 8;

/** Time after which one more is written. Milliseconds. */
const pageEveryMs = 1_000;

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
    const headers = { "Content-Type": metricsContentType, "Cache-Control": "no-store" };
    return withBodySize(new Response(body, { headers }), body);
  };
  for (const path of paths) routes.get(path, respond);
  return routes;
}

/**
 * Writes pages, a few at once and then one a second; who asks for more gets the last one. A page can have half a
 * megabyte, and responses that share it share its bytes (shared-blobs.ts).
 */
function createPage(metrics: Metrics, now: () => number): () => Promise<Blob> {
  let last: Promise<Blob> | undefined;
  let left = pagesAtOnce;
  let filledAt = now();
  const write = async () => new Blob([await metrics.text()]);
  return () => {
    const filled = Math.floor((now() - filledAt) / pageEveryMs);
    left = Math.min(pagesAtOnce, left + filled);
    filledAt += filled * pageEveryMs;
    if (left > 0) {
      left -= 1;
      last = write();
    }
    return (last ??= write());
  };
}
