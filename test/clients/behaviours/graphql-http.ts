/**
 * Behaviours of graphql-http's audits: GraphQL over HTTP.
 * @module
 */
import { expect } from "bun:test";
import { type Asked, alike, type Table, unlike } from "./rows.ts";

const jsonType = "application/json; charset=utf-8";
const ownType = "application/graphql-response+json";

function query(body: unknown, accept: string, more: Record<string, string> = {}): () => Asked {
  return () => ({
    path: "/graphql",
    method: "POST",
    headers: { "content-type": "application/json", accept, ...more },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

const got =
  (parameters: Record<string, string>, accept = ownType) =>
  (): Asked => ({
    path: `/graphql?${new URLSearchParams(parameters)}`,
    headers: { accept },
  });
const typename = { data: { __typename: "Query" } };
const small = "{ __typename }";

/** The rows. */
export const graphqlHttp: Table = {
  suite: "graphql-http",
  rows: [
    ...alike(
      "gateway",
      [
        "Accept of the response type",
        "Q7",
        query({ query: small }, ownType),
        { status: 200, headers: { "content-type": /^application\/graphql-response\+json/ }, json: typename },
      ],
      [
        "Accept of JSON",
        "Q7",
        query({ query: small }, "application/json"),
        { status: 200, headers: { "content-type": jsonType }, json: typename },
      ],
      ["Accept of anything", "Q7", query({ query: small }, "*/*"), { status: 200, json: typename }],
      [
        "a body in UTF-8 that says so",
        "Q7",
        query({ query: small }, ownType, { "content-type": "application/json; charset=utf-8" }),
        { status: 200, json: typename },
      ],
      ["GET with a query", "Q7", got({ query: small }), { status: 200, json: typename }],
      [
        "GET with variables",
        "Q7",
        got({ query: "query ($n: String!) { __type(name: $n) { name } }", variables: '{"n":"Query"}' }),
        { status: 200, json: { data: { __type: { name: "Query" } } } },
      ],
      [
        "a named operation of several",
        "Q7",
        query({ query: "query A { a: __typename } query B { b: __typename }", operationName: "B" }, ownType),
        { status: 200, json: { data: { b: "Query" } } },
      ],
      [
        "variables as a map",
        "Q7",
        query({ query: "query ($n: String!) { __type(name: $n) { name } }", variables: { n: "Block" } }, ownType),
        { status: 200, json: { data: { __type: { name: "Block" } } } },
      ],
      [
        "an empty map of extensions",
        "Q7",
        query({ query: small, extensions: {} }, ownType),
        { status: 200, json: typename },
      ],
      [
        "null for what is optional",
        "Q7",
        query({ query: small, variables: null, operationName: null, extensions: null }, ownType),
        { status: 200, json: typename },
      ],
      ["no query", "Q8", query({}, ownType), { status: 400 }],
      ["a query that is not text", "Q8", query({ query: 1 }, ownType), { status: 400 }],
      [
        "an operation's name that is not text",
        "Q8",
        query({ query: small, operationName: 1 }, ownType),
        { status: 400 },
      ],
      ["variables that are text", "Q8", query({ query: small, variables: "{}" }, ownType), { status: 400 }],
      ["extensions that are a list", "Q8", query({ query: small, extensions: [] }, ownType), { status: 400 }],
      ["a body that is no JSON", "Q8", query("{ not json", ownType), { status: 400 }],
      [
        "a syntax error, for the response type",
        "Q8",
        query({ query: "{" }, ownType),
        { status: 400, has: { errors: [{ message: expect.any(String), locations: [{ line: 1 }] }] } },
      ],
      [
        "a field that is not in the schema, for the response type",
        "Q8",
        query({ query: "{ nothing }" }, ownType),
        { status: 400, has: { errors: [{ message: expect.stringMatching(/nothing/) }] } },
      ],
      [
        "a variable of a wrong type, for the response type",
        "Q8",
        query(
          {
            query: "query ($n: Int!) { transactions(first: $n) { edges { cursor } } }",
            variables: { n: "x" },
          },
          ownType,
        ),
        { status: 400 },
      ],
      [
        "a syntax error, for JSON",
        "Q8",
        query({ query: "{" }, "application/json"),
        {
          status: 200,
          has: {
            errors: [{ message: expect.any(String), locations: [{ line: 1, column: expect.any(Number) }] }],
          },
        },
      ],
      ["another media type", "Q8", query({ query: small }, ownType, { "content-type": "text/plain" }), { status: 415 }],
      ["an Accept without a type of ours", "Q8", query({ query: small }, "image/png"), { status: 406 }],
      ["PUT", "Q8", () => ({ path: "/graphql", method: "PUT" }), { status: 405, headers: { allow: /POST/ } }],
    ),
    ...unlike("gateway", [
      "a mutation by GET: there are none",
      "Q8",
      got({ query: "mutation { a }" }),
      { status: 400, has: { errors: [expect.any(Object)] } },
    ]),
  ],
};
