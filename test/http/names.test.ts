/**
 * Names over the wire: on their hosts, as the apex, at the resolver; blocked, absent and unresolvable names.
 * @module
 */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openNameGateways } from "../../src/chain/name-gateways.ts";
import { Failure } from "../../src/failures.ts";
import { createStoredNames } from "../../src/gateway/names/name-cache.ts";
import { createNames } from "../../src/gateway/names/names.ts";
import { createNamesFile } from "../../src/gateway/names/names-file.ts";
import { sandboxLabel } from "../../src/http/hosts.ts";
import { createLog } from "../../src/lib/log.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openBlockList } from "../../src/store/block-list.ts";
import { header, openGatewayServer, type WireResponse, wire } from "../support/gateway-server.ts";
import { manifestItem } from "../support/manifest-text.ts";
import { createMemoryContent, idOf } from "../support/memory-content.ts";
import { type NameScript, openNameGateway } from "../support/name-gateway.ts";

const content = createMemoryContent();
const bytes = (text: string) => new TextEncoder().encode(text);
const put = (name: string, text: string, contentType: string) => content.put(name, { body: bytes(text), contentType });
const page = put("page", "<p>page", "text/html");
const style = put("style", "body{}", "text/css");
const about = put("about", "<p>about", "text/html");
const manifest = (paths: Readonly<Record<string, string>>, fallback?: string) =>
  manifestItem({
    index: { path: "index.html" },
    ...(fallback === undefined ? {} : { fallback: { id: fallback } }),
    paths: Object.fromEntries(Object.entries(paths).map(([path, id]) => [path, { id }])),
  });
const site = content.put(
  "site",
  manifest({ "index.html": page, "a/style.css": style, graphql: style, "raw/notes": style }),
);
const app = content.put("app", manifest({ "index.html": page }, about));
const lost = content.put("lost", manifest({ "index.html": about, "lost.css": style }));
const message = "ArNS undername limit exceeded. Purchase additional undernames to continue.";

const folder = mkdtempSync(join(tmpdir(), "cairn-names-"));
const namesPath = join(folder, "names.json");
writeFileSync(
  namesPath,
  JSON.stringify({
    site,
    app: { id: app, ttlSeconds: 60 },
    text: style,
    gone: idOf("nothing"),
    many: { id: page, undernameLimit: 1, undernames: { one: style, two: about } },
  }),
);
const upstream = openNameGateway();
const blockList = openBlockList(join(folder, "moderation.sqlite"), Date.now);
const life: (() => unknown)[] = [];
let now = Date.now();

afterEach(() => {
  upstream.speak();
  upstream.scripts.clear();
  upstream.questions.length = 0;
});
afterAll(async () => {
  for (const close of life) await close();
  await upstream.close();
  await content.close();
  blockList.close();
  removeFolder(folder);
});

type Options = Readonly<{
  settings?: Parameters<typeof openGatewayServer>[0]["settings"];
  isLimitEnforced?: boolean;
  isAlone?: boolean;
}>;

/** A gateway with the names of the file, and those of the other gateway unless it is alone. */
function open({ settings, isLimitEnforced = true, isAlone = false }: Options = {}) {
  const log = createLog({ level: "error", format: "json", clock: Date.now, write: () => undefined });
  const gateways = openNameGateways([upstream.template], 1_000);
  const stored = createStoredNames({
    gateways,
    retentionMs: 3_600_000,
    storedMax: 1_000,
    patienceMs: 5_000,
    metrics: createMetrics(),
    clock: () => now,
    log,
  });
  const names = createNames({
    blockList,
    file: createNamesFile(namesPath, () => now, log),
    gateways: isAlone ? undefined : stored,
    isLimitEnforced,
    clock: () => now,
  });
  const opened = openGatewayServer({
    content,
    names,
    settings: { rootHosts: ["gw.test", "deep.gw.test", "other.test"], ...settings },
  });
  life.push(opened.close, stored.close, gateways.close);
  return opened;
}

const gateway = open();
const ask = (path: string, host: string, more = "", from = gateway, method = "GET") =>
  wire(from.server.port, `${method} ${path} HTTP/1.1\r\nHost: ${host}${more}`);
const shown = (response: WireResponse) => [response.status, response.body.toString()];
const says = (id: string, more: Readonly<Record<string, string>> = {}): NameScript => ({
  status: 200,
  headers: { "X-ArNS-Resolved-Id": id, ...more },
});

describe("a name's own host", () => {
  test.each([
    ["site.gw.test", "/", 200, "<p>page"],
    ["site.gw.test", "/index.html", 200, "<p>page"],
    ["site.gw.test", "/a/style.css", 200, "body{}"],
    ["site.gw.test", "/a%2Fstyle.css", 200, "body{}"],
    ["site.gw.test", "/graphql", 200, "body{}"],
    ["site.gw.test", "/raw/notes", 200, "body{}"],
    ["site.gw.test", "/svc/admin/debug", 404, '"Not Found"'],
    ["site.gw.test", "/info", 404, '"Not Found"'],
    ["site.gw.test", "/tx", 404, '"Not Found"'],
    ["site.gw.test", "/%", 400, '"Malformed path"'],
    ["SITE.Gw.Test:3000", "/", 200, "<p>page"],
    ["site.other.test", "/", 200, "<p>page"],
    ["site.deep.gw.test", "/", 200, "<p>page"],
    ["whatever.site.gw.test", "/", 200, "<p>page"],
    ["text.gw.test", "/", 200, "body{}"],
    ["text.gw.test", "/more", 404, '"Not Found"'],
    ["app.gw.test", "/no/such/path", 200, "<p>about"],
    ["gone.gw.test", "/", 404, '"Not Found"'],
    ["many.gw.test", "/", 200, "<p>page"],
    ["one_many.gw.test", "/", 200, "body{}"],
    ["two_many.gw.test", "/", 402, message],
    ["site.gw.test", `/${style}`, 200, "body{}"],
    ["site.gw.test", `/raw/${site}`, 200, expect.stringContaining("arweave/paths")],
  ])("%s%s responds with %d", async (host, path, status, body) => {
    for (let round = 0; round < 2; round++) expect(shown(await ask(path, host))).toEqual([status, body]);
    const head = await ask(path, host, "", gateway, "HEAD");
    const plain = await ask(path, host);
    const stableHeaders = (response: WireResponse) =>
      new Map(response.headers.filter(([name]) => !["date", "x-request-id", "x-arns-resolved-at"].includes(name)));
    expect([head.status, stableHeaders(head)]).toEqual([status, stableHeaders(plain)]);
  });

  test("states the id that the name resolves to, and its time to live", async () => {
    const response = await ask("/", "app.gw.test");
    const said = Object.fromEntries(response.headers.filter(([name]) => name.startsWith("x-arns-")));
    expect(said).toEqual({
      "x-arns-name": "app",
      "x-arns-basename": "app",
      "x-arns-record": "@",
      "x-arns-resolved-id": app,
      "x-arns-ttl-seconds": "60",
      "x-arns-resolved-at": String(now),
      "x-arns-record-index": "0",
    });
    expect(header(response, "cache-control")).toBe("public, max-age=60");
    expect(header(response, "x-ar-io-data-id")).toBe(page);
    expect(header(response, "etag")).toBe(`"${page}"`);
    expect(header(response, "access-control-expose-headers")).toStartWith("*");
  });

  test("of an undername says so", async () => {
    const response = await ask("/", "one_many.gw.test");
    expect(header(response, "x-arns-name")).toBe("one_many");
    expect(header(response, "x-arns-basename")).toBe("many");
    expect(header(response, "x-arns-record")).toBe("one");
    expect(header(response, "x-arns-record-index")).toBe("1");
    expect(header(response, "x-arns-undername-limit")).toBe("1");
  });

  test("is never immutable, however sure the bytes are; a fallback no longer than five minutes", async () => {
    for (const more of ["", "\r\nRange: bytes=0-1", `\r\nIf-None-Match: "${page}"`]) {
      const response = await ask("/", "site.gw.test", more);
      expect([200, 206, 304]).toContain(response.status);
      expect(header(response, "cache-control")).toBe("public, max-age=900");
    }
    upstream.scripts.set("faraway", says(app, { "X-ArNS-TTL-Seconds": "3600" }));
    expect(header(await ask("/", "faraway.gw.test"), "cache-control")).toBe("public, max-age=3600");
    expect(header(await ask("/x", "faraway.gw.test"), "cache-control")).toBe("public, max-age=300");
  });

  test("handles ranges and conditions like the address of an id", async () => {
    expect(shown(await ask("/", "site.gw.test", "\r\nRange: bytes=3-4"))).toEqual([206, "pa"]);
    expect((await ask("/", "site.gw.test", "\r\nRange: bytes=99-")).status).toBe(416);
    expect((await ask("/", "site.gw.test", `\r\nIf-None-Match: "${page}"`)).status).toBe(304);
  });

  test("takes no other method", async () => {
    const response = await ask("/graphql", "site.gw.test", "\r\nContent-Length: 2\r\n\r\n{}", gateway, "POST");
    expect([response.status, header(response, "allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
  });

  test("keeps a page of another id away: a browser that opens it is sent to that id's host", async () => {
    const response = await ask(`/${about}`, "site.gw.test:81", "\r\nSec-Fetch-Dest: document");
    const own = `http://${sandboxLabel(about)}.gw.test:81/${about}`;
    expect([response.status, header(response, "location")]).toEqual([302, own]);
    expect((await ask("/", "site.gw.test", "\r\nSec-Fetch-Dest: document")).status).toBe(200);
  });

  test("gives service workers of its own", async () => {
    expect((await ask("/a/style.css", "site.gw.test", "\r\nService-Worker: script")).status).toBe(200);
  });

  test("of www is ours", async () => {
    expect((await ask("/svc/info", "www.gw.test")).status).toBe(200);
  });

  test("shows the new content as soon as its name resolves to it", async () => {
    upstream.scripts.set("moving", says(page, { "X-ArNS-TTL-Seconds": "30" }));
    for (let round = 0; round < 3; round++) expect(shown(await ask("/", "moving.gw.test"))[1]).toBe("<p>page");
    upstream.scripts.set("moving", says(about, { "X-ArNS-TTL-Seconds": "30" }));
    now += 30_000;
    expect(shown(await ask("/", "moving.gw.test"))[1]).toBe("<p>about");
  });
});

describe("a name that does not resolve", () => {
  const alone = open({ isAlone: true });
  const withPage = open({
    isAlone: true,
    settings: { notFoundPage: { id: lost, name: "ignored" } },
  });
  const withName = open({ settings: { notFoundPage: { id: undefined, name: "lost_page" } } });

  test.each(["none.gw.test", "under_site.gw.test", "-.gw.test", "a__.gw.test", `${"x".repeat(63)}.gw.test`])(
    "%s is absent at its root, and sends other paths there",
    async (host) => {
      const root = await ask("/", host, "", alone);
      expect([...shown(root), header(root, "cache-control")]).toEqual([404, '"Not Found"', "no-store"]);
      const other = await ask("/a/b?c", host, "", alone);
      expect([other.status, header(other, "location"), header(other, "cache-control")]).toEqual([302, "/", "no-store"]);
    },
  );

  test.each([
    ["http://none.gw.test/", 404],
    ["https://none.gw.test:8443/x", 404],
    ["http://site.gw.test/", 302],
    ["none.gw.test", 302],
    ["", 302],
  ])("another path that was requested from %p responds with %d", async (referer, status) => {
    expect((await ask("/style.css", "none.gw.test", `\r\nReferer: ${referer}`, alone)).status).toBe(status);
  });

  test("shows the operator's page with status 404, its parts with 200, and neither is stored", async () => {
    for (const [method, body] of [["GET", "<p>about"] as const, ["HEAD", ""] as const]) {
      const root = await ask("/", "none.gw.test", "", withPage, method);
      expect([...shown(root), header(root, "cache-control")]).toEqual([404, body, "no-store"]);
      expect(header(root, "content-length")).toBe("8");
      expect(header(root, "content-type")).toBe("text/html; charset=utf-8");
      expect(header(root, "x-arns-resolved-id")).toBe("");
    }
    const part = await ask("/lost.css", "none.gw.test", "\r\nReferer: http://none.gw.test/", withPage);
    expect([...shown(part), header(part, "cache-control")]).toEqual([200, "body{}", "no-store"]);
    const noPart = await ask("/other.css", "none.gw.test", "\r\nReferer: http://none.gw.test/", withPage);
    expect([...shown(noPart), header(noPart, "cache-control")]).toEqual([404, '"Not Found"', "no-store"]);
  });

  test("shows all of the page, whatever range and conditions the request has", async () => {
    for (const more of ["\r\nRange: bytes=0-1", `\r\nIf-None-Match: "${about}"`, `\r\nIf-None-Match: *`])
      expect(shown(await ask("/", "none.gw.test", more, withPage))).toEqual([404, "<p>about"]);
  });

  test("shows the page of a name", async () => {
    upstream.scripts.set("lost_page", says(lost));
    expect(shown(await ask("/", "none.gw.test", "", withName))).toEqual([404, "<p>about"]);
  });

  test("is absent though its page cannot be had", async () => {
    const broken = open({
      isAlone: true,
      settings: { notFoundPage: { id: idOf("broken"), name: undefined } },
    });
    content.fail(idOf("broken"), new Failure("source_failed"));
    expect(shown(await ask("/", "none.gw.test", "", broken))).toEqual([404, '"Not Found"']);
    const unsaid = open({ settings: { notFoundPage: { id: undefined, name: "silent" } } });
    upstream.scripts.set("silent", "silent");
    expect(shown(await ask("/", "none.gw.test", "", unsaid))).toEqual([404, '"Not Found"']);
  });
});

describe("a name whose resolvers do not respond", () => {
  test.each<readonly [string, NameScript, number]>([
    ["a status", { status: 500 }, 502],
    ["an invalid id", says("none"), 502],
    ["silence", "silent", 504],
  ])("is not absent: %s", async (name, script, status) => {
    const label = name.replaceAll(" ", "-");
    upstream.scripts.set(label, script);
    for (const path of ["/", "/a"]) {
      const response = await ask(path, `${label}.gw.test`);
      expect(response.status).toBe(status);
      expect(header(response, "cache-control")).toBe("no-store");
      expect(header(response, "retry-after")).toMatch(/^\d+$/);
    }
    expect((await ask(`/svc/resolver/${label}`, "gw.test")).status).toBe(status);
    upstream.scripts.set(label, says(page));
    expect((await ask("/", `${label}.gw.test`)).status).toBe(200);
  });

  test("of unavailable content is an error, and of absent content names its id", async () => {
    content.fail(idOf("fault"), new Failure("source_timeout"));
    upstream.scripts.set("faulty", says(idOf("fault")));
    expect((await ask("/", "faulty.gw.test")).status).toBe(504);
    const gone = await ask("/", "gone.gw.test");
    expect([gone.status, header(gone, "x-arns-resolved-id")]).toEqual([404, idOf("nothing")]);
    expect(header(gone, "cache-control")).toBe("no-store");
  });
});

describe("an undername beyond its limit", () => {
  const lenient = open({ isLimitEnforced: false });
  test("gets 402 in plain text that is not cached", async () => {
    for (const path of ["/", "/x"]) {
      const response = await ask(path, "two_many.gw.test");
      expect(shown(response)).toEqual([402, message]);
      expect(header(response, "content-type")).toBe("text/plain; charset=utf-8");
      expect(header(response, "cache-control")).toBe("no-store");
      expect(header(response, "x-arns-record-index")).toBe("2");
    }
  });

  test.each([
    ["over_a", "11", "10", 402],
    ["last_a", "10", "10", 200],
    ["a", "0", "0", 200],
    ["unlimited_a", "11", undefined, 200],
  ])("%s: index %s, limit %s is %d", async (name, index, limit, status) => {
    const more = limit === undefined ? {} : { "X-ArNS-Undername-Limit": limit };
    upstream.scripts.set(name, says(page, { "X-ArNS-Record-Index": index, ...more }));
    expect((await ask("/", `${name}.gw.test`)).status).toBe(status);
  });

  test("that another gateway rejects is rejected here", async () => {
    upstream.scripts.set("theirs_a", { status: 402 });
    expect(shown(await ask("/", "theirs_a.gw.test"))).toEqual([402, message]);
    expect((await ask("/svc/resolver/theirs_a", "gw.test")).status).toBe(402);
  });

  test("is served where the operator does not mind", async () => {
    expect(shown(await ask("/", "two_many.gw.test", "", lenient))).toEqual([200, "<p>about"]);
  });

  test("is reported by the resolver", async () => {
    const response = await ask("/svc/resolver/two_many", "gw.test");
    expect([response.status, JSON.parse(response.body.toString())]).toEqual([
      200,
      { txId: about, ttlSeconds: 900, resolvedAt: now, index: 2, limit: 1 },
    ]);
  });
});

describe("the resolver", () => {
  const processId = "qNvAoz0TgcH7DMg8BCVn8jF32QH5L6T29VjHxhHqqGE";
  test.each(["/svc/resolver", "/ar-io/resolver"])("at %s returns the record of a name", async (path) => {
    upstream.scripts.set("docs_far", {
      status: 200,
      headers: {
        "X-ArNS-Resolved-Id": page,
        "X-ArNS-TTL-Seconds": "120",
        "X-ArNS-Process-Id": processId,
        "X-ArNS-Record-Index": "2",
        "X-ArNS-Undername-Limit": "10",
      },
    });
    const response = await ask(`${path}/Docs_Far`, "gw.test");
    const body = { txId: page, ttlSeconds: 120, processId, resolvedAt: now, index: 2, limit: 10 };
    expect([response.status, JSON.parse(response.body.toString())]).toEqual([200, body]);
    expect(header(response, "cache-control")).toBe("public, max-age=120");
    const said = Object.fromEntries(response.headers.filter(([name]) => name.startsWith("x-arns-")));
    expect(said).toEqual({
      "x-arns-name": "docs_far",
      "x-arns-basename": "far",
      "x-arns-record": "docs",
      "x-arns-resolved-id": page,
      "x-arns-ttl-seconds": "120",
      "x-arns-process-id": processId,
      "x-arns-resolved-at": String(now),
      "x-arns-record-index": "2",
      "x-arns-undername-limit": "10",
    });
  });

  test.each(["none", "a%20b", "..%2Fadmin", "a.b", "x".repeat(64), "%00", "docs_"])("knows no %s", async (name) => {
    const response = await ask(`/svc/resolver/${name}`, "gw.test");
    expect([...shown(response), header(response, "cache-control")]).toEqual([404, '"Not Found"', "no-store"]);
  });

  test("sends no request for an invalid name", async () => {
    for (const name of ["a%20b", "..%2Fadmin", "a.b", "x".repeat(64)]) await ask(`/svc/resolver/${name}`, "gw.test");
    await ask("/", `${"y".repeat(10)}_.gw.test`);
    expect(upstream.questions).toEqual([]);
  });

  test("distinguishes old records from new ones", async () => {
    upstream.scripts.set("aging", says(page, { "X-ArNS-TTL-Seconds": "10" }));
    await ask("/svc/resolver/aging", "gw.test");
    upstream.scripts.set("aging", { status: 500 });
    now += 10_000;
    for (const path of ["/svc/resolver/aging", "/ar-io/resolver/aging"]) {
      const response = await ask(path, "gw.test");
      expect([response.status, header(response, "cache-control")]).toEqual([200, "public, max-age=0"]);
    }
    expect(header(await ask("/", "aging.gw.test"), "cache-control")).toBe("public, max-age=0");
  });

  test("forwards the number of gateways between", async () => {
    await ask("/svc/resolver/hopping", "gw.test", "\r\nX-AR-IO-Hops: 2");
    await ask("/", "jumping.gw.test", "\r\nX-AR-IO-Hops: 1");
    expect(upstream.questions.map(({ hops }) => hops)).toEqual(["3", "2"]);
    expect((await ask("/svc/resolver/circling", "gw.test", "\r\nX-AR-IO-Hops: 3")).status).toBe(502);
  });

  test("takes no other method, and is not there on a name's host", async () => {
    const posted = await ask("/svc/resolver/site", "gw.test", "\r\nContent-Length: 0", gateway, "POST");
    expect([posted.status, header(posted, "allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
    expect((await ask("/svc/resolver/site", "site.gw.test")).status).toBe(404);
  });
});

describe("the apex by name", () => {
  const apex = open({ settings: { apex: { name: "site" } } });
  const moving = open({ settings: { apex: { name: "apex" } } });
  const none = open({ isAlone: true, settings: { apex: { name: "none" } } });
  const csp = open({ settings: { apex: { name: "site" }, isolation: "csp" } });

  test.each([
    ["/", 200, "<p>page"],
    ["/index.html", 200, "<p>page"],
    ["/a/style.css", 200, "body{}"],
    ["/nothing", 404, '"Not Found"'],
    ["/svc/nothing", 404, '"Not Found"'],
    ["/svc/info", 200, expect.stringContaining("supportedManifestVersions")],
    ["/health", 200, expect.stringContaining("uptime")],
    ["/svc/resolver/site", 200, expect.stringContaining(site)],
    ["/graphql/x", 404, '"Not Found"'],
    [`/${style}`, 200, "body{}"],
    ["/raw/notes", 400, '"Invalid ID"'],
  ])("responds to %s with %d", async (path, status, body) => {
    for (const host of ["gw.test", "www.gw.test", "127.0.0.1"])
      for (let round = 0; round < 2; round++) expect(shown(await ask(path, host, "", apex))).toEqual([status, body]);
  });

  test("states the id that its name resolves to", async () => {
    const response = await ask("/a/style.css", "gw.test", "", apex);
    expect(header(response, "x-arns-name")).toBe("site");
    expect(header(response, "x-arns-resolved-id")).toBe(site);
    expect(header(response, "cache-control")).toBe("public, max-age=900");
  });

  test("changes with its name, also where memory holds the old content", async () => {
    upstream.scripts.set("apex", says(page, { "X-ArNS-TTL-Seconds": "5" }));
    for (let round = 0; round < 3; round++)
      expect(shown(await ask("/", "gw.test", "", moving))).toEqual([200, "<p>page"]);
    upstream.scripts.set("apex", says(about, { "X-ArNS-TTL-Seconds": "5" }));
    now += 5_000;
    expect(shown(await ask("/", "gw.test", "", moving))).toEqual([200, "<p>about"]);
    upstream.scripts.set("apex", { status: 500 });
    now += 5_000;
    expect(shown(await ask("/", "gw.test", "", moving))).toEqual([200, "<p>about"]);
  });

  test("is absent, and only it, when its name does not resolve", async () => {
    for (const path of ["/", "/a"]) {
      const response = await ask(path, "gw.test", "", none);
      expect([...shown(response), header(response, "cache-control")]).toEqual([404, '"Not Found"', "no-store"]);
    }
    upstream.scripts.set("apex", { status: 503 });
    const fault = open({ settings: { apex: { name: "apex" } } });
    expect((await ask("/", "gw.test", "", fault)).status).toBe(502);
  });

  test("has no service worker, and a sandbox of its own in mode csp", async () => {
    expect((await ask("/a/style.css", "gw.test", "\r\nService-Worker: script", apex)).status).toBe(403);
    for (let round = 0; round < 2; round++) {
      const sandbox = header(await ask("/", "gw.test", "", csp), "content-security-policy");
      expect(sandbox).toStartWith("sandbox allow-scripts");
      expect(header(await ask("/", "site.gw.test", "", csp), "content-security-policy")).toBe("");
    }
    expect(header(await ask("/", "gw.test", "", apex), "content-security-policy")).toBe("");
  });
});

describe("a name that is rejected", () => {
  const apex = open({ settings: { apex: { name: "many" } } });
  const routes = [
    ["/", "many.gw.test"],
    ["/deep/path", "many.gw.test"],
    ["/", "many.other.test"],
    ["/", "MANY.GW.TEST"],
    ["/", "x.many.gw.test:80"],
    ["/", "_many.gw.test"],
    ["/", "one_many.gw.test"],
    ["/", "two_many.gw.test"],
    ["/", "unknown_many.gw.test"],
    ["/svc/resolver/many", "gw.test"],
    ["/ar-io/resolver/many", "gw.test"],
    ["/svc/resolver/MANY", "gw.test"],
    ["/svc/resolver/%6dany", "gw.test"],
    ["/svc/resolver/one_many", "gw.test"],
    ["/", "gw.test"],
    ["/a", "gw.test"],
  ] as const;
  const variants = [
    "",
    "\r\nRange: bytes=0-0",
    `\r\nIf-None-Match: "${page}"`,
    "\r\nIf-None-Match: *",
    "\r\nSec-Fetch-Dest: document",
    "\r\nReferer: http://many.gw.test/",
  ];
  const walk = async (visit: (response: WireResponse, label: string) => void) => {
    for (const [path, host] of routes)
      for (const more of variants)
        for (const method of ["GET", "HEAD"])
          visit(await ask(path, host, more, apex, method), `${method} ${host}${path}${more}`);
  };

  test("is rejected on every way to it from the moment the rejection is written, and given back with it", async () => {
    await walk(({ status }, label) => expect([label, status === 451]).toEqual([label, false]));
    blockList.block("name", "many", {});
    await walk(({ status }, label) => expect([label, status]).toEqual([label, 451]));
    expect(shown(await ask("/", "many.gw.test"))).toEqual([451, '"Blocked by this gateway\'s content policy"']);
    blockList.unblock("name", "many");
    await walk(({ status }, label) => expect([label, status === 451]).toEqual([label, false]));
  });

  test("is rejected in every process that holds the rejections, and after they were opened again", async () => {
    const again = openBlockList(join(folder, "moderation.sqlite"), Date.now);
    again.block("name", "site", {});
    again.close();
    expect((await ask("/", "site.gw.test")).status).toBe(451);
    const later = openBlockList(join(folder, "moderation.sqlite"), Date.now);
    later.unblock("name", "site");
    later.close();
    expect((await ask("/", "site.gw.test")).status).toBe(200);
  });

  test("as an undername leaves its base and its sisters", async () => {
    blockList.block("name", "one_many", {});
    expect((await ask("/", "one_many.gw.test")).status).toBe(451);
    expect((await ask("/svc/resolver/one_many", "gw.test")).status).toBe(451);
    expect((await ask("/", "many.gw.test")).status).toBe(200);
    expect((await ask("/", "two_many.gw.test")).status).toBe(402);
    blockList.unblock("name", "one_many");
  });

  test("is rejected also while it is cached, without a request", async () => {
    upstream.scripts.set("cached", says(page));
    await ask("/", "cached.gw.test");
    blockList.block("name", "cached", {});
    upstream.questions.length = 0;
    now += 10_000_000;
    expect((await ask("/", "cached.gw.test")).status).toBe(451);
    expect(upstream.questions).toEqual([]);
    blockList.unblock("name", "cached");
  });

  test("is rejected when the gateway that resolves it rejects it", async () => {
    upstream.scripts.set("theirs", { status: 451 });
    expect((await ask("/", "theirs.gw.test")).status).toBe(451);
    expect((await ask("/svc/resolver/theirs", "gw.test")).status).toBe(451);
  });

  test("as content is rejected under its names as well", async () => {
    const secret = put("secret", "secret", "text/plain");
    upstream.scripts.set("secretive", says(secret));
    expect((await ask("/", "secretive.gw.test")).status).toBe(200);
    content.block(secret);
    gateway.gateway.forget(secret);
    expect((await ask("/", "secretive.gw.test")).status).toBe(451);
  });
});
