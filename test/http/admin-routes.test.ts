/**
 * Routes of administration during faults: fixed messages without internal details.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Failure } from "../../src/failures.ts";
import { createAdminGuard } from "../../src/http/admin-guard.ts";
import { type AdminRoutesOptions, createAdminRoutes } from "../../src/http/gateway/admin-routes.ts";
import { sleep } from "../../src/lib/stop.ts";
import { openGatewayServer } from "../support/gateway-server.ts";
import { createMemoryContent, idOf } from "../support/memory-content.ts";

const key = "key";
let failure: Error = new Error("a secret of the inside");
const fail = (): never => {
  throw failure;
};
const failing: AdminRoutesOptions = {
  guard: createAdminGuard({ key, clock: Date.now, sleep }),
  debug: fail,
  queue: { transaction: fail, bundle: fail, bundleRange: fail, dataItems: fail },
  bundleStatus: fail,
  blockList: { blockData: fail, unblockData: fail, blockName: fail, unblockName: fail, list: fail },
  exports: { start: fail, status: fail },
  prune: fail,
  monitored: { status: fail, history: fail, retryBundle: fail },
};
const content = createMemoryContent();
const { url, lines, close } = openGatewayServer({ content, administration: createAdminRoutes(failing) });
afterAll(async () => {
  await close();
  await content.close();
});

const id = idOf("any");
const rows: readonly (readonly [method: string, path: string, body: object | undefined])[] = [
  ["GET", "debug", undefined],
  ["GET", "status", undefined],
  ["GET", "metrics-history", undefined],
  ["POST", "retry-bundle", { id }],
  ["POST", "queue-tx", { id }],
  ["POST", "queue-bundle", { id }],
  ["POST", "queue-bundles", { startHeight: 0, endHeight: 1 }],
  ["POST", "queue-data-item", []],
  ["GET", `bundle-status/${id}`, undefined],
  ["PUT", "block-data", { id }],
  ["PUT", "unblock-data", { id }],
  ["PUT", "block-name", { name: "a" }],
  ["PUT", "unblock-name", { name: "a" }],
  ["GET", "blocks", undefined],
  ["POST", "export-parquet", { outputDir: "a", startHeight: 0, endHeight: 0, maxFileRows: 0 }],
  ["GET", "export-parquet/status", undefined],
  ["POST", "prune-stable-data-items", { indexedAtThreshold: 1 }],
];

async function ask(method: string, path: string, body: object | undefined) {
  return await fetch(`${url}/svc/admin/${path}`, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

describe("administration during faults", () => {
  test.each(rows)("%s %s responds to a defect with 500 and logs all of it", async (method, path, body) => {
    failure = new Error("a secret of the inside");
    const response = await ask(method, path, body);
    expect([response.status, await response.text()]).toEqual([500, '"Internal Server Error"']);
    expect(response.headers.get("cache-control")).toBe("no-store");
    const last = lines.filter(({ message }) => message === "defect").at(-1);
    expect(JSON.stringify(last)).toContain("a secret of the inside");
  });

  test.each(["queue-tx", "queue-bundle"])("%s responds to a full list with 429 and Retry-After", async (path) => {
    failure = new Failure("too_many_requests");
    const response = await ask("POST", path, { id });
    expect([response.status, await response.text()]).toEqual([429, '"Too Many Requests"']);
    expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  test("a second export is rejected while one runs", async () => {
    failure = new Failure("export_running");
    const [, path = "", body] = rows.find(([, each]) => each === "export-parquet") ?? [];
    const response = await ask("POST", path, body);
    expect([response.status, await response.text()]).toEqual([409, '"Export already running"']);
  });

  test("a busy index is reported as busy", async () => {
    failure = new Failure("busy");
    const response = await ask("POST", "queue-tx", { id });
    expect([response.status, await response.text()]).toEqual([503, '"Service busy"']);
    expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
  });
});
