/**
 * Specification 4A, content and what the gateway says of itself: through the real server, on the real stores, with
 * transactions, bundles, nested bundles and a manifest that were mined and unbundled.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { idFromBytes } from "../../src/arweave/id.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import type { Transaction } from "../../src/arweave/transaction.ts";
import { stableDepth } from "../../src/store/index/index-types.ts";
import { chunkPosts, post, rsa, statedOf, testBytes } from "../dev/devnet/support.ts";
import { header, type WireResponse, wire } from "../support/gateway-server.ts";
import { signers } from "../support/signers.ts";
import { openStack, type Stack } from "../support/stack.ts";

const signer = signers[1] as Signer;
const video = testBytes(1_500_000, 3);
const bundleTags = [
  { name: "Bundle-Format", value: "binary" },
  { name: "Bundle-Version", value: "2.0.0" },
];

/** An item that was made for this test. */
type Item = Readonly<{ id: string; bytes: Uint8Array; body: Uint8Array; type: string }>;

function item(body: string | Uint8Array, type: string, tags: typeof bundleTags = []): Item {
  const data = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const bytes = createDataItem({ data, tags: [{ name: "Content-Type", value: type }, ...tags] }, signer);
  // The signature follows its type, two bytes.
  const id = idFromBytes(createHash("sha256").update(bytes.subarray(2, 66)).digest());
  return { id, bytes, body: data, type };
}

const text = item("hello from a bundle", "text/plain; charset=utf-8");
const page = item("<h1>page</h1>", "text/html");
const film = item(video, "video/mp4");
const bad = item("x", "text/html\r\nSet-Cookie: a=b");
const empty = item("", "text/plain");
const inner = item("deep inside", "text/plain");
const nested = item(writeBundle([page.bytes, inner.bytes]), "application/octet-stream", bundleTags);
const paths = { "index.html": { id: page.id }, "film.mp4": { id: film.id } };
const site = item(
  JSON.stringify({ manifest: "arweave/paths", version: "0.2.0", index: { path: "index.html" }, paths }),
  "application/x.arweave-manifest+json",
);
const items = [text, film, nested, bad, empty, site];
const bundle = writeBundle(items.map(({ bytes }) => bytes));

let stack: Stack;
let root: Transaction;
let plain: Transaction;

beforeAll(async () => {
  stack = await openStack({ ARNS_ROOT_HOST: "gateway.test" });
  const { devnet } = stack;
  plain = await post(devnet, rsa, {
    data: testBytes(5_000),
    tags: [{ name: "Content-Type", value: "image/png" }],
  });
  root = await post(devnet, rsa, { stated: statedOf(bundle), tags: bundleTags });
  for (const body of chunkPosts(bundle)) devnet.postChunk(body);
  await devnet.mine(1);
  await stack.settled();
}, 120_000);
afterAll(() => stack.close());

const get = (path: string, more = "", method = "GET") => wire(stack.port, `${method} ${path} HTTP/1.1${more}`);

describe("an item of a bundle", () => {
  test.each([
    ["text", text],
    ["a film", film],
    ["a nested bundle", nested],
    ["a page in a nested bundle", page],
    ["an item in a nested bundle", inner],
    ["nothing at all", empty],
  ])("%s is served with its bytes, digest and place", async (_name, { id, body, bytes }) => {
    const response = await get(`/raw/${id}`);
    const digest = createHash("sha256").update(body).digest();
    expect(response.status).toBe(200);
    expect(response.body.equals(Buffer.from(body))).toBe(true);
    expect(header(response, "x-ar-io-digest")).toBe(digest.toString("base64url"));
    expect(header(response, "content-digest")).toBe(`sha-256=:${digest.toString("base64")}:`);
    expect(header(response, "etag")).toBe(`"${id}"`);
    expect([header(response, "x-ar-io-verified"), header(response, "x-ar-io-trusted")]).toEqual(["true", "true"]);
    expect(header(response, "x-ar-io-root-transaction-id")).toBe(root.id);

    // What the headers say can be read back from the transaction.
    const start = Number(header(response, "x-ar-io-root-data-item-offset"));
    const dataStart = Number(header(response, "x-ar-io-root-data-offset"));
    const size = Number(header(response, "x-ar-io-data-item-size"));
    expect(size).toBe(bytes.length);
    expect(Buffer.from(bundle.subarray(start, start + size)).equals(Buffer.from(bytes))).toBe(true);
    expect(Buffer.from(bundle.subarray(dataStart, start + size)).equals(Buffer.from(body))).toBe(true);
    const inParent = Number(header(response, "x-ar-io-data-item-offset"));
    expect(Number(header(response, "x-ar-io-data-item-root-parent-offset"))).toBe(start - inParent);
    const parent = [page, inner].some((child) => child.id === id) ? nested.body : bundle;
    expect(Buffer.from(parent.subarray(inParent, inParent + size)).equals(Buffer.from(bytes))).toBe(true);
    expect(Number(header(response, "x-ar-io-data-item-data-offset")) - inParent).toBe(dataStart - start);

    const head = await get(`/raw/${id}`, "", "HEAD");
    const said = (found: WireResponse) =>
      new Map(found.headers.filter(([name]) => !["date", "x-request-id"].includes(name)));
    expect(said(head)).toEqual(said(await get(`/raw/${id}`)));
  });

  test("is stable only when it is deep enough, and then for ever", async () => {
    const before = await get(`/${text.id}`);
    expect([header(before, "x-ar-io-stable"), header(before, "cache-control")]).toEqual([
      "false",
      "public, max-age=7200",
    ]);
    // A fork may put another chunk at an offset.
    expect(header(await get("/chunk/1"), "cache-control")).toBe("public, max-age=60");
    await stack.devnet.mine(stableDepth);
    await stack.settled();
    expect(header(await get("/chunk/1"), "cache-control")).toBe("public, max-age=2592000, immutable");
    // Asked for at an address that is not in memory: memory may say for five seconds what was true.
    const after = await get(`/${inner.id}`);
    expect([header(after, "x-ar-io-stable"), header(after, "cache-control")]).toEqual([
      "true",
      "public, max-age=2592000, immutable",
    ]);
  });

  test("gives ranges of its own bytes", async () => {
    const response = await get(`/${film.id}`, "\r\nRange: bytes=1000000-1000009,-5");
    expect(response.status).toBe(206);
    expect(response.body.includes(Buffer.from(video.subarray(1_000_000, 1_000_010)))).toBe(true);
    expect(response.body.includes(Buffer.from(video.subarray(-5)))).toBe(true);
    expect(Number(header(response, "content-length"))).toBe(response.body.length);
  });

  test("with an invalid type is bytes", async () => {
    const response = await get(`/${bad.id}`);
    expect([response.status, header(response, "content-type"), header(response, "set-cookie")]).toEqual([
      200,
      "application/octet-stream",
      "",
    ]);
  });

  test("is not a transaction", async () => {
    const response = await get(`/tx/${text.id}`);
    expect([response.status, response.body.toString()]).toEqual([404, "Not Found."]);
  });
});

describe("a transaction", () => {
  test("is served with its bytes, and with a digest once it was read", async () => {
    const response = await get(`/${plain.id}`);
    expect(response.body.equals(Buffer.from(testBytes(5_000)))).toBe(true);
    expect([header(response, "content-type"), header(response, "x-ar-io-verified")]).toEqual(["image/png", "true"]);
    expect(header(response, "x-ar-io-root-transaction-id")).toBe("");
    const digest = createHash("sha256").update(testBytes(5_000)).digest("base64url");
    expect(header(await get(`/${plain.id}`, "", "HEAD"), "x-ar-io-digest")).toBe(digest);
  });

  test("that is a bundle is served as it is", async () => {
    const response = await get(`/raw/${root.id}`);
    expect(response.body.equals(Buffer.from(bundle))).toBe(true);
    expect(header(response, "content-length")).toBe(String(bundle.length));
  });
});

describe("a manifest", () => {
  test.each([
    ["", 301, ""],
    ["/", 200, "<h1>page</h1>"],
    ["/index.html", 200, "<h1>page</h1>"],
    ["/nowhere", 404, '"Not Found"'],
  ])("/{id}%s responds with %d", async (path, status, body) => {
    const response = await get(`/${site.id}${path}`);
    expect([response.status, response.body.toString()]).toEqual([status, body]);
  });

  test("leads to large files and their ranges", async () => {
    const response = await get(`/${site.id}/film.mp4`, "\r\nRange: bytes=5-9");
    expect([response.status, header(response, "content-range")]).toEqual([206, `bytes 5-9/${video.length}`]);
    expect(response.body.equals(Buffer.from(video.subarray(5, 10)))).toBe(true);
    const whole = await get(`/${site.id}/film.mp4`);
    expect(whole.body.equals(Buffer.from(video))).toBe(true);
  });
});

describe("what is rejected", () => {
  test("is blocked with its parents and children", async () => {
    const { blockList } = stack.gateway.sources;
    blockList.block("id", film.id, {});
    try {
      for (const path of [`/${film.id}`, `/raw/${film.id}`, `/${site.id}/film.mp4`, `/raw/${root.id}`])
        for (const more of ["", "\r\nRange: bytes=600000-600001", "\r\nIf-None-Match: *"]) {
          const response = await get(path, more);
          // A bundle says no more of itself than that it is there; it is its bytes that are rejected.
          if (path.includes(root.id) && more.includes("None-Match")) continue;
          expect([path, more, response.status]).toEqual([path, more, 451]);
        }
      expect((await get(`/${text.id}`)).status).toBe(200);
    } finally {
      blockList.unblock("id", film.id);
    }
  });
});

describe("what the gateway says of itself", () => {
  test.each(["/", "/svc/info", "/ar-io/info"])("GET %s", async (path) => {
    expect(JSON.parse((await get(path)).body.toString())).toEqual({
      wallet: "",
      processId: "",
      ans104UnbundleFilter: { always: true },
      ans104IndexFilter: { always: true },
      supportedManifestVersions: ["0.1.0", "0.2.0"],
      release: expect.any(String),
      services: expect.any(Object),
    });
  });

  test.each(["/svc/healthcheck", "/ar-io/healthcheck", "/health", "/ready"])("GET %s", async (path) => {
    const response = await get(path);
    expect([response.status, header(response, "cache-control")]).toEqual([200, "no-store"]);
    const record = JSON.parse(response.body.toString());
    expect(record).toEqual({
      status: "ok",
      chain: { height: 19, tip: 19, lag: 0 },
      uptime: expect.any(Number),
      date: expect.any(String),
      reasons: expect.any(Array),
    });
    expect(new Date(record.date).toISOString()).toBe(record.date);
  });

  test.each(["/svc/peers", "/ar-io/peers"])("GET %s", async (path) => {
    const record = JSON.parse((await get(path)).body.toString());
    const key = `127.0.0.1:${stack.node.port}`;
    expect(record).toEqual({
      gateways: expect.any(Object),
      arweaveNodes: {
        [key]: {
          url: `http://${key}`,
          blocks: expect.any(Number),
          height: expect.any(Number),
          lastSeen: expect.any(Number),
        },
      },
    });
  });

  test.each(["/svc/__gateway_metrics", "/ar-io/__gateway_metrics", "/metrics"])("GET %s", async (path) => {
    if (path === "/svc/__gateway_metrics") await get("/chunk/99999999999999999");
    const response = await get(path);
    expect(header(response, "content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    for (const name of [
      "http_request_duration_seconds_bucket",
      "http_memory_hits_total",
      "process_cpu_seconds_total",
      `last_height_imported ${stack.devnet.height()}`,
      "block_importer_running 1",
      "blocks_imported_total",
      "data_items_indexed_total 8",
      "data_items_unbundled_total 8",
      "forks_total 0",
      "last_fork_depth 0",
      "client_disconnects_total 0",
      'contiguous_data_cache_hit_total{request_type="full"}',
      'contiguous_data_cache_hit_total{request_type="range"}',
      "files_cleaned_total 0",
      "get_data_stream_successes_total",
      "get_data_stream_errors_total 0",
      'get_chunk_total{status="not_found"} 1',
      'circuit_breaker_state{breaker="http://127.0.0.1:',
      'queue_length{queue_name="bundles"} 0',
      "cache_size_bytes",
    ])
      expect(response.body.toString()).toContain(name);
    // Every line is a comment or a metric, and every value a number.
    for (const line of response.body.toString().trim().split("\n"))
      expect(line).toMatch(/^(# (HELP|TYPE) .*|[a-z0-9_]+(\{.*\})? -?[0-9.e+-]+|)$/);
  });

  test.each(["/", "/svc/info", "/svc/healthcheck", "/svc/peers", "/metrics", "/health", "/ready", "/graphql"])(
    "HEAD %s has the headers of GET",
    async (path) => {
      const [got, head] = [await get(path, "\r\nAccept: text/html"), await get(path, "\r\nAccept: text/html", "HEAD")];
      // A page's nonce is new each time.
      const said = (found: WireResponse) =>
        found.headers
          .filter(([name]) => !["date", "x-request-id", "content-length"].includes(name))
          .map(([name, value]) => `${name}: ${value.replace(/nonce-[^']+/, "nonce")}`)
          .toSorted();
      expect(head.status).toBe(got.status);
      expect(said(head)).toEqual(said(got));
      expect(header(head, "content-length")).not.toBe("");
    },
  );
});

describe("a page on its own host", () => {
  test("is forwarded there, with the response from there", async () => {
    const opened = "\r\nHost: gateway.test\r\nSec-Fetch-Dest: document";
    const response = await get(`/${page.id}`, opened);
    const location = new URL(header(response, "location"));
    expect([response.status, location.pathname]).toEqual([302, `/${page.id}`]);
    const there = await get(location.pathname, `\r\nHost: ${location.host}\r\nSec-Fetch-Dest: document`);
    expect([there.status, there.body.toString()]).toEqual([200, "<h1>page</h1>"]);
  });
});
