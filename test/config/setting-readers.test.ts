/**
 * Readers of settings: lists of gateways, with commas or as JSON.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { printConfig, readConfig } from "../../src/config/config.ts";
import { gatewayAt, gatewayList, writeGatewayList } from "../../src/config/setting-readers.ts";

const of = (text: string) => readConfig({ TRUSTED_GATEWAYS_URLS: text }, "serve");

describe("TRUSTED_GATEWAYS_URLS", () => {
  test.each([
    ["http://a", [gatewayAt("http://a")]],
    [" http://a:4000/, https://b ,", [gatewayAt("http://a:4000"), gatewayAt("https://b")]],
    [",", []],
    ["{}", []],
    ['{"https://a": 1}', [gatewayAt("https://a")]],
    ['{"https://a": {}}', [gatewayAt("https://a")]],
    [
      ' {"https://b/": {"priority": 2, "trusted": false}, "http://a": 1} ',
      [gatewayAt("http://a"), { url: "https://b", priority: 2, trusted: false }],
    ],
    [
      '{"https://a": {"trusted": false}, "https://b": {"priority": 0.5}}',
      [
        { url: "https://b", priority: 0.5, trusted: true },
        { url: "https://a", priority: 1, trusted: false },
      ],
    ],
  ])("%s", (text, gateways) => {
    const { config, complaints } = of(text);
    expect(complaints).toEqual([]);
    expect(config.TRUSTED_GATEWAYS_URLS).toEqual(gateways);
    expect(gatewayList(writeGatewayList(gateways))).toEqual(gateways);
    const line = printConfig(config)
      .split("\n")
      .find((each) => each.startsWith("TRUSTED_GATEWAYS_URLS="));
    expect(line).toBe(`TRUSTED_GATEWAYS_URLS=${writeGatewayList(gateways)}`);
  });

  test("is written with commas where no gateway differs, else as JSON", () => {
    expect(writeGatewayList(gatewayList("http://a,http://b"))).toBe("http://a,http://b");
    const text = '{"http://a":1,"http://b":{"priority":2,"trusted":false}}';
    expect(writeGatewayList(gatewayList(text))).toBe(text);
  });

  test.each([
    ["{", "URLs separated by commas, or a JSON object"],
    ['["https://a"]', "URLs separated by commas, or a JSON object"],
    ['{"https://a": "1"}', "URLs separated by commas, or a JSON object"],
    ['{"https://a": null}', "URLs separated by commas, or a JSON object"],
    ['{"https://a": [1]}', "URLs separated by commas, or a JSON object"],
    ['{"https://a": {"priority": "1"}}', "URLs separated by commas, or a JSON object"],
    ['{"https://a": {"trusted": 1}}', "URLs separated by commas, or a JSON object"],
    ['{"https://a": {"weight": 1}}', "URLs separated by commas, or a JSON object"],
    ['{"https://a": 1e999}', "URLs separated by commas, or a JSON object"],
    ['{"a": 1}', "an http or https URL"],
    ['{"https://a": 1, "https://a/": 2}', "each URL once"],
    ["https://u:p@a", "a URL without user information"],
    ["https://a?key=b", "a URL without query and fragment"],
    ['{"https://a/#b": 1}', "a URL without query and fragment"],
  ])("%s is invalid", (text, reason) => {
    const { complaints } = of(text);
    expect(complaints.length).toBe(1);
    expect(complaints[0]).toStartWith(`invalid value '${text}' for TRUSTED_GATEWAYS_URLS: expected ${reason}`);
  });

  test("is also TRUSTED_GATEWAY_URL, the older name", () => {
    const { config } = readConfig({ TRUSTED_GATEWAY_URL: "https://old.test" }, "serve");
    expect(config.TRUSTED_GATEWAYS_URLS).toEqual([gatewayAt("https://old.test")]);
  });
});
