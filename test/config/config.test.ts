/**
 * Settings: limits of every reader, all complaints at once, hidden secrets.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { configRecord, printConfig, readConfig, settingsHelp } from "../../src/config/config.ts";
import { settings } from "../../src/config/settings.ts";

const rootHostFault = (text: string) =>
  `invalid value '${text}' for ARNS_ROOT_HOST: expected a host name without scheme and port`;

describe("readConfig", () => {
  test("an empty environment gives the defaults of each command", () => {
    expect(readConfig({}, "serve").config.GATEWAY_PORT).toBe(3000);
    expect(readConfig({}, "serve").config.START_HEIGHT).toBe("latest");
    expect(readConfig({}, "dev").config.START_HEIGHT).toBe(0);
    expect(readConfig({}, "serve").config.ANS104_UNBUNDLE_FILTER).toBe('{"never":true}');
    expect(readConfig({}, "dev").config.ANS104_UNBUNDLE_FILTER).toBe('{"always":true}');
    expect(readConfig({}, "dev").config.ADMIN_API_KEY).toBeUndefined();
  });

  test("two listeners cannot have the same port, except port 0", () => {
    const of = (environment: Record<string, string>, mode: "dev" | "serve") => readConfig(environment, mode).complaints;
    expect(of({ UPLOAD_PORT: "3001", GATEWAY_PORT: "3001" }, "serve")).toEqual([
      "invalid value '3001' for PAYMENT_PORT: expected a port other than GATEWAY_PORT",
      "invalid value '3001' for UPLOAD_PORT: expected a port other than GATEWAY_PORT",
    ]);
    expect(of({ GATEWAY_PORT: "1984" }, "serve")).toEqual([]);
    expect(of({ GATEWAY_PORT: "1984" }, "dev")).toEqual([
      "invalid value '1984' for DEVNET_PORT: expected a port other than GATEWAY_PORT",
    ]);
    expect(of({ GATEWAY_PORT: "0", PAYMENT_PORT: "0", UPLOAD_PORT: "0" }, "serve")).toEqual([]);
    expect(of({ GATEWAY_PORT: "x", PAYMENT_PORT: "y" }, "serve").length).toBe(2);
  });

  test("an empty text counts as unset, so an empty key never gives access", () => {
    expect(readConfig({ ADMIN_API_KEY: "" }, "serve").config.ADMIN_API_KEY).toBeUndefined();
  });

  test.each([
    ["PORT", "4001", "GATEWAY_PORT", 4001],
    ["SVC_WALLET", "A".repeat(43), "AR_IO_WALLET", "A".repeat(43)],
    ["START_HEIGHT", "latest", "START_HEIGHT", "latest"],
    ["START_HEIGHT", "0", "START_HEIGHT", 0],
    ["TRUSTED_NODE_URL", "http://a:1/, https://b", "TRUSTED_NODE_URL", ["http://a:1", "https://b"]],
    ["GATEWAY_PORT", "0", "GATEWAY_PORT", 0],
    ["WORKER_THREADS", "1024", "WORKER_THREADS", 1024],
    ["GATEWAY_PORT", "65535", "GATEWAY_PORT", 65535],
    ["ENABLE_MEMPOOL_WATCHER", "true", "ENABLE_MEMPOOL_WATCHER", true],
    ["APEX_ARNS_NAME", "Docs_Site", "APEX_REGISTRY_NAME", "docs_site"],
    ["TRUSTED_ARNS_GATEWAY_URL", ",", "TRUSTED_ARNS_GATEWAY_URL", []],
    [
      "TRUSTED_ARNS_GATEWAY_URL",
      "https://__NAME__.a.test, https://b.test/ar-io/resolver/__NAME__",
      "TRUSTED_ARNS_GATEWAY_URL",
      ["https://__NAME__.a.test", "https://b.test/ar-io/resolver/__NAME__"],
    ],
  ] as const)("%s=%s is %s %p", (given, text, name, value) => {
    expect<unknown>(readConfig({ [given]: text }, "serve").config[name]).toEqual(value);
  });

  test.each([
    ["GATEWAY_PORT", "65536", "invalid value '65536' for GATEWAY_PORT: expected 0–65535"],
    ["GATEWAY_PORT", "http", "invalid value 'http' for GATEWAY_PORT: expected 0–65535"],
    ["GATEWAY_PORT", "-1", "invalid value '-1' for GATEWAY_PORT: expected 0–65535"],
    ["START_HEIGHT", "tip", "invalid value 'tip' for START_HEIGHT: expected a height, 0 or more, or latest"],
    ["TRUSTED_NODE_URL", "ftp://a", "invalid value 'ftp://a' for TRUSTED_NODE_URL: expected an http or https URL"],
    [
      "TRUSTED_NODE_URL",
      "http://u:p@a",
      "invalid value 'http://u:p@a' for TRUSTED_NODE_URL: expected a URL without user information",
    ],
    ["TRUSTED_NODE_URL", ", ,", "invalid value ', ,' for TRUSTED_NODE_URL: expected at least one value"],
    [
      "TRUSTED_NODE_URL",
      "http://a/?key=b",
      "invalid value 'http://a/?key=b' for TRUSTED_NODE_URL: expected a URL without query and fragment",
    ],
    ["WORKER_THREADS", "1025", "invalid value '1025' for WORKER_THREADS: expected 0–1024"],
    ["QUERY_THREADS", "-1", "invalid value '-1' for QUERY_THREADS: expected 0–1024"],
    ["CONTENT_ISOLATION", "none", "invalid value 'none' for CONTENT_ISOLATION: expected one of auto, csp, off"],
    ["AR_IO_WALLET", "short", "invalid value 'short' for AR_IO_WALLET: expected an address of 43 base64url characters"],
    [
      "TRUSTED_ARNS_GATEWAY_URL",
      "https://a.test",
      "invalid value 'https://a.test' for TRUSTED_ARNS_GATEWAY_URL: expected a URL with __NAME__ in place of the name",
    ],
    [
      "TRUSTED_ARNS_GATEWAY_URL",
      "ftp://__NAME__",
      "invalid value 'ftp://__NAME__' for TRUSTED_ARNS_GATEWAY_URL: expected an http or https URL",
    ],
    [
      "APEX_REGISTRY_NAME",
      "docs.example",
      `invalid value 'docs.example' for APEX_REGISTRY_NAME: expected a name of at most 63 characters: a–z, 0–9, "-" and "_"`,
    ],
    [
      "ARNS_NOT_FOUND_ARNS_NAME",
      "lost_",
      `invalid value 'lost_' for ARNS_NOT_FOUND_ARNS_NAME: expected a name of at most 63 characters: a–z, 0–9, "-" and "_"`,
    ],
    [
      "LEDGER_URL",
      "mysql://u:p@a/x",
      "invalid value (hidden) for LEDGER_URL: expected a URL that starts with postgres:// or postgresql://",
    ],
    [
      "ADMIN_API_KEY",
      "two words",
      "invalid value (hidden) for ADMIN_API_KEY: expected printable ASCII characters without spaces",
    ],
    ["WEBHOOK_SECRET", "whsec_%%", "invalid value (hidden) for WEBHOOK_SECRET: expected base64 after whsec_"],
    ["WEBHOOK_SECRET", "whsec_", "invalid value (hidden) for WEBHOOK_SECRET: expected base64 after whsec_"],
    ["ARNS_ROOT_HOST", "a.test,http://b.test", rootHostFault("a.test,http://b.test")],
    ["ARNS_ROOT_HOST", "a.test:3000", rootHostFault("a.test:3000")],
    ["HOST", "[::1]", "invalid value '[::1]' for HOST: expected an address without brackets and port"],
    [
      "APEX_TX_ID",
      `${"A".repeat(42)}B`,
      `invalid value '${"A".repeat(42)}B' for APEX_TX_ID: expected an id of 43 base64url characters`,
    ],
    [
      "AR_IO_WALLET",
      "a".repeat(43),
      `invalid value '${"a".repeat(43)}' for AR_IO_WALLET: expected an address of 43 base64url characters`,
    ],
    [
      "FOLLOW_INTERVAL_MS",
      "0",
      "invalid value '0' for FOLLOW_INTERVAL_MS: expected a whole number of milliseconds, 1 to 2000000000",
    ],
    [
      "TOKEN_WATCH_MS",
      "31536000000",
      "invalid value '31536000000' for TOKEN_WATCH_MS: expected a whole number of milliseconds, 1 to 2000000000",
    ],
    [
      "STOP_GRACE_MS",
      "2147483648",
      "invalid value '2147483648' for STOP_GRACE_MS: expected a whole number of milliseconds, 0 to 2000000000",
    ],
    [
      "CACHE_BYTES_MAX",
      "10GB",
      "invalid value '10GB' for CACHE_BYTES_MAX: expected a size such as 1048576, 10MiB or 1.5GiB",
    ],
    [
      "UPLOAD_BYTES_MAX",
      "0KiB",
      "invalid value '0KiB' for UPLOAD_BYTES_MAX: expected a size above 0 such as 1048576, 10MiB or 1.5GiB",
    ],
  ])("%s=%s is invalid", (name, text, complaint) => {
    expect(readConfig({ [name]: text }, "serve").complaints).toEqual([complaint]);
  });

  test("METRICS_ON_ADMIN_LISTEN requires ADMIN_LISTEN", () => {
    const complaints = (environment: Record<string, string>) => readConfig(environment, "serve").complaints;
    expect(complaints({ METRICS_ON_ADMIN_LISTEN: "true" })).toEqual([
      "METRICS_ON_ADMIN_LISTEN requires ADMIN_LISTEN: otherwise metrics are not served",
    ]);
    const both = { METRICS_ON_ADMIN_LISTEN: "true", ADMIN_LISTEN: "127.0.0.1:3100" };
    expect(complaints(both)).toEqual([]);
  });

  test("COLUMNAR_STORE=clickhouse requires CLICKHOUSE_URL", () => {
    const complaints = (environment: Record<string, string>) => readConfig(environment, "serve").complaints;
    expect(complaints({ COLUMNAR_STORE: "clickhouse" })).toEqual(["COLUMNAR_STORE=clickhouse requires CLICKHOUSE_URL"]);
    const all = { COLUMNAR_STORE: "clickhouse", CLICKHOUSE_URL: "http://127.0.0.1:8123", CLICKHOUSE_DATABASE: "own_1" };
    expect(complaints(all)).toEqual([]);
    expect(complaints({ ...all, CLICKHOUSE_DATABASE: "a`b" })).toEqual([
      "invalid value 'a`b' for CLICKHOUSE_DATABASE: expected 1–63 of A–Z, a–z, 0–9 and _, not a digit first",
    ]);
    expect(complaints({ ...all, CLICKHOUSE_URL: "http://user:secret@host" })[0]).toEndWith(
      "expected a URL without user information",
    );
  });

  test("a complaint names the variable that was set", () => {
    const complaints = (environment: Record<string, string>) => readConfig(environment, "serve").complaints;
    expect(complaints({ PORT: "abc" })).toEqual(["invalid value 'abc' for PORT: expected 0–65535"]);
    expect(complaints({ PORT: "3001" })).toEqual([
      "invalid value '3001' for PAYMENT_PORT: expected a port other than PORT",
    ]);
  });

  test("an apex may be set by id, by name, or both", () => {
    const both = { APEX_TX_ID: "A".repeat(43), APEX_REGISTRY_NAME: "docs" };
    expect(readConfig(both, "serve").complaints).toEqual([]);
    for (const name of ["APEX_TX_ID", "APEX_REGISTRY_NAME"] as const)
      expect(readConfig({ ...both, [name]: undefined }, "serve").complaints).toEqual([]);
  });

  test("all complaints are reported at once", () => {
    const { complaints } = readConfig({ GATEWAY_PORT: "x", LOG_LEVEL: "loud", COLD_BUFFER: "-5" }, "serve");
    expect(complaints.map((complaint) => / for (\w+):/.exec(complaint)?.[1])).toEqual([
      "GATEWAY_PORT",
      "COLD_BUFFER",
      "LOG_LEVEL",
    ]);
  });

  test("an unknown name of our prefixes is reported with the most similar setting", () => {
    const { warnings } = readConfig({ GATEWAY_PROT: "1", TRUSTED_NODE_URI: "x", HOME: "/", ARNS_CACHE: "1" }, "serve");
    expect(warnings).toEqual([
      "GATEWAY_PROT is not a setting of this version; did you mean GATEWAY_PORT?",
      "TRUSTED_NODE_URI is not a setting of this version; did you mean TRUSTED_NODE_URL?",
      "ARNS_CACHE is not a setting of this version",
    ]);
  });

  test("names of other programs that are in many environments are not reported", () => {
    const environment = {
      SSL_CERT_FILE: "/etc/ssl/cert.pem",
      SSL_CERT_DIR: "/etc/ssl",
      HOSTNAME: "box",
      LOGNAME: "me",
    };
    expect(readConfig(environment, "serve").warnings).toEqual([]);
  });
});

test("the cache gives way before uploads are rejected: it leaves more of the disk free", () => {
  const { CACHE_FREE_BYTES_MIN: cache, UPLOAD_FREE_BYTES_MIN: uploads } = settings;
  expect(cache.fallback).toBeGreaterThanOrEqual(2 * uploads.fallback);
});

describe("a size", () => {
  test.each([
    ["10737418240", 10 * 2 ** 30],
    ["10GiB", 10 * 2 ** 30],
    ["1.5TiB", 1.5 * 2 ** 40],
    ["0", 0],
  ])("%s is %d bytes", (text, bytes) => {
    const { config, complaints } = readConfig({ CACHE_BYTES_MAX: text }, "serve");
    expect([config.CACHE_BYTES_MAX, complaints]).toEqual([bytes, []]);
  });
});

describe("what is printed", () => {
  test("a secret is hidden", () => {
    const { config } = readConfig({ ADMIN_API_KEY: "very-secret" }, "serve");
    expect(printConfig(config)).toContain("ADMIN_API_KEY=(hidden)");
    expect(printConfig(config)).not.toContain("very secret");
  });

  test("each value has the names that set it, also an alias and the names of ar-io-node; a default has none", () => {
    const record = configRecord(
      readConfig({ PORT: "4000", ADMIN_API_KEY: "very-secret", LOG_LEVEL: "http", CACHE_BYTES_MAX: "" }, "serve"),
    );
    expect(record["GATEWAY_PORT"]).toEqual({ value: "4000", from: ["PORT"] });
    expect(record["ADMIN_API_KEY"]).toEqual({ value: "(hidden)", from: ["ADMIN_API_KEY"] });
    expect(record["LOG_LEVEL"]).toEqual({ value: "debug", from: ["LOG_LEVEL"] });
    expect(record["CACHE_BYTES_MAX"]).toEqual({ value: "10GiB" });
    expect(Object.keys(record)).toEqual(Object.keys(settings));
  });

  test("help names every setting", () => {
    for (const name of Object.keys(settings)) {
      expect(settingsHelp()).toContain(name);
    }
  });
});
