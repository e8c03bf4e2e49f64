/**
 * Translates the environment of an ar-io-node operator. Names of the same meaning are aliases in the table of settings;
 * this file translates values of other names, and explains the names that have no equivalent.
 * Source: docs/operating.md, "Coming from ar-io-node".
 * @module
 */
import { printable } from "../lib/printable.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** A setting of ar-io-node that this program does not read. */
export type ForeignName = Readonly<{
  name: string;
  /** The replacement, or why none is needed. */
  instead: string;
  /** Whether the value requests what this program always does. */
  isSame: boolean;
  /** Whether unrelated programs use the name too; then a start does not warn about it. */
  isShared: boolean;
}>;

/** A value that comes from other names, or from another spelling of the same name. */
export type Translation = Readonly<{
  from: readonly string[];
  name: string;
  /** `undefined` unsets the name. */
  value: string | undefined;
}>;

/** A translated environment. */
export type CarriedOver = Readonly<{
  /** The environment with the translated values. */
  values: Environment;
  translations: readonly Translation[];
  foreign: readonly ForeignName[];
}>;

/**
 * Translates an environment.
 *
 * @param environment - Names and texts; an empty text counts as unset.
 * @param known - Names that this program reads.
 */
export function carryOver(environment: Environment, known: ReadonlySet<string>): CarriedOver {
  const given = (name: string) => environment[name] || undefined;
  const translations = translators.flatMap((translate) => translate(given));
  const used = new Set(translations.flatMap(({ from }) => from));
  const foreign = Object.keys(environment)
    .filter((name) => !used.has(name) && !known.has(name))
    .flatMap((name) => foreignName(name, given(name)));
  const changed = translations.map(({ name, value }) => [name, value] as const);
  return { values: { ...environment, ...Object.fromEntries(changed) }, translations, foreign };
}

/** One warning with a line for each name that has no effect here; none when every value is applied. */
export function foreignWarnings(foreign: readonly ForeignName[]): readonly string[] {
  const lost = foreign.filter(({ isSame, isShared }) => !isSame && !isShared);
  if (lost.length === 0) return [];
  const lines = lost.map(({ name, instead }) => `\n  ${printable(name)}: ${instead}`);
  return [`settings of ar-io-node without effect here: ${lost.length}${lines.join("")}`];
}

type Given = (name: string) => string | undefined;

const translators: readonly ((given: Given) => readonly Translation[])[] = [
  nodesTranslated,
  (given) => respelled(given, "STOP_HEIGHT", /^infinity$/i, undefined),
  (given) => respelled(given, "LOG_FORMAT", /^simple$/, "pretty"),
  (given) => respelled(given, "LOG_LEVEL", /^(http|verbose|silly)$/, "debug"),
  // The container of ar-io-node itself, which executes its own queries.
  (given) => respelled(given, "GRAPHQL_HOST", /^core$/, undefined),
  clickhouseTranslated,
];

function respelled(given: Given, name: string, text: RegExp, value: string | undefined): Translation[] {
  return text.test(given(name) ?? "") ? [{ from: [name], name, value }] : [];
}

/** ar-io-node uses ClickHouse when it has the URL. */
function clickhouseTranslated(given: Given): Translation[] {
  if (given("CLICKHOUSE_URL") === undefined || given("COLUMNAR_STORE") !== undefined) return [];
  return [{ from: ["CLICKHOUSE_URL"], name: "COLUMNAR_STORE", value: "clickhouse" }];
}

/** Builds TRUSTED_NODE_URL from the hosts and ports of ar-io-node's proxy, unless a URL is set. */
function nodesTranslated(given: Given): Translation[] {
  const url = given("TRUSTED_NODE_URL");
  // This URL is the proxy itself, by its container name: not a node.
  const isProxy = /^https?:\/\/envoy(:\d+)?\/?$/.test(url ?? "");
  if (url !== undefined && !isProxy) return [];
  const nodes = ["TRUSTED_NODE", "FALLBACK_NODE"].flatMap((prefix) => {
    const names = [`${prefix}_HOST`, `${prefix}_PORT`].filter((name) => given(name) !== undefined);
    const host = given(`${prefix}_HOST`);
    return host === undefined ? [] : [{ names, url: nodeUrl(host, given(`${prefix}_PORT`) ?? "443") }];
  });
  const from = [...(isProxy ? ["TRUSTED_NODE_URL"] : []), ...nodes.flatMap(({ names }) => names)];
  if (from.length === 0) return [];
  const value = nodes.length === 0 ? undefined : nodes.map((node) => node.url).join(",");
  return [{ from, name: "TRUSTED_NODE_URL", value }];
}

function nodeUrl(host: string, port: string): string {
  if (port === "443") return `https://${host}`;
  return port === "80" ? `http://${host}` : `http://${host}:${port}`;
}

function foreignName(name: string, value: string | undefined): ForeignName[] {
  const row = foreignRows.find(([pattern]) => pattern.test(name));
  if (row === undefined) return [];
  const [, instead, same] = row;
  const isSame = value === undefined || (same?.test(value) ?? false);
  return [{ name, instead, isSame, isShared: sharedNames.test(name) }];
}

/** Names that libraries and other programs on the same machine read. */
const sharedNames = /^(AWS_|NODE_OPTIONS$|HTTP_)/;

const cacheKeepsItself = "not needed; the cache stays below CACHE_BYTES_MAX and leaves CACHE_FREE_BYTES_MIN free";
const sourcesAreRanked = "not needed; sources are ranked by how often and how fast they respond";
const limitsAreFixed = "not needed; time-outs, retries and connections have fixed limits";
const otherExports = "use cairn export or /svc/admin/export-parquet, whose options are in the request";
const oneProcess = "not needed; there is one process, whose caches are in memory and in DATA_DIR";
const dataFolder = "use DATA_DIR, which holds everything";
const limiterInMemory = "not needed; the limits of a process are in its memory";
const paidReading = "use RATE_LIMITER_PAYMENT with ENABLE_RATE_LIMITER, X402_NETWORK and X402_PAY_TO";

/** Pattern of the name, replacement, and values that request what this program always does. */
const foreignRows: readonly (readonly [RegExp, string, RegExp?])[] = [
  [/^CORE_PORT$/, "use GATEWAY_PORT; one listener serves what core and Envoy serve together"],
  [/^ENVOY_/, "not needed; there is no Envoy, see GATEWAY_PORT and TRUSTED_NODE_URL"],
  [/^(TRUSTED|FALLBACK)_NODE_(HOST|PORT)$/, "use TRUSTED_NODE_URL, a list of URLs"],
  [/^(ENABLE_ARWEAVE_PEER_EDS$|ARWEAVE_PEER_)/, "use PEER_DISCOVERY and PEER_PORTS"],
  [/^ARWEAVE_(NODE|HEIGHT)_/, "not needed; the freshest healthy node of TRUSTED_NODE_URL is followed"],
  [/^PREFERRED_CHUNK_(GET|POST)_NODE_URLS$/, "list these nodes in TRUSTED_NODE_URL"],
  [/^CHUNK_POST_/, "not needed; chunks are posted to the nodes of TRUSTED_NODE_URL"],
  [/^ARWEAVE_POST_DRY_RUN/, "use `cairn dev`, whose chain takes transactions at no cost", /^false$/],
  [/^START_WRITERS$/, "every process writes an index of its own", /^true$/],
  [/^TRUSTED_GATEWAYS_(REQUEST|SEND|BLOCKED)_|^STREAM_(STALL|REQUEST)_TIMEOUT_MS$/, limitsAreFixed],
  [/^(GATEWAY|OUTBOUND)_.*SOCKET/, limitsAreFixed],
  [/^GATEWAYS_(RANGE|ROOT_TX)_/, "use TRUSTED_GATEWAYS_URLS, which are asked where items are located, too"],
  [/^PEERS?_(ROOT_TX|MAX|CANDIDATE|HEDGE|HASH_RING)_/, sourcesAreRanked],
  [/^(WEIGHTED_PEERS_|SKIP_LEAVING_GATEWAYS$)/, sourcesAreRanked],
  [/^(ON_DEMAND|BACKGROUND)_RETRIEVAL_ORDER$/, "not needed; chunks, which are proven, go before gateways"],
  [/^CHUNK_(DATA|METADATA)_RETRIEVAL_ORDER$/, sourcesAreRanked],
  [/^CHUNK_(DATA|METADATA)_/, cacheKeepsItself],
  [/^CHUNK_/, limitsAreFixed],
  [/^ANS104_(UNBUNDLE|DOWNLOAD)_WORKERS$/, "use WORKER_THREADS"],
  [/^(MAX_DATA_ITEM_QUEUE_SIZE$|BUNDLE_DATA_IMPORTER_|DATA_IMPORTER_)/, limitsAreFixed],
  [/^(DATA_ITEM_FLUSH_|MAX_FLUSH_INTERVAL_)/, "not needed; items are found as soon as their batch is written"],
  [/^(BUNDLE_REPAIR_|BACKFILL_BUNDLE_RECORDS$)/, "not needed; bundles that failed are tried again", /^false$/],
  [/^WRITE_(ANS104_DATA_ITEM|TRANSACTION)_DB_SIGNATURES$/, "not needed; GraphQL has signatures in any case"],
  [/DATA_VERIFICATION|^MAX_VERIFICATION_RETRIES$/, "not needed; bytes are verified before they leave"],
  [
    /^(GRAPHQL_)?ROOT_TX_/,
    "not needed; items are located by hints, nodes, TRUSTED_GATEWAYS_URLS and CDB64_ROOT_TX_INDEX_SOURCES",
  ],
  [/^(TURBO_(ENDPOINT|REQUEST_)|HYPERBEAM_)/, "add a gateway to TRUSTED_GATEWAYS_URLS"],
  [/^CDB64_/, "use CDB64_ROOT_TX_INDEX_SOURCES; its caches and limits are fixed"],
  [/CACHE_(CLEANUP|TEMP_CLEANUP|RANGE_|RETRY_RATE)|^FOREGROUND_CACHE_/, cacheKeepsItself],
  [/^SKIP_(CACHE$|DATA_CACHE)/, "use CACHE_BYTES_MAX", /^false$/],
  [/^NEGATIVE_CACHE_/, "not needed; unknown ids are remembered for 10 s", /^false$/],
  [/^CACHE_\w+_MAX_AGE$|^CACHE_PRIVATE_/, "not needed; Cache-Control follows what is known of the bytes"],
  [
    /^ARNS_RESOLVER_PRIORITY_ORDER$/,
    "use NAMES_FILE and TRUSTED_ARNS_GATEWAY_URL, which are asked in this order; on-demand is not supported",
    /^gateway$/,
  ],
  [
    /^(ARNS_(ANT|RESOLVER|NAMES?|ON_DEMAND|MAX|RESOLUTION)_|TRUSTED_ARNS_RESOLVER_)/,
    "use TRUSTED_ARNS_GATEWAY_URL, NAMES_FILE and the ARNS_ settings of `cairn --help`",
  ],
  [/^(AO_|NETWORK_AO_|ANT_AO_)/, "not needed; names are resolved by TRUSTED_ARNS_GATEWAY_URL and NAMES_FILE"],
  [/^CLICKHOUSE_/, "use COLUMNAR_STORE and the CLICKHOUSE_ settings of `cairn --help`"],
  [/^(PARQUET|ICEBERG)_/, otherExports],
  [/^GRAPHQL_HOST_HEADER$/, "use GRAPHQL_HOST with the name that the Host header is to have", /^$/],
  [/^TAG_SELECTIVITY$/, "not needed; queries choose the order of tags by themselves"],
  [/^WEBHOOK_EMIT_DATA_CACHED_EVENTS$/, "webhooks report what is indexed, not what is cached", /^false$/],
  [/^RATE_LIMITER_TYPE$/, limiterInMemory, /^memory$/],
  [/^RATE_LIMITER_(REDIS|ARNS)_/, limiterInMemory],
  [/^ENABLE_X_402_/, paidReading, /^false$/],
  [/^X_402_/, paidReading],
  [/^ENABLE_DATASETS_ENDPOINT$/, "serve files by a web server beside this program", /^false$/],
  [/^(CHAIN_CACHE_TYPE$|REDIS_|LMDB_)/, oneProcess],
  [/^NODE_(MAX_OLD_SPACE_SIZE|OPTIONS)$/, "use HOT_BYTES_MAX, RESPONSE_BYTES_MAX and REQUEST_BYTES_MAX"],
  [
    /^MAX_EXPECTED_DATA_ITEM_INDEXING_INTERVAL_SECONDS$/,
    "not needed; /svc/healthcheck reports when following stops or lags",
  ],
  [/^OTEL_/, "use OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG"],
  [/^AWS_/, "not needed; content is stored in DATA_DIR, and logs go to the standard error"],
  [/^(BUNDLER_|UPLOADER_)/, "use UPLOAD_PORT and WALLET_FILE; the upload service is part of this program"],
  [/^((RUN_|ENABLE_)?OBSERVER|SUBMIT_CONTRACT_)/, "run ar-io-observer beside this program; it has no observer"],
  [/^(INDEX_SWARM|INDEXES)_/, "indexes are neither published nor subscribed to in this version"],
  [/^HTTPSIG_/, "use /svc/proof/{id}; responses are not signed"],
  [/^HTTP_(KEEP_ALIVE|HEADERS)_TIMEOUT_MS$/, limitsAreFixed],
  [/^(LITESTREAM_|AUTOHEAL_)/, "see docs/operating.md for backups and supervision of one process"],
  [/^(INSTANCE_ID|LOG_FILTER|LOG_ALL_STACKTRACES)$/, "use LOG_LEVEL and LOG_FORMAT"],
  [/^\w+_DATA_PATH$/, dataFolder],
  [/^ARWEAVE_TAG_RESPONSE_HEADERS_/, limitsAreFixed],
];
