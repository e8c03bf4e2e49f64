/**
 * Pruning on a development chain: rows of items are deleted, their content is served as before, and blocked content is
 * not.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { readItemHeader } from "../../src/arweave/data-item.ts";
import type { Id } from "../../src/arweave/id.ts";
import { post, rsa } from "../dev/devnet/support.ts";
import { bundleTags, makeItem } from "../indexing/samples.ts";
import { adminKey, askAdmin, openStack, type Stack } from "../support/stack.ts";
import { until } from "../support/until.ts";

const opened: Stack[] = [];
afterEach(async () => {
  for (const stack of opened.splice(0)) await stack.close();
});

async function open(): Promise<Stack> {
  const stack = await openStack({ ADMIN_API_KEY: adminKey });
  opened.push(stack);
  return stack;
}

function idOfItem(item: Uint8Array): Id {
  const read = readItemHeader(item, "strict");
  if (read.kind !== "header") throw new Error("the test's item is an item");
  return read.header.id;
}

describe("pruning", () => {
  const typed = (type: string, data: string | Uint8Array) =>
    makeItem(data, { tags: [{ name: "Content-Type", value: type }] });
  const listed = async (stack: Stack, id: string | undefined) => {
    const query = `{ transactions(ids: ["${id}"]) { edges { node { id } } } }`;
    const response = await fetch(`${stack.gateway.url}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query }),
    });
    return (await response.json()).data.transactions.edges.length === 1;
  };

  test("removes the rows of stable items indexed before the time, and all of them are still served", async () => {
    const stack = await open();
    const inner = typed("text/css", "nested");
    const nested = makeItem(writeBundle([inner]), { tags: [...bundleTags] });
    const items = [typed("image/png", "an image"), makeItem("no type"), nested];
    const ids = [...items, inner].map(idOfItem);
    const bundle = await post(stack.devnet, rsa, { data: writeBundle(items), tags: [...bundleTags] });
    await stack.devnet.mine(1);
    await stack.settled();
    const { reader, url } = stack.gateway;
    const count = () => ids.filter((id) => reader.placeOf(id) !== undefined).length;
    await until(() => count() === 4, "all items are indexed");
    const served = () =>
      Promise.all(
        ids.map(async (id) => {
          const response = await fetch(`${url}/raw/${id}`);
          const names = ["content-type", "content-length", "x-ar-io-digest", "x-ar-io-verified", "etag"];
          const places = [...response.headers].filter(([name]) => /^x-ar-io-.*(root|offset|size)/.test(name));
          const headers = names.map((name) => response.headers.get(name));
          return [response.status, await response.text(), headers, places];
        }),
      );
    const prune = (more = {}) => {
      const indexedAtThreshold = Math.floor(Date.now() / 1_000) + 1_000;
      return askAdmin(stack, "POST", "prune-stable-data-items", { indexedAtThreshold, ...more });
    };

    await prune();
    expect(count()).toBe(4); // not stable yet
    await stack.devnet.mine(18);
    await stack.settled();
    const before = await served();
    await prune({ indexedAtThreshold: 0 });
    await prune({ indexedAtThreshold: Math.floor(Date.now() / 1_000) - 1_000 });
    await prune({ startHeight: 2 });
    await prune({ endHeight: 0 });
    expect(count()).toBe(4);
    expect(await prune({ startHeight: 1, endHeight: 1 })).toEqual({
      status: 200,
      body: { message: "Stable data items pruned successfully" },
    });
    expect(count()).toBe(0);
    for (const id of ids) expect([id, await listed(stack, id)]).toEqual([id, false]);
    expect(await served()).toEqual(before);
    expect(before.map(([status]) => status)).toEqual([200, 200, 200, 200]);
    expect(reader.placeOf(bundle.id)).toBeDefined();
    const frame = await fetch(`${url}/local/social/frame/${ids[0]}`, {
      headers: { accept: "application/json" },
    });
    expect([frame.status, (await frame.json()).id]).toEqual([200, ids[0]]);
    const { body } = await askAdmin(stack, "GET", "debug");
    expect(body.db.counts).toMatchObject({ dataItems: 0, stableTxs: expect.any(Number) });
    expect(body.db.errors).toEqual([]);

    // A nested bundle alone can be queued again, and so can all.
    await askAdmin(stack, "POST", "queue-bundle", { id: ids[2] });
    await until(() => count() === 1, "the nested item is back");
    await askAdmin(stack, "POST", "queue-bundle", { id: bundle.id });
    await until(() => count() === 4, "all items are back");
    for (const id of ids) expect([id, await listed(stack, id)]).toEqual([id, true]);
    expect(await served()).toEqual(before);
  }, 120_000);

  test.each(["id", "hash", "root id"])("what is blocked by %s after pruning leaves by no route", async (by) => {
    const stack = await open();
    const inner = makeItem("hidden from readers");
    const nested = makeItem(writeBundle([inner]), { tags: [...bundleTags] });
    const beside = makeItem("free");
    const [id, nestedId, besideId] = [inner, nested, beside].map(idOfItem);
    const data = writeBundle([nested, beside]);
    const bundle = await post(stack.devnet, rsa, { data, tags: [...bundleTags] });
    await stack.devnet.mine(19);
    await stack.settled();
    const { reader, url } = stack.gateway;
    await until(() => id !== undefined && reader.placeOf(id) !== undefined, "the item is indexed");
    const indexedAtThreshold = Math.floor(Date.now() / 1_000) + 1_000;
    await askAdmin(stack, "POST", "prune-stable-data-items", { indexedAtThreshold });
    expect(id !== undefined && reader.placeOf(id)).toBeUndefined();

    const hash = createHash("sha256").update("hidden from readers").digest("base64url");
    const body = { id: { id }, hash: { hash }, "root id": { id: bundle.id } }[by];
    await askAdmin(stack, "PUT", "block-data", body);
    const status = async (path: string) => (await fetch(`${url}${path}`)).status;
    const blocked = [`/raw/${id}`, `/${id}`, `/raw/${nestedId}`, `/raw/${bundle.id}`];
    for (const path of [...blocked, `/local/social/frame/${id}`, `/svc/proof/${id}`])
      expect([by, path, await status(path)]).toEqual([by, path, 451]);
    expect(await status(`/raw/${besideId}`)).toBe(by === "root id" ? 451 : 200);
    await askAdmin(stack, "PUT", "unblock-data", body);
    for (const path of blocked) expect([by, path, await status(path)]).toEqual([by, path, 200]);
  });
});
