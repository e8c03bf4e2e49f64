/**
 * GraphiQL at `/graphql` for browsers. The page loads files of this origin only.
 * Source: docs/reference/graphql.md#pages; docs/reference/gateway.md#isolation.
 * @module
 */
import { Elysia } from "elysia";
import { type AssetSource, assetResponse, createAssetSource } from "../assets.ts";
import { pageResponse } from "../responses.ts";
import { bundleGraphiql, type GraphiqlFile, graphiqlFiles } from "./graphiql-assets.ts";

/** Scripts, styles and requests of this origin only. The nonce is for the style that a dialog adds. */
function contentSecurityPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "font-src data:",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

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
    contentSecurityPolicy(nonce),
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
    .get("/graphql", endpoint)
    .post("/graphql", endpoint, { parse: "none" });
}
