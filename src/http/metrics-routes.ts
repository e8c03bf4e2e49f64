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

/**
 * Creates the routes.
 *
 * @param metrics - Undefined: they are served elsewhere, and there are no routes.
 */
export function createMetricsRoutes(metrics: Metrics | undefined, paths: readonly string[]): AnyElysia {
  const routes = new Elysia({ strictPath: true });
  if (metrics === undefined) return routes;
  const respond = async () => {
    const text = await metrics.text();
    const headers = { "Content-Type": metricsContentType, "Cache-Control": "no-store" };
    return withBodySize(new Response(text, { headers }), text.length);
  };
  for (const path of paths) routes.get(path, respond);
  return routes;
}
