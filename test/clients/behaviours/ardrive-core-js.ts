/**
 * Behaviours on which ardrive-core-js' tests rely: balances, prices, ArFS queries, uploads and their status.
 * @module
 */
import { expect } from "bun:test";
import { alike, bare, posted, type Table, unlike } from "./rows.ts";

const pageOf = (filter: string) => `query {
  transactions(${filter}) {
    pageInfo { hasNextPage }
    edges { cursor node { id owner { address } tags { name value } block { height timestamp } bundledIn { id } } }
  }
}`;

/** The rows. */
export const ardriveCoreJs: Table = {
  suite: "ardrive-core-js",
  rows: [
    ...alike(
      "gateway",
      ["the balance of a wallet", "N3", ({ address }) => `/wallet/${address}/balance`, bare(200, /^[1-9]\d+$/)],
      ["what a minted balance is, at once", "N9", ({ stranger }) => `/wallet/${stranger}/balance`, bare(200, "12345")],
      ["the price of bytes", "N3", "/price/500000", bare(200, /^[1-9]\d*$/)],
      ["the price of nothing", "N3", "/price/0", bare(200, /^\d+$/)],
      ["the height", "N3", "/height", bare(200, /^\d+$/)],
      [
        "entities by owner and tags, with their bundle",
        "Q2",
        ({ program }) =>
          posted("/graphql", {
            query: pageOf(
              `owners: ["${program.line.wallets[0]?.address ?? ""}"], tags: [{ name: "App-Name", values: ["Behaviours"] }], first: 100`,
            ),
          }),
        ({ text }) => ({
          status: 200,
          has: {
            data: {
              transactions: {
                pageInfo: { hasNextPage: false },
                edges: expect.arrayContaining([
                  expect.objectContaining({
                    node: expect.objectContaining({ id: text.id, bundledIn: null }),
                  }),
                ]),
              },
            },
          },
        }),
      ],
      [
        "tags of which all must fit",
        "Q2",
        () =>
          posted("/graphql", {
            query: pageOf(
              'tags: [{ name: "App-Name", values: ["Behaviours", "Other"] }, { name: "Unit", values: ["item"] }]',
            ),
          }),
        ({ item, bundle }) => ({
          status: 200,
          has: { data: { transactions: { edges: [{ node: { id: item, bundledIn: { id: bundle.id } } }] } } },
        }),
      ],
      [
        "entities in a range of blocks, oldest first",
        "Q2",
        ({ height }) =>
          posted("/graphql", {
            query: pageOf(
              `sort: HEIGHT_ASC, block: { min: ${height}, max: ${height} }, tags: [{ name: "Unit", values: ["item"] }]`,
            ),
          }),
        ({ item, height }) => ({
          status: 200,
          has: { data: { transactions: { edges: [{ node: { id: item, block: { height } } }] } } },
        }),
      ],
      [
        "a page after a cursor",
        "Q3",
        ({ text }) => posted("/graphql", { query: pageOf(`ids: ["${text.id}"], first: 1`) }),
        ({ text }) => ({
          status: 200,
          has: {
            data: {
              transactions: { edges: [{ cursor: expect.stringMatching(/^[\w-]+$/), node: { id: text.id } }] },
            },
          },
        }),
      ],
      ["/tx of a data item", "N6", ({ item }) => `/tx/${item}`, { status: 404, text: "Not Found." }],
      [
        "a cursor that is invalid",
        "Q3",
        () => posted("/graphql", { query: pageOf('after: "nonsense"') }),
        {
          status: 200,
          has: { errors: [{ message: expect.stringMatching(/cursor/i), path: ["transactions"] }] },
        },
      ],
      ["the mempool", "N2", "/tx/pending", { status: 200, json: expect.any(Array) }],
      ["content of an item of a bundle", "G1", ({ item }) => `/${item}`, { status: 200, text: "an item" }],
    ),
    ...unlike("gateway", [
      "more rows than a page has",
      "Q4",
      () => posted("/graphql", { query: "{ transactions(first: 100000) { pageInfo { hasNextPage } } }" }),
      { status: 200, has: { data: { transactions: { pageInfo: { hasNextPage: expect.any(Boolean) } } } } },
    ]),
  ],
};
