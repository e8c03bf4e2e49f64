/**
 * The environment of an ar-io-node operator: every name is explained.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { explainEnvironment, readConfig } from "../../src/config/config.ts";

/** Names of ar-io-node's table of settings, each with a value that an operator would set. */
const operators: Readonly<Record<string, string>> = {
  ADMIN_API_KEY: "key",
  ANS104_DOWNLOAD_WORKERS: "5",
  ANS104_INDEX_FILTER: '{"always":true}',
  ANS104_UNBUNDLE_FILTER: '{"always":true}',
  ANS104_UNBUNDLE_WORKERS: "2",
  APEX_ARNS_NAME: "docs",
  APEX_TX_ID: "A".repeat(43),
  ARNS_CACHED_RESOLUTION_FALLBACK_TIMEOUT_MS: "250",
  ARNS_CACHE_MAX_KEYS: "10000",
  ARNS_CACHE_TTL_SECONDS: "86400",
  ARNS_COMPOSITE_RESOLVER_TIMEOUT_MS: "3000",
  ARNS_NOT_FOUND_ARNS_NAME: "unregistered_arns",
  ARNS_NOT_FOUND_TX_ID: "A".repeat(43),
  ARNS_RESOLVER_PRIORITY_ORDER: "on-demand,gateway",
  ARNS_ROOT_HOST: "gateway.test",
  ARWEAVE_HEIGHT_MIN_CONSENSUS_COUNT: "2",
  ARWEAVE_NODE_FULL_SYNC_THRESHOLD: "100",
  ARWEAVE_NODE_MAX_HEIGHT_LAG: "5",
  ARWEAVE_NODE_MAX_HEIGHT_LEAD: "5",
  ARWEAVE_PEER_DNS_PORT: "1984",
  ARWEAVE_PEER_DNS_RECORDS: "peers.arweave.xyz",
  ARWEAVE_POST_DRY_RUN: "true",
  ARWEAVE_POST_DRY_RUN_SKIP_VALIDATION: "true",
  AR_IO_WALLET: "A".repeat(43),
  BACKFILL_BUNDLE_RECORDS: "true",
  BACKGROUND_CACHE_RANGE_CONCURRENCY: "1",
  BACKGROUND_CACHE_RANGE_MAX_SIZE: "1",
  BACKGROUND_RETRIEVAL_ORDER: "chunks",
  BUNDLER_URLS: "https://turbo.ardrive.io/",
  BUNDLE_DATA_IMPORTER_QUEUE_SIZE: "1000",
  BUNDLE_REPAIR_RETRY_INTERVAL_SECONDS: "300",
  CACHE_BLOCKED_MAX_AGE: "1",
  CACHE_DEFAULT_MAX_AGE: "30",
  CACHE_NOT_FOUND_MAX_AGE: "60",
  CACHE_PRIVATE_CONTENT_TYPES: "image/*",
  CACHE_PRIVATE_SIZE_THRESHOLD: "1",
  CACHE_STABLE_MAX_AGE: "1",
  CACHE_UNSTABLE_MAX_AGE: "1",
  CACHE_UNSTABLE_TRUSTED_MAX_AGE: "1",
  CDB64_ROOT_TX_INDEX_SOURCES: "index.cdb",
  CDB64_ROOT_TX_INDEX_WATCH: "true",
  CHAIN_CACHE_TYPE: "redis",
  CHUNK_DATA_CACHE_CLEANUP_THRESHOLD: "14400",
  CHUNK_DATA_RETRIEVAL_ORDER: "ar-io-network",
  CHUNK_FIRST_DATA_TIMEOUT_MS: "10000",
  CHUNK_METADATA_RETRIEVAL_ORDER: "ar-io-network",
  CHUNK_POST_MIN_SUCCESS_COUNT: "3",
  CHUNK_POST_PEER_CONCURRENCY: "3",
  CHUNK_REQUEST_CONCURRENCY: "50",
  CLICKHOUSE_PASSWORD: "password",
  CLICKHOUSE_URL: "http://clickhouse:8123",
  CLICKHOUSE_USER: "user",
  CONTIGUOUS_DATA_CACHE_CLEANUP_THRESHOLD: "2592000",
  CORE_PORT: "4000",
  DATA_ITEM_FLUSH_COUNT_THRESHOLD: "1000",
  ENABLE_ARWEAVE_PEER_EDS: "true",
  ENABLE_BACKGROUND_DATA_VERIFICATION: "true",
  ENABLE_DATASETS_ENDPOINT: "true",
  ENABLE_MEMPOOL_WATCHER: "true",
  ENABLE_RATE_LIMITER: "true",
  ENABLE_X_402_USDC_DATA_EGRESS: "true",
  ENVOY_PORT: "3000",
  FALLBACK_NODE_HOST: "peers.arweave.xyz",
  FALLBACK_NODE_PORT: "1984",
  FILTER_CHANGE_REPROCESS: "true",
  GRAPHQL_HOST: "search.test",
  GRAPHQL_HOST_HEADER: "search.test",
  GRAPHQL_PORT: "443",
  IO_PROCESS_ID: "A".repeat(43),
  LOG_FORMAT: "simple",
  LOG_LEVEL: "verbose",
  MAX_DATA_ITEM_QUEUE_SIZE: "100000",
  MAX_EXPECTED_DATA_ITEM_INDEXING_INTERVAL_SECONDS: "300",
  MAX_FLUSH_INTERVAL_SECONDS: "600",
  MAX_VERIFICATION_RETRIES: "5",
  MIN_DATA_VERIFICATION_PRIORITY: "60",
  NEGATIVE_CACHE_ENABLED: "true",
  NEGATIVE_CACHE_TTL_MS: "7200000",
  NODE_MAX_OLD_SPACE_SIZE: "8192",
  ON_DEMAND_RETRIEVAL_ORDER: "trusted-gateways,chunks-offset-aware",
  OTEL_EXPORTER_OTLP_ENDPOINT: "http://otel:4318",
  PREFERRED_CHUNK_GET_NODE_URLS: "http://data-1.arweave.xyz:1984",
  PREFERRED_CHUNK_POST_NODE_URLS: "http://tip-1.arweave.xyz:1984",
  RATE_LIMITER_IP_REFILL_PER_SEC: "20",
  RATE_LIMITER_IP_TOKENS_PER_BUCKET: "100000",
  RATE_LIMITER_RESOURCE_REFILL_PER_SEC: "100",
  RATE_LIMITER_RESOURCE_TOKENS_PER_BUCKET: "1000000",
  RATE_LIMITER_TYPE: "redis",
  REDIS_CACHE_URL: "redis://redis:6379",
  REDIS_MAX_MEMORY: "256mb",
  ROOT_TX_LOOKUP_ORDER: "db,gateways",
  SANDBOX_PROTOCOL: "https",
  START_HEIGHT: "1000000",
  START_WRITERS: "false",
  STOP_HEIGHT: "Infinity",
  STREAM_STALL_TIMEOUT_MS: "30000",
  TAG_SELECTIVITY: '{"App-Name":-10}',
  TRUSTED_ARNS_GATEWAY_URL: "https://__NAME__.arweave.net",
  TRUSTED_CACHE_RETRY_RATE: "0",
  TRUSTED_GATEWAYS_REQUEST_TIMEOUT_MS: "10000",
  TRUSTED_GATEWAYS_URLS: '{"https://turbo-gateway.com": 1, "https://arweave.net": {"priority": 2, "trusted": false}}',
  TRUSTED_NODE_HOST: "arweave.net",
  TRUSTED_NODE_PORT: "443",
  UNTRUSTED_CACHE_RETRY_RATE: "0.1",
  WEBHOOK_BLOCK_FILTER: '{"never":true}',
  WEBHOOK_EMIT_DATA_CACHED_EVENTS: "true",
  WEBHOOK_INDEX_FILTER: '{"never":true}',
  WEBHOOK_TARGET_SERVERS: "https://hooks.test",
  WRITE_ANS104_DATA_ITEM_DB_SIGNATURES: "true",
  WRITE_TRANSACTION_DB_SIGNATURES: "true",
  X_402_USDC_NETWORK: "base",
  X_402_USDC_PER_BYTE_PRICE: "0.0000000001",
};

describe("the environment of an ar-io-node operator", () => {
  test("is read without a complaint, and each name without effect is in one warning", () => {
    const { complaints, warnings } = readConfig(operators, "serve");
    expect(complaints).toEqual([]);
    const lost = explainEnvironment(operators).filter(({ kind }) => kind === "foreign");
    const lines = lost.map(({ name, note }) => `  ${name}: ${note}`);
    expect(warnings).toEqual([[`settings of ar-io-node without effect here: ${lost.length}`, ...lines].join("\n")]);
  });

  test("has no unknown name", () => {
    const kinds = Object.groupBy(explainEnvironment(operators), ({ kind }) => kind);
    expect(kinds.unknown).toBeUndefined();
    expect(kinds.translated?.map(({ name, note }) => [name, note])).toEqual([
      ["CLICKHOUSE_URL", "COLUMNAR_STORE=clickhouse"],
      ["FALLBACK_NODE_HOST", "TRUSTED_NODE_URL=https://arweave.net,http://peers.arweave.xyz:1984"],
      ["FALLBACK_NODE_PORT", "TRUSTED_NODE_URL=https://arweave.net,http://peers.arweave.xyz:1984"],
      ["LOG_FORMAT", "LOG_FORMAT=pretty"],
      ["LOG_LEVEL", "LOG_LEVEL=debug"],
      ["STOP_HEIGHT", "STOP_HEIGHT is unset"],
      ["TRUSTED_NODE_HOST", "TRUSTED_NODE_URL=https://arweave.net,http://peers.arweave.xyz:1984"],
      ["TRUSTED_NODE_PORT", "TRUSTED_NODE_URL=https://arweave.net,http://peers.arweave.xyz:1984"],
    ]);
    for (const { note } of kinds.foreign ?? []) expect(note.length).toBeGreaterThan(10);
  });

  const { FALLBACK_NODE_HOST: _fallback, ...others } = operators;
  test.each([
    [operators, { TRUSTED_NODE_URL: ["https://arweave.net", "http://peers.arweave.xyz:1984"] }],
    [others, { TRUSTED_NODE_URL: ["https://arweave.net"] }],
    [{ TRUSTED_NODE_HOST: "node.test", TRUSTED_NODE_PORT: "80" }, { TRUSTED_NODE_URL: ["http://node.test"] }],
    [
      { TRUSTED_NODE_HOST: "node.test", TRUSTED_NODE_URL: "http://own.test" },
      { TRUSTED_NODE_URL: ["http://own.test"] },
    ],
    [
      { TRUSTED_NODE_HOST: "node.test", TRUSTED_NODE_URL: "http://envoy:3000" },
      { TRUSTED_NODE_URL: ["https://node.test"] },
    ],
    [{ TRUSTED_NODE_URL: "http://envoy:3000" }, { TRUSTED_NODE_URL: ["https://arweave.net"] }],
    [{ GRAPHQL_HOST: "core", GRAPHQL_PORT: "4000" }, { GRAPHQL_HOST: undefined }],
    [{ GRAPHQL_HOST: "core.test" }, { GRAPHQL_HOST: "core.test" }],
    [{ STOP_HEIGHT: "Infinity" }, { STOP_HEIGHT: undefined }],
    [{ STOP_HEIGHT: "7" }, { STOP_HEIGHT: 7 }],
    [
      { LOG_LEVEL: "warn", LOG_FORMAT: "json" },
      { LOG_LEVEL: "warn", LOG_FORMAT: "json" },
    ],
    [
      { CLICKHOUSE_URL: "http://clickhouse:8123/" },
      { COLUMNAR_STORE: "clickhouse", CLICKHOUSE_URL: "http://clickhouse:8123" },
    ],
    [{ CLICKHOUSE_URL: "http://clickhouse:8123", COLUMNAR_STORE: "none" }, { COLUMNAR_STORE: "none" }],
    [{ CLICKHOUSE_URL: "" }, { COLUMNAR_STORE: "none", CLICKHOUSE_URL: undefined }],
    [{ ENVOY_PORT: "3100", PORT: "4000" }, { GATEWAY_PORT: 3100 }],
  ])("%j is %j", (environment, values) => {
    const { config, complaints } = readConfig(environment, "serve");
    expect(complaints).toEqual([]);
    expect(config).toMatchObject(values);
  });

  test.each([
    ["ARNS_RESOLVER_PRIORITY_ORDER", "gateway"],
    ["ARWEAVE_POST_DRY_RUN", "false"],
    ["ENABLE_DATASETS_ENDPOINT", "false"],
    ["ENABLE_X_402_USDC_DATA_EGRESS", "false"],
    ["RATE_LIMITER_TYPE", "memory"],
    ["START_WRITERS", "true"],
    ["PARQUET_EXPORT_DIR", ""],
  ])("%s=%s requests the only behaviour, without a warning", (name, value) => {
    expect(readConfig({ [name]: value }, "serve").warnings).toEqual([]);
    expect(explainEnvironment({ [name]: value })[0]?.kind).toBe("same");
  });

  test("does not report names of other programs", () => {
    const environment = {
      PATH: "/bin",
      HOME: "/root",
      AWS_REGION: "x",
      NODE_OPTIONS: "--x",
      TURBO_TEAM: "t",
    };
    expect(readConfig(environment, "serve").warnings).toEqual([]);
  });

  test("cannot add lines to the warning", () => {
    const { warnings } = readConfig({ "REDIS_X\nwarning: all is well": "1", "ENVOY_\u001b[2J": "1" }, "serve");
    expect(warnings.length).toBe(1);
    expect(warnings[0]?.split("\n")).toHaveLength(3);
    expect(warnings[0]).not.toContain("\u001b");
  });
});
