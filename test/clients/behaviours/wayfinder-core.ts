/**
 * Behaviours that wayfinder-core's retrieval and verification ask of a gateway.
 * @module
 */
import { expect } from "bun:test";
import { createHash } from "node:crypto";
import { alike, type Table, unlike } from "./rows.ts";

const digest = (data: string | Uint8Array) => createHash("sha256").update(data).digest("base64url");
const head = (path: string) => ({ path, method: "HEAD" });

/** The rows. */
export const wayfinderCore: Table = {
  suite: "wayfinder-core",
  rows: [
    ...alike(
      "gateway",
      [
        "HEAD of an item: digest, id, and what was checked",
        "G1",
        ({ item }) => head(`/raw/${item}`),
        ({ item }) => ({
          status: 200,
          text: "",
          headers: {
            "x-ar-io-digest": digest("an item"),
            "x-ar-io-data-id": item,
            "x-ar-io-verified": "true",
            "content-length": "7",
          },
        }),
      ],
      [
        "HEAD of an item: where it is in its root",
        "G1",
        ({ item }) => head(`/raw/${item}`),
        ({ bundle }) => ({
          status: 200,
          headers: {
            "x-ar-io-root-transaction-id": bundle.id,
            "x-ar-io-root-data-offset": /^\d+$/,
            "x-ar-io-root-data-item-offset": /^\d+$/,
            "x-ar-io-data-item-offset": /^\d+$/,
            "x-ar-io-data-item-size": /^\d+$/,
            "x-ar-io-data-item-data-offset": /^\d+$/,
          },
        }),
      ],
      [
        "HEAD of a nested item: the root, not its parent",
        "G1",
        ({ inner }) => head(`/raw/${inner}`),
        ({ bundle }) => ({ status: 200, headers: { "x-ar-io-root-transaction-id": bundle.id } }),
      ],
      [
        "HEAD of a transaction: no root",
        "G1",
        ({ text }) => head(`/raw/${text.id}`),
        ({ text }) => ({
          status: 200,
          headers: { "x-ar-io-root-transaction-id": null, "x-ar-io-data-id": text.id },
        }),
      ],
      [
        "a page of a manifest: the id of what was served",
        "G4",
        ({ manifest }) => head(`/${manifest}/a/text`),
        ({ item }) => ({
          status: 200,
          headers: { "x-ar-io-data-id": item, "x-ar-io-digest": digest("an item") },
        }),
      ],
      [
        "the data root of a transaction",
        "N3",
        ({ chunked }) => `/tx/${chunked.id}/data_root`,
        ({ chunked }) => ({ status: 200, text: chunked.dataRoot }),
      ],
      [
        "the record of a transaction, to check its signature",
        "N1",
        ({ text }) => `/tx/${text.id}`,
        ({ text }) => ({ status: 200, has: { signature: text.signature, owner: text.owner } }),
      ],
      [
        "a chunk's bytes by offset",
        "G12",
        ({ chunkedEnd }) => `/chunk/${chunkedEnd - 599_999n}/data`,
        ({ chunked }) => ({
          status: 200,
          headers: {
            "content-type": "application/octet-stream",
            "content-length": "262144",
            "x-arweave-chunk-data-root": chunked.dataRoot,
            "x-arweave-chunk-tx-data-size": "600000",
          },
        }),
      ],
      [
        "known gateways",
        "G14",
        "/ar-io/peers",
        { status: 200, has: { gateways: expect.any(Object), arweaveNodes: expect.any(Object) } },
      ],
      [
        "the gateway's information",
        "G14",
        "/ar-io/info",
        {
          status: 200,
          has: { release: expect.any(String), wallet: expect.any(String), processId: expect.any(String) },
        },
      ],
      ["a ping", "G7", () => head("/ar-io/info"), { status: 200, text: "" }],
      [
        "content for a page elsewhere, with headers that it may read",
        "G8",
        ({ item }) => ({ path: `/raw/${item}`, headers: { origin: "https://example.com" } }),
        {
          status: 200,
          headers: { "access-control-allow-origin": "*", "access-control-expose-headers": /^\*/ },
        },
      ],
      [
        "a preflight",
        "G8",
        ({ item }) => ({
          path: `/raw/${item}`,
          method: "OPTIONS",
          headers: {
            origin: "https://example.com",
            "access-control-request-method": "GET",
            "access-control-request-headers": "range",
          },
        }),
        {
          status: 204,
          headers: { "access-control-allow-origin": "*", "access-control-allow-headers": /range/i },
        },
      ],
      ["absent content", "G5", `/${"C".repeat(42)}A`, { status: 404 }],
    ),
    ...unlike("gateway", [
      "a name that is unknown, as JSON",
      "G13",
      "/ar-io/resolver/no-such-name",
      { status: 404, json: "Not Found" },
    ]),
  ],
};
