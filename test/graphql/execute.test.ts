/**
 * Execution: every field, and random documents of them, compared with the responses of graphql-js.
 * @module
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { GraphQLError, getIntrospectionQuery, parse, print, validate } from "graphql";
import { Failure } from "../../src/failures.ts";
import type { ExecutionResult } from "../../src/graphql/execute.ts";
import { schema } from "../../src/graphql/graphql-schema.ts";
import type { RequestParameters } from "../../src/graphql/request-parameters.ts";
import { responseBytesMax } from "../../src/graphql/response-bytes.ts";
import { pendingHeight } from "../../src/store/index/place.ts";
import { writeTransactionCursor } from "../support/transaction-cursor.ts";
import { documents } from "./documents.ts";
import { blockOf, createMemoryIndex, idOf, noSignatures, rowAt, signaturesOf } from "./memory-index.ts";
import { executeByGraphqlJs } from "./oracle.ts";
import { createTextExecutor } from "./text-executor.ts";

const awkward = 'quotes " \\ / controls \u0000\u0007\n\t\u007f lines \u2028\u2029 umlauts äöü, kanji 漢字, 𝄞, <script>';
const blocks = Array.from({ length: 12 }, (_, height) => blockOf(height));
const rows = [
  ...blocks.flatMap(({ height }) => [
    rowAt({ height, txIndex: 0, offset: -1 }, { tags: [{ name: "Bundle-Format", value: "binary" }] }),
    rowAt({ height, txIndex: 0, offset: 96 }, { tags: [{ name: "Content-Type", value: "text/html" }] }),
    rowAt(
      { height, txIndex: 0, offset: 9_000 },
      {
        tags: [
          { name: "Content-Type", value: "image/png" },
          { name: "Content-Type", value: "second" },
        ],
        anchor: awkward,
        ownerKey: "",
      },
    ),
    rowAt(
      { height, txIndex: 1, offset: -1 },
      {
        signatureType: -2,
        tags: [
          { name: awkward, value: awkward },
          { name: "", value: "" },
        ],
      },
    ),
  ]),
  rowAt({ height: pendingHeight, txIndex: 0, offset: 64 }, { kind: "transaction", parentId: undefined }),
];
const signatures = new Map(
  rows.filter(({ place }) => place.height % 2 === 0).map(({ id }) => [id, `signature-of-${id}`]),
);
const execute = createTextExecutor({
  index: createMemoryIndex(rows, blocks),
  signatures: signaturesOf(signatures),
});

const text = (response: ExecutionResult) =>
  response.kind === "executed"
    ? new TextDecoder("utf-8", { fatal: true }).decode(response.body)
    : JSON.stringify(response.errors.map(({ message }) => message));
const ask = async (query: string, variables: Record<string, unknown> = {}) => text(await execute({ query, variables }));
const asked = (request: RequestParameters) => {
  const result = executeByGraphqlJs(rows, blocks, signatures, request);
  return "data" in result ? JSON.stringify(result) : JSON.stringify(result.errors?.map(({ message }) => message));
};

const everyField = `pageInfo { hasNextPage endCursor } count edges { cursor node { id anchor signature signatureType recipient owner { address key }
  fee { winston ar } quantity { winston ar } data { size type } tags { name value } block { id timestamp height previous } parent { id } bundledIn { id } ingestedAt } }`;

/** The text that ar-gql 3.1.2 sends for one transaction. */
const arGqlText = `
query($id: ID!) {
  transaction(id: $id) {
    id
    anchor
    signature
    recipient
    owner {
      address
      key
    }
    fee {
      winston
      ar
    }
    quantity {
      winston
      ar
    }
    data {
      size
      type
    }
    tags {
      name
      value
    }
    block {
      id
      timestamp
      height
      previous
    }
    parent {
      id
    }
  }
}
`;

describe("a response", () => {
  const requests: [string, RequestParameters][] = [
    ["every field", { query: `{ transactions(first: 100) { ${everyField} } }` }],
    ["every field, upwards", { query: `{ transactions(first: 100, sort: HEIGHT_ASC) { ${everyField} } }` }],
    [
      "a page in the middle",
      {
        query:
          "query($after: String) { transactions(first: 7, after: $after) { pageInfo { hasNextPage } edges { cursor node { id } } } }",
        variables: { after: writeTransactionCursor({ height: 5, txIndex: 0, offset: 96 }) },
      },
    ],
    ["ar-gql's text", { query: arGqlText, variables: { id: rows[2]?.id } }],
    ["ar-gql's text for a transaction", { query: arGqlText, variables: { id: rows[0]?.id } }],
    ["ar-gql's text for an id that is not there", { query: arGqlText, variables: { id: idOf("nowhere") } }],
    ["an invalid id", { query: '{ transaction(id: "nowhere") { id } block(id: "nowhere") { id } }' }],
    [
      "all blocks",
      {
        query:
          "{ blocks(first: 100) { count pageInfo { hasNextPage endCursor } edges { cursor node { id timestamp height previous } } } }",
      },
    ],
    [
      "some blocks",
      {
        query:
          "{ blocks(first: 2, height: {min: 3, max: 8}) { count pageInfo { hasNextPage endCursor } edges { node { height } } } }",
      },
    ],
    ["a block", { query: `{ block(id: "${blockOf(3).hash}") { height previous } }` }],
    ["the first block", { query: `{ block(id: "${blockOf(0).hash}") { height previous } }` }],
    [
      "type names",
      {
        query:
          "{ __typename transactions { __typename pageInfo { __typename } edges { __typename node { __typename owner { __typename } fee { __typename } data { __typename } tags { __typename } block { __typename } parent { __typename } bundledIn { __typename } } } } blocks { __typename edges { __typename } } }",
      },
    ],
    [
      "one field many times",
      {
        query:
          "{ transactions { edges { node { id id fee { ar } id fee { winston ar } } } edges { cursor node { anchor } } } }",
      },
    ],
    ["keys that look like numbers", { query: "{ transactions(first: 1) { edges { node { _1: id _0: id } } } }" }],
    [
      "a key called __proto__",
      { query: "{ transactions(first: 1) { edges { node { __proto__: id constructor: id } } } }" },
    ],
    [
      "nothing, by skip",
      {
        query:
          "query($no: Boolean!) { transactions @skip(if: $no) { count } blocks { edges @include(if: false) { cursor } } }",
        variables: { no: true },
      },
    ],
    ["introspection", { query: getIntrospectionQuery({ descriptions: true, inputValueDeprecation: true }) }],
    [
      "introspection beside rows",
      {
        query:
          'query($type: String!) { transactions(first: 1) { edges { cursor } } type: __type(name: $type) { kind fields { name } } none: __type(name: "None") { name } __schema { queryType { name } } }',
        variables: { type: "Tag" },
      },
    ],
    [
      "one operation of several",
      {
        query: "query A { blocks(first: 1) { edges { cursor } } } query B { __typename }",
        operationName: "B",
      },
    ],
    [
      "a mistake in a field that may be null beside one that is right",
      { query: '{ transaction(id: 5) { id } block(id: "x") { id } }' },
    ],
  ];
  test.each(requests)("has %s as the response of graphql-js has", async (_name, request) => {
    expect(text(await execute(request))).toBe(asked(request));
  });

  test("equals the response of graphql-js for random documents", async () => {
    await fc.assert(
      fc.asyncProperty(documents, async ({ query, variables }) => {
        const document = parse(query);
        // The generator must give documents that are executed, or the property says nothing.
        expect(validate(schema, document)).toEqual([]);
        expect(await ask(query, variables)).toBe(asked({ query: print(document), variables }));
      }),
      { numRuns: 300, endOnFailure: true },
    );
  });

  test("equals the response of graphql-js each time that a document is used again with other variables", async () => {
    await fc.assert(
      fc.asyncProperty(documents, fc.integer({ min: 1, max: 30 }), async ({ query, variables }, first) => {
        // Without variables in directives: such a document is compiled once.
        const { yes, ...rest } = variables;
        const fixed = query.replace(", $yes: Boolean!", "").replaceAll("if: $yes", `if: ${yes}`);
        expect(validate(schema, parse(fixed))).toEqual([]);
        for (const given of [rest, { ...rest, first }, { ...rest, id: idOf("0/0/96") }, rest])
          expect(await ask(fixed, given)).toBe(asked({ query: fixed, variables: given }));
      }),
      { numRuns: 100, endOnFailure: true },
    );
  });
});

describe("an error", () => {
  const failing = (error: unknown) => {
    const fail = () => {
      throw error;
    };
    return createTextExecutor({
      index: { ...createMemoryIndex(rows, blocks), encodedRow: fail, encodedPage: fail },
      signatures: noSignatures,
    });
  };
  const shown = (response: ExecutionResult) => JSON.parse(text(response));

  const rejections: [string, RequestParameters, string[]][] = [
    ["an invalid document", { query: "{" }, ["Syntax Error: Expected Name, found <EOF>."]],
    [
      "2,001 tokens",
      { query: `{ ${"a ".repeat(1_999)} }` },
      ["Syntax Error: Document contains more that 2000 tokens. Parsing aborted."],
    ],
    ["a field that is not there", { query: "{ nope }" }, ['Cannot query field "nope" on type "Query".']],
    [
      "a fragment that uses itself",
      { query: "{ ...f } fragment f on Query { ...f }" },
      ['Cannot spread fragment "f" within itself.'],
    ],
    [
      "an operation that is not there",
      { query: "query A { __typename }", operationName: "B" },
      ['Unknown operation named "B".'],
    ],
    [
      "operations without a choice",
      { query: "query A { __typename } query B { __typename }" },
      ["Must provide operation name if query contains multiple operations."],
    ],
    ["a mutation", { query: "mutation { __typename }" }, ["Schema is not configured to execute mutation operation."]],
    [
      "a subscription",
      { query: "subscription { blocks { kind } }" },
      ["Schema is not configured to execute subscription operation."],
    ],
    [
      "a variable of a wrong type",
      { query: "query($n: Int) { transactions(first: $n) { count } }", variables: { n: "x" } },
      ['Variable "$n" got invalid value "x"; Int cannot represent non-integer value: "x"'],
    ],
    [
      "a variable that is missing",
      { query: "query($id: ID!) { transaction(id: $id) { id } }" },
      ['Variable "$id" of required type "ID!" was not provided.'],
    ],
    [
      "an introspection without end",
      { query: "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }" },
      ["Maximum introspection depth exceeded"],
    ],
    [
      "too many aliases",
      {
        query: `{ transactions { ${Array.from({ length: 31 }, (_, index) => `a${index}: count`).join(" ")} } }`,
      },
      ["The query's count of aliases is 31; at most 30 is allowed."],
    ],
  ];
  test.each(rejections)("rejects %s before anything is executed", async (_name, request, messages) => {
    const response = await execute(request);
    expect(response.kind === "rejected" && response.errors.map(({ message }) => message)).toEqual(messages);
  });

  test("of an argument names its field, its line and its column", async () => {
    expect(shown(await execute({ query: "{\n  wrong: transactions(first: 0) { count }\n}" }))).toEqual({
      errors: [
        {
          message: '"first" is 0; it must be 1 or more.',
          locations: [{ line: 2, column: 3 }],
          path: ["wrong"],
          extensions: { code: "BAD_USER_INPUT" },
        },
      ],
      data: null,
    });
  });

  test("of an invalid cursor is in errors, with its path", async () => {
    const { errors, data } = shown(
      await execute({ query: '{ blocks { count } transactions(after: "garbage") { count } }' }),
    );
    expect(data).toBeNull();
    expect(errors).toMatchObject([{ message: "Invalid transaction cursor", path: ["transactions"] }]);
  });

  test("in a nullable field leaves the other fields", async () => {
    const response = await failing(new Error("disk on fire"))({
      query: `{ transaction(id: "${idOf("x")}") { id } blocks(first: 1) { edges { cursor } } }`,
    });
    expect(shown(response)).toMatchObject({
      errors: [{ path: ["transaction"] }],
      data: { transaction: null, blocks: { edges: [{}] } },
    });
  });

  test("that is a defect is masked, and logged in full", async () => {
    const defect = new Error("disk on fire at /secret/path");
    const response = await failing(defect)({ query: "{ transactions { edges { cursor } } }" });
    expect(shown(response)).toEqual({
      errors: [{ message: "Internal Server Error", locations: [{ line: 1, column: 3 }], path: ["transactions"] }],
      data: null,
    });
    expect(response).toMatchObject({ kind: "executed", defects: [defect] });
  });

  test("that is expected has its message, without its context", async () => {
    const response = await failing(new Failure("not_synced", { secret: "context" }))({
      query: "{ transactions { edges { cursor } } }",
    });
    expect(shown(response).errors).toMatchObject([{ message: "Chain state not available yet" }]);
    expect(text(response)).not.toContain("secret");
    expect(response).toMatchObject({ defects: [] });
  });

  test("of a timeout ends the request between steps", async () => {
    let steps = 0;
    const checkpoint = () => {
      steps += 1;
      if (steps > 3) throw new GraphQLError("The query took too long.");
    };
    const query = `{ ${Array.from({ length: 20 }, (_, index) => `a${index}: transactions { edges { cursor } }`).join(" ")} }`;
    expect(shown(await execute({ query }, checkpoint))).toMatchObject({
      errors: [{ message: "The query took too long." }],
      data: null,
    });
    expect(steps).toBe(4);
  });

  test("reports a request for more than 3,000 rows", async () => {
    const query = `{ ${["a", "b", "c", "d"].map((key) => `${key}: transactions(first: 1000) { edges { cursor } }`).join(" ")} }`;
    expect(shown(await execute({ query }))).toMatchObject({
      errors: [{ message: 'The query asks for more than 3000 rows; ask for fewer with "first".', path: ["d"] }],
    });
  });
});

describe("a large page", () => {
  const wide = Array.from({ length: 1_300 }, (_, index) =>
    rowAt({ height: 1, txIndex: 0, offset: 64 * (index + 2) }, { tags: [{ name: "n", value: "v" }] }),
  );
  const executor = (rowsOfIndex: typeof wide) =>
    createTextExecutor({ index: createMemoryIndex(rowsOfIndex, blocks), signatures: noSignatures });
  const page = (response: ExecutionResult) => JSON.parse(text(response)).data.transactions;

  test("is read in steps and has each row once, in order", async () => {
    const { edges, pageInfo } = page(
      await executor(wide)({
        query:
          "{ transactions(first: 5000, sort: HEIGHT_ASC) { pageInfo { hasNextPage endCursor } edges { cursor node { id } } } }",
      }),
    );
    expect(edges.map(({ node }: { node: { id: string } }) => node.id)).toEqual(
      wide.slice(0, 1_000).map(({ id }) => id),
    );
    expect(pageInfo).toEqual({ hasNextPage: true, endCursor: edges.at(-1).cursor });
  });

  test("is counted up to 1,000 rows", async () => {
    const tagged = 'tags: [{name: "n", values: ["v"]}]';
    const count = async (rowsOfIndex: typeof wide, given: string) =>
      page(await executor(rowsOfIndex)({ query: `{ transactions(${given}) { count } }` })).count;
    expect(await count(wide.slice(0, 1_000), tagged)).toBe("1000");
    expect(await count(wide.slice(0, 1_001), tagged)).toBeNull();
    expect(await count(wide, "first: 1")).toBe("1300");
    expect(await count(wide, `${tagged}, block: {min: 7}`)).toBe("0");
  });

  test("is an error when aliases make its response larger than the limit, and the next one is not", async () => {
    const tags = Array.from({ length: 2_000 }, () => ({ name: "", value: "" }));
    const run = executor(wide.slice(0, 100).map((row) => ({ ...row, tags })));
    const aliases = Array.from({ length: 30 }, (_, index) => `${"a".repeat(62)}${index + 10}: value`).join(" ");
    const message = `Response is larger than ${responseBytesMax} bytes`;
    const query = `{ transactions(first: 100) { edges { node { tags { ${aliases} } } } } }`;
    expect(JSON.parse(text(await run({ query })))).toEqual({ errors: [{ message }], data: null });
    expect(page(await run({ query: query.replace("100", "3") })).edges).toHaveLength(3);
  });

  test("ends early when its tags exceed the response limit, and has a next page", async () => {
    const long = wide.slice(0, 40).map((row) => ({ ...row, tags: [{ name: "n", value: "v".repeat(1_000_000) }] }));
    const run = executor(long);
    const seen: string[] = [];
    let after = "";
    for (let pages = 0; pages < 20; pages++) {
      const { edges, pageInfo } = page(
        await run({
          query: `{ transactions(first: 40, sort: HEIGHT_ASC, after: "${after}") { pageInfo { hasNextPage } edges { cursor node { id tags { value } } } } }`,
        }),
      );
      expect(edges.length).toBeLessThan(12);
      seen.push(...edges.map(({ node }: { node: { id: string } }) => node.id));
      if (!pageInfo.hasNextPage) break;
      after = edges.at(-1).cursor;
    }
    expect(seen).toEqual(long.map(({ id }) => id));
  });
});
