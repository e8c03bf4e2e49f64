/**
 * The list of first segments that are never content, against the routes that are registered.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { reservedSegments } from "../../src/http/reserved-paths.ts";
import { textResponse } from "../../src/http/responses.ts";
import { openGatewayServer } from "../support/gateway-server.ts";
import { createMemoryContent } from "../support/memory-content.ts";

const content = createMemoryContent();
const graphql = new Elysia()
  .get("/graphql", () => textResponse("page"))
  .post("/graphql", () => textResponse("response"));
const { gateway, url, close } = openGatewayServer({ content, graphql });
afterAll(async () => {
  await close();
  await content.close();
});

/** Reserved for parts that register no route of their own here: content below `raw`, and parts that may be switched off. */
const routeless = new Set(["raw", "local", "payment", "upload", "openapi.json", "api-docs"]);

const firstSegments = new Set(
  gateway.app.routes.map(({ path }) => path.split("/")[1] ?? "").filter((first) => first !== "" && first !== "*"),
);

test("every route begins with a reserved segment", () => {
  expect([...firstSegments].filter((first) => !reservedSegments.has(first))).toEqual([]);
});

test("every reserved segment has a route, or belongs to a part that may be absent", () => {
  expect([...reservedSegments].filter((first) => !firstSegments.has(first) && !routeless.has(first))).toEqual([]);
});

test("no route takes a segment that could be an id", () => {
  expect([...firstSegments].filter((first) => first.startsWith(":") || first.length === 43)).toEqual([]);
});

test.each([...reservedSegments])("nothing below /%s is ever taken for content", async (first) => {
  const response = await fetch(`${url}/${first}/a/b/c/d/e`);
  expect([response.status, await response.text()]).toEqual([404, '"Not Found"']);
  expect(content.opened()).toBe(0);
});
