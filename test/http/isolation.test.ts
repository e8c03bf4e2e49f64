/**
 * Hosts over the wire: routes that the host of an id serves, and routes that it does not.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { sandboxLabel } from "../../src/http/hosts.ts";
import { header, openGatewayServer, wire } from "../support/gateway-server.ts";
import { manifestItem } from "../support/manifest-text.ts";
import { createMemoryContent, idOf } from "../support/memory-content.ts";

const content = createMemoryContent();
const text = (value: string) => new TextEncoder().encode(value);
const page = content.put("page", { body: text("<p>page"), contentType: "text/html" });
const style = content.put("style", { body: text("body{}"), contentType: "text/css" });
const site = content.put(
  "site",
  manifestItem({
    index: { path: "index.html" },
    paths: { "index.html": { id: page }, "tx/style.css": { id: style }, graphql: { id: style } },
  }),
);
const siteHost = `${sandboxLabel(idOf("site"))}.localhost`;
const pageHost = `${sandboxLabel(idOf("page"))}.localhost`;

const isolating = openGatewayServer({
  content,
  settings: { rootHosts: ["localhost"] },
  isTrustedProxy: (address) => address.includes("127.0.0.1"),
});
const csp = openGatewayServer({ content, settings: { isolation: "csp" } });
const cspWithRoot = openGatewayServer({ content, settings: { isolation: "csp", rootHosts: ["localhost"] } });
const off = openGatewayServer({ content, settings: { isolation: "off", rootHosts: ["localhost"] } });
const all = openGatewayServer({ content, settings: { redirectAll: true, rootHosts: ["example.org"] } });
const forced = openGatewayServer({
  content,
  settings: { sandboxScheme: "https", rootHosts: ["example.org"] },
});
const servers = [isolating, csp, cspWithRoot, off, all, forced];
afterAll(async () => {
  for (const { close } of servers) await close();
  await content.close();
});

const ask = (path: string, host: string, more = "", from = isolating, method = "GET") =>
  wire(from.server.port, `${method} ${path} HTTP/1.1\r\nHost: ${host}${more}`);
const opened = "\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate";
const framed = "\r\nSec-Fetch-Dest: iframe";
const fetched = "\r\nSec-Fetch-Dest: empty\r\nAccept: text/html";
const oldBrowser = "\r\nAccept: text/html,*/*";

describe("X1: a page that is opened on a shared host", () => {
  test.each([
    [`/${page}`, "localhost:3000", opened, `http://${pageHost}:3000/${page}`],
    [`/${page}`, "127.0.0.1:3000", framed, `http://${pageHost}:3000/${page}`],
    [`/${page}?a=1&b=%20`, "localhost", oldBrowser, `http://${pageHost}/${page}?a=1&b=%20`],
    [`/${site}/a/b?x`, "localhost", opened, `http://${siteHost}/${site}/a/b?x`],
    [`/${site}`, "gw.test:80", opened, `http://${siteHost}/${site}`],
    [`/${page}`, "localhost", `${opened}\r\nX-Forwarded-Proto: https`, `https://${pageHost}/${page}`],
    [`/${page}`, "localhost", `${opened}\r\nX-Forwarded-Proto: javascript`, `http://${pageHost}/${page}`],
  ])("%s on %s is sent to its own host", async (path, host, more, location) => {
    for (const method of ["GET", "HEAD"]) {
      const response = await ask(path, host, more, isolating, method);
      expect([response.status, header(response, "location")]).toEqual([302, location]);
      expect(header(response, "vary")).toBe("Sec-Fetch-Dest, Accept");
    }
  });

  test("is sent below the root host that it was asked of", async () => {
    const two = openGatewayServer({ content, settings: { rootHosts: ["localhost", "example.org"] } });
    for (const [host, root] of [
      ["example.org:81", "example.org:81"],
      ["www.example.org", "example.org"],
      ["localhost", "localhost"],
      ["gw.test", "localhost"],
    ] as const) {
      const response = await ask(`/${page}`, host, opened, two);
      expect(header(response, "location")).toBe(`http://${sandboxLabel(idOf("page"))}.${root}/${page}`);
    }
    await two.close();
  });

  test("is sent there also when the bytes are in memory", async () => {
    expect((await ask(`/${page}`, "localhost", fetched)).status).toBe(200);
    expect((await ask(`/${page}`, "localhost")).status).toBe(200);
    expect((await ask(`/${page}`, "localhost", opened)).status).toBe(302);
    expect((await ask(`/${page}`, "localhost", oldBrowser)).status).toBe(302);
    expect((await ask(`/${page}`, "localhost", "\r\nAccept: Text/HTML")).status).toBe(302);
    expect((await ask(`/${page}`, siteHost)).status).toBe(200);
    expect((await ask(`/${page}`, siteHost, opened)).status).toBe(302);
  });

  test("follows the operator's scheme before the request's", async () => {
    const response = await ask(`/${page}`, "localhost", opened, forced);
    expect(header(response, "location")).toBe(`https://${sandboxLabel(idOf("page"))}.example.org/${page}`);
  });

  test("a scheme that a stranger claims is not believed", async () => {
    const response = await ask(`/${page}`, "localhost", `${opened}\r\nX-Forwarded-Proto: https`, all);
    expect(header(response, "location")).toStartWith("http://");
  });
});

describe("served where it was requested", () => {
  test.each([
    ["fetch", `/${page}`, "localhost", fetched],
    ["a program", `/${page}`, "localhost", ""],
    ["curl", `/${page}`, "localhost", "\r\nAccept: */*"],
    ["an image", `/${page}`, "localhost", "\r\nSec-Fetch-Dest: image\r\nAccept: text/html"],
    ["raw bytes that are opened", `/raw/${page}`, "localhost", opened],
    ["a page on its own host", `/${page}`, pageHost, opened],
    ["another id's bytes on an id's host", `/${page}`, siteHost, fetched],
  ])("%s", async (_name, path, host, more) => {
    const response = await ask(path, host, more);
    expect([response.status, response.body.toString()]).toEqual([200, "<p>page"]);
  });

  const byDestination = "Sec-Fetch-Dest, Accept";
  test.each([
    ["a page on a host that ids share", `/${page}`, "localhost", isolating, byDestination],
    ["on its own host", `/${page}`, pageHost, isolating, ""],
    // Else a script could store a page for the host of another id, in its own browser or in a proxy for all.
    ["on the host of another id", `/${page}`, siteHost, isolating, byDestination],
    ["at the root of its own host", "/", pageHost, isolating, ""],
    ["as it is stored", `/raw/${page}`, "localhost", isolating, ""],
    ["as it is stored, on the host of another id", `/raw/${page}`, siteHost, isolating, ""],
    ["where ids have no hosts", `/${page}`, "localhost", csp, ""],
    ["where ids are not isolated", `/${page}`, siteHost, off, ""],
  ])("caches learn whether a response depends on its destination: %s", async (_which, path, host, from, vary) => {
    for (const method of ["GET", "HEAD", "GET"])
      expect(header(await ask(path, host, "", from, method), "vary")).toBe(vary);
  });

  test("everything is sent on when the operator says so, raw bytes never", async () => {
    expect((await ask(`/${page}`, "gw.test", fetched, all)).status).toBe(302);
    expect((await ask(`/raw/${page}`, "gw.test", fetched, all)).status).toBe(200);
    expect((await ask("/info", "gw.test", opened, all)).status).not.toBe(302);
  });

  test("nothing is sent on when isolation is off", async () => {
    expect((await ask(`/${page}`, "localhost", opened, off)).status).toBe(200);
  });
});

describe("X3: a redirect", () => {
  test.each([
    ["evil.test", "localhost"],
    ["evil.test:80", "localhost"],
    ["localhost.evil.test", "localhost"],
    ["evil.test\r\nX-Forwarded-Host: evil.test", "localhost"],
    ["169.254.169.254", "localhost"],
    ["[::1]:3000", "localhost:3000"],
    ["LOCALHOST", "localhost"],
  ])("requested under the host %j is redirected below a root host: %s", async (host, root) => {
    for (const path of [`/${page}`, `/${page}?next=https://evil.test`, `/${page}//evil.test`]) {
      const response = await ask(path, host, opened);
      const location = header(response, "location");
      expect([response.status, new URL(location).host]).toEqual([302, `${sandboxLabel(idOf("page"))}.${root}`]);
    }
  });
  test.each(["a@b", "evil.test@localhost", "localhost/evil.test", "local host", "localhost?x", "localhost#x"])(
    "requested under the invalid host %j is not made",
    async (host) => {
      const response = await ask(`/${page}`, host, opened);
      expect([response.status, header(response, "location")]).toEqual([400, ""]);
    },
  );
  test("of a manifest to its slash stays where it is", async () => {
    for (const path of [`/${site}`, `/${site}?u=//evil.test`]) {
      const response = await ask(path, "evil.test", fetched);
      expect([response.status, header(response, "location").startsWith(`/${site}/`)]).toEqual([301, true]);
    }
  });
});

describe("an id's own host", () => {
  test.each([
    ["/", 200, "<p>page"],
    ["/index.html", 200, "<p>page"],
    ["/tx/style.css", 200, "body{}"],
    ["/graphql", 200, "body{}"],
    [`/${site}/`, 200, "<p>page"],
    [`/${site}/graphql`, 200, "body{}"],
    [`/raw/${style}`, 200, "body{}"],
    ["/svc/healthcheck", 404, '"Not Found"'],
    ["/info", 404, '"Not Found"'],
    ["/metrics", 404, '"Not Found"'],
    ["/svc/admin/debug", 404, '"Not Found"'],
  ])("responds to %s with %d %j: all of it is content", async (path, status, body) => {
    for (const more of [opened, fetched, ""]) {
      const response = await ask(path, siteHost, more);
      expect([response.status, response.body.toString()]).toEqual([status, body]);
    }
  });

  test("takes no other method, and no query", async () => {
    const post = await ask("/graphql", siteHost, "\r\nContent-Length: 2\r\n\r\n{}", isolating, "POST");
    expect([post.status, header(post, "allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
  });

  test("keeps its memory apart from that of other hosts", async () => {
    await ask("/graphql", siteHost);
    const other = await ask("/graphql", pageHost);
    expect(other.status).toBe(404);
  });

  test("of a name that does not resolve has no content", async () => {
    expect((await ask("/", "name.localhost")).status).toBe(404);
    for (const path of ["/info", "/svc/admin/debug"]) {
      const response = await ask(path, "name.localhost");
      expect([response.status, header(response, "location")]).toEqual([302, "/"]);
    }
  });

  test("sends a page of another id on to that id's host", async () => {
    const response = await ask(`/${page}`, siteHost, opened);
    expect([response.status, header(response, "location")]).toEqual([302, `http://${pageHost}/${page}`]);
  });
});

describe("X1: a service worker", () => {
  const script = "\r\nService-Worker: script\r\nSec-Fetch-Dest: serviceworker";
  test("is rejected on a host that ids share", async () => {
    for (const from of servers)
      for (const path of [`/${style}`, `/raw/${style}`, `/${site}/graphql`]) {
        const response = await ask(path, "gw.test", script, from);
        expect([response.status, response.body.toString()]).toEqual([
          403,
          '"Service workers are not allowed on a shared origin"',
        ]);
      }
  });

  test("is rejected also when its bytes are in memory", async () => {
    expect((await ask(`/${style}`, "gw.test")).status).toBe(200);
    expect((await ask(`/${style}`, "gw.test", script)).status).toBe(403);
  });

  test("is given on an id's own host", async () => {
    expect((await ask("/graphql", siteHost, script)).status).toBe(200);
  });
});

describe("X1: a content security policy", () => {
  const withScripts = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads";
  test.each([
    ["csp", csp, "gw.test", `/${page}`, withScripts],
    ["csp", csp, "gw.test", `/${style}`, ""],
    ["csp", csp, "gw.test", `/raw/${page}`, "sandbox"],
    ["csp with a root host", cspWithRoot, "localhost", `/${page}`, withScripts],
    ["csp with a root host", cspWithRoot, pageHost, `/${page}`, ""],
    ["auto", isolating, "localhost", `/${page}`, ""],
    ["auto", isolating, pageHost, `/raw/${page}`, "sandbox"],
    ["off", off, "localhost", `/raw/${page}`, "sandbox"],
    ["off", off, "localhost", `/${page}`, ""],
  ])("in mode %s is set on active types", async (_mode, from, host, path, policy) => {
    for (const method of ["GET", "HEAD", "GET"]) {
      const response = await ask(path, host, "", from, method);
      expect([response.status, header(response, "content-security-policy")]).toEqual([200, policy]);
      expect(header(response, "x-content-type-options")).toBe("nosniff");
    }
  });
});
