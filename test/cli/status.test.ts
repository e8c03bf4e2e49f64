/**
 * `cairn status` beside a running program: what everyone may read, what the admin key shows, and the exit codes.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pageOf } from "../../src/cli/status.ts";
import { openUploadStack, type UploadStack } from "../support/upload-stack.ts";
import { runCairn } from "./command.ts";

const key = "key-of-this-test";
let stack: UploadStack;

beforeAll(async () => {
  stack = await openUploadStack({ environment: { ADMIN_API_KEY: key } });
}, 120_000);
afterAll(() => stack.close());

/** The exit code that a page means: of a program whose feed of prices does not respond, 1. */
const codeOf = (page: string) => (page.includes("unhealthy") ? 1 : 0);

const status = (...words: string[]) => runCairn(["status", "--gateway", stack.gateway.url, ...words]);

test("without the key: health and height", async () => {
  const { code, out, err } = await status();
  expect([code, err]).toEqual([codeOf(out), ""]);
  expect(out).not.toContain("requests");
  expect(out).toContain(`height ${stack.devnet.height()}`);
});

test("with the key: a row of each part", async () => {
  const { code, out } = await status("--admin-key", key);
  const names = out.split("\n").map((line) => line.slice(2, 12).trim());
  const expected = ["status", "chain", "index", "queues", "requests", "cache", "uploads", "credits"];
  expect([code, names]).toEqual([codeOf(out), expect.arrayContaining(expected)]);
});

test("as JSON: both records in one line", async () => {
  const { out } = await status("--admin-key", key, "--json");
  expect(out.trim().split("\n")).toHaveLength(1);
  expect(JSON.parse(out)).toMatchObject({ health: { chain: { lag: 0 } }, operator: { chain: { lag: 0 } } });
});

test("a stored key that is another gateway's shows what everyone may read", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-status-"));
  mkdirSync(join(folder, "keys"));
  writeFileSync(join(folder, "keys/admin-key"), "ab".repeat(32));
  const environment = { DATA_DIR: folder, GATEWAY_PORT: new URL(stack.gateway.url).port, ADMIN_API_KEY: "" };
  const { code, out, err } = await runCairn(["status", "--once"], { environment });
  rmSync(folder, { recursive: true });
  expect([code, err, out.includes("requests")]).toEqual([codeOf(out), "", false]);
  expect(out).toContain(`height ${stack.devnet.height()}`);
});

test("the key of this machine's settings is not sent to a named gateway", async () => {
  const { code, out, err } = await runCairn(["status", "--gateway", stack.gateway.url], {
    environment: { ADMIN_API_KEY: "another" },
  });
  expect([code, err, out.includes("requests")]).toEqual([codeOf(out), "", false]);
});

test("settings that only `cairn dev` rejects do not stop a command", async () => {
  const environment = { SERVICES: "payment,upload", PAYMENT_PORT: "3003" };
  const { code, err } = await runCairn(["status", "--gateway", stack.gateway.url], { environment });
  expect([code === 2, err]).toEqual([false, ""]);
});

test.each([
  ["another key", () => status("--admin-key", "another"), "responded 401: Unauthorized"],
  ["no gateway", () => runCairn(["status", "--gateway", "http://127.0.0.1:9"]), "is unavailable: connection refused"],
])("%s is a failure in one sentence", async (_name, run, sentence) => {
  const { code, out, err } = await run();
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain(sentence);
});

describe("the line of the chain", () => {
  test.each([
    [{ height: null, tip: null, lag: null }, "no block yet"],
    [{ height: 1_234, tip: 1_234, lag: 0 }, "height 1,234, at the tip"],
    [{ height: 1_235, tip: 1_234, lag: -1 }, "height 1,235, at the tip"],
    [{ height: 7, tip: null, lag: null }, "height 7"],
    [{ height: 7, tip: 8, lag: 1 }, "height 7 of 8, 1 block behind"],
    [
      { height: 1_000, tip: 11_000, lag: 10_000, blocksPerSecond: 50, secondsToTip: 200 },
      "height 1,000 of 11,000, 10000 blocks behind, 50.0 blocks/s, 3 min 20 s left",
    ],
  ])("%j is %j", (chain, line) => {
    const page = pageOf({ health: { status: "unhealthy", reasons: ["A reason.\x1b"], chain }, operator: undefined });
    expect(page).toBe(`  status     unhealthy\n             A reason.\\x1b\n  chain      ${line}\n`);
  });
});
