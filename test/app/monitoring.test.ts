/**
 * The status record and the history of metrics, of a program that follows a chain and takes uploads.
 * @module
 */

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { eventually } from "../support/until.ts";
import { testItem } from "../support/upload.ts";
import { openUploadStack, type UploadStack } from "../support/upload-stack.ts";

const key = "key-of-this-test";
let stack: UploadStack;

beforeAll(async () => {
  // A bundle waits for an hour, so that it is there to be seen.
  stack = await openUploadStack({ environment: { ADMIN_API_KEY: key, UPLOAD_BUNDLE_WAIT_MS: "3600000" } });
}, 120_000);
afterAll(() => stack.close());

async function ask(method: string, path: string, body?: unknown) {
  const response = await fetch(`${stack.gateway.url}/svc/admin/${path}`, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

const status = async () => (await ask("GET", "status")).body;

test("the chain: height, tip and lag", async () => {
  await stack.devnet.mine(3);
  const height = stack.devnet.height();
  await eventually(status, ({ chain }) => chain.height === height && chain.tip === height && chain.lag === 0);
});

test("an upload is counted and its bundle listed, with what it waits for", async () => {
  const before = await status();
  const item = testItem("an upload");
  const sent = await fetch(`${stack.uploads}/tx`, { method: "POST", body: item.bytes });
  expect(sent.status).toBe(200);
  const after = await eventually(status, ({ uploads }) => uploads.items.waiting === before.uploads.items.waiting + 1);
  expect(after.requests.responses).toBeGreaterThan(before.requests.responses);
  expect(after.requests.recent.requests.some(({ route }: { route: string }) => route === "/tx")).toBe(true);
});

test("the ledger sums to nothing: what was given is owed or earned", async () => {
  const { ledger } = await status();
  const [liabilities, revenue, promotions, adjustments] = [
    ...[ledger.liabilities, ledger.revenue, ledger.promotions, ledger.adjustments].map(BigInt),
  ];
  const paid = Object.values<string>(ledger.paid).reduce((sum, winc) => sum + BigInt(winc), 0n);
  expect((liabilities ?? 0n) + (revenue ?? 0n)).toBe(paid + (promotions ?? 0n) + (adjustments ?? 0n));
});

test("the wallet that posts bundles: address and balance", async () => {
  const { uploads } = await eventually(status, (each) => each.uploads.wallet !== null);
  expect(uploads.wallet).toMatchObject({ spentPerDay: "0", daysLeft: null });
  const balance = await fetch(`${stack.gateway.url}/wallet/${uploads.wallet.address}/balance`);
  expect(uploads.wallet.balance).toBe(await balance.text());
});

test("disks, threads, sources, cache and latest errors are there", async () => {
  const { disk, queues, sources, cache, lines } = await status();
  expect(Object.keys(disk).sort()).toEqual(["content", "data", "uploads"]);
  expect(Object.keys(queues)).toContain("index");
  expect(sources.nodes).toHaveLength(1);
  expect(cache.bytesMax).toBeGreaterThan(0);
  expect(lines).toBeArray();
});

test("while the ledger cannot be read, it and the uploads are null and named, and all other values are there", async () => {
  const ledger = new Database(join(stack.folder, "ledger.sqlite"));
  ledger.run("PRAGMA busy_timeout = 5000");
  const renamed = ["accounts", "uploads"];
  for (const table of renamed) ledger.run(`ALTER TABLE ${table} RENAME TO ${table}_away`);
  try {
    const record = await eventually(status, ({ unreadable }) => unreadable.length === 2);
    expect(record).toMatchObject({ ledger: null, uploads: null, unreadable: ["ledger", "uploads"] });
    expect(record.chain.height).toBe(stack.devnet.height());
  } finally {
    for (const table of renamed) ledger.run(`ALTER TABLE ${table}_away RENAME TO ${table}`);
    ledger.close();
  }
  const after = await eventually(status, ({ unreadable }) => unreadable.length === 0);
  expect(after.ledger).not.toBeNull();
  expect(after.uploads).not.toBeNull();
});

test("a folder that cannot be read leaves the disks of the others", async () => {
  const [uploads, away] = [join(stack.folder, "uploads"), join(stack.folder, "away")];
  await rename(uploads, away);
  try {
    const { disk } = await eventually(status, (record) => record.disk.uploads === undefined, 30_000);
    expect(Object.keys(disk).sort()).toEqual(["content", "data"]);
  } finally {
    await rename(away, uploads);
  }
}, 40_000);

test("the history has a row of each metric, of equal length, without values where there are none", async () => {
  const { body } = await ask("GET", "metrics-history");
  const names = body.metrics.map(({ name }: { name: string }) => name);
  expect(names).toEqual(expect.arrayContaining(["height", "lag", "responses", "latency99", "memory", "liabilities"]));
  for (const range of [body.hour, body.day]) {
    expect(Object.keys(range.values).sort()).toEqual([...names].sort());
    expect(new Set(Object.values<unknown[]>(range.values).map((values) => values.length)).size).toBe(1);
  }
});

test.each([
  ["an unknown bundle", { id: "unknown" }, 404],
  ["no id", {}, 400],
  ["an id that is a number", { id: 7 }, 400],
])("a retry of %s is rejected", async (_name, body, expected) => {
  expect((await ask("POST", "retry-bundle", body)).status).toBe(expected);
});

test("without the key both are 401", async () => {
  for (const path of ["status", "metrics-history"])
    expect((await fetch(`${stack.gateway.url}/svc/admin/${path}`)).status).toBe(401);
});
