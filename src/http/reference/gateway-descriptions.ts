/**
 * What the API reference says of the gateway's own part: content, what it says of itself, names, proof,
 * queries.
 * Source: docs/reference/gateway.md.
 * @module
 */
import { queryRequestSchema } from "../../graphql/request-parameters.ts";
import { pathParameters, queryParameters } from "../gateway/parameters.ts";
import { queryRequestParameters } from "../graphql/graphql-request.ts";
import { requiredParameter } from "../parameter.ts";
import {
  bytes,
  type Description,
  empty,
  failureResponses,
  inHeader,
  inPath,
  json,
  patterns,
  type Responses,
  type Result,
  record,
  ref,
  sourceFault,
  text,
  textSchema,
} from "./words.ts";

const information = "Information";

function says(path: string, summary: string, found: Result, more: Responses = {}): Description {
  return { method: "GET", path, tag: information, summary, responses: { 200: found, ...more } };
}

const health = json("Its health.", ref("Health"));
const stats = text("The metrics, in the exposition format of Prometheus.");

const ofItself: readonly Description[] = [
  says("/", "What this gateway is, or the content that its operator chose", {
    description: "The record; or content, with its own type.",
    content: { "application/json": { schema: ref("GatewayInfo") }, "*/*": { schema: textSchema } },
  }),
  says("/svc/info", "What this gateway is", json("The record.", ref("GatewayInfo"))),
  says("/svc/peers", "Gateways and nodes that it asks", json("The record.", ref("Peers"))),
  says("/svc/healthcheck", "How it is, with reasons", health),
  says("/svc/__gateway_metrics", "Metrics", stats),
  says("/health", "How it is, under the address of orchestrators", health),
  says("/ready", "Whether it can serve", health, { 503: json("Not yet.", ref("Health")) }),
];

const content: Responses = {
  200: bytes("The content. Headers state whether it was verified, its source, and its cache lifetime."),
  206: bytes("The requested ranges; several as multipart/byteranges."),
  302: empty("The content has a host of its own."),
  304: empty("The client has it."),
  ...failureResponses(
    "invalid_id",
    "service_worker_rejected",
    "not_found",
    "manifest_too_large",
    "precondition_failed",
    "blocked",
  ),
  ...failureResponses("range_not_satisfiable"),
  ...sourceFault,
};

const range = inHeader("Range", { type: "string", pattern: patterns.range }, "One range of bytes, or several.");
const tagged = inHeader("If-None-Match", textSchema, "Entity tag of content that the client has.");
const { contentId } = pathParameters;
const pathBelow = inPath("path", textSchema, "index.html", "Path within the manifest; it may hold slashes.");

function ofContent(method: "GET" | "HEAD", path: string, summary: string): Description {
  const parameters = path.endsWith("/:path") ? [contentId, pathBelow, range, tagged] : [contentId, range, tagged];
  return { method, path, servedBy: "/*", tag: "Content", summary, parameters, responses: content };
}

const contents: readonly Description[] = [
  ofContent("GET", "/:txId", "Content; of a manifest, what it has for the empty path"),
  ofContent("HEAD", "/:txId", "Headers of content"),
  ofContent("GET", "/:txId/:path", "Content that a manifest has for a path"),
  ofContent("GET", "/raw/:txId", "Content as it is, also of a manifest"),
  ofContent("HEAD", "/raw/:txId", "Headers of content as it is"),
];

const proof: Description = {
  method: "GET",
  path: "/svc/proof/:id",
  tag: "Content",
  summary: "Everything by which content can be checked without trust",
  parameters: [pathParameters.provenId, range, queryParameters.provenRange, tagged],
  responses: {
    200: json("The proof.", ref("Proof")),
    304: empty("The client has it."),
    ...failureResponses("invalid_id", "malformed_input"),
    ...failureResponses("not_found", "proof_too_large", "range_not_satisfiable", "blocked"),
    ...sourceFault,
  },
};

const resolver: Description = {
  method: "GET",
  path: "/svc/resolver/:name",
  tag: "Names",
  summary: "Resolve a name",
  parameters: [inPath("name", textSchema, "an-example", "The name, with its undername before a `_`.")],
  responses: {
    200: json("The record.", ref("NameRecord")),
    402: text("The name has more undernames than were bought; in these words."),
    ...failureResponses("not_found", "blocked"),
    ...sourceFault,
  },
};

const queryResponses: Responses = {
  200: json("Data, errors, or both.", ref("QueryResult")),
  ...Object.fromEntries(
    [400, 405, 406, 413, 415, 429, 500, 503, 504].map((status) => [
      status,
      json("Errors that say what was wrong.", ref("QueryResult")),
    ]),
  ),
};
const sampleQuery = "{ transactions(first: 1) { pageInfo { hasNextPage } edges { cursor node { id } } } }";
const asksIndex = { path: "/graphql", tag: "Index query", responses: queryResponses } as const;

const queries: readonly Description[] = [
  {
    ...asksIndex,
    method: "GET",
    summary: "Ask the index; a browser gets a page to ask from",
    parameters: [
      requiredParameter(queryRequestParameters.query, sampleQuery),
      queryRequestParameters.variables,
      queryRequestParameters.operationName,
    ],
    responses: {
      ...queryResponses,
      200: {
        description: "Data, errors, or both; or the page.",
        content: {
          "application/json": { schema: ref("QueryResult") },
          "text/html": { schema: textSchema },
        },
      },
    },
  },
  {
    ...asksIndex,
    method: "POST",
    summary: "Ask the index",
    description:
      "Also as `application/graphql+json`; as `application/graphql`, the document alone; and as a form, with the " +
      "parameters of `GET`.",
    body: { type: "application/json", schema: queryRequestSchema.schema, example: { query: sampleQuery } },
  },
];

function frame(method: "GET" | "POST", summary: string): Description {
  const responses: Responses = {
    200: {
      description: "The record; the content where `Accept` names a type that is not JSON.",
      content: { "application/json": { schema: ref("Transaction") }, "*/*": { schema: textSchema } },
    },
    202: text("`Pending`: not in a block yet."),
    ...failureResponses("invalid_id", "not_found", "too_large", "blocked", "service_worker_rejected"),
    ...sourceFault,
  };
  const parameters = [pathParameters.framedId];
  const described = { method, path: "/local/social/frame/:id", tag: "Social frame", summary, parameters };
  if (method === "GET") return { ...described, responses };
  const sent = { type: "application/json", schema: { type: "object" }, example: {} };
  const unreadable = failureResponses("invalid_id", "malformed_json");
  return { ...described, body: { ...sent, required: false }, responses: { ...responses, ...unreadable } };
}

const frames: readonly Description[] = [frame("GET", "Get a frame"), frame("POST", "Post to a frame")];

const reference: readonly Description[] = [
  says(
    "/openapi.json",
    "This document",
    json("OpenAPI 3.0.", {
      ...record({ openapi: textSchema, paths: { type: "object" } }),
      additionalProperties: {},
    }),
  ),
  says("/api-docs", "This document as a page", {
    description: "The page.",
    content: { "text/html": { schema: textSchema } },
  }),
];

/** Every route of the gateway's own. */
export const gatewayDescriptions: readonly Description[] = [
  ...ofItself,
  ...contents,
  proof,
  resolver,
  ...queries,
  ...frames,
  ...reference,
];
