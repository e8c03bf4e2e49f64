/**
 * Behaviours of arlocal's suite: a chain on a developer's machine.
 * @module
 */
import { expect } from "bun:test";
import { alike, bare, posted, type Table, unlike } from "./rows.ts";

const info = {
  network: expect.stringMatching(/./),
  version: expect.any(Number),
  release: expect.any(Number),
  height: expect.any(Number),
  current: expect.stringMatching(/^[\w-]{64}$/),
  blocks: expect.any(Number),
  peers: expect.any(Number),
  queue_length: expect.any(Number),
  node_state_latency: expect.any(Number),
};
const random = "q".repeat(42);

/** The rows. */
export const arlocal: Table = {
  suite: "arlocal",
  rows: [
    ...alike(
      "node",
      ["the chain's state", "N1", "/info", { status: 200, has: info }],
      ["the chain's state at the root", "N1", "/", { status: 200, has: info }],
      ["its peers", "N1", "/peers", { status: 200, json: expect.any(Array) }],
      ["a balance to be minted", "N9", `/mint/${random}A/1000`, bare(200, "1000")],
      ["it again, which adds", "N9", `/mint/${random}A/500`, bare(200, "1500")],
      ["a balance for an address with any last character", "A1", `/mint/${random}_/7`, bare(200, "7")],
      ["that balance", "A1", `/wallet/${random}_/balance`, bare(200, "7")],
      ["another spelling of it, which is another account", "A2", `/wallet/${random}8/balance`, bare(200, "0")],
      [
        "the balance of an unused wallet",
        "N3",
        ({ stranger }) => `/wallet/${"u".repeat(42)}${stranger.slice(-1)}/balance`,
        bare(200, "0"),
      ],
      ["the last transaction of an unused wallet", "N3", `/wallet/${"u".repeat(43)}/last_tx`, bare(200, "")],
      ["the balance after a transfer", "N3", ({ stranger }) => `/wallet/${stranger}/balance`, bare(200, "12345")],
      ["a price", "N3", "/price/1000", bare(200, /^\d+$/)],
      ["a price with a recipient", "N3", ({ stranger }) => `/price/1000/${stranger}`, bare(200, /^\d+$/)],
      ["an anchor", "N3", "/tx_anchor", bare(200, /^[\w-]{43,64}$/)],
      ["what waits in the mempool", "N2", "/tx/pending", { status: 200, json: expect.any(Array) }],
      [
        "a mined transaction",
        "N1",
        ({ text }) => `/tx/${text.id}`,
        ({ text }) => ({ status: 200, has: { id: text.id, owner: text.owner, data_size: "15" } }),
      ],
      ["one of its fields", "N3", ({ text }) => `/tx/${text.id}/data_size`, bare(200, "15")],
      ["its owner", "N3", ({ text }) => `/tx/${text.id}/owner`, ({ text }) => bare(200, text.owner)],
      [
        "its data as base64url",
        "N3",
        ({ text }) => `/tx/${text.id}/data`,
        bare(200, Buffer.from("Hello, permaweb").toString("base64url")),
      ],
      [
        "where its data ends",
        "N1",
        ({ chunked }) => `/tx/${chunked.id}/offset`,
        ({ chunkedEnd }) => ({ status: 200, has: { size: "600000", offset: String(chunkedEnd) } }),
      ],
      [
        "a block by height, with every field of the chain's blocks",
        "N7",
        ({ height }) => `/block/height/${height}`,
        ({ height, blockHash, text }) => ({
          status: 200,
          has: {
            height,
            indep_hash: blockHash,
            txs: expect.arrayContaining([text.id]),
            tx_root: expect.stringMatching(/^[\w-]{43}$/),
            weave_size: expect.anything(),
          },
        }),
      ],
      [
        "a block by hash",
        "N7",
        ({ blockHash }) => `/block/hash/${blockHash}`,
        ({ height }) => ({ status: 200, has: { height } }),
      ],
      [
        "the newest block",
        "N7",
        "/block/current",
        { status: 200, has: { indep_hash: expect.stringMatching(/^[\w-]{64}$/) } },
      ],
      ["the balance of an invalid address", "A1", "/wallet/short/balance", { status: 400, text: "Invalid address." }],
      ["a block beyond the tip", "N7", "/block/height/99999999", { status: 404, text: "Block not found." }],
      [
        "a chunk",
        "N5",
        ({ chunkedEnd }) => `/chunk/${chunkedEnd}`,
        {
          status: 200,
          has: { chunk: expect.any(String), data_path: expect.any(String), packing: "unpacked" },
        },
      ],
      [
        "content of a transaction by its id",
        "N1",
        ({ text }) => `/${text.id}`,
        { status: 200, text: "Hello, permaweb", headers: { "content-type": /^text\/plain/ } },
      ],
      [
        "content of data that came in chunks",
        "N5",
        ({ chunked }) => `/${chunked.id}`,
        { status: 200, headers: { "content-type": "application/x-behaviour", "content-length": "600000" } },
      ],
      [
        "anything, from a page elsewhere",
        "G8",
        "/info",
        { status: 200, headers: { "access-control-allow-origin": "*" } },
      ],
    ),
    ...unlike(
      "node",
      ["an unknown transaction", "N1", `/tx/${"A".repeat(43)}`, { status: 404, text: "Not Found." }],
      [
        "the status of one that waits",
        "N2",
        ({ waiting }) => `/tx/${waiting.id}/status`,
        { status: 202, text: "Pending" },
      ],
      ["a transaction that waits", "N2", ({ waiting }) => `/tx/${waiting.id}`, { status: 202, text: "Pending" }],
      [
        "the status of a mined one, whose own block counts",
        "N8",
        ({ text }) => `/tx/${text.id}/status`,
        ({ height, blockHash }) => ({
          status: 200,
          has: {
            block_height: height,
            block_indep_hash: blockHash,
            number_of_confirmations: expect.any(Number),
          },
        }),
      ],
      [
        "a transaction that is not signed as it says",
        "N4",
        ({ unposted }) => posted("/tx", { ...JSON.parse(unposted({}).text), reward: "1" }),
        { status: 400, text: "Transaction verification failed." },
      ],
      [
        "a transaction of a wallet without funds",
        "N4",
        ({ unposted }) => ({
          path: "/tx",
          method: "POST",
          body: unposted({ quantity: 10n ** 30n, target: `${"t".repeat(42)}8` }).text,
        }),
        { status: 400, text: /./ },
      ],
      ["a body that is not a valid transaction", "N4", () => posted("/tx", {}), { status: 400, text: /./ }],
      [
        "a chunk that does not prove that it belongs to its root",
        "N5",
        ({ text }) =>
          posted("/chunk", {
            data_root: text.dataRoot,
            data_size: "15",
            data_path: "AAAA",
            offset: "0",
            chunk: "AAAA",
          }),
        { status: 400 },
      ],
      ["a chunk beyond the weave", "N5", "/chunk/999999999999", { status: 404, text: "" }],
      ["a path that is unknown", "N10", "/no/such/path", { status: 400, text: "Request type not found." }],
      ["a wallet to be made", "N9", () => posted("/wallet", { balance: 1 }), { status: 421 }],
      [
        "a transaction to be taken back",
        "N1",
        ({ text }) => ({ path: `/tx/${text.id}`, method: "DELETE" }),
        { status: 400, text: "Request type not found." },
      ],
      [
        "minting nothing",
        "N9",
        `/mint/${random}A/0`,
        { status: 400, text: "invalid mint: expected an address of 43 characters and an amount of winston above 0" },
      ],
      [
        "mining for a page of another site",
        "N9",
        () => ({ path: "/mine", headers: { origin: "https://example.com" } }),
        { status: 403 },
      ],
    ),
  ],
};

/** The rows that change the chain; they come after all others. */
export const arlocalControls: Table = {
  suite: "arlocal",
  rows: [
    ...alike(
      "node",
      ["a block to be mined, with the response the state after it", "N9", "/mine", { status: 200, has: info }],
      ["several blocks to be mined", "N9", "/mine/2", { status: 200, has: info }],
      ["what was mined, at the gateway at once", "N9", "/height", bare(200, /^\d+$/)],
      ["the chain to begin again", "N9", "/reset", bare(200, "reset done")],
      ["a transaction of before", "N9", ({ text }) => `/tx/${text.id}`, { status: 404, text: "Not Found." }],
    ),
    ...alike(
      "gateway",
      ["a transaction of before, at the gateway", "N9", ({ text }) => `/tx/${text.id}`, { status: 404 }],
      [
        "it by GraphQL",
        "N9",
        ({ text }) => posted("/graphql", { query: `{ transaction(id: "${text.id}") { id } }` }),
        { status: 200, json: { data: { transaction: null } } },
      ],
    ),
  ],
};
