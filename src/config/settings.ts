/**
 * Every setting: one row with its reader, unit, default and effect. `--help`, README and `config` are made from it.
 *
 * Names follow the peer where it has one, so that an operator's environment carries over. No setting changes what
 * must be deterministic (ids, proofs, prices of the chain).
 * Source: docs/reference/gateway.md#names-and-aliases.
 * @module
 */

import { gatewayAt, gatewayList, writeGatewayList } from "./gateway-list.ts";
import { limiterSettings } from "./limiter-settings.ts";
import { nameSettings } from "./name-settings.ts";
import { paymentSettings } from "./payment-settings.ts";
import {
  address,
  choice,
  count,
  duration,
  flag,
  height,
  id,
  list,
  listenAddress,
  listenHost,
  port,
  positive,
  rootHost,
  setting,
  text,
  url,
} from "./setting-readers.ts";
import { tokenSettings } from "./token-settings.ts";
import { uploadSettings } from "./upload-settings.ts";
import { webhookSettings } from "./webhook-settings.ts";

export const settings = {
  DATA_DIR: setting({
    read: text,
    fallback: "./data",
    unit: "folder",
    effect: "Where everything durable lies.",
  }),
  HOST: setting({
    read: listenHost,
    fallback: "127.0.0.1",
    unit: "address",
    effect: "Address to listen on; 0.0.0.0 is every one.",
  }),
  GATEWAY_PORT: setting({
    read: port,
    fallback: 3000,
    aliases: ["ENVOY_PORT", "PORT"],
    unit: "port",
    effect: "Port of the gateway; 0 takes a free one.",
  }),
  STOP_DELAY_MS: setting({
    read: count,
    fallback: 1_000,
    dev: 0,
    unit: "milliseconds",
    effect: "How long requests are still taken once the program was told to stop; /ready answers 503 meanwhile.",
  }),
  STOP_GRACE_MS: setting({
    read: count,
    fallback: 10_000,
    unit: "milliseconds",
    effect: "How long answers and uploads under way may take after that, before they are cut off.",
  }),
  DEVNET_PORT: setting({
    read: port,
    fallback: 1984,
    unit: "port",
    effect: "Port of the development chain; 0 takes a free one.",
  }),
  GATEWAY_PUBLIC_URL: setting({
    read: url,
    unit: "URL",
    effect: "Address under which readers reach the gateway.",
  }),
  TLS_CERT_FILE: setting({
    read: text,
    unit: "file",
    effect: "Certificate, PEM, with those that vouch for it: the gateway answers https. SIGHUP reads it again.",
  }),
  TLS_KEY_FILE: setting({
    read: text,
    unit: "file",
    effect: "The certificate's private key, PEM.",
  }),
  TRUSTED_PROXIES: setting({
    read: list(text),
    fallback: [],
    unit: "addresses",
    effect: "Proxies whose X-Forwarded-For is believed, separated by commas; addresses or CIDR blocks.",
  }),
  ADMIN_API_KEY: setting({
    read: text,
    unit: "text",
    effect: "Bearer key that administration endpoints require; a random one is printed once when unset.",
    secret: true,
  }),
  ADMIN_LISTEN: setting({
    read: listenAddress,
    unit: "host:port",
    effect: "A listener of administration's own, which is then nowhere else; port 0 takes a free one.",
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
    effect: "Exports are written below it and nowhere else; unset is `export` in DATA_DIR.",
  }),
  ...limiterSettings,
  ...paymentSettings,
  ...tokenSettings,
  ...uploadSettings,

  TRUSTED_NODE_URL: setting({
    read: list(url),
    fallback: ["https://arweave.net"],
    unit: "URLs",
    effect: "Chain nodes to follow, separated by commas; the first that is healthy and fresh is asked.",
  }),
  TRUSTED_GATEWAYS_URLS: setting({
    read: gatewayList,
    write: writeGatewayList,
    fallback: [gatewayAt("https://turbo-gateway.com"), gatewayAt("https://arweave.net")],
    dev: [],
    aliases: ["TRUSTED_GATEWAY_URL"],
    unit: "URLs or JSON",
    effect:
      "Gateways that content is requested from when chunks cannot be had, separated by commas; or JSON with the " +
      'priority of each, lower first: `{"url": 1}`, `{"url": {"priority": 2, "trusted": false}}`.',
  }),
  CDB64_ROOT_TX_INDEX_SOURCES: setting({
    read: list(text),
    fallback: [],
    unit: "paths, URLs or ids",
    effect:
      "CDB64 indexes that tell in which transaction a data item lies, separated by commas: files, directories, " +
      "manifests of partitions, URLs that answer ranges, ids, or ranges of their data (`id:offset:size`).",
  }),
  PEER_DISCOVERY: setting({
    read: flag,
    fallback: true,
    dev: false,
    unit: "true or false",
    effect: "Whether machines that nodes and gateways name are asked for chunks too, each of which is proven.",
  }),
  PEER_PORTS: setting({
    read: list(port),
    fallback: [80, 443, 1984, 3000],
    unit: "ports",
    effect: "Ports at which such machines are reached, separated by commas.",
  }),
  PEER_PRIVATE_ADDRESSES: setting({
    read: flag,
    fallback: false,
    unit: "true or false",
    effect: "Whether they may be at private or loopback addresses: for tests and closed networks only.",
  }),
  START_HEIGHT: setting({
    read: height,
    fallback: "latest",
    dev: 0,
    unit: "height",
    effect: "First block to index on an empty folder; `latest` is the tip minus 50, 0 is everything.",
  }),
  STOP_HEIGHT: setting({ read: count, unit: "height", effect: "Last block to index." }),
  FOLLOW_INTERVAL_MS: setting({
    read: duration,
    fallback: 2_000,
    dev: 100,
    unit: "milliseconds",
    effect: "How often the nodes are asked for a new block.",
  }),
  ENABLE_MEMPOOL_WATCHER: setting({
    read: flag,
    fallback: false,
    dev: true,
    unit: "true or false",
    effect: "Whether pending transactions are indexed before they are mined.",
  }),

  FILTER_CHANGE_REPROCESS: setting({
    read: flag,
    fallback: true,
    unit: "true or false",
    effect: "Whether skipped and partly indexed bundles are evaluated again when the next two settings change.",
  }),
  ANS104_UNBUNDLE_FILTER: setting({
    read: text,
    fallback: '{"never":true}',
    dev: '{"always":true}',
    unit: "JSON filter",
    effect: "Which bundles are unbundled.",
  }),
  ANS104_INDEX_FILTER: setting({
    read: text,
    fallback: '{"never":true}',
    dev: '{"always":true}',
    unit: "JSON filter",
    effect: "Which data items are indexed.",
  }),

  CACHE_BYTES_MAX: setting({
    read: count,
    fallback: 10 * 2 ** 30,
    unit: "bytes",
    effect: "Disk that cached content may take.",
  }),
  MANIFEST_INDEX_BYTES_MAX: setting({
    read: count,
    fallback: 2 ** 30,
    unit: "bytes",
    effect: "Disk that path indexes of manifests above 1 MiB may take.",
  }),
  CACHE_FREE_BYTES_MIN: setting({
    read: count,
    fallback: 2 ** 30,
    unit: "bytes",
    effect: "Disk that stays free; cached content makes room before it is used.",
  }),
  HOT_BYTES_MAX: setting({
    read: count,
    fallback: 128 * 2 ** 20,
    unit: "bytes",
    effect: "Memory that small, often-read bodies may take.",
  }),
  RESPONSE_BYTES_MAX: setting({
    read: positive,
    fallback: 256 * 2 ** 20,
    unit: "bytes",
    effect:
      "Memory that bodies of responses under way may hold, an eighth of it for one client address; a response that " +
      "finds no room is 503.",
  }),
  REQUEST_BYTES_MAX: setting({
    read: positive,
    fallback: 128 * 2 ** 20,
    unit: "bytes",
    effect:
      "Memory that bodies of requests under way may hold, a quarter of it for one client address; uploads that go " +
      "to disk as they arrive hold none.",
  }),
  COLD_BUFFER: setting({
    read: count,
    fallback: 8 * 2 ** 20,
    unit: "bytes",
    effect: "A body up to this size that is not on disk is answered when complete, a larger one while it arrives.",
  }),
  WORKER_THREADS: setting({
    read: count,
    fallback: 0,
    unit: "threads",
    effect: "Threads for verification and unbundling; 0 is one a processor.",
  }),
  QUERY_THREADS: setting({
    read: count,
    fallback: 2,
    unit: "threads",
    effect: "Threads that answer GraphQL.",
  }),
  QUERY_TIMEOUT_MS: setting({
    read: duration,
    fallback: 10_000,
    unit: "milliseconds",
    effect: "Longest a GraphQL query may run.",
  }),

  ...webhookSettings,

  GRAPHQL_HOST: setting({
    read: text,
    unit: "host, host:port or origin",
    effect: "When set, GraphQL queries are sent there instead of being answered here.",
  }),
  GRAPHQL_PORT: setting({
    read: port,
    fallback: 4000,
    unit: "port",
    effect: "Port of GRAPHQL_HOST where that names none.",
  }),

  AR_IO_WALLET: setting({
    read: address,
    aliases: ["SVC_WALLET"],
    unit: "address",
    effect: "Wallet that the information record names.",
  }),
  IO_PROCESS_ID: setting({
    read: id,
    aliases: ["PROCESS_ID"],
    unit: "process id",
    effect: "Process that the information record names.",
  }),
  ARNS_ROOT_HOST: setting({
    read: list(rootHost),
    fallback: [],
    unit: "hosts",
    effect: "Hosts whose subdomains are names and sandboxes, separated by commas; under `dev` also `localhost`.",
  }),
  ...nameSettings,
  SANDBOX_PROTOCOL: setting({
    read: choice("http", "https"),
    unit: "http or https",
    effect: "Scheme of redirects to sandbox hosts; unset follows the request.",
  }),
  CONTENT_ISOLATION: setting({
    read: choice("auto", "csp", "off"),
    fallback: "auto",
    unit: "auto, csp or off",
    effect: "How pages of different ids are kept apart: by host where a root host is known, by CSP, or not at all.",
  }),
  SANDBOX_ALL: setting({
    read: flag,
    fallback: false,
    unit: "true or false",
    effect: "Whether every request for content, not only a navigation, is sent to the id's own host.",
  }),

  ARWEAVE_TAG_RESPONSE_HEADERS_ENABLED: setting({
    read: flag,
    fallback: false,
    unit: "true or false",
    effect:
      "Whether content carries the tags, owner and signature of its transaction or data item as `X-Arweave-…` " +
      "headers, of 8 KiB together at most.",
  }),

  DEVNET_SEED: setting({
    read: text,
    fallback: "cairn",
    unit: "text",
    effect: "What the development chain's randomness is derived from.",
  }),
  DEVNET_MINING: setting({
    read: text,
    fallback: "auto",
    unit: "auto, manual or milliseconds",
    effect: "When the development chain mines: on arrival, when asked, or at an interval.",
  }),

  LOG_LEVEL: setting({
    read: choice("debug", "info", "warn", "error"),
    fallback: "info",
    unit: "debug, info, warn or error",
    effect: "Least important line that is logged.",
  }),
  LOG_FORMAT: setting({
    read: choice("auto", "json", "pretty"),
    fallback: "auto",
    unit: "auto, json or pretty",
    effect: "JSON lines, or lines for people; auto is for people on a terminal.",
  }),
  LOG_MEMORY_HITS: setting({
    read: flag,
    fallback: true,
    unit: "true or false",
    effect: "Whether each response from memory has a log line, as every other response has, at level info.",
  }),
} as const;

type Settings = typeof settings;

/** The name of a setting. */
export type SettingName = keyof Settings;

/** The settings as values, read once, in main.ts. */
export type Config = Readonly<{
  [Name in SettingName]:
    | ReturnType<Settings[Name]["read"]>
    | (Settings[Name] extends { fallback: unknown } ? never : undefined);
}>;
