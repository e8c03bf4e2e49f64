/**
 * Settings: every reader's edges, every complaint at once, secrets never printed.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { printConfig, readConfig, settingsHelp, settingsTable } from "../../src/config/config.ts";
import { settings } from "../../src/config/settings.ts";

const rootHostFault = (text: string) =>
  `ARNS_ROOT_HOST must be the name of a host, without scheme and port, got ${JSON.stringify(text)}`;

describe("readConfig", () => {
  test("an empty environment gives the defaults of each command", () => {
    expect(readConfig({}, "serve").config.GATEWAY_PORT).toBe(3000);
    expect(readConfig({}, "serve").config.START_HEIGHT).toBe("latest");
    expect(readConfig({}, "dev").config.START_HEIGHT).toBe(0);
    expect(readConfig({}, "serve").config.ANS104_UNBUNDLE_FILTER).toBe('{"never":true}');
    expect(readConfig({}, "dev").config.ANS104_UNBUNDLE_FILTER).toBe('{"always":true}');
    expect(readConfig({}, "dev").config.ADMIN_API_KEY).toBeUndefined();
  });

  test("no two listeners have one port, but where each takes a free one", () => {
    const of = (environment: Record<string, string>, mode: "dev" | "serve") => readConfig(environment, mode).complaints;
    expect(of({ UPLOAD_PORT: "3001", GATEWAY_PORT: "3001" }, "serve")).toEqual([
      "PAYMENT_PORT must be another port than GATEWAY_PORT, got 3001 for both",
      "UPLOAD_PORT must be another port than GATEWAY_PORT, got 3001 for both",
    ]);
    expect(of({ GATEWAY_PORT: "1984" }, "serve")).toEqual([]);
    expect(of({ GATEWAY_PORT: "1984" }, "dev")).toEqual([
      "DEVNET_PORT must be another port than GATEWAY_PORT, got 1984 for both",
    ]);
    expect(of({ GATEWAY_PORT: "0", PAYMENT_PORT: "0", UPLOAD_PORT: "0" }, "serve")).toEqual([]);
    expect(of({ GATEWAY_PORT: "x", PAYMENT_PORT: "y" }, "serve").length).toBe(2);
  });

  test("an empty text is as good as unset, so that an empty key never opens a door", () => {
    expect(readConfig({ ADMIN_API_KEY: "" }, "serve").config.ADMIN_API_KEY).toBeUndefined();
  });

  test.each([
    ["PORT", "4001", "GATEWAY_PORT", 4001],
    ["SVC_WALLET", "A".repeat(43), "AR_IO_WALLET", "A".repeat(43)],
    ["START_HEIGHT", "latest", "START_HEIGHT", "latest"],
    ["START_HEIGHT", "0", "START_HEIGHT", 0],
    ["TRUSTED_NODE_URL", "http://a:1/, https://b", "TRUSTED_NODE_URL", ["http://a:1", "https://b"]],
    ["GATEWAY_PORT", "0", "GATEWAY_PORT", 0],
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
    ["GATEWAY_PORT", "65536", 'GATEWAY_PORT must be a port, 0 to 65535, got "65536"'],
    ["GATEWAY_PORT", "http", 'GATEWAY_PORT must be a whole number, 0 or more, got "http"'],
    ["GATEWAY_PORT", "-1", 'GATEWAY_PORT must be a whole number, 0 or more, got "-1"'],
    ["START_HEIGHT", "tip", 'START_HEIGHT must be a height, 0 or more, or `latest`, got "tip"'],
    ["TRUSTED_NODE_URL", "ftp://a", 'TRUSTED_NODE_URL must be an http or https URL, got "ftp://a"'],
    ["TRUSTED_NODE_URL", "http://u:p@a", 'TRUSTED_NODE_URL must not carry user information, got "http://u:p@a"'],
    ["CONTENT_ISOLATION", "none", 'CONTENT_ISOLATION must be one of auto, csp, off, got "none"'],
    ["AR_IO_WALLET", "short", 'AR_IO_WALLET must be an address of 43 base64url characters, got "short"'],
    [
      "TRUSTED_ARNS_GATEWAY_URL",
      "https://a.test",
      'TRUSTED_ARNS_GATEWAY_URL must have __NAME__ where the name stands, got "https://a.test"',
    ],
    [
      "TRUSTED_ARNS_GATEWAY_URL",
      "ftp://__NAME__",
      'TRUSTED_ARNS_GATEWAY_URL must be an http or https URL, got "ftp://__NAME__"',
    ],
    [
      "APEX_REGISTRY_NAME",
      "docs.example",
      'APEX_REGISTRY_NAME must be a name of at most 63 letters, digits, "-" and "_", got "docs.example"',
    ],
    [
      "ARNS_NOT_FOUND_ARNS_NAME",
      "lost_",
      'ARNS_NOT_FOUND_ARNS_NAME must be a name of at most 63 letters, digits, "-" and "_", got "lost_"',
    ],
    ["LEDGER_URL", "mysql://u:p@a/x", "LEDGER_URL must be a URL that begins with postgres://, got (hidden)"],
    ["WEBHOOK_SECRET", "whsec_%%", "WEBHOOK_SECRET must have base64 after `whsec_`, got (hidden)"],
    ["WEBHOOK_SECRET", "whsec_", "WEBHOOK_SECRET must have base64 after `whsec_`, got (hidden)"],
    ["ARNS_ROOT_HOST", "a.test,http://b.test", rootHostFault("a.test,http://b.test")],
    ["ARNS_ROOT_HOST", "a.test:3000", rootHostFault("a.test:3000")],
    ["HOST", "[::1]", 'HOST must be an address, without brackets and port, got "[::1]"'],
    [
      "APEX_TX_ID",
      `${"A".repeat(42)}B`,
      `APEX_TX_ID must be an id of 43 base64url characters, got "${"A".repeat(42)}B"`,
    ],
    [
      "AR_IO_WALLET",
      "a".repeat(43),
      `AR_IO_WALLET must be an address of 43 base64url characters, got "${"a".repeat(43)}"`,
    ],
    ["FOLLOW_INTERVAL_MS", "0", 'FOLLOW_INTERVAL_MS must be at least 1 millisecond, got "0"'],
  ])("%s=%s is refused", (name, text, complaint) => {
    expect(readConfig({ [name]: text }, "serve").complaints).toEqual([complaint]);
  });

  test("metrics on the admin listener need one", () => {
    const complaints = (environment: Record<string, string>) => readConfig(environment, "serve").complaints;
    expect(complaints({ METRICS_ON_ADMIN_LISTEN: "true" })).toEqual([
      "METRICS_ON_ADMIN_LISTEN needs ADMIN_LISTEN: without it metrics would be served nowhere",
    ]);
    const both = { METRICS_ON_ADMIN_LISTEN: "true", ADMIN_LISTEN: "127.0.0.1:3100" };
    expect(complaints(both)).toEqual([]);
  });

  test("an apex may be set by id, by name, or both", () => {
    const both = { APEX_TX_ID: "A".repeat(43), APEX_REGISTRY_NAME: "docs" };
    expect(readConfig(both, "serve").complaints).toEqual([]);
    for (const name of ["APEX_TX_ID", "APEX_REGISTRY_NAME"] as const)
      expect(readConfig({ ...both, [name]: undefined }, "serve").complaints).toEqual([]);
  });

  test("every complaint is made at once", () => {
    const { complaints } = readConfig({ GATEWAY_PORT: "x", LOG_LEVEL: "loud", COLD_BUFFER: "-5" }, "serve");
    expect(complaints.map((complaint) => complaint.split(" ")[0])).toEqual([
      "GATEWAY_PORT",
      "COLD_BUFFER",
      "LOG_LEVEL",
    ]);
  });

  test("a name that was meant for us is reported with the name it resembles", () => {
    const { warnings } = readConfig({ GATEWAY_PROT: "1", TRUSTED_NODE_URI: "x", HOME: "/", ARNS_CACHE: "1" }, "serve");
    expect(warnings).toEqual([
      "GATEWAY_PROT is not a setting of this version; did you mean GATEWAY_PORT?",
      "TRUSTED_NODE_URI is not a setting of this version; did you mean TRUSTED_NODE_URL?",
      "ARNS_CACHE is not a setting of this version",
    ]);
  });
});

describe("what is printed", () => {
  test("a secret is hidden", () => {
    const { config } = readConfig({ ADMIN_API_KEY: "very secret" }, "serve");
    expect(printConfig(config)).toContain("ADMIN_API_KEY=(hidden)");
    expect(printConfig(config)).not.toContain("very secret");
  });

  test("help and table name every setting", () => {
    for (const name of Object.keys(settings)) {
      expect(settingsHelp()).toContain(name);
      expect(settingsTable()).toContain(`\`${name}\``);
    }
  });
});
