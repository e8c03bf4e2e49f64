/**
 * Paths below manifests, the apex, and manifests that are not what they say.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { header, openGatewayServer, wire } from "../support/gateway-server.ts";
import { createMemoryContent, idOf } from "../support/memory-content.ts";

const manifestType = "application/x.arweave-manifest+json";
const content = createMemoryContent();
const text = (value: string) => new TextEncoder().encode(value);

const index = content.put("index", { body: text("<h1>index"), contentType: "text/html" });
const style = content.put("style", { body: text("body{}"), contentType: "text/css" });
const lost = content.put("lost", { body: text("<h1>lost"), contentType: "text/html" });
const docs = content.put("docs", { body: text("<h1>docs"), contentType: "text/html" });
const spaced = content.put("spaced", { body: text("spaced"), contentType: "text/plain" });

const paths = {
  "index.html": { id: index },
  "assets/style.css": { id: style },
  "docs/index.html": { id: docs },
  "a b/ü.txt": { id: spaced },
  "slash%2Fname": { id: spaced },
  "gone.txt": { id: idOf("gone") },
};
const site = putManifest("site", {
  version: "0.2.0",
  index: { path: "index.html" },
  fallback: { id: lost },
  paths,
});
const old = putManifest("old", {
  version: "0.1.0",
  index: { path: "index.html" },
  fallback: { id: lost },
  paths,
});
const inner = putManifest("outer", {
  version: "0.2.0",
  index: { path: "inner" },
  paths: { inner: { id: site } },
});
const bad = content.put("bad", { body: text("{not json"), contentType: manifestType });
const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`f/${at}`, { id: style }]));
const badLarge = content.put("bad large", {
  body: text(`{"manifest":"other"${" ".repeat(2 ** 20)}}`),
  contentType: manifestType,
});
const large = putManifest("large", { version: "0.2.0", paths: { ...paths, ...many } });

function putManifest(name: string, fields: Record<string, unknown>): string {
  const body = text(JSON.stringify({ manifest: "arweave/paths", ...fields }));
  return content.put(name, { body, contentType: `${manifestType}; charset=utf-8` });
}

const plainServer = openGatewayServer({ content });
const apexServer = openGatewayServer({ content, settings: { apex: { id: idOf("site") } } });
afterAll(async () => {
  await plainServer.close();
  await apexServer.close();
  await content.close();
});

const get = (path: string, more = "", method = "GET", port = plainServer.server.port) =>
  wire(port, `${method} ${path} HTTP/1.1${more}`);

describe("a manifest", () => {
  test.each(["", "?a=1&b"])("without its slash sends on to it, query %j included", async (query) => {
    for (const method of ["GET", "HEAD"]) {
      const response = await get(`/${site}${query}`, "", method);
      expect([response.status, header(response, "location")]).toEqual([301, `/${site}/${query}`]);
    }
  });

  test.each([
    [`/${site}/`, "<h1>index", index],
    [`/${site}/index.html`, "<h1>index", index],
    [`/${site}/assets/style.css`, "body{}", style],
    [`/${site}/docs`, "<h1>docs", docs],
    [`/${site}/docs/`, "<h1>docs", docs],
    [`/${site}/a%20b/%C3%BC.txt`, "spaced", spaced],
    [`/${site}/slash%252Fname`, "spaced", spaced],
    [`/${old}/`, "<h1>index", index],
    [`/${large}/assets/style.css`, "body{}", style],
    [`/${large}/f/19999`, "body{}", style],
  ])("resolves %s", async (path, body, id) => {
    for (const round of [1, 2, 3]) {
      const [got, head] = [await get(path), await get(path, "", "HEAD")];
      expect([round, got.status, got.body.toString()]).toEqual([round, 200, body]);
      expect([header(got, "x-ar-io-data-id"), header(got, "etag")]).toEqual([id, `"${id}"`]);
      expect(header(got, "cache-control")).toContain("immutable");
      expect(header(head, "etag")).toBe(`"${id}"`);
      expect(header(got, "x-ar-io-manifest-fallback")).toBe("");
    }
  });

  test.each([`/${site}/nowhere`, `/${site}/assets`, `/${site}//index.html`, `/${site}/INDEX.html`])(
    "responds to %s with its fallback, and not for ever",
    async (path) => {
      for (const method of ["GET", "HEAD", "GET"]) {
        const response = await get(path, "", method);
        expect([response.status, header(response, "x-ar-io-data-id")]).toEqual([200, lost]);
        expect(header(response, "x-ar-io-manifest-fallback")).toBe("true");
        expect(header(response, "cache-control")).toBe("public, max-age=300");
      }
    },
  );

  test.each([
    `/${old}/nowhere`, // 0.1.0 has no fallback
    `/${large}/nowhere`,
    `/${site}/gone.txt`, // its id cannot be found
    `/${bad}/`,
    `/${bad}/x`,
    `/${badLarge}/x`,
  ])("responds to %s with 404", async (path) => {
    const response = await get(path);
    expect([response.status, header(response, "cache-control")]).toEqual([404, "no-store"]);
  });

  test("is followed once: a manifest behind a path is bytes", async () => {
    const response = await get(`/${inner}/`);
    expect([response.status, header(response, "x-ar-io-data-id")]).toEqual([200, site]);
    expect(JSON.parse(response.body.toString()).manifest).toBe("arweave/paths");
  });

  test("is never followed at /raw", async () => {
    for (const path of [`/raw/${site}`, `/raw/${site}/`]) {
      const response = await get(path);
      expect([response.status, header(response, "content-type")]).toEqual([200, `${manifestType}; charset=utf-8`]);
    }
  });

  test("R3: gives ranges and tags of what a path means", async () => {
    const part = await get(`/${site}/assets/style.css`, "\r\nRange: bytes=0-3");
    expect([part.status, part.body.toString(), header(part, "content-range")]).toEqual([206, "body", "bytes 0-3/6"]);
    expect((await get(`/${site}/assets/style.css`, `\r\nIf-None-Match: "${style}"`)).status).toBe(304);
  });

  test("M1: that leads to itself, by index, fallback or path, is bytes where it would begin again", async () => {
    const own = idOf("round");
    const rounds: readonly (readonly [Record<string, unknown>, string])[] = [
      [{ index: { id: own }, paths: {} }, ""],
      [{ index: { path: "again" }, paths: { again: { id: own } } }, ""],
      [{ fallback: { id: own }, paths: {} }, "nowhere"],
      [{ paths: { again: { id: own } } }, "again"],
    ];
    for (const [index, [fields, path]] of rounds.entries()) {
      const body = text(JSON.stringify({ manifest: "arweave/paths", version: "0.2.0", ...fields }));
      const id = content.put("round", { body, contentType: manifestType, stable: false });
      plainServer.gateway.forget(idOf("round"));
      const fresh = openGatewayServer({ content });
      const response = await wire(fresh.server.port, `GET /${id}/${path} HTTP/1.1`);
      expect([index, response.status, response.body.equals(Buffer.from(body))]).toEqual([index, 200, true]);
      await fresh.close();
    }
  });

  test.each([
    "../../x",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "%2e%2e/x",
    "a%2Fb",
    "a/b",
    "e\u0301",
    "\u00e9",
  ])("M1: takes the path %j for a name like others, and finds it only as it is written", async (name) => {
    const id = putManifest(`named ${name}`, {
      version: "0.2.0",
      paths: Object.fromEntries([[name, { id: style }]]),
    });
    const asked = (path: string) => get(`/${id}/${path}`);
    const escaped = name.split("/").map(encodeURIComponent).join("/");
    // A client resolves a path of dots to another path, so no such request arrives.
    const isReached = !name.startsWith("..");
    expect((await asked(escaped)).status).toBe(isReached ? 200 : 404);
    for (const other of [
      "prototype",
      "__defineGetter__",
      `${escaped}x`,
      name.normalize("NFD") === name ? "%C3%A9" : "e%CC%81",
    ])
      expect([other, (await asked(other)).status]).toEqual([other, 404]);
  });

  test("M1: of 100 MB leads nowhere, one of a million paths leads where it says", async () => {
    const million = `{"manifest":"arweave/paths","version":"0.2.0","paths":{${Array.from({ length: 10 ** 6 }, (_, at) => `"p/${at}":{"id":"${style}"}`).join(",")}}}`;
    const vast = content.put("vast", { body: Buffer.alloc(100 * 2 ** 20, 0x20), contentType: manifestType });
    const wide = content.put("wide", { body: text(million), contentType: manifestType });
    const responses = await Promise.all(
      [vast, wide].flatMap((id) =>
        // Here a thread's work is done between requests, so that the last ones wait for it.
        [`/${id}/p/1`, `/${id}/`, `/${site}/docs`].map((path) =>
          wire(plainServer.server.port, `GET ${path} HTTP/1.1`, 100_000),
        ),
      ),
    );
    expect(responses.map(({ status }) => status)).toEqual([404, 404, 200, 200, 404, 200]);
    const limit = "Not Found: the manifest has 104857600 bytes, at most 67108864 are read";
    expect(responses[0]?.body.toString()).toBe(JSON.stringify(limit));
    expect((await get(`/raw/${vast}`, "", "HEAD")).status).toBe(200);
  });

  test.each([
    ["small", {}],
    ["large", many],
  ])("that is %s and rejected takes its paths with it", async (size, more) => {
    const name = `blocked ${size}`;
    const blocked = putManifest(name, { version: "0.2.0", paths: { ...paths, ...more } });
    expect((await get(`/${blocked}/assets/style.css`)).status).toBe(200);
    content.block(idOf(name));
    plainServer.gateway.forget(idOf(name));
    for (const path of ["assets/style.css", "docs/", "nowhere"])
      expect((await get(`/${blocked}/${path}`)).status).toBe(451);
  });

  test("that is large responds as a small one does, header for header", async () => {
    const fields = { version: "0.2.0", index: { path: "index.html" }, fallback: { id: lost } };
    const small = putManifest("as small", { ...fields, paths });
    const wide = putManifest("as large", { ...fields, paths: { ...paths, ...many } });
    const seen = async (id: string, path: string, more: string, method: string) => {
      const { status, headers, body } = await get(`/${id}/${path}`, more, method);
      const own = ["date", "x-request-id"];
      return { status, headers: headers.filter(([name]) => !own.includes(name)), body: body.toString() };
    };
    for (const path of [
      "",
      "index.html",
      "assets/style.css",
      "docs",
      "docs/",
      "nowhere",
      "gone.txt",
      "a%20b/%C3%BC.txt",
    ])
      for (const more of ["", "\r\nRange: bytes=0-3", `\r\nIf-None-Match: "${style}"`])
        for (const method of ["GET", "HEAD"])
          expect(await seen(wide, path, more, method)).toEqual(await seen(small, path, more, method));
    for (const id of [small, wide]) expect((await get(`/${id}?a`)).status).toBe(301);
  });
});

describe("with an apex", () => {
  test.each([
    ["/", 200, "<h1>index"],
    ["/assets/style.css", 200, "body{}"],
    ["/docs/", 200, "<h1>docs"],
    ["/nowhere", 200, "<h1>lost"],
    [`/${style}`, 200, "body{}"],
    [`/raw/${style}`, 200, "body{}"],
    ["/svc/nowhere", 404, '"Not Found"'],
    ["/tx/a/b/c", 404, '"Not Found"'],
    ["/payment/x", 404, '"Not Found"'],
    ["/raw", 400, '"Invalid ID"'],
  ])("%s responds with %d %j", async (path, status, body) => {
    for (const method of ["GET", "HEAD"]) {
      const response = await get(path, "", method, apexServer.server.port);
      expect([method, response.status, response.body.toString()]).toEqual([
        method,
        status,
        method === "GET" ? body : "",
      ]);
    }
  });

  test("what the root means is not stored for ever", async () => {
    const response = await get("/assets/style.css", "", "GET", apexServer.server.port);
    expect(header(response, "cache-control")).toBe("public, max-age=300");
    const byId = await get(`/${site}/assets/style.css`, "", "GET", apexServer.server.port);
    expect(header(byId, "cache-control")).toContain("immutable");
  });
});
