/**
 * Which requests are sent to an id's own host.
 * @module
 */
import { describe, expect, test } from "bun:test";
import {
  type FetchMetadata,
  isolationReasons,
  isServiceWorkerRequest,
  leavesSharedHost,
} from "../../src/gateway/isolation.ts";

const none: FetchMetadata = { destination: null, otherFetchMetadata: false, accept: null, serviceWorker: null };
const page = "text/html,application/xhtml+xml,*/*;q=0.8";

describe("with a root host", () => {
  const rules = { mode: "auto", hasRootHost: true, redirectAll: false } as const;
  test.each([
    ["a page that is opened", { destination: "document" }, true],
    ["a frame", { destination: "iframe" }, true],
    ["an embedded object", { destination: "object" }, true],
    ["an old browser's page", { accept: page }, true],
    ["an image", { destination: "image" }, false],
    ["a script", { destination: "script" }, false],
    ["fetch", { destination: "empty", accept: "*/*" }, false],
    ["fetch that asks for HTML", { destination: "empty", accept: page }, false],
    ["a video that accepts anything", { destination: "video", accept: page }, false],
    ["metadata without a destination", { otherFetchMetadata: true, accept: page }, false],
    ["a program", {}, false],
    ["curl", { accept: "*/*" }, false],
  ])("%s leaves the shared host: %p", (_name, context, leaves) => {
    expect(leavesSharedHost(rules, { ...none, ...context })).toBe(leaves);
  });

  test("all content leaves the shared host when the operator sets it", () => {
    expect(leavesSharedHost({ ...rules, redirectAll: true }, none)).toBe(true);
  });
});

test.each([
  ["auto", false],
  ["csp", false],
  ["off", true],
  ["off", false],
] as const)("mode %s with a root host: %p leaves pages where they are", (mode, hasRootHost) => {
  expect(leavesSharedHost({ mode, hasRootHost, redirectAll: true }, { ...none, destination: "document" })).toBe(false);
});

test.each([
  [null, false],
  ["script", true],
  [" SCRIPT ", true],
  ["style", false],
])("Service-Worker %p asks to become one: %p", (serviceWorker, asks) => {
  expect(isServiceWorkerRequest({ ...none, serviceWorker })).toBe(asks);
});

test("the operator is warned when all ids share one origin", () => {
  const shared = { hasRootHost: false, redirectAll: false };
  expect(isolationReasons({ ...shared, mode: "auto" })).toHaveLength(1);
  expect(isolationReasons({ ...shared, mode: "off" })).toHaveLength(1);
  expect(isolationReasons({ ...shared, mode: "csp" })).toEqual([]);
  expect(isolationReasons({ ...shared, mode: "auto", hasRootHost: true })).toEqual([]);
});
