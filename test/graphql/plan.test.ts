/**
 * Arguments and the plans they become.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { writeBlockCursor } from "../../src/graphql/cursor.ts";
import {
  type BlocksArguments,
  readBlocksPlan,
  readTransactionsPlan,
  type TransactionsArguments,
} from "../../src/graphql/page-query.ts";
import { noColumns } from "../../src/store/index/index-types.ts";
import { pendingHeight } from "../../src/store/index/place.ts";
import { writeTransactionCursor } from "../support/transaction-cursor.ts";
import { addressOf, blockHashOf, idOf } from "./memory-index.ts";

const columns = { ...noColumns, tags: true, block: true };
const none = { order: "desc", limit: 10, columns };
const [a, b] = [idOf("a"), idOf("b")];
const owner = addressOf("owner");
const place = { height: 5, txIndex: 2, offset: 4_096 };
const many = (count: number) => Array.from({ length: count }, (_, index) => idOf(`${index}`));

describe("the arguments of transactions", () => {
  const rows: [string, TransactionsArguments, object | "nothing"][] = [
    ["no arguments: ten rows, newest first", {}, none],
    [
      "nulls are as if they were not there",
      {
        ids: null,
        owners: null,
        recipients: null,
        tags: null,
        block: null,
        ingested_at: null,
        first: null,
        after: null,
        sort: null,
      },
      none,
    ],
    ["empty lists are no filter", { ids: [], owners: [], recipients: [], tags: [], bundledIn: [] }, none],
    ["an empty cursor is the first page (ar-gql)", { after: "" }, none],
    ["a cursor is a place", { after: writeTransactionCursor(place) }, { ...none, after: place }],
    ["ascending", { sort: "HEIGHT_ASC" }, { ...none, order: "asc" }],
    ["1,000 rows", { first: 1_000 }, { ...none, limit: 1_000 }],
    ["more rows than 1,000 are 1,000", { first: 2 ** 31 - 1 }, { ...none, limit: 1_000 }],
    ["ids without repeats", { ids: [a, b, a] }, { ...none, ids: [a, b] }],
    ["ids that are none match nothing", { ids: ["x", "../etc"] }, "nothing"],
    ["an invalid id among others is dropped", { ids: ["x", b] }, { ...none, ids: [b] }],
    ["an id whose last character is not canonical matches nothing", { ids: [`${a.slice(0, -1)}B`] }, "nothing"],
    ["owners", { owners: [owner] }, { ...none, owners: [owner] }],
    ["owners that are none", { owners: ["0xabc"] }, "nothing"],
    ["recipients", { recipients: [owner] }, { ...none, recipients: [owner] }],
    ["recipients that are none", { recipients: [""] }, "nothing"],
    [
      "tags",
      { tags: [{ name: "n", values: ["v", "w", "v"], op: "EQ" }] },
      { ...none, tags: [{ name: "n", values: ["v", "w"], op: "EQ" }] },
    ],
    [
      "a tag without an operator",
      { tags: [{ name: "n", values: ["v"], op: null }] },
      { ...none, tags: [{ name: "n", values: ["v"], op: "EQ" }] },
    ],
    [
      "a tag that must not be",
      { tags: [{ name: "n", values: ["v"], op: "NEQ" }] },
      { ...none, tags: [{ name: "n", values: ["v"], op: "NEQ" }] },
    ],
    ["bundledIn null: only the chain's own", { bundledIn: null }, { ...none, bundledIn: null }],
    ["bundledIn", { bundledIn: [a] }, { ...none, bundledIn: [a] }],
    ["parent is its former name", { parent: [a] }, { ...none, bundledIn: [a] }],
    ["parent null", { parent: null }, { ...none, bundledIn: null }],
    ["bundledIn counts before parent", { bundledIn: [a], parent: [b] }, { ...none, bundledIn: [a] }],
    ["an invalid bundledIn", { bundledIn: ["x"] }, "nothing"],
    ["heights", { block: { min: 3, max: 9 } }, { ...none, block: { min: 3, max: 9 } }],
    [
      "no upper height leaves pending rows out",
      { block: { min: 3 } },
      { ...none, block: { min: 3, max: pendingHeight - 1 } },
    ],
    ["no lower height", { block: { max: 9 } }, { ...none, block: { min: 0, max: 9 } }],
    ["a block filter without bounds is ignored", { block: {} }, none],
    ["bounds of null are none", { block: { min: null, max: null } }, none],
    ["a negative height", { block: { min: -5, max: 0 } }, { ...none, block: { min: 0, max: 0 } }],
    ["heights that no block has", { block: { min: 2 ** 31 - 1 } }, "nothing"],
    ["heights below zero", { block: { max: -1 } }, "nothing"],
    ["a range that ends before it begins", { block: { min: 9, max: 3 } }, "nothing"],
    ["times", { ingested_at: { min: 1, max: 2 } }, { ...none, ingestedAt: { min: 1, max: 2 } }],
    ["a time without an end", { ingested_at: { min: 1 } }, { ...none, ingestedAt: { min: 1, max: 2 ** 31 - 1 } }],
    ["a time that ends before it begins", { ingested_at: { min: 2, max: 1 } }, "nothing"],
  ];
  test.each(rows)("mean: %s", (_name, given, plan) => {
    expect(readTransactionsPlan(given, columns)).toEqual(plan as never);
  });

  const rejections: [string, TransactionsArguments, string][] = [
    ["no rows", { first: 0 }, '"first" is 0; it must be 1 or more.'],
    ["fewer than no rows", { first: -1 }, '"first" is -1; it must be 1 or more.'],
    ["a word as a cursor", { after: "garbage" }, "Invalid transaction cursor"],
    ["a block's cursor", { after: writeBlockCursor(1) }, "Invalid transaction cursor"],
    [
      "a bad cursor beside a filter that matches nothing",
      { after: "garbage", ids: ["x"] },
      "Invalid transaction cursor",
    ],
    ["1,001 ids", { ids: many(1_001) }, '"ids" has 1001 entries; at most 1000 are allowed.'],
    ["101 owners", { owners: many(101) }, '"owners" has 101 entries; at most 100 are allowed.'],
    ["101 recipients", { recipients: many(101) }, '"recipients" has 101 entries; at most 100 are allowed.'],
    ["101 bundles", { bundledIn: many(101) }, '"bundledIn" has 101 entries; at most 100 are allowed.'],
    ["101 bundles by the former name", { parent: many(101) }, '"parent" has 101 entries; at most 100 are allowed.'],
    [
      "21 tags",
      { tags: many(21).map((name) => ({ name, values: ["v"] })) },
      '"tags" has 21 entries; at most 20 are allowed.',
    ],
    ["101 values", { tags: [{ name: "n", values: many(101) }] }, '"values" has 101 entries; at most 100 are allowed.'],
  ];
  test.each(rejections)("are rejected: %s", (_name, given, message) => {
    expect(() => readTransactionsPlan(given, columns)).toThrow(message);
  });

  test("may reach the limits", () => {
    const plan = readTransactionsPlan(
      {
        ids: many(1_000),
        owners: many(100),
        recipients: many(100),
        bundledIn: many(100),
        tags: many(20).map((name) => ({ name, values: many(100) })),
      },
      columns,
    );
    expect(plan).not.toBe("nothing");
  });
});

describe("the arguments of blocks", () => {
  const [first, second] = [blockHashOf("1"), blockHashOf("2")];
  const rows: [string, BlocksArguments, object | "nothing"][] = [
    ["no arguments", {}, { order: "desc", limit: 10 }],
    ["ids", { ids: [first, second, first] }, { order: "desc", limit: 10, hashes: [first, second] }],
    ["ids that are none", { ids: [a] }, "nothing"],
    ["heights", { height: { min: 1, max: 2 } }, { order: "desc", limit: 10, height: { min: 1, max: 2 } }],
    [
      "a cursor, upwards",
      { after: writeBlockCursor(7), sort: "HEIGHT_ASC", first: 3 },
      { order: "asc", limit: 3, afterHeight: 7 },
    ],
    ["a range that ends before it begins", { height: { min: 2, max: 1 } }, "nothing"],
  ];
  test.each(rows)("mean: %s", (_name, given, plan) => {
    expect(readBlocksPlan(given)).toEqual(plan as never);
  });

  const rejections: [string, BlocksArguments, string][] = [
    ["no rows", { first: 0 }, '"first" is 0; it must be 1 or more.'],
    ["a word as a cursor", { after: "garbage" }, "Invalid block cursor"],
    ["a transaction's cursor", { after: writeTransactionCursor(place) }, "Invalid block cursor"],
  ];
  test.each(rejections)("are rejected: %s", (_name, given, message) => {
    expect(() => readBlocksPlan(given)).toThrow(message);
  });
});
