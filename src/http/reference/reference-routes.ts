/**
 * `GET /openapi.json` and `/api-docs`: the API reference, as a document and as a page without requests to other hosts.
 * Source: docs/reference/graphql.md#pages; docs/reference/gateway.md#isolation.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { assetResponse, createAssetSource, pagePolicy } from "../page-assets.ts";
import { contextOf } from "../request-context.ts";
import { jsonTextResponse, pageResponse } from "../responses.ts";
import { described } from "../route-schema.ts";
import type { RegisteredRoute } from "../route-table.ts";
import { apiDocsFiles, readApiDocs } from "./api-docs-assets.ts";
import { type Reference, type ReferenceDocument, writeReference } from "./document.ts";
import { json, record, textSchema } from "./openapi-types.ts";

const script = "text/javascript; charset=utf-8";

/** Another version of the program may say something else. */
const briefly = { "Cache-Control": "public, max-age=300" } as const;

const documentPath = "/openapi.json";

/**
 * Creates the routes.
 *
 * @param routes - Returns the registered routes; called once, at the first request.
 * @param publicUrl - Where the operator says that the service is; unless given, the address of each request.
 */
export function createReferenceRoutes(
  reference: Reference,
  routes: () => readonly RegisteredRoute[],
  publicUrl: string | undefined,
): AnyElysia {
  const assets = createAssetSource(apiDocsFiles, readApiDocs);
  let document: Promise<ReferenceDocument> | undefined;
  return new Elysia({ strictPath: true })
    .get(
      documentPath,
      async ({ request }) => {
        document ??= writeReference(reference, routes());
        const write = await document;
        return jsonTextResponse(write(publicUrl?.replace(/\/+$/, "") ?? addressOf(request)), 200, briefly);
      },
      { detail: documentDetail },
    )
    .get(
      "/api-docs",
      async () => {
        const page = pageResponse(pageText((await assets()).version), pagePolicy());
        page.headers.set("Cache-Control", "no-store");
        return page;
      },
      { detail: pageDetail },
    )
    .get("/api-docs/swagger-ui.js", ({ request }) => assetResponse(request, assets, "swagger-ui.js.gz", script))
    .get("/api-docs/swagger-ui.css", ({ request }) =>
      assetResponse(request, assets, "swagger-ui.css.gz", "text/css; charset=utf-8"),
    )
    .get("/api-docs/start.js", ({ request }) => assetResponse(request, assets, "swagger-start.js.gz", script));
}

const documentDetail = described({
  tag: "Information",
  summary: "This document",
  responses: {
    200: json("OpenAPI 3.0.", {
      ...record({ openapi: textSchema, paths: { type: "object" } }),
      additionalProperties: {},
    }),
  },
});

const pageDetail = described({
  tag: "Information",
  summary: "This document as a page",
  responses: { 200: { description: "The page.", content: { "text/html": { schema: textSchema } } } },
});

/** The address of the service that was asked, as its caller sees it; relative where the caller names no host. */
function addressOf(request: Request): string {
  const { scheme, host, target } = contextOf(request);
  const prefix = target.path.endsWith(documentPath) ? target.path.slice(0, -documentPath.length) : "";
  return host === "" ? "." : `${scheme}://${host}${prefix}`;
}

/** Its addresses are relative to it: a service may be mounted below a prefix. */
function pageText(version: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference · Cairn</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="api-docs/swagger-ui.css?v=${version}">
</head>
<body>
<div id="page"></div>
<noscript>This page needs JavaScript. The document is at <a href="openapi.json">openapi.json</a>.</noscript>
<script src="api-docs/swagger-ui.js?v=${version}"></script>
<script src="api-docs/start.js?v=${version}"></script>
</body>
</html>
`;
}
