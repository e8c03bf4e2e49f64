/**
 * Settings of the gateway: chain, index, content, names, GraphQL, webhooks and limits.
 * @module
 */
import { sizeText } from "../lib/quantity-text.ts";
import {
  address,
  baseUrl,
  choice,
  count,
  duration,
  filledList,
  flag,
  gatewayAt,
  gatewayList,
  height,
  id,
  identifier,
  list,
  nameUrl,
  port,
  positive,
  positiveSize,
  registryName,
  rootHost,
  setting,
  size,
  text,
  threadCount,
  url,
  webhookSecret,
  writeGatewayList,
} from "./setting-readers.ts";

export const chainSettings = {
  TRUSTED_NODE_URL: setting({
    read: filledList(baseUrl),
    fallback: ["https://arweave.net"],
    unit: "URLs",
    effect: "Chain nodes to follow, separated by commas; requests go to the first healthy, current node.",
  }),
  TRUSTED_GATEWAYS_URLS: setting({
    read: gatewayList,
    write: writeGatewayList,
    fallback: [gatewayAt("https://turbo-gateway.com"), gatewayAt("https://arweave.net")],
    dev: [],
    aliases: ["TRUSTED_GATEWAY_URL"],
    unit: "URLs or JSON",
    effect:
      "Gateways from which content is requested when chunks are unavailable, separated by commas; or JSON with the " +
      'priority of each, lower first: `{"url": 1}`, `{"url": {"priority": 2, "trusted": false}}`.',
  }),
  CDB64_ROOT_TX_INDEX_SOURCES: setting({
    read: list(text),
    fallback: [],
    unit: "paths, URLs or ids",
    effect:
      "CDB64 indexes from data item id to root transaction, separated by commas: files, directories, " +
      "partition manifests, URLs that serve ranges, ids, or ranges of their data (`id:offset:size`).",
  }),
  PEER_DISCOVERY: setting({
    read: flag,
    fallback: true,
    dev: false,
    unit: "true or false",
    effect: "Whether chunks are also requested from the peers of nodes and gateways; each chunk is verified.",
  }),
  PEER_PORTS: setting({
    read: list(port),
    fallback: [80, 443, 1984, 3000],
    unit: "ports",
    effect: "Ports at which peers may be reached, separated by commas.",
  }),
  PEER_PRIVATE_ADDRESSES: setting({
    read: flag,
    fallback: false,
    unit: "true or false",
    effect: "Whether peers may have private or loopback addresses: for tests and closed networks only.",
  }),
} as const;

export const indexSettings = {
  START_HEIGHT: setting({
    read: height,
    fallback: "latest",
    dev: 0,
    unit: "height",
    effect: "First block to index in an empty folder; `latest` is the tip minus 50, 0 is the whole chain.",
  }),
  STOP_HEIGHT: setting({ read: count, unit: "height", effect: "Last block to index." }),
  FOLLOW_INTERVAL_MS: setting({
    read: duration,
    fallback: 2_000,
    dev: 100,
    unit: "milliseconds",
    effect: "Interval between requests for a new block.",
  }),
  ENABLE_MEMPOOL_WATCHER: setting({
    read: flag,
    fallback: false,
    dev: true,
    unit: "true or false",
    effect: "Whether pending transactions are indexed before they are mined.",
  }),
  ANS104_UNBUNDLE_FILTER: setting({
    read: text,
    fallback: '{"never":true}',
    dev: '{"always":true}',
    unit: "JSON filter",
    effect: "Filter that selects the bundles to unbundle.",
  }),
  ANS104_INDEX_FILTER: setting({
    read: text,
    fallback: '{"never":true}',
    dev: '{"always":true}',
    unit: "JSON filter",
    effect: "Filter that selects the data items to index.",
  }),
  FILTER_CHANGE_REPROCESS: setting({
    read: flag,
    fallback: true,
    unit: "true or false",
    effect: "Whether skipped and partly indexed bundles are evaluated again when one of the two filters changes.",
  }),
  WORKER_THREADS: setting({
    read: threadCount,
    fallback: 0,
    unit: "threads",
    effect: "Threads for verification and unbundling; 0 is one thread per processor.",
  }),
} as const;

export const contentSettings = {
  CACHE_BYTES_MAX: setting({
    read: size,
    fallback: 10 * 2 ** 30,
    unit: "size",
    write: sizeText,
    effect: "Maximum disk space of cached content.",
  }),
  CACHE_FREE_BYTES_MIN: setting({
    read: size,
    fallback: 2 * 2 ** 30,
    unit: "size",
    write: sizeText,
    effect:
      "Disk space that stays free; cached content is evicted before it is used. Above UPLOAD_FREE_BYTES_MIN, so that " +
      "the cache gives way before uploads are rejected.",
  }),
  MANIFEST_INDEX_BYTES_MAX: setting({
    read: size,
    fallback: 2 ** 30,
    unit: "size",
    write: sizeText,
    effect: "Maximum disk space of path indexes of manifests above 1 MiB.",
  }),
  HOT_BYTES_MAX: setting({
    read: size,
    fallback: 128 * 2 ** 20,
    unit: "size",
    write: sizeText,
    effect: "Maximum memory of bodies up to 1 MiB that are read often.",
  }),
  RESPONSE_BYTES_MAX: setting({
    read: positiveSize,
    fallback: 256 * 2 ** 20,
    unit: "size",
    write: sizeText,
    effect:
      "Maximum memory of response bodies in progress, an eighth of it for one client address; a response beyond it " +
      "is 503.",
  }),
  REQUEST_BYTES_MAX: setting({
    read: positiveSize,
    fallback: 128 * 2 ** 20,
    unit: "size",
    write: sizeText,
    effect:
      "Maximum memory of request bodies in progress, a quarter of it for one client address; uploads that are " +
      "written to disk on arrival do not count.",
  }),
  COLD_BUFFER: setting({
    read: size,
    fallback: 8 * 2 ** 20,
    unit: "size",
    write: sizeText,
    effect: "An uncached body up to this size is sent when it is complete; a larger body is sent while it arrives.",
  }),
  CONTENT_ISOLATION: setting({
    read: choice("auto", "csp", "off"),
    fallback: "auto",
    unit: "auto, csp or off",
    effect:
      "How pages of different ids are isolated: auto uses hosts where a root host is set, csp uses " +
      "Content-Security-Policy, off does not isolate.",
  }),
  SANDBOX_PROTOCOL: setting({
    read: choice("http", "https"),
    unit: "http or https",
    effect: "Scheme of redirects to sandbox hosts; unset is the scheme of the request.",
  }),
  SANDBOX_ALL: setting({
    read: flag,
    fallback: false,
    unit: "true or false",
    effect: "Whether every content request, not only navigations, is redirected to the sandbox host of the id.",
  }),
  ARWEAVE_TAG_RESPONSE_HEADERS_ENABLED: setting({
    read: flag,
    fallback: false,
    unit: "true or false",
    effect:
      "Whether content responses have the tags, owner and signature of the transaction or data item as " +
      "`X-Arweave-…` headers, at most 8 KiB in total.",
  }),
} as const;

export const nameSettings = {
  ARNS_ROOT_HOST: setting({
    read: list(rootHost),
    fallback: [],
    unit: "hosts",
    effect: "Hosts whose subdomains are names and sandboxes, separated by commas; `dev` adds `localhost`.",
  }),
  NAMES_FILE: setting({
    read: text,
    unit: "file",
    effect:
      'JSON object of names: `{"name": "id"}`, or objects with `id`, `ttlSeconds`, `processId`, `undernames`, ' +
      "`undernameLimit`; read before any gateway and again when it changes; at most 1 MiB.",
  }),
  TRUSTED_ARNS_GATEWAY_URL: setting({
    read: list(nameUrl),
    fallback: ["https://__NAME__.turbo-gateway.com"],
    dev: [],
    unit: "URLs",
    effect:
      "Gateways that are trusted to resolve names, with `__NAME__` in place of the name, separated by commas; " +
      "a single comma is an empty list.",
  }),
  ARNS_CACHE_TTL_SECONDS: setting({
    read: count,
    fallback: 86_400,
    unit: "seconds",
    effect: "Maximum age of a resolved name that is served while no source responds.",
  }),
  ARNS_CACHE_MAX_KEYS: setting({
    read: count,
    fallback: 10_000,
    unit: "names",
    effect: "Maximum number of cached names.",
  }),
  ARNS_COMPOSITE_RESOLVER_TIMEOUT_MS: setting({
    read: duration,
    fallback: 3_000,
    unit: "milliseconds",
    effect: "Timeout of one gateway's resolution of a name.",
  }),
  ARNS_CACHED_RESOLUTION_FALLBACK_TIMEOUT_MS: setting({
    read: duration,
    fallback: 250,
    unit: "milliseconds",
    effect: "Time that a request waits for a new resolution before the cached one is served.",
  }),
  ARNS_RESOLVER_ENFORCE_UNDERNAME_LIMIT: setting({
    read: flag,
    fallback: true,
    unit: "true or false",
    effect: "Whether undernames beyond the purchased limit of their name respond 402.",
  }),
  ARNS_NOT_FOUND_TX_ID: setting({
    read: id,
    unit: "transaction id",
    effect: "Page for names that are not registered.",
  }),
  ARNS_NOT_FOUND_ARNS_NAME: setting({
    read: registryName,
    fallback: "unregistered_arns",
    unit: "name",
    effect: "Name of the page for names that are not registered, when ARNS_NOT_FOUND_TX_ID is unset.",
  }),
  APEX_TX_ID: setting({
    read: id,
    unit: "transaction id",
    effect: "Content of `/` and of every path that no route has; unset is the front page, a record for programs.",
  }),
  APEX_REGISTRY_NAME: setting({
    read: registryName,
    aliases: ["APEX_ARNS_NAME"],
    unit: "name",
    effect: "Name whose content is served at `/`; ignored when `APEX_TX_ID` is set.",
  }),
  AR_IO_WALLET: setting({
    read: address,
    aliases: ["SVC_WALLET"],
    unit: "address",
    effect: "Wallet in the information record.",
  }),
  IO_PROCESS_ID: setting({
    read: id,
    aliases: ["PROCESS_ID"],
    unit: "process id",
    effect: "Process in the information record.",
  }),
} as const;

export const graphqlSettings = {
  QUERY_THREADS: setting({
    read: threadCount,
    fallback: 2,
    unit: "threads",
    effect: "Threads that execute GraphQL queries.",
  }),
  QUERY_TIMEOUT_MS: setting({
    read: duration,
    fallback: 10_000,
    unit: "milliseconds",
    effect: "Maximum time of a GraphQL query.",
  }),
  EVENT_SUBSCRIBERS_MAX: setting({
    read: count,
    fallback: 1_000,
    unit: "clients",
    effect:
      "Maximum clients of live events (also GraphQL subscriptions); an address may have a tenth. 0 leaves them off.",
  }),
  GRAPHQL_HOST: setting({
    read: text,
    unit: "host, host:port or origin",
    effect: "When set, GraphQL queries are forwarded to this host instead of being executed here.",
  }),
  GRAPHQL_PORT: setting({
    read: port,
    fallback: 4000,
    unit: "port",
    effect: "Port of GRAPHQL_HOST when the host has none.",
  }),
} as const;

export const columnarSettings = {
  COLUMNAR_STORE: setting({
    read: choice("none", "duckdb", "clickhouse"),
    fallback: "none",
    unit: "none, duckdb or clickhouse",
    effect:
      "Columnar store of final heights: none, DuckDB within this program, or the ClickHouse server at CLICKHOUSE_URL.",
  }),
  COLUMNAR_PARTITION_HEIGHTS: setting({
    read: positive,
    fallback: 1_000,
    unit: "heights",
    effect: "Heights that are exported and loaded at a time. A smaller number is loaded sooner and makes more files.",
  }),
  CLICKHOUSE_URL: setting({
    read: url,
    unit: "URL",
    effect: "HTTP interface of ClickHouse.",
  }),
  CLICKHOUSE_USER: setting({
    read: text,
    unit: "text",
    effect: "User of ClickHouse, who may create the database and its tables; unset is `default`.",
  }),
  CLICKHOUSE_PASSWORD: setting({
    read: text,
    unit: "text",
    effect: "Password of CLICKHOUSE_USER.",
    secret: true,
  }),
  CLICKHOUSE_DATABASE: setting({
    read: identifier,
    fallback: "cairn",
    unit: "name",
    effect: "Database of the tables. No other gateway may load the same database.",
  }),
  CLICKHOUSE_CLUSTER: setting({
    read: identifier,
    unit: "name",
    effect: "Cluster in which tables are replicated and distributed; unset is one server.",
  }),
} as const;

export const webhookSettings = {
  WEBHOOK_TARGET_SERVERS: setting({
    read: list(url),
    fallback: [],
    unit: "URLs",
    effect: "Servers that receive a POST for each indexed event, separated by commas.",
  }),
  WEBHOOK_INDEX_FILTER: setting({
    read: text,
    fallback: '{"never":true}',
    unit: "JSON filter",
    effect: "Filter that selects the transactions and data items to report.",
  }),
  WEBHOOK_BLOCK_FILTER: setting({
    read: text,
    fallback: '{"never":true}',
    unit: "JSON filter",
    effect: "Filter that selects the blocks to report; attributes are a block's fields.",
  }),
  WEBHOOK_SECRET: setting({
    read: webhookSecret,
    unit: "text, or `whsec_` and base64",
    effect: "Key that signs webhooks by HMAC-SHA-256, in the headers of Standard Webhooks.",
    secret: true,
  }),
} as const;

export const limiterSettings = {
  ENABLE_RATE_LIMITER: setting({
    read: flag,
    fallback: false,
    unit: "true or false",
    effect:
      "Whether clients and resources are rate-limited, over all services together; a token is 1 KiB of response, " +
      "and a request costs at least one token.",
  }),
  RATE_LIMITER_IP_TOKENS_PER_BUCKET: setting({
    read: positive,
    fallback: 100_000,
    unit: "tokens",
    effect: "Burst size of one client address.",
  }),
  RATE_LIMITER_IP_REFILL_PER_SEC: setting({
    read: positive,
    fallback: 20,
    unit: "tokens",
    effect: "Tokens that a client address regains each second.",
  }),
  RATE_LIMITER_RESOURCE_TOKENS_PER_BUCKET: setting({
    read: positive,
    fallback: 1_000_000,
    unit: "tokens",
    effect: "Burst size of one resource, for all clients together.",
  }),
  RATE_LIMITER_RESOURCE_REFILL_PER_SEC: setting({
    read: positive,
    fallback: 100,
    unit: "tokens",
    effect: "Tokens that a resource regains each second.",
  }),
  RATE_LIMITER_PAYMENT: setting({
    read: flag,
    fallback: false,
    unit: "true or false",
    effect:
      "Whether clients over their limit may pay by x402 to continue reading (402 in place of 429); requires " +
      "ENABLE_RATE_LIMITER and X402_PAY_TO.",
  }),
  RATE_LIMITER_PAYMENT_BYTES: setting({
    read: positiveSize,
    fallback: 10 * 2 ** 20,
    unit: "size",
    write: sizeText,
    effect: "Bytes beyond the limits that one payment allows a client address to read.",
  }),
  RATE_LIMITER_PAYMENT_PRICE: setting({
    read: positive,
    fallback: 1_000,
    unit: "millionths of a dollar",
    effect: "Price of one payment for reading; at least 1000.",
  }),
  RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST: setting({
    read: list(text),
    fallback: [],
    unit: "addresses",
    effect: "Clients without a limit, separated by commas; addresses or CIDR blocks.",
  }),
} as const;
