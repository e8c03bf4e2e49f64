/**
 * Queries made to hurt: each gets a clean answer, and the same thread goes on answering.
 * Source: reference/trust.md G1.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeTransactionCursor } from "../../src/gateway/query/cursor.ts";
import { openPool } from "../../src/threads/pool.ts";
import { idOf } from "../gateway/query/memory-index.ts";
import { createChoose, known, openMadeUpChain } from "./graphql-chain.ts";
import { openGraphqlServer } from "./graphql-server.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-attacks-"));
const indexPath = join(folder, "index.sqlite");
const chain = openMadeUpChain(indexPath, createChoose(11));
for (let count = 0; count < 30; count++) chain.addBlock(40);
while (chain.unbundle());
const pool = openPool({
  entry: "query",
  threads: 1,
  queueMax: 64,
  timeoutMs: 30_000,
  idleMs: Number.POSITIVE_INFINITY,
});
const server = openGraphqlServer({ pool, indexPath, contentFolder: folder, timeoutMs: 20_000 });
afterAll(async () => {
  await server.close(0);
  await pool.close();
  chain.close();
  rmSync(folder, { recursive: true, force: true });
});

const post = (body: string) =>
  fetch(`${server.url}/graphql`, { method: "POST", body, headers: { "Content-Type": "application/json" } });
const ask = (query: string, variables: unknown = {}) => post(JSON.stringify({ query, variables }));
const repeat = (count: number, write: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => write(index)).join(" ");
const everyTag = known.tags.map(
  ({ name, value }) => `{name: ${JSON.stringify(name)}, values: [${JSON.stringify(value)}], op: NEQ}`,
);
const page = "pageInfo { hasNextPage } edges { cursor node { id tags { name value } } }";

/** What must come: a message of this form, or data without errors. */
type Expected = RegExp | "data";

const attacks: [string, () => Promise<Response>, number, Expected][] = [
  [
    "fields nested 50 deep",
    () => ask(`${"{ a ".repeat(50)}${"}".repeat(50)}`),
    200,
    /depth is 50; at most 12/,
  ],
  [
    "10,000 aliases",
    () => ask(`{ ${repeat(2_000, (index) => `a${index}: __typename`)} }`),
    200,
    /more that 2000 tokens/,
  ],
  [
    "600 aliases",
    () => ask(`{ transactions { ${repeat(600, (index) => `a${index}: count`)} } }`),
    200,
    /count of aliases is 600/,
  ],
  ["a megabyte of query", () => ask(" ".repeat(2 ** 20)), 413, /./],
  ["64 KiB of commas", () => ask(`{ __typename ${",".repeat(60_000)} }`), 200, "data"],
  ["64 KiB of comment", () => ask(`{ __typename } #${"x".repeat(60_000)}`), 200, "data"],
  [
    "a block string that never ends",
    () => ask(`{ transaction(id: """${"\\n".repeat(20_000)}`),
    200,
    /Unterminated string/,
  ],
  ["a fragment that uses itself", () => ask("{ ...f } fragment f on Query { ...f }"), 200, /within itself/],
  [
    "fragments in a ring",
    () =>
      ask(
        `{ ...f0 } ${repeat(20, (index) => `fragment f${index} on Query { blocks { count } ...f${(index + 1) % 20} }`)}`,
      ),
    200,
    /within itself/,
  ],
  [
    "fragments that double thirty times",
    () =>
      ask(
        `{ ...f0 } ${repeat(30, (index) => `fragment f${index} on Query { ...f${index + 1} ...f${index + 1} }`)} fragment f30 on Query { __typename }`,
      ),
    200,
    /count of fields is 1073741824/,
  ],
  [
    "a hundred fragments in a row",
    () =>
      ask(
        `{ transactions { ...f0 } } ${repeat(100, (index) => `fragment f${index} on TransactionConnection { edges { node { id } } ${index < 99 ? `...f${index + 1}` : ""} }`)}`,
      ),
    200,
    "data",
  ],
  [
    "one field 900 times",
    () => ask(`{ transactions { edges { node { ${"id ".repeat(900)} } } } }`),
    200,
    /repeats fields too often/,
  ],
  [
    "objects whose merging grows with the square",
    () =>
      ask(
        `{ ${repeat(10, () => `transactions { ${repeat(4, () => `edges { ${repeat(4, () => "node { owner { address } owner { address } }")} }`)} }`)} }`,
      ),
    200,
    "data",
  ],
  [
    "900 fields that are not there",
    () => ask(`{ transactions { ${repeat(900, (index) => `idd${index}`)} } }`),
    200,
    /Too many validation errors/,
  ],
  [
    "a batch of 1,000",
    () => post(JSON.stringify(Array.from({ length: 1_000 }, () => ({ query: "{ __typename }" })))),
    400,
    /Batching/,
  ],
  ["a billion rows", () => ask(`{ transactions(first: 1000000000) { ${page} } }`), 200, "data"],
  [
    "more rows than a number holds",
    () => ask("{ transactions(first: 10000000000) { count } }"),
    200,
    /32-bit/,
  ],
  [
    "thirty pages of a thousand rows",
    () => ask(`{ ${repeat(30, (index) => `a${index}: transactions(first: 1000) { ${page} }`)} }`),
    200,
    /more than 3000 rows/,
  ],
  [
    "1,300 ids",
    () =>
      ask("query($ids: [ID!]) { transactions(ids: $ids) { count } }", {
        ids: Array.from({ length: 1_300 }, (_, index) => idOf(`${index}`)),
      }),
    200,
    /"ids" has 1300 entries/,
  ],
  [
    "a thousand ids",
    () =>
      ask("query($ids: [ID!]) { transactions(ids: $ids, first: 1000) { count edges { cursor } } }", {
        ids: Array.from({ length: 1_000 }, (_, index) => idOf(`${index}`)),
      }),
    200,
    "data",
  ],
  [
    "a tag that all rows have and an owner that none has",
    () =>
      ask(
        `{ transactions(tags: [{name: "App-Name", values: ["plain"]}], owners: ["${idOf("nobody")}"]) { ${page} } }`,
      ),
    200,
    "data",
  ],
  [
    "every tag refused, 2,000 values",
    () =>
      ask("query($tags: [TagFilter!]) { transactions(tags: $tags, first: 1000) { count } }", {
        tags: Array.from({ length: 20 }, () => ({
          name: "Content-Type",
          values: Array.from({ length: 100 }, (_, index) => `${index}`),
          op: "NEQ",
        })),
      }),
    200,
    "data",
  ],
  [
    "every tag of the chain refused",
    () => ask(`{ transactions(tags: [${everyTag.join(", ")}], first: 1000) { count ${page} } }`),
    200,
    "data",
  ],
  [
    "2,000 values that must be",
    () =>
      ask("query($tags: [TagFilter!]) { transactions(tags: $tags, first: 1000) { count } }", {
        tags: Array.from({ length: 20 }, () => ({
          name: "Content-Type",
          values: [
            ...Array.from({ length: 97 }, (_, index) => `${index}`),
            "text/html",
            "image/png",
            "application/json",
          ],
        })),
      }),
    200,
    "data",
  ],
  [
    "a cursor at the very end",
    () =>
      ask(
        `{ transactions(after: "${writeTransactionCursor({ height: 0, txIndex: 0, offset: -1 })}", tags: [{name: "App-Name", values: ["plain"], op: NEQ}]) { ${page} } }`,
      ),
    200,
    "data",
  ],
  [
    "a cursor that is none",
    () => ask('{ transactions(after: "garbage") { count } }'),
    200,
    /Invalid transaction cursor/,
  ],
  [
    "introspection without end",
    () => ask(`{ __schema { types { ${"fields { type { ".repeat(10)} name ${"} } ".repeat(10)} } } }`),
    200,
    /introspection depth/,
  ],
  [
    "a type wrapped 500 times",
    () => ask(`{ __type(name: "Query") { ${"ofType { ".repeat(500)} name ${"} ".repeat(500)} } }`),
    200,
    "data",
  ],
  [
    "a list nested 900 deep",
    () => ask(`{ transactions(ids: ${"[".repeat(900)}${"]".repeat(900)}) { count } }`),
    200,
    /./,
  ],
  [
    "variables nested 20,000 deep",
    () =>
      post(
        `{"query":"query($ids: [ID!]) { transactions(ids: $ids) { count } }","variables":{"ids":${"[".repeat(20_000)}${"]".repeat(20_000)}}}`,
      ),
    200,
    /got invalid value/,
  ],
  [
    "450 variables that nobody uses",
    () => ask(`query(${repeat(450, (index) => `$v${index}: Int`)}) { __typename }`),
    200,
    /never used/,
  ],
  [
    "600 directives",
    () => ask(`{ __typename ${"@include(if: true) ".repeat(250)} }`),
    200,
    /can only be used once/,
  ],
  [
    "names of JavaScript's own",
    () =>
      post(
        '{"query":"query toString($__proto__: ID!) { transaction(id: $__proto__) { id } }","operationName":"toString","variables":{"__proto__":"x","constructor":{"prototype":{}}}}',
      ),
    200,
    "data",
  ],
  [
    "an operation called __proto__",
    () => post('{"query":"query __proto__ { __typename }","operationName":"__proto__"}'),
    200,
    "data",
  ],
  ["control characters", () => ask('{ transaction(id: "\\u0000\\uD800") { id } }'), 200, /./],
  ["a subscription", () => ask("subscription { transactions { count } }"), 200, /not configured/],
];

describe("a query made to hurt", () => {
  test.each(attacks)(
    "is answered cleanly: %s",
    async (_name, attack, status, expected) => {
      const response = await attack();
      const body = (await response.json()) as { data?: object; errors?: { message: string }[] };
      const messages = (body.errors ?? []).map(({ message }) => message);
      expect(messages).not.toContain("Internal Server Error");
      if (expected === "data")
        expect({ messages, hasData: body.data !== undefined }).toEqual({ messages: [], hasData: true });
      else expect(messages.join("\n")).toMatch(expected);
      expect(response.status).toBe(status);
      expect(await (await ask("{ blocks(first: 1) { edges { node { height } } } }")).text()).toBe(
        '{"data":{"blocks":{"edges":[{"node":{"height":29}}]}}}',
      );
      expect(pool.load().threads).toBe(1);
    },
    30_000,
  );
});

describe("a query without end", () => {
  test("is ended between steps when its time is up, with an error that says so", async () => {
    const late = openGraphqlServer({ pool, indexPath, contentFolder: folder, timeoutMs: -1 });
    const body = JSON.stringify({ query: `{ transactions(first: 1000) { ${page} } }` });
    const headers = { "Content-Type": "application/json" };
    const response = await fetch(`${late.url}/graphql`, { method: "POST", body, headers });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      data: null,
      errors: [
        {
          message: "The query took too long.",
          path: ["transactions"],
          extensions: { code: "QUERY_TIMEOUT" },
        },
      ],
    });
    await late.close(0);
  });
});
