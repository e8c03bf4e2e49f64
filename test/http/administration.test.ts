/**
 * What administration brings about, on the whole gateway behind a development chain: queued transactions, bundles and
 * announced items, pruned rows, and where the routes are and are not.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { adminKeyOf, storedAdminKey } from "../../src/app/keys.ts";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { readItemHeader } from "../../src/arweave/data-item.ts";
import type { Id } from "../../src/arweave/id.ts";
import { readConfig } from "../../src/config/config.ts";
import { sandboxLabel } from "../../src/http/hosts.ts";
import { post, rsa, testBytes } from "../dev/devnet/support.ts";
import { announcementOf, bundleTags, makeItem } from "../indexing/samples.ts";
import { type WireResponse, wire } from "../support/gateway-server.ts";
import { adminKey, askAdmin, openStack, type Stack } from "../support/stack.ts";
import { until } from "../support/until.ts";

const opened: Stack[] = [];
afterEach(async () => {
  for (const stack of opened.splice(0)) await stack.close();
});

async function open(environment: Readonly<Record<string, string>> = {}): Promise<Stack> {
  const stack = await openStack({ ADMIN_API_KEY: adminKey, ...environment });
  opened.push(stack);
  return stack;
}

const never = '{"never":true}';
const makeBundle = (...texts: readonly string[]) => {
  const items = texts.map((text) => makeItem(text));
  return { data: writeBundle(items), items, ids: items.map(idOfItem) };
};

function headerOf(item: Uint8Array) {
  const read = readItemHeader(item, "strict");
  if (read.kind !== "header") throw new Error("the test's item is an item");
  return read.header;
}

function idOfItem(item: Uint8Array): Id {
  return headerOf(item).id;
}

describe("a transaction that is queued", () => {
  test("from before the first block that is followed is found, indexed, and unbundled as the filters say", async () => {
    const stack = await open({ START_HEIGHT: "30" });
    const { devnet, gateway } = stack;
    const { data, ids } = makeBundle("first", "second");
    const plain = await post(devnet, rsa, { data: testBytes(900) });
    const bundle = await post(devnet, rsa, { data, tags: [...bundleTags] });
    await devnet.mine(45);
    await stack.settled();
    expect(gateway.reader.placeOf(plain.id)).toBeUndefined();

    for (const { id } of [plain, bundle])
      expect(await askAdmin(stack, "POST", "queue-tx", { id })).toEqual({
        status: 200,
        body: { message: "TX queued" },
      });
    await until(() => gateway.reader.placeOf(plain.id)?.height === 1, "both are indexed");
    await until(() => ids.every((id) => gateway.reader.locate(id)?.verified === true), "the items are indexed");
    const response = await fetch(`${gateway.url}/raw/${ids[1]}`);
    expect([response.status, await response.text()]).toEqual([200, "second"]);
    expect(response.headers.get("x-ar-io-verified")).toBe("true");
    const query = `{ transaction(id: "${plain.id}") { id block { height } } }`;
    const found = await fetch(`${gateway.url}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query }),
    });
    expect(await found.json()).toEqual({ data: { transaction: { id: plain.id, block: { height: 1 } } } });
    const { body } = await askAdmin(stack, "GET", "debug");
    expect(body.db).toMatchObject({ errors: [], warnings: [], counts: { stagedTxs: 0 } });
    expect(body.db.heights).toMatchObject({ minStable: -1, minNew: 30, maxNew: 45, minNewDataItem: -1 });
  }, 120_000);

  test("is not forgotten by a restart, and is found once it is mined", async () => {
    const stack = await open({
      ANS104_UNBUNDLE_FILTER: never,
      ANS104_INDEX_FILTER: never,
      ENABLE_MEMPOOL_WATCHER: "false",
    });
    const { data, ids } = makeBundle("waits");
    const bundle = await post(stack.devnet, rsa, { data, tags: [...bundleTags] });
    await askAdmin(stack, "POST", "queue-bundle", { id: bundle.id });
    const queued = {
      status: 200,
      body: expect.objectContaining({ id: bundle.id, firstQueuedAt: expect.any(Number) }),
    };
    const before = await askAdmin(stack, "GET", `bundle-status/${bundle.id}`);
    expect(before).toEqual(queued);
    expect(Object.keys(before.body)).toHaveLength(22);
    await stack.restart();
    expect(await askAdmin(stack, "GET", `bundle-status/${bundle.id}`)).toEqual(before);
    await stack.devnet.mine(1);
    await until(() => stack.gateway.reader.locate(ids[0] as Id) !== undefined, "its item is indexed");
    expect((await askAdmin(stack, "GET", "debug")).body.db.counts).toMatchObject({ stagedTxs: 0, dataItems: 1 });
  }, 120_000);
});

describe("a bundle that is queued", () => {
  test("passes the filters with what is bundled in it, unless they are to be heeded", async () => {
    const stack = await open({ ANS104_UNBUNDLE_FILTER: never, ANS104_INDEX_FILTER: never });
    const inner = makeBundle("deep");
    const nested = makeItem(inner.data, { tags: [...bundleTags] });
    const shallow = makeItem("shallow");
    const bundle = await post(stack.devnet, rsa, {
      data: writeBundle([shallow, nested]),
      tags: [...bundleTags],
    });
    await stack.devnet.mine(1);
    await stack.settled();
    const status = async () => (await askAdmin(stack, "GET", `bundle-status/${bundle.id}`)).body;
    expect(await status()).toMatchObject({ lastSkippedAt: expect.any(Number), lastFullyIndexedAt: null });

    expect((await askAdmin(stack, "POST", "queue-bundle", { id: bundle.id, bypassFilter: false })).body).toEqual({
      message: "Bundle skipped",
    });
    await stack.settled();
    expect(await status()).toMatchObject({ dataItemCount: null, lastFullyIndexedAt: null });

    expect((await askAdmin(stack, "POST", "queue-bundle", { id: bundle.id })).body).toEqual({
      message: "Bundle queued",
    });
    const { reader } = stack.gateway;
    await until(() => inner.ids.every((id) => reader.locate(id) !== undefined), "the deepest is indexed");
    await stack.settled();
    expect(await status()).toMatchObject({
      dataItemCount: 2,
      matchedDataItemCount: 2,
      rootTransactionId: bundle.id,
    });
    const within = (await askAdmin(stack, "GET", `bundle-status/${idOfItem(nested)}`)).body;
    expect(within).toMatchObject({ dataItemCount: 1, rootTransactionId: bundle.id });

    // A bundle within a bundle can be queued by its own id; it is done as well.
    expect((await askAdmin(stack, "POST", "queue-bundle", { id: idOfItem(nested) })).body).toEqual({
      message: "Bundle skipped",
    });
    await stack.settled();
    const again = (await askAdmin(stack, "GET", `bundle-status/${idOfItem(nested)}`)).body;
    expect(again.importAttemptCount).toBe(within.importAttemptCount);
    expect(again).toMatchObject({ dataItemCount: 1, matchedDataItemCount: 1, duplicatedDataItemCount: 0 });
    expect(reader.counts()).toMatchObject({ items: 3, nestedItems: 1, duplicates: 0 });
  }, 120_000);
});

describe("an announced item", () => {
  test("is there at once without a block, and gives way to the verified one", async () => {
    const stack = await open();
    const { data, items, ids } = makeBundle("announced", "not announced");
    const [item = new Uint8Array(0)] = items;
    const [id] = ids;
    if (id === undefined) throw new Error("the bundle has items");
    const { reader, url } = stack.gateway;
    expect((await fetch(`${url}/${id}`)).status).toBe(404); // and remembered as unknown
    expect(await askAdmin(stack, "POST", "queue-data-item", [announcementOf(item)])).toEqual({
      status: 200,
      body: { message: "Data item(s) queued" },
    });
    expect(reader.locate(id)).toMatchObject({ kind: "item", pending: true, verified: false, size: 9 });
    const query = `{ transactions(tags: [{ name: "Announced", values: ["yes"] }]) { edges { node { id block { height } owner { address } } } } }`;
    const found = await fetch(`${url}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query }),
    });
    const { ownerAddress } = headerOf(item);
    expect((await found.json()).data.transactions.edges).toEqual([
      { node: { id, block: null, owner: { address: ownerAddress } } },
    ]);

    await post(stack.devnet, rsa, { data, tags: [...bundleTags] });
    await stack.devnet.mine(1);
    await stack.settled();
    await until(() => reader.locate(id)?.verified === true, "the verified row is stored");
    expect(reader.locate(id)).toMatchObject({ pending: false });
    const response = await fetch(`${url}/${id}`);
    expect([response.status, await response.text()]).toEqual([200, "announced"]);

    // Announced again, it changes nothing.
    const row = reader.row(id);
    await askAdmin(stack, "POST", "queue-data-item", [{ ...announcementOf(item), data_size: 1 }]);
    expect(reader.row(id)).toEqual(row);
    expect(reader.locate(id)).toMatchObject({ pending: false, size: 9 });
  }, 120_000);
});

describe("where administration is", () => {
  const header = (response: WireResponse, name: string) => response.headers.find(([found]) => found === name)?.[1];
  const asOwner = `\r\nAuthorization: Bearer ${adminKey}`;

  test("never on hosts of content: there its paths are content's", async () => {
    const stack = await open({ ARNS_ROOT_HOST: "gateway.test" });
    const { id } = await post(stack.devnet, rsa, { data: testBytes(10) });
    await stack.devnet.mine(1);
    await stack.settled();
    for (const host of [`${sandboxLabel(id)}.gateway.test`, "some-name.gateway.test"])
      for (const [method, path] of [
        ["GET", "/svc/admin/debug"],
        ["GET", "/ar-io/admin/blocks"],
        ["PUT", "/svc/admin/block-data"],
        ["POST", "/svc/admin/queue-tx"],
        ["OPTIONS", "/svc/admin/block-data"],
      ] as const) {
        const response = await wire(stack.port, `${method} ${path} HTTP/1.1${asOwner}\r\nHost: ${host}:${stack.port}`);
        expect([host, method, path, response.status === 200 || response.status === 401]).toEqual([
          host,
          method,
          path,
          false,
        ]);
        expect(response.body.toString()).not.toContain('"db"');
      }
    const own = await wire(stack.port, `GET /svc/admin/debug HTTP/1.1${asOwner}\r\nHost: gateway.test:${stack.port}`);
    expect(own.status).toBe(200);
    expect(header(own, "access-control-allow-origin")).toBeUndefined();
  }, 120_000);

  test("on a listener of its own, when it has one, and nowhere else", async () => {
    const stack = await open({ ADMIN_LISTEN: "127.0.0.1:0" });
    const { adminUrl, url } = stack.gateway;
    if (adminUrl === undefined) throw new Error("administration has a listener");
    const headers = { authorization: `Bearer ${adminKey}` };
    for (const path of ["debug", "blocks", "export-parquet/status"]) {
      expect((await fetch(`${url}/svc/admin/${path}`, { headers })).status).toBe(404);
      const response = await fetch(`${adminUrl}/svc/admin/${path}`, { headers });
      expect(response.status).toBe(200);
      expect(response.headers.get("cache-control")).toBe("no-store");
      expect(response.headers.get("access-control-allow-origin")).toBeNull();
      expect((await fetch(`${adminUrl}/svc/admin/${path}`)).status).toBe(401);
    }
    const hash = createHash("sha256").update("x").digest("base64url");
    expect((await askAdmin(stack, "PUT", "block-data", { hash })).status).toBe(200);
    expect((await askAdmin(stack, "GET", "blocks")).body.blocks).toHaveLength(1);
    for (const path of ["/", "/info", "/svc/info", "/graphql", `/${hash}`])
      expect([path, (await fetch(`${adminUrl}${path}`)).status]).toEqual([path, 404]);
  }, 120_000);

  test("behind the key that was set, or a random one that is stored in the folder and shown", () => {
    const configOf = (environment: Record<string, string>) => readConfig(environment, "dev").config;
    const folders = [1, 2].map(() => mkdtempSync(join(tmpdir(), "cairn-admin-key-")));
    const [folder = "", other = ""] = folders;
    try {
      expect(adminKeyOf(configOf({ ADMIN_API_KEY: "mine" }), folder)).toEqual({ key: "mine", shown: {} });
      expect(storedAdminKey(folder)).toBeUndefined();
      const { key: made, shown } = adminKeyOf(configOf({}), folder);
      expect(made).toMatch(/^[A-Za-z0-9_-]{43}$/);
      expect(shown).toEqual({ adminKey: made });
      expect(adminKeyOf(configOf({ ADMIN_API_KEY: "" }), folder).key).toBe(made);
      expect(storedAdminKey(folder)).toBe(made);
      expect(adminKeyOf(configOf({}), other).key).not.toBe(made);
    } finally {
      for (const each of folders) rmSync(each, { recursive: true });
    }
  });

  test.each([
    ["127.0.0.1:3010", true],
    ["localhost:0", true],
    ["[::1]:3010", true],
    ["3010", false],
    ["127.0.0.1", false],
    [":3010", false],
    ["a:b", false],
    ["host:65536", false],
    ["::1:3010", false],
  ])("ADMIN_LISTEN=%p is an address to listen on: %p", (text, isOne) => {
    const { complaints } = readConfig({ ADMIN_LISTEN: text }, "dev");
    expect(complaints.length === 0).toBe(isOne);
  });
});
