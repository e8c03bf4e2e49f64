/**
 * Behaviours that arweave-js' integration tests check of the server at which they are pointed.
 * @module
 */
import { expect } from "bun:test";
import { alike, bare, posted, type Table, unlike } from "./rows.ts";

/** The rows. */
export const arweaveJs: Table = {
  suite: "arweave-js",
  rows: [
    ...alike(
      "gateway",
      [
        "network.getInfo",
        "N1",
        "/info",
        { status: 200, has: { height: expect.any(Number), current: expect.stringMatching(/^[\w-]{64}$/) } },
      ],
      ["network.getPeers", "N1", "/peers", { status: 200, json: expect.any(Array) }],
      [
        "blocks.get",
        "N7",
        ({ blockHash }) => `/block/hash/${blockHash}`,
        ({ height }) => ({ status: 200, has: { height } }),
      ],
      [
        "blocks.getByHeight",
        "N7",
        ({ height }) => `/block/height/${height}`,
        ({ blockHash }) => ({ status: 200, has: { indep_hash: blockHash } }),
      ],
      ["blocks.getCurrent", "N7", "/current_block", { status: 200, has: { height: expect.any(Number) } }],
      [
        "wallets.getBalance, every digit of it",
        "N3",
        ({ stranger }) => `/wallet/${stranger}/balance`,
        bare(200, "12345"),
      ],
      [
        "wallets.getBalance of an address whose last character is not canonical",
        "A1",
        `/wallet/${"x".repeat(42)}B/balance`,
        bare(200, "0"),
      ],
      ["wallets.getLastTransactionID of an unused wallet", "N3", `/wallet/${"v".repeat(43)}/last_tx`, bare(200, "")],
      ["transactions.getPrice", "N3", "/price/1024", bare(200, /^[1-9]\d*$/)],
      [
        "transactions.getPrice for a recipient",
        "N3",
        ({ stranger }) => `/price/1024/${stranger}`,
        bare(200, /^[1-9]\d*$/),
      ],
      ["transactions.getTransactionAnchor", "N3", "/tx_anchor", bare(200, /^[\w-]{43,64}$/)],
      [
        "transactions.get",
        "N1",
        ({ chunked }) => `/tx/${chunked.id}`,
        ({ chunked }) => ({
          status: 200,
          has: {
            format: 2,
            id: chunked.id,
            data: "",
            data_size: "600000",
            data_root: chunked.dataRoot,
            signature: chunked.signature,
          },
        }),
      ],
      [
        "transactions.getStatus",
        "N8",
        ({ chunked }) => `/tx/${chunked.id}/status`,
        ({ height }) => ({
          status: 200,
          has: { block_height: height, number_of_confirmations: expect.any(Number) },
        }),
      ],
      [
        "the status of a transaction that waits",
        "N2",
        ({ waiting }) => `/tx/${waiting.id}/status`,
        { status: 202, text: "Pending" },
      ],
      [
        "transactions.getData, the offset",
        "N1",
        ({ chunked }) => `/tx/${chunked.id}/offset`,
        ({ chunkedEnd }) => ({ status: 200, json: { size: "600000", offset: String(chunkedEnd) } }),
      ],
      [
        "transactions.getData, its first chunk",
        "N5",
        ({ chunkedEnd }) => `/chunk/${chunkedEnd - 599_999n}`,
        ({ chunkedData }) => ({
          status: 200,
          has: { chunk: Buffer.from(chunkedData.subarray(0, 262_144)).toString("base64url") },
        }),
      ],
      [
        "transactions.getData, the fallback by id",
        "G1",
        ({ chunked }) => `/${chunked.id}`,
        { status: 200, headers: { "content-length": "600000" } },
      ],
      [
        "one field of a transaction",
        "N3",
        ({ chunked }) => `/tx/${chunked.id}/signature`,
        ({ chunked }) => bare(200, chunked.signature),
      ],
      ["an unknown transaction", "N1", `/tx/${"B".repeat(42)}A`, { status: 404, text: "Not Found." }],
      ["an id that is invalid", "N1", "/tx/short", { status: 400, text: "Invalid hash." }],
      [
        "POST /graphql through api.post",
        "Q1",
        ({ text }) => posted("/graphql", { query: `{ transaction(id: "${text.id}") { id } }` }),
        ({ text }) => ({ status: 200, json: { data: { transaction: { id: text.id } } } }),
      ],
      [
        "a transaction that was posted before",
        "N4",
        ({ text }) => ({ path: "/tx", method: "POST", body: text.text }),
        { status: 208 },
      ],
    ),
    ...unlike("gateway", [
      "arql, the search from before GraphQL",
      "Q6",
      () => posted("/arql", { op: "equals", expr1: "App-Name", expr2: "x" }),
      { status: 404, json: "Not Found" },
    ]),
  ],
};
