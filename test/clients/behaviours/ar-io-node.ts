/**
 * Behaviours of ar-io-node's end-to-end suite: data, ranges, manifests, chunks, administration and index queries.
 * @module
 */
import { expect } from "bun:test";
import { type Fixture, fallbackText, pageText } from "./fixture.ts";
import { type Asked, alike, message, posted, type Table, unlike } from "./rows.ts";

const admin =
  (path: string, method = "GET", body?: unknown) =>
  ({ adminKey }: Fixture): Asked => ({
    path: `/ar-io/admin${path}`,
    method,
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
const ranged = (path: string, range: string, more: Record<string, string> = {}): Asked => ({
  path,
  headers: { range, ...more },
});
const base32Label = /^[a-z2-7]{52}$/;

/** The rows. */
export const arIoNode: Table = {
  suite: "ar-io-node end-to-end",
  rows: [
    ...alike(
      "gateway",
      [
        "the gateway's information",
        "G14",
        "/ar-io/info",
        {
          status: 200,
          has: {
            ans104UnbundleFilter: { always: true },
            ans104IndexFilter: { always: true },
            supportedManifestVersions: ["0.1.0", "0.2.0"],
          },
        },
      ],
      ["it at the root", "G14", "/", { status: 200, has: { release: expect.any(String) } }],
      [
        "health",
        "G15",
        "/ar-io/healthcheck",
        {
          status: 200,
          has: {
            status: expect.stringMatching(/^(ok|unhealthy)$/),
            reasons: expect.any(Array),
            uptime: expect.any(Number),
            date: expect.stringMatching(/^\d{4}-/),
          },
        },
      ],
      [
        "metrics",
        "G15",
        "/ar-io/__gateway_metrics",
        { status: 200, text: /# TYPE /, headers: { "content-type": /^text\/plain/ } },
      ],
      [
        "the API's description",
        "G15",
        "/openapi.json",
        { status: 200, has: { openapi: expect.stringMatching(/^3\./) } },
      ],
      [
        "raw data of a transaction",
        "G1",
        ({ text }) => `/raw/${text.id}`,
        { status: 200, text: "Hello, permaweb", headers: { "accept-ranges": "bytes" } },
      ],
      ["raw data of an item", "G1", ({ item }) => `/raw/${item}`, { status: 200, text: "an item" }],
      [
        "raw data of a nested item",
        "G1",
        ({ inner }) => `/raw/${inner}`,
        { status: 200, text: "an item in a nested bundle" },
      ],
      [
        "raw data of a manifest, unresolved",
        "G4",
        ({ manifest }) => `/raw/${manifest}`,
        { status: 200, has: { manifest: "arweave/paths" } },
      ],
      [
        "HEAD as GET",
        "G7",
        ({ text }) => ({ path: `/raw/${text.id}`, method: "HEAD" }),
        { status: 200, text: "", headers: { "content-length": "15" } },
      ],
      [
        "a range",
        "G2",
        ({ text }) => ranged(`/raw/${text.id}`, "bytes=0-4"),
        { status: 206, text: "Hello", headers: { "content-range": "bytes 0-4/15", "content-length": "5" } },
      ],
      [
        "a range without an end",
        "G2",
        ({ text }) => ranged(`/raw/${text.id}`, "bytes=7-"),
        { status: 206, text: "permaweb" },
      ],
      ["the last bytes", "G2", ({ text }) => ranged(`/raw/${text.id}`, "bytes=-8"), { status: 206, text: "permaweb" }],
      [
        "two ranges",
        "G2",
        ({ text }) => ranged(`/raw/${text.id}`, "bytes=0-0,14-14"),
        { status: 206, headers: { "content-type": /^multipart\/byteranges; boundary=/ } },
      ],
      ["a range of an item", "G2", ({ item }) => ranged(`/raw/${item}`, "bytes=3-6"), { status: 206, text: "item" }],
      [
        "a range of a manifest's path",
        "G2",
        ({ manifest }) => ranged(`/${manifest}/a/text`, "bytes=0-1"),
        { status: 206, text: "an" },
      ],
      [
        "a range behind the end",
        "G2",
        ({ text }) => ranged(`/raw/${text.id}`, "bytes=15-"),
        { status: 416, headers: { "content-range": "bytes */15" } },
      ],
      [
        "a HEAD with a range",
        "G2",
        ({ text }) => ({ ...ranged(`/raw/${text.id}`, "bytes=0-4"), method: "HEAD" }),
        { status: 206, headers: { "content-length": "5" } },
      ],
      [
        "a manifest without its slash",
        "G4",
        ({ manifest }) => `/${manifest}`,
        ({ manifest }) => ({ status: 301, headers: { location: new RegExp(`/${manifest}/$`) } }),
      ],
      [
        "a manifest's index",
        "G4",
        ({ manifest }) => `/${manifest}/`,
        ({ page }) => ({ status: 200, text: pageText, headers: { "x-ar-io-data-id": page } }),
      ],
      ["a manifest's path", "G4", ({ manifest }) => `/${manifest}/a/text`, { status: 200, text: "an item" }],
      [
        "a path that the manifest does not have",
        "G4",
        ({ manifest }) => `/${manifest}/no/such/path`,
        { status: 200, text: fallbackText },
      ],
      [
        "another method",
        "G6",
        { path: "/ar-io/info", method: "DELETE" },
        { ...message(405, "Method Not Allowed"), headers: { allow: /GET/ } },
      ],
      [
        "a request's id",
        "G9",
        { path: "/ar-io/info", headers: { "x-request-id": "a-request.1" } },
        { status: 200, headers: { "x-request-id": "a-request.1" } },
      ],
      [
        "a chunk",
        "G12",
        ({ chunkedEnd }) => `/chunk/${chunkedEnd}`,
        {
          status: 200,
          headers: { etag: /^"[\w-]{43}"$/ },
          has: { packing: "unpacked", tx_path: expect.any(String), data_path: expect.any(String) },
        },
      ],
      ["an offset that is invalid", "G12", "/chunk/abc", message(400, "Invalid offset")],
      [
        "administration without a key",
        "G16",
        "/ar-io/admin/debug",
        { ...message(401, "Unauthorized"), headers: { "cache-control": "no-store" } },
      ],
      [
        "administration with a wrong key",
        "G16",
        { path: "/ar-io/admin/queue-tx", method: "POST", headers: { authorization: "Bearer wrong" } },
        message(401, "Unauthorized"),
      ],
      ["the debug record", "G16", admin("/debug"), { status: 200, has: { db: expect.any(Object) } }],
      ["a transaction to be queued, unnamed", "G16", admin("/queue-tx", "POST", {}), message(400, "Must provide 'id'")],
      [
        "bypassFilter that is not a boolean",
        "G16",
        (f) => admin("/queue-bundle", "POST", { id: f.bundle.id, bypassFilter: "no" })(f),
        message(400, "'bypassFilter' must be a boolean"),
      ],
      [
        "headers of items that are no list",
        "G16",
        admin("/queue-data-item", "POST", {}),
        message(400, "Must provide array of data item headers"),
      ],
      [
        "the status of a bundle",
        "G16",
        (f) => admin(`/bundle-status/${f.bundle.id}`)(f),
        ({ bundle }) => ({ status: 200, has: { id: bundle.id, dataItemCount: 6, matchedDataItemCount: 6 } }),
      ],
      [
        "the status of an invalid bundle",
        "G16",
        admin(`/bundle-status/${"D".repeat(42)}A`),
        message(404, "Bundle not found"),
      ],
      [
        "a bundle's id that is invalid",
        "G16",
        admin("/bundle-status/short"),
        message(400, "Must provide a valid bundle id"),
      ],
      [
        "block-data without a name for it",
        "G16",
        admin("/block-data", "PUT", {}),
        message(400, "Must provide 'id' or 'hash'"),
      ],
      [
        "pruning without a threshold",
        "G16",
        admin("/prune-stable-data-items", "POST", {}),
        message(400, "Invalid indexedAtThreshold - must be a positive integer"),
      ],
      [
        "the state of an export",
        "G16",
        admin("/export-parquet/status"),
        { status: 200, has: { status: "not_started" } },
      ],
      [
        "blocked content",
        "G5",
        ({ blocked }) => `/raw/${blocked}`,
        message(451, "Blocked by this gateway's content policy"),
      ],
      [
        "items of a bundle by GraphQL",
        "Q2",
        ({ bundle }) =>
          posted("/graphql", {
            query: `{ transactions(bundledIn: ["${bundle.id}"], first: 50) { edges { node { id } } } }`,
          }),
        ({ item, inner }) => ({
          status: 200,
          has: { data: { transactions: { edges: expect.arrayContaining([{ node: { id: item } }]) } } },
          text: new RegExp(`^(?!.*${inner})`),
        }),
      ],
      [
        "transactions without items",
        "Q2",
        ({ height }) =>
          posted("/graphql", {
            query: `{ transactions(bundledIn: null, block: { min: ${height}, max: ${height} }) { edges { node { id bundledIn { id } } } } }`,
          }),
        ({ text, bundle }) => ({
          status: 200,
          has: {
            data: {
              transactions: {
                edges: expect.arrayContaining([
                  { node: { id: text.id, bundledIn: null } },
                  { node: { id: bundle.id, bundledIn: null } },
                ]),
              },
            },
          },
        }),
      ],
      [
        "blocks by GraphQL",
        "Q2",
        ({ blockHash }) =>
          posted("/graphql", { query: `{ blocks(ids: ["${blockHash}"]) { edges { node { id height } } } }` }),
        ({ blockHash, height }) => ({
          status: 200,
          json: { data: { blocks: { edges: [{ node: { id: blockHash, height } }] } } },
        }),
      ],
      [
        "a pending transaction by GraphQL",
        "Q5",
        ({ waiting }) => posted("/graphql", { query: `{ transaction(id: "${waiting.id}") { id block { height } } }` }),
        ({ waiting }) => ({ status: 200, json: { data: { transaction: { id: waiting.id, block: null } } } }),
      ],
      [
        "a transaction to be queued",
        "G16",
        (f) => admin("/queue-tx", "POST", { id: f.text.id })(f),
        { status: 200, json: { message: "TX queued" } },
      ],
      [
        "a bundle to be queued",
        "G16",
        (f) => admin("/queue-bundle", "POST", { id: f.bundle.id })(f),
        { status: 200, json: { message: expect.stringMatching(/^Bundle (queued|skipped)$/) } },
      ],
    ),
    ...unlike(
      "gateway",
      [
        "a range that cannot be read",
        "G2",
        ({ text }) => ranged(`/raw/${text.id}`, "bytes=b-a"),
        { status: 200, text: "Hello, permaweb" },
      ],
      [
        "a range of another unit",
        "G2",
        ({ text }) => ranged(`/raw/${text.id}`, "items=0-1"),
        { status: 200, text: "Hello, permaweb" },
      ],
      [
        "a suffix longer than the content",
        "G2",
        ({ text }) => ranged(`/raw/${text.id}`, "bytes=-999"),
        { status: 206, text: "Hello, permaweb" },
      ],
      [
        "more ranges than sixteen",
        "G2",
        ({ text }) => ranged(`/raw/${text.id}`, `bytes=${Array.from({ length: 17 }, () => "0-0").join(",")}`),
        { status: 416 },
      ],
      [
        "an entity tag that names content, not bytes",
        "G3",
        ({ text }) => `/raw/${text.id}`,
        ({ text }) => ({ status: 200, headers: { etag: `"${text.id}"` } }),
      ],
      [
        "If-None-Match in a list",
        "G3",
        ({ text }) => ({ path: `/raw/${text.id}`, headers: { "if-none-match": `"x", W/"${text.id}"` } }),
        { status: 304, text: "" },
      ],
      [
        "If-None-Match of anything",
        "G3",
        ({ text }) => ({ path: `/raw/${text.id}`, headers: { "if-none-match": "*" } }),
        { status: 304, text: "" },
      ],
      [
        "If-Range of another entity",
        "G3",
        ({ text }) => ranged(`/raw/${text.id}`, "bytes=0-4", { "if-range": '"other"' }),
        { status: 200, text: "Hello, permaweb" },
      ],
      [
        "absent content, not to be stored",
        "G5",
        `/raw/${"E".repeat(42)}A`,
        { ...message(404, "Not Found"), headers: { "cache-control": "no-store" } },
      ],
      ["an id whose last character is not canonical", "A4", `/raw/${"E".repeat(42)}B`, message(404, "Not Found")],
      ["an id that is too short", "G5", "/raw/short", message(400, "Invalid ID")],
      [
        "blocked content through a manifest's bundle",
        "G5",
        ({ bundle }) => `/raw/${bundle.id}`,
        message(451, "Blocked by this gateway's content policy"),
      ],
      [
        "blocking, with its response when it is in force",
        "G16",
        admin("/block-name", "PUT", { name: "blocked-name" }),
        { status: 200, text: "" },
      ],
      [
        "the frame of a transaction",
        "G11",
        ({ text }) => `/local/farcaster/frame/${text.id}`,
        ({ text }) => ({ status: 200, has: { id: text.id, signature: text.signature } }),
      ],
      [
        "an export's body with a fault",
        "G16",
        admin("/export-parquet", "POST", { outputDir: "x", startHeight: 5, endHeight: 1 }),
        { status: 400, text: "" },
      ],
      [
        "a page for a browser, on an origin of its own",
        "G10",
        ({ page }) => ({ path: `/${page}`, headers: { accept: "text/html", "sec-fetch-dest": "document" } }),
        ({ page }) => ({
          status: 302,
          headers: {
            location: new RegExp(`^http://${base32Label.source.slice(1, -1)}\\.localhost:\\d+/${page}`),
          },
        }),
      ],
      [
        "a service worker's script on a shared origin",
        "G10",
        ({ item }) => ({ path: `/${item}`, headers: { "service-worker": "script" } }),
        { status: 403 },
      ],
      [
        "raw HTML, stored from scripts",
        "G10",
        ({ page }) => `/raw/${page}`,
        {
          status: 200,
          headers: { "content-security-policy": /sandbox/, "x-content-type-options": "nosniff" },
        },
      ],
      ["an unknown route", "G6", "/ar-io/no-such-route", message(404, "Not Found")],
    ),
  ],
};
