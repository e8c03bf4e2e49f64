/**
 * Base addresses that end in "/", joined with a path: a doubled first slash or one at the end is forgiven where clients
 * send it, and nowhere else.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { sandboxLabel } from "../../src/http/hosts.ts";
import { header, openGatewayServer, wire } from "../support/gateway-server.ts";
import { manifestItem } from "../support/manifest-text.ts";
import { createMemoryContent, idOf } from "../support/memory-content.ts";

const content = createMemoryContent();
const text = (value: string) => new TextEncoder().encode(value);
const page = content.put("page", { body: text("<p>page"), contentType: "text/html" });
const site = content.put(
  "site",
  manifestItem({ paths: { graphql: { id: page }, "svc/info": { id: page } }, fallback: { id: page } }),
);

const queries = new Elysia()
  .get("/graphql", () => new Response("queried", { headers: { "Content-Type": "text/plain" } }))
  .post("/graphql", async ({ request }) => new Response(await request.text()), { parse: "none" });
const administration = new Elysia({ strictPath: true }).get("/svc/admin/debug", () => new Response("debug"));
const options = { content, graphql: queries, administration };
const plain = openGatewayServer(options);
const withRoot = openGatewayServer({ ...options, settings: { rootHosts: ["gw.test"] } });
const withApex = openGatewayServer({
  ...options,
  settings: { rootHosts: ["gw.test"], apex: { id: site } },
});
afterAll(async () => {
  for (const server of [plain, withRoot, withApex]) await server.close();
  await content.close();
});

const paths = ["/svc/info", "/ar-io/info", "/graphql"];
const spellings = (path: string) => [path, `/${path}`, `${path}/`, `/${path}/`];
const ask = (from: typeof plain, path: string, host = "127.0.0.1", method = "GET", more = "") =>
  wire(from.server.port, `${method} ${path} HTTP/1.1\r\nHost: ${host}${more}`);

describe("a path of ours that was joined to a base with a slash", () => {
  test.each(paths)("is served as %s", async (path) => {
    for (const from of [plain, withRoot, withApex])
      for (const host of ["127.0.0.1", "gw.test", "www.gw.test"]) {
        const wanted = await ask(from, path, host);
        expect(wanted.status).toBe(200);
        for (const spelling of spellings(path)) {
          const [response, head] = [await ask(from, spelling, host), await ask(from, `${spelling}?a=1`, host, "HEAD")];
          expect([spelling, response.status, response.body.toString()]).toEqual([
            spelling,
            200,
            wanted.body.toString(),
          ]);
          expect([spelling, head.status, header(head, "content-type")]).toEqual([
            spelling,
            200,
            header(response, "content-type"),
          ]);
        }
      }
  });

  test("takes a posted query, a preflight, and rejects other methods as its path does", async () => {
    for (const spelling of spellings("/graphql")) {
      const posted = await fetch(`${plain.url}${spelling}`, { method: "POST", body: '{"query":"{a}"}' });
      expect([spelling, posted.status, await posted.text()]).toEqual([spelling, 200, '{"query":"{a}"}']);
      const preflight = await ask(plain, spelling, "127.0.0.1", "OPTIONS");
      expect([preflight.status, header(preflight, "allow")]).toEqual([204, "GET, HEAD, POST, OPTIONS"]);
      const deleted = await ask(plain, spelling, "127.0.0.1", "DELETE");
      expect([deleted.status, header(deleted, "allow")]).toEqual([405, "GET, HEAD, POST, OPTIONS"]);
    }
  });

  test("is counted under the path's own label", async () => {
    await ask(plain, "//svc/info");
    await ask(plain, "/ar-io/info/");
    const metrics = (await ask(plain, "/metrics")).body.toString();
    expect(metrics).toContain('path="/svc/info"');
    expect(metrics).not.toContain("//svc");
    expect(metrics).not.toContain("info/");
  });
});

describe("a path that is not joined so", () => {
  test.each([
    "///svc/info",
    "//svc//info",
    "/svc//info",
    "/svc/info//",
    "//graphql/x",
    "/graphql//",
    "//svc/healthcheck",
    "/svc/healthcheck/",
    "/svc/peers/",
    "//height",
    "/%2Fsvc/info",
    "/svc/info%2F",
  ])("is not found: %s", async (path) => {
    expect([path, (await ask(plain, path)).status]).toEqual([path, 404]);
  });

  test.each(["//svc/admin/debug", "/svc/admin/debug/", "//svc/admin/debug/", "//svc/info/../admin/debug"])(
    "is never administration: %s",
    async (path) => {
      for (const from of [plain, withRoot]) {
        const response = await ask(from, path);
        expect(response.body.toString()).not.toBe("debug");
      }
    },
  );

  test("is content on the host of an id, with the path as it was sent", async () => {
    const host = `${sandboxLabel(idOf("site"))}.gw.test`;
    for (const [path, isFallback] of [
      ["/graphql", false],
      ["/svc/info", false],
      ["//graphql", true],
      ["//svc/info", true],
      ["//svc/info/", true],
    ] as const) {
      const response = await ask(withRoot, path, host);
      expect([path, response.status, response.body.toString()]).toEqual([path, 200, "<p>page"]);
      expect([path, header(response, "x-ar-io-manifest-fallback")]).toEqual([path, isFallback ? "true" : ""]);
    }
  });
});
