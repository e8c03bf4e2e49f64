/**
 * GraphiQL at `/graphql` for browsers. The page loads files of this origin only: embedded in the binary (build.ts), or
 * bundled from `console/graphiql` on the first request.
 * Source: docs/reference/graphql.md#pages; docs/reference/gateway.md#isolation.
 * @module
 */
import { Elysia } from "elysia";
import { queryRequestSchema } from "../../graphql/request-parameters.ts";
import {
  type AssetFiles,
  type AssetSource,
  assetResponse,
  bundlePage,
  createAssetSource,
  pagePolicy,
} from "../page-assets.ts";
import { requiredParameter } from "../parameter.ts";
import { json, type Responses, ref, textSchema } from "../reference/openapi-types.ts";
import { pageResponse } from "../responses.ts";
import { described } from "../route-schema.ts";
import { queryRequestParameters } from "./graphql-request.ts";

/** The nonce allows the style that a dialog of GraphiQL adds. */
const nonceBytes = 16;

/** Whether a browser requests the page rather than a query. */
function wantsPage(request: Request): boolean {
  return request.method === "GET" && (request.headers.get("accept") ?? "").includes("text/html");
}

async function graphiqlPage(source: AssetSource<GraphiqlFile>): Promise<Response> {
  const { version } = await source();
  const nonce = crypto.getRandomValues(new Uint8Array(nonceBytes)).toBase64();
  const page = pageResponse(
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>GraphiQL · Cairn</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/graphql/graphiql.css?v=${version}">
</head>
<body>
<div id="page"></div>
<noscript>GraphiQL needs JavaScript. Queries can also be sent here with POST.</noscript>
<script nonce="${nonce}" src="/graphql/graphiql.js?v=${version}"></script>
</body>
</html>
`,
    pagePolicy(`'self' 'nonce-${nonce}'`),
  );
  page.headers.set("Vary", "Accept");
  page.headers.set("Cache-Control", "no-store");
  return page;
}

/** Creates `/graphql`: the page for browsers, `respond` for queries, and the routes of the page's files. */
export function graphqlEndpoint(respond: (request: Request) => Promise<Response>) {
  const source = createAssetSource(graphiqlFiles, bundleGraphiql);
  const endpoint = ({ request }: Readonly<{ request: Request }>) =>
    wantsPage(request) ? graphiqlPage(source) : respond(request);
  return new Elysia()
    .get("/graphql/graphiql.js", ({ request }) =>
      assetResponse(request, source, "graphiql.js.gz", "text/javascript; charset=utf-8"),
    )
    .get("/graphql/graphiql.css", ({ request }) =>
      assetResponse(request, source, "graphiql.css.gz", "text/css; charset=utf-8"),
    )
    .get("/graphql", endpoint, { detail: getDetail })
    .post("/graphql", endpoint, { parse: "none", detail: postDetail });
}

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

const getDetail = described({
  tag: "Index query",
  summary: "Ask the index; a browser gets a page to ask from",
  parameters: [
    requiredParameter(queryRequestParameters.query, sampleQuery),
    queryRequestParameters.variables,
    queryRequestParameters.operationName,
  ],
  responses: {
    ...queryResponses,
    200: {
      description: "Data, errors, or both; events of a subscription; or the page.",
      content: {
        "application/json": { schema: ref("QueryResult") },
        "text/event-stream": { schema: textSchema },
        "text/html": { schema: textSchema },
      },
    },
  },
});

const postDetail = described({
  tag: "Index query",
  summary: "Ask the index",
  description:
    "Also as `application/graphql+json`; as `application/graphql`, the document alone; and as a form, with the " +
    "parameters of `GET`. A subscription is sent as `text/event-stream`.",
  body: { type: "application/json", schema: queryRequestSchema.schema, example: { query: sampleQuery } },
  responses: queryResponses,
});

/** Names of the embedded files, compressed with gzip. */
const graphiqlFiles = ["graphiql.js.gz", "graphiql.css.gz"] as const;

type GraphiqlFile = (typeof graphiqlFiles)[number];

/** Bundles the page's script and style from source, and compresses them. @throws Error with the bundler's messages. */
export async function bundleGraphiql(): Promise<AssetFiles<GraphiqlFile>> {
  const { js, css } = await bundlePage("graphiql", "graphiql");
  return { "graphiql.js.gz": js, "graphiql.css.gz": css };
}
