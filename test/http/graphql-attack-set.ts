/**
 * Queries made to hurt, as bodies of `POST /graphql`.
 * Source: docs/reference/threats.md (G1).
 * @module
 */
import { idOf } from "../graphql/memory-index.ts";
import { writeTransactionCursor } from "../support/transaction-cursor.ts";

/**
 * An attack: what it is, its body, and what must come: a status, and a message of this form, or data without errors.
 */
export type Attack = readonly [name: string, body: string, status: number, expected: RegExp | "data"];

/** A tag that rows of the index have. */
type Known = Readonly<{ name: string; value: string }>;

const ask = (query: string, variables: unknown = {}) => JSON.stringify({ query, variables });
const post = (body: string) => body;
const repeat = (count: number, write: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => write(index)).join(" ");
const page = "pageInfo { hasNextPage } edges { cursor node { id tags { name value } } }";

/**
 * Makes the set.
 *
 * @param tags - Tags that rows of the index have.
 * @param common - One that most of them have.
 */
export function attackSet(tags: readonly Known[], common: Known): readonly Attack[] {
  const everyTag = tags.map(
    ({ name, value }) => `{name: ${JSON.stringify(name)}, values: [${JSON.stringify(value)}], op: NEQ}`,
  );
  const commonTag = `name: ${JSON.stringify(common.name)}, values: [${JSON.stringify(common.value)}]`;
  return [
    ["fields nested 50 deep", ask(`${"{ a ".repeat(50)}${"}".repeat(50)}`), 200, /depth is 50; at most 12/],
    ["10,000 aliases", ask(`{ ${repeat(2_000, (index) => `a${index}: __typename`)} }`), 200, /more that 2000 tokens/],
    [
      "600 aliases",
      ask(`{ transactions { ${repeat(600, (index) => `a${index}: count`)} } }`),
      200,
      /count of aliases is 600/,
    ],
    ["a megabyte of query", ask(" ".repeat(2 ** 20)), 413, /./],
    ["64 KiB of commas", ask(`{ __typename ${",".repeat(60_000)} }`), 200, "data"],
    ["64 KiB of comment", ask(`{ __typename } #${"x".repeat(60_000)}`), 200, "data"],
    ["a block string that never ends", ask(`{ transaction(id: """${"\\n".repeat(20_000)}`), 200, /Unterminated string/],
    ["a fragment that uses itself", ask("{ ...f } fragment f on Query { ...f }"), 200, /within itself/],
    [
      "fragments in a ring",

      ask(
        `{ ...f0 } ${repeat(20, (index) => `fragment f${index} on Query { blocks { count } ...f${(index + 1) % 20} }`)}`,
      ),
      200,
      /within itself/,
    ],
    [
      "fragments that double thirty times",

      ask(
        `{ ...f0 } ${repeat(30, (index) => `fragment f${index} on Query { ...f${index + 1} ...f${index + 1} }`)} fragment f30 on Query { __typename }`,
      ),
      200,
      /count of fields is 1073741824/,
    ],
    [
      "a hundred fragments in a row",

      ask(
        `{ transactions { ...f0 } } ${repeat(100, (index) => `fragment f${index} on TransactionConnection { edges { node { id } } ${index < 99 ? `...f${index + 1}` : ""} }`)}`,
      ),
      200,
      "data",
    ],
    [
      "one field 900 times",
      ask(`{ transactions { edges { node { ${"id ".repeat(900)} } } } }`),
      200,
      /repeats fields too often/,
    ],
    [
      "objects whose merging grows with the square",

      ask(
        `{ ${repeat(10, () => `transactions { ${repeat(4, () => `edges { ${repeat(4, () => "node { owner { address } owner { address } }")} }`)} }`)} }`,
      ),
      200,
      "data",
    ],
    [
      "900 fields that are not there",
      ask(`{ transactions { ${repeat(900, (index) => `idd${index}`)} } }`),
      200,
      /Too many validation errors/,
    ],
    [
      "a batch of 1,000",
      post(JSON.stringify(Array.from({ length: 1_000 }, () => ({ query: "{ __typename }" })))),
      400,
      /Batching/,
    ],
    ["a billion rows", ask(`{ transactions(first: 1000000000) { ${page} } }`), 200, "data"],
    ["more rows than a number holds", ask("{ transactions(first: 10000000000) { count } }"), 200, /32-bit/],
    [
      "thirty pages of a thousand rows",
      ask(`{ ${repeat(30, (index) => `a${index}: transactions(first: 1000) { ${page} }`)} }`),
      200,
      /more than 3000 rows/,
    ],
    [
      "1,300 ids",

      ask("query($ids: [ID!]) { transactions(ids: $ids) { count } }", {
        ids: Array.from({ length: 1_300 }, (_, index) => idOf(`${index}`)),
      }),
      200,
      /"ids" has 1300 entries/,
    ],
    [
      "a thousand ids",

      ask("query($ids: [ID!]) { transactions(ids: $ids, first: 1000) { count edges { cursor } } }", {
        ids: Array.from({ length: 1_000 }, (_, index) => idOf(`${index}`)),
      }),
      200,
      "data",
    ],
    [
      "a tag that all rows have and an owner that none has",

      ask(`{ transactions(tags: [{${commonTag}}], owners: ["${idOf("unnamed")}"]) { ${page} } }`),
      200,
      "data",
    ],
    [
      "every tag blocked, 2,000 values",

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
      "every tag of the chain blocked",
      ask(`{ transactions(tags: [${everyTag.join(", ")}], first: 1000) { count ${page} } }`),
      200,
      "data",
    ],
    [
      "2,000 values that must be",

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

      ask(
        `{ transactions(after: "${writeTransactionCursor({ height: 0, txIndex: 0, offset: -1 })}", tags: [{${commonTag}, op: NEQ}]) { ${page} } }`,
      ),
      200,
      "data",
    ],
    ["an invalid cursor", ask('{ transactions(after: "garbage") { count } }'), 200, /Invalid transaction cursor/],
    [
      "introspection without end",
      ask(`{ __schema { types { ${"fields { type { ".repeat(10)} name ${"} } ".repeat(10)} } } }`),
      200,
      /introspection depth/,
    ],
    [
      "a type wrapped 500 times",
      ask(`{ __type(name: "Query") { ${"ofType { ".repeat(500)} name ${"} ".repeat(500)} } }`),
      200,
      "data",
    ],
    ["a list nested 900 deep", ask(`{ transactions(ids: ${"[".repeat(900)}${"]".repeat(900)}) { count } }`), 200, /./],
    [
      "variables nested 20,000 deep",

      post(
        `{"query":"query($ids: [ID!]) { transactions(ids: $ids) { count } }","variables":{"ids":${"[".repeat(20_000)}${"]".repeat(20_000)}}}`,
      ),
      200,
      /got invalid value/,
    ],
    [
      "450 unused variables",
      ask(`query(${repeat(450, (index) => `$v${index}: Int`)}) { __typename }`),
      200,
      /never used/,
    ],
    ["600 directives", ask(`{ __typename ${"@include(if: true) ".repeat(250)} }`), 200, /can only be used once/],
    [
      "names of JavaScript's own",

      post(
        '{"query":"query toString($__proto__: ID!) { transaction(id: $__proto__) { id } }","operationName":"toString","variables":{"__proto__":"x","constructor":{"prototype":{}}}}',
      ),
      200,
      "data",
    ],
    [
      "an operation called __proto__",
      post('{"query":"query __proto__ { __typename }","operationName":"__proto__"}'),
      200,
      "data",
    ],
    ["control characters", ask('{ transaction(id: "\\u0000\\uD800") { id } }'), 200, /./],
    ["a subscription to a page", ask("subscription { transactions { count } }"), 200, /Cannot query field/],
    ["a subscription with two fields", ask("subscription { blocks { kind } transactions { kind } }"), 200, /only one/],
  ];
}
