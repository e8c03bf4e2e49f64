/**
 * The social frame over the whole gateway: records of transactions and of items, their content, and unknown ids.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { type Id, idFromBytes, idOfSignature } from "../../src/arweave/id.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import type { Transaction } from "../../src/arweave/transaction.ts";
import { chunkPosts, ecdsa, post, rsa, statedOf } from "../dev/devnet/support.ts";
import { header, type WireResponse, wire } from "../support/gateway-server.ts";
import { signers } from "../support/signers.ts";
import { openStack, type Stack } from "../support/stack.ts";

const bundleTags = [
  { name: "Bundle-Format", value: "binary" },
  { name: "Bundle-Version", value: "2.0.0" },
];
const anchor = idFromBytes(new Uint8Array(32).fill(8));
const target = idFromBytes(new Uint8Array(32).fill(7));
const tags = [
  { name: "Content-Type", value: "text/html" },
  { name: "Grüße", value: "über alles" },
];
const b64 = (value: string | Uint8Array) => Buffer.from(value).toString("base64url");

type Item = Readonly<{ id: Id; bytes: Uint8Array; signer: Signer }>;
function item(signer: Signer, data: string | Uint8Array, more: object = {}): Item {
  const bytes = createDataItem({ data, tags, ...more }, signer);
  return { id: idOfSignature(bytes.subarray(2, 2 + signer.scheme.signatureSize)), bytes, signer };
}

const pages = signers.map((signer, index) => item(signer, `<p>page ${index}`, { target, anchor }));
const plain = item(signers[0] as Signer, "<p>plain");
const inner = item(signers[1] as Signer, "<p>inner");
const nested = item(signers[1] as Signer, writeBundle([inner.bytes]), { tags: bundleTags });
const site = item(
  signers[0] as Signer,
  JSON.stringify({
    manifest: "arweave/paths",
    version: "0.2.0",
    index: { path: "index.html" },
    paths: { "index.html": { id: plain.id } },
  }),
  { tags: [{ name: "Content-Type", value: "application/x.arweave-manifest+json" }] },
);
const bundle = writeBundle([...pages, plain, nested, site].map(({ bytes }) => bytes));

const key = "frames";

let stack: Stack;
let old: Transaction;
let modern: Transaction;
let root: Transaction;

beforeAll(async () => {
  stack = await openStack({ ARNS_ROOT_HOST: "gateway.test", ADMIN_API_KEY: key });
  const { devnet } = stack;
  const html = [{ name: "Content-Type", value: "text/html" }];
  old = await post(devnet, rsa, { data: new TextEncoder().encode("<p>old"), format: 1, tags: html });
  modern = await post(devnet, ecdsa, { data: new TextEncoder().encode("<p>modern"), tags: html });
  root = await post(devnet, rsa, { stated: statedOf(bundle), tags: bundleTags });
  for (const body of chunkPosts(bundle)) devnet.postChunk(body);
  await devnet.mine(1);
  await stack.settled();
}, 120_000);
afterAll(() => stack.close());

const paths = ["/local/social/frame", "/local/farcaster/frame"] as const;
const ask = (id: string, more = "", method = "GET", path: string = paths[0]) =>
  wire(stack.port, `${method} ${path}/${id} HTTP/1.1${more}`);
const posted = async (id: string, body: string, type = "application/json", more = "") => {
  const lines = more.split("\r\n").filter((line) => line !== "");
  const headers = new Headers(lines.map((line) => line.split(": ") as [string, string]));
  headers.set("Content-Type", type);
  const response = await fetch(`${stack.gateway.url}${paths[0]}/${id}`, { method: "POST", headers, body });
  return { status: response.status, body: await response.text() };
};
const json = (response: WireResponse) => JSON.parse(response.body.toString());

describe("the record", () => {
  test("of a transaction is the node's own, byte for byte", async () => {
    for (const { id } of [old, modern, root]) {
      const record = await wire(stack.port, `GET /tx/${id} HTTP/1.1`);
      for (const path of paths)
        for (const end of ["", "/"]) {
          const response = await ask(`${id}${end}`, "", "GET", path);
          expect([response.status, response.body.toString()]).toEqual([200, record.body.toString()]);
          expect(header(response, "content-type")).toBe("application/json; charset=utf-8");
          expect(header(response, "vary")).toBe("Accept");
        }
    }
    expect(json(await ask(old.id)).data).toBe(b64("<p>old"));
  });

  test.each(pages.map((page) => [page.signer.scheme.name, page] as const))(
    "of an item signed by %s is built from its header",
    async (_name, { id, bytes, signer }) => {
      const { signatureSize, ownerSize } = signer.scheme;
      const response = await ask(id);
      expect([response.status, json(response)]).toEqual([
        200,
        {
          format: 2,
          id,
          last_tx: anchor,
          owner: b64(bytes.subarray(2 + signatureSize, 2 + signatureSize + ownerSize)),
          tags: tags.map(({ name, value }) => ({ name: b64(name), value: b64(value) })),
          target,
          quantity: "0",
          data: "",
          data_tree: [],
          data_root: "",
          reward: "0",
          signature: b64(bytes.subarray(2, 2 + signatureSize)),
        },
      ]);
    },
  );

  test("of an item without target and anchor has none", async () => {
    expect(json(await ask(plain.id))).toMatchObject({ last_tx: "", target: "", id: plain.id });
  });

  test("of an item in a nested bundle is its own", async () => {
    expect(json(await ask(inner.id))).toMatchObject({ id: inner.id, format: 2 });
    expect(json(await ask(nested.id)).tags).toHaveLength(2);
  });
});

test("the frame of a transaction that is in no block yet is Pending, as on a node", async () => {
  const { id } = await post(stack.devnet, rsa, { data: new TextEncoder().encode("<p>pending") });
  const record = await wire(stack.port, `GET /tx/${id} HTTP/1.1`);
  for (const path of paths) {
    const response = await ask(id, "", "GET", path);
    expect([response.status, response.body.toString()]).toEqual([202, "Pending"]);
    for (const name of ["content-type", "cache-control"]) expect(header(response, name)).toBe(header(record, name));
    expect(header(response, "vary")).toBe("Accept");
    expect((await ask(id, "", "HEAD", path)).status).toBe(202);
  }
  expect(await posted(id, "{}")).toEqual({ status: 202, body: "Pending" });
});

describe("what a reader accepts", () => {
  const record = expect.stringContaining('"last_tx"');
  test.each([
    ["", record],
    ["\r\nAccept: */*", record],
    ["\r\nAccept: application/json", record],
    ["\r\nAccept: application/json; charset=utf-8, text/html", record],
    ["\r\nAccept: APPLICATION/JSON", record],
    ["\r\nAccept: application/activity+json", record],
    ["\r\nAccept: text/html", "<p>plain"],
    ["\r\nAccept: text/html,application/xhtml+xml,*/*;q=0.8", "<p>plain"],
    ["\r\nAccept: image/*", "<p>plain"],
    ["\r\nAccept: text/*, */*", "<p>plain"],
  ])("%j", async (accept, body) => {
    const response = await ask(plain.id, accept);
    expect([response.status, response.body.toString()]).toEqual([200, body]);
    const viaPost = await posted(plain.id, "{}", "application/json", accept);
    expect([viaPost.status, viaPost.body.toString()]).toEqual([200, body]);
    const head = await ask(plain.id, accept, "HEAD");
    expect([head.status, header(head, "content-length"), header(head, "content-type")]).toEqual([
      200,
      String(response.body.length),
      header(response, "content-type"),
    ]);
    expect(header(response, "vary")).toContain("Accept");
  });
});

describe("the content", () => {
  const html = "\r\nAccept: text/html";
  test("of transactions, items and manifests is there at once, with a sandbox around it", async () => {
    for (const [id, body] of [
      [old.id, "<p>old"],
      [modern.id, "<p>modern"],
      [inner.id, "<p>inner"],
      [site.id, "<p>plain"],
    ] as const)
      for (const more of ["", "\r\nSec-Fetch-Dest: document", "\r\nSec-Fetch-Dest: iframe"]) {
        const response = await ask(id, html + more);
        expect([response.status, response.body.toString()]).toEqual([200, body]);
        expect(header(response, "content-security-policy")).toStartWith("sandbox allow-scripts");
        expect(header(response, "content-security-policy")).not.toContain("allow-same-origin");
        expect(header(response, "x-content-type-options")).toBe("nosniff");
      }
  });

  test("comes in parts to GET, and whole to POST", async () => {
    expect((await ask(plain.id, `${html}\r\nRange: bytes=3-4`)).status).toBe(206);
    expect((await ask(plain.id, `${html}\r\nIf-None-Match: *`)).status).toBe(304);
    const more = `${html}\r\nRange: bytes=3-4\r\nIf-None-Match: *`;
    expect((await posted(plain.id, "{}", "application/json", more)).body.toString()).toBe("<p>plain");
  });

  test("cannot be a service worker", async () => {
    expect((await ask(plain.id, `${html}\r\nService-Worker: script`)).status).toBe(403);
  });

  test("does not exist on the hosts of content", async () => {
    const response = await ask(plain.id, "\r\nHost: name.gateway.test");
    expect(response.status).toBe(302);
  });
});

describe("a frame of nothing", () => {
  const unknown = idFromBytes(new Uint8Array(32).fill(9));
  test.each([
    ["short", 400, '"Invalid ID"'],
    [`${"A".repeat(42)}!`, 400, '"Invalid ID"'],
    ["A".repeat(44), 400, '"Invalid ID"'],
    [`${"A".repeat(42)}B`, 404, '"Not Found"'], // no 32 bytes are written so
    [unknown, 404, '"Not Found"'],
  ])("%s responds with %d", async (id, status, body) => {
    for (const more of ["", "\r\nAccept: text/html"]) {
      const response = await ask(id, more);
      expect([response.status, response.body.toString()]).toEqual([status, body]);
      expect((await ask(id, more, "HEAD")).status).toBe(status);
      expect((await posted(id, "{}", "application/json", more)).status).toBe(status);
    }
  });

  test.each([
    ["no JSON", "{", "application/json", 400, '"Malformed JSON body"'],
    ["no JSON, said in another case", "{", "Application/JSON; charset=utf-8", 400, '"Malformed JSON body"'],
    ["too much", " ".repeat(64 * 1_024 + 1), "application/json", 413, '"Payload too large"'],
    ["too much of anything", "a".repeat(64 * 1_024 + 1), "text/plain", 413, '"Payload too large"'],
  ])("a body with %s", async (_name, body, type, status, message) => {
    const response = await posted(plain.id, body, type);
    expect([response.status, response.body.toString()]).toEqual([status, message]);
  });

  test("a body that says nothing, or something else, is taken", async () => {
    for (const [body, type] of [
      ["", "application/json"],
      ["{}", "application/json"],
      ["a=b", "application/x-www-form-urlencoded"],
      ["x".repeat(64 * 1_024), "text/plain"],
    ] as const)
      expect((await posted(plain.id, body, type)).status).toBe(200);
  });

  test("other methods get the allowed ones", async () => {
    const response = await ask(plain.id, "", "DELETE");
    expect([response.status, header(response, "allow").split(", ").sort()]).toEqual([
      405,
      ["GET", "HEAD", "OPTIONS", "POST"],
    ]);
  });
});

describe("what is rejected", () => {
  const administer = async (what: string, id: Id) => {
    const url = `${stack.gateway.url}/svc/admin/${what}`;
    const headers = { Authorization: `Bearer ${key}` };
    const response = await fetch(url, { method: "PUT", headers, body: JSON.stringify({ id }) });
    expect(response.status).toBe(200);
  };
  const html = "\r\nAccept: text/html";
  test.each([
    ["an item", () => plain.id, () => plain.id],
    ["a nested item", () => inner.id, () => inner.id],
    ["an item of a blocked transaction", () => root.id, () => plain.id],
    ["a bundle with a blocked item", () => plain.id, () => root.id],
    ["a transaction of format 1", () => old.id, () => old.id],
    ["a transaction of format 2", () => modern.id, () => modern.id],
    ["a page of a manifest", () => plain.id, () => site.id],
  ] as const)("%s has neither record nor content", async (name, blocked, asked) => {
    await administer("block-data", blocked());
    const isRecordFree = name === "a page of a manifest";
    for (const more of isRecordFree ? [html] : ["", html]) {
      for (const method of ["GET", "HEAD"]) expect((await ask(asked(), more, method)).status).toBe(451);
      expect((await posted(asked(), "{}", "application/json", more)).status).toBe(451);
    }
    await administer("unblock-data", blocked());
    for (const more of ["", html]) expect((await ask(asked(), more)).status).toBe(200);
  });
});
