/**
 * Opens the traces of requests, if the settings name a collector.
 * Source: docs/decisions/101-traces.md.
 * @module
 */
import { type Config, type SettingName, settings } from "../config/settings.ts";
import { createRequestSpans, type RequestSpans } from "../http/request-spans.ts";
import type { Metrics } from "../lib/metrics.ts";
import { createSpanWriter } from "../lib/otlp-json.ts";
import { openSpanExporter } from "../lib/span-exporter.ts";
import { createTracer } from "../lib/spans.ts";
import { createSampler } from "../lib/trace-context.ts";
import { version } from "../version.ts";
import type { AppContext } from "./base.ts";
import { systemRandom } from "./random.ts";

/**
 * Opens traces; `closers` send the last spans. Opened before the listeners, and so closed after them.
 *
 * @param nodeUrls - Chain nodes of the operator.
 */
export function openTraces(
  { config, log, closers }: AppContext,
  metrics: Metrics,
  nodeUrls: readonly string[],
): RequestSpans | undefined {
  const endpoint = config.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined) return undefined;
  const resource = {
    "service.name": config.OTEL_SERVICE_NAME,
    "service.version": version,
    "service.instance.id": crypto.randomUUID(),
  };
  const exporter = openSpanExporter({
    url: `${endpoint}/v1/traces`,
    headers: config.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    writer: createSpanWriter(resource, { name: "cairn", version }),
    metrics,
    log,
    random: systemRandom,
  });
  closers.add("traces", exporter.close);
  const own = ownOrigins(config, nodeUrls);
  const { OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: share } = config;
  const { add: record, drop } = exporter;
  const isOwn = (origin: string) => own.has(origin);
  return createRequestSpans(createTracer({ sampler: createSampler(sampler, share), record, drop, isOwn }), record);
}

/** Settings whose default is a public service: a machine of others, which gets no `traceparent`. */
const publicDefaults = ["TRUSTED_NODE_URL", "TRUSTED_GATEWAYS_URLS"] as const satisfies readonly SettingName[];

/**
 * Origins of nodes and gateways that the operator has chosen. Peers, payment providers and targets of webhooks are not
 * among them.
 */
function ownOrigins(config: Config, nodeUrls: readonly string[]): ReadonlySet<string> {
  const named = [...nodeUrls, ...config.TRUSTED_GATEWAYS_URLS.map(({ url }) => url)];
  const others = new Set(
    publicDefaults.flatMap((name) => settings[name].fallback.map((each) => originOf(urlOf(each)))),
  );
  return new Set(named.map(originOf).filter((origin) => !others.has(origin)));
}

function urlOf(address: string | Readonly<{ url: string }>): string {
  return typeof address === "string" ? address : address.url;
}

function originOf(url: string): string {
  return new URL(url).origin;
}
