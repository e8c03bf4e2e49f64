/**
 * Settings of the program: listeners, administration, the development chain and the log.
 * @module
 */
import { samplerNames } from "../lib/trace-context.ts";
import {
  baseUrl,
  choice,
  durationOrNone,
  flag,
  headerKey,
  headerList,
  list,
  listenAddress,
  listenHost,
  port,
  setting,
  share,
  text,
} from "./setting-readers.ts";

export const serverSettings = {
  DATA_DIR: setting({
    read: text,
    fallback: "./data",
    unit: "folder",
    effect: "Folder of all durable data.",
  }),
  HOST: setting({
    read: listenHost,
    fallback: "127.0.0.1",
    unit: "address",
    effect: "Address to listen on; 0.0.0.0 listens on every interface.",
  }),
  GATEWAY_PORT: setting({
    read: port,
    fallback: 3000,
    aliases: ["ENVOY_PORT", "PORT"],
    unit: "port",
    effect: "Port of the gateway; 0 picks a free port.",
  }),
  GATEWAY_PUBLIC_URL: setting({
    read: baseUrl,
    unit: "URL",
    effect: "URL under which readers reach the gateway.",
  }),
  SERVICES: setting({
    read: list(choice("gateway", "payment", "upload")),
    fallback: ["gateway", "payment", "upload"] as const,
    unit: "names",
    effect:
      "Services that run, separated by commas: `gateway`, `payment`, `upload`. One that is left out opens no port " +
      "and sends no requests. Without `gateway`, the admin API is only on ADMIN_LISTEN.",
  }),
  MOUNT_SERVICES: setting({
    read: flag,
    fallback: true,
    unit: "true or false",
    effect: "Whether the gateway's port also serves the other services, below `/payment` and `/upload`.",
  }),
  TLS_CERT_FILE: setting({
    read: text,
    unit: "file",
    effect: "Certificate chain, PEM; when set, the gateway serves https. SIGHUP reads the file again.",
  }),
  TLS_KEY_FILE: setting({
    read: text,
    unit: "file",
    effect: "Private key of the certificate, PEM.",
  }),
  TRUSTED_PROXIES: setting({
    read: list(text),
    fallback: [],
    unit: "addresses",
    effect: "Proxies whose X-Forwarded-For header is trusted, separated by commas; addresses or CIDR blocks.",
  }),
  STOP_DELAY_MS: setting({
    read: durationOrNone,
    fallback: 1_000,
    dev: 0,
    unit: "milliseconds",
    effect: "Time after a stop signal in which new requests are still accepted; /ready responds 503 meanwhile.",
  }),
  STOP_GRACE_MS: setting({
    read: durationOrNone,
    fallback: 10_000,
    unit: "milliseconds",
    effect: "Time after STOP_DELAY_MS in which running responses and uploads may finish before they are cut off.",
  }),
} as const;

export const adminSettings = {
  ADMIN_API_KEY: setting({
    read: headerKey,
    unit: "text",
    effect: "Bearer key of the admin API; when unset, the stored key of the data folder, which each start prints.",
    secret: true,
  }),
  ADMIN_LISTEN: setting({
    read: listenAddress,
    unit: "host:port",
    effect:
      "Separate address for the admin API. When set, the public port does not serve it. Port 0 picks a free port.",
  }),
  METRICS_ON_ADMIN_LISTEN: setting({
    read: flag,
    fallback: false,
    unit: "true or false",
    effect: "Whether metrics are served at ADMIN_LISTEN, without its key, instead of /metrics of every port.",
  }),
  EXPORT_ROOT: setting({
    read: text,
    unit: "folder",
    effect: "Exports are written below this folder only; unset is `export` in DATA_DIR.",
  }),
} as const;

export const traceSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: setting({
    read: baseUrl,
    unit: "URL",
    effect: "OpenTelemetry collector that receives traces by OTLP/HTTP, at `/v1/traces` below it; unset: no traces.",
  }),
  OTEL_EXPORTER_OTLP_HEADERS: setting({
    read: headerList,
    unit: "name=value, separated by commas",
    effect: "Headers that are sent to the collector, values percent-encoded.",
    secret: true,
  }),
  OTEL_SERVICE_NAME: setting({
    read: text,
    fallback: "cairn",
    unit: "text",
    effect: "Name of this program in traces.",
  }),
  OTEL_TRACES_SAMPLER: setting({
    read: choice(...samplerNames),
    fallback: "parentbased_always_on" as const,
    unit: "name",
    effect:
      "Which requests are traced: `always_on`, `always_off`, `traceidratio`; with the prefix `parentbased_`, a " +
      "caller's `traceparent` decides where there is one.",
  }),
  OTEL_TRACES_SAMPLER_ARG: setting({
    read: share,
    fallback: 1,
    unit: "0 to 1",
    effect: "Share of traces that `traceidratio` records.",
  }),
} as const;

export const devSettings = {
  DEVNET_PORT: setting({
    read: port,
    fallback: 1984,
    unit: "port",
    effect: "Port of the development chain; 0 picks a free port.",
  }),
  SANDBOX_PORT: setting({
    read: port,
    fallback: 3003,
    unit: "port",
    effect: "Port of the simulated Stripe and price feed; 0 picks a free port.",
  }),
  DEVNET_SEED: setting({
    read: text,
    fallback: "cairn",
    unit: "text",
    effect: "Seed of the development chain's randomness.",
  }),
  DEVNET_MINING: setting({
    read: text,
    fallback: "auto",
    unit: "auto, manual or milliseconds",
    effect: "When the development chain mines: on arrival of a transaction, on request, or at an interval.",
  }),
} as const;

export const logSettings = {
  LOG_LEVEL: setting({
    read: choice("debug", "info", "warn", "error"),
    fallback: "info",
    unit: "debug, info, warn or error",
    effect: "Lowest level that is logged.",
  }),
  LOG_FORMAT: setting({
    read: choice("auto", "json", "pretty"),
    fallback: "auto",
    unit: "auto, json or pretty",
    effect: "JSON lines, or lines for people; auto is pretty on a terminal and JSON elsewhere.",
  }),
  LOG_REQUESTS: setting({
    read: flag,
    fallback: true,
    dev: false,
    unit: "true or false",
    effect: "Whether every response is logged at level info; responses with a status of 500 or more always are.",
  }),
  LOG_MEMORY_HITS: setting({
    read: flag,
    fallback: true,
    unit: "true or false",
    effect: "Whether responses from memory are logged as all other responses are.",
  }),
} as const;
