/**
 * Pages for people: browsers get the front page and failures as pages, all other clients the JSON of always.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { adminKey, openStack, type Stack } from "../support/stack.ts";

const chrome = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";
const absent = "A".repeat(43);
let stack: Stack;

beforeAll(async () => {
  stack = await openStack({ ADMIN_API_KEY: adminKey });
  await stack.devnet.mine(2);
  await stack.settled();
}, 120_000);
afterAll(() => stack.close());

async function get(path: string, accept: string | undefined, method = "GET") {
  const headers = accept === undefined ? { accept: "" } : { accept };
  const response = await fetch(`${stack.gateway.url}${path}`, { method, headers, redirect: "manual" });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe("a client gets a page", () => {
  test.each([
    [chrome, true],
    ["text/html", true],
    ["TEXT/HTML;q=0.5", true],
    ["application/json, text/html", true],
    ["*/*", false],
    ["text/*", false],
    ["application/json", false],
    ["text/html;q=0", false],
    ["text/html;q=0.000, */*", false],
    ["text/htmlx", false],
    ["", false],
    [undefined, false],
  ])("with Accept %p: %p", async (accept, isPage) => {
    for (const [path, json] of [
      ["/", { supportedManifestVersions: ["0.1.0", "0.2.0"] }],
      ["/no-such-path", "Not Found"],
    ] as const) {
      const { headers, text } = await get(path, accept);
      expect(headers.get("content-type")).toBe(isPage ? "text/html; charset=utf-8" : "application/json; charset=utf-8");
      if (!isPage) expect(JSON.parse(text)).toEqual(typeof json === "string" ? json : expect.objectContaining(json));
    }
  });
});

test("the front page has height, lag and health, is not stored, and varies by Accept", async () => {
  const { status, headers, text } = await get("/", chrome);
  expect([status, headers.get("vary"), headers.get("cache-control")]).toEqual([200, "Accept", "no-store"]);
  expect(text).toContain(`<dt>Height</dt><dd>${stack.devnet.height()}</dd>`);
  expect(text).toContain("<dt>Blocks behind</dt><dd>0</dd>");
  expect((await get("/", "*/*")).headers.get("vary")).toBe("Accept");
});

describe("a failure as a page has the status and headers of its JSON", () => {
  test.each([
    ["/no-such-path", 404, "There is nothing here"],
    [`/${absent}`, 404, "There is nothing here"],
    ["/%zz", 400, "This address cannot be read"],
  ])("GET %s", async (path, status, heading) => {
    const [page, json] = [await get(path, chrome), await get(path, "*/*")];
    expect([page.status, json.status]).toEqual([status, status]);
    expect(page.text).toContain(`<h1>${heading}</h1>`);
    expect(page.text).toContain(`<dd>${JSON.parse(json.text)}</dd>`);
    expect(page.headers.get("retry-after")).toBe(json.headers.get("retry-after"));
    const head = await get(path, chrome, "HEAD");
    expect([head.status, head.headers.get("content-type"), head.text]).toEqual([
      status,
      "text/html; charset=utf-8",
      "",
    ]);
  });
});

test("what a path has of HTML is text on the page, and scripts do not run there", async () => {
  const { headers, text } = await get('/<script>alert("x")</script>/"onload="y', chrome);
  expect(text).not.toContain("<script");
  expect(text).not.toContain('"onload');
  expect(headers.get("content-security-policy")).toStartWith("default-src 'none'; style-src 'sha256-");
  expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
});

test("a long path is cut off", async () => {
  const { text } = await get(`/${"long".repeat(1_000)}`, chrome);
  expect(text.length).toBeLessThan(8_000);
});

describe("on the host of an id or a name, the page leads to the front page of the gateway", () => {
  let rooted: Stack;
  beforeAll(async () => {
    rooted = await openStack({ ARNS_ROOT_HOST: "localhost" });
  }, 120_000);
  afterAll(() => rooted.close());

  const label = "a".repeat(52);
  test.each([
    ["an unknown name", "no-such-name", "/", "This name is not known"],
    ["an unknown id", label, `/${absent}`, "There is nothing here"],
    ["a path of an unknown id", label, "/deep/path", "There is nothing here"],
  ])("%s", async (_, subdomain, path, heading) => {
    const port = new URL(rooted.gateway.url).port;
    const host = `${subdomain}.localhost:${port}`;
    const response = await fetch(`${rooted.gateway.url}${path}`, { headers: { accept: chrome, host } });
    const text = await response.text();
    expect([response.status, text]).toEqual([404, expect.stringContaining(`<h1>${heading}</h1>`)]);
    expect(text).toContain(`<code>${host}${path}</code>`);
    expect(text).toContain(`<a href="http://localhost:${port}/">Front page</a>`);
    const inIndex = `<a href="http://localhost:${port}/svc/explorer?id=${absent}">Look in the index</a>`;
    expect(text.includes(inIndex)).toBe(subdomain === label);
  });
});

test("the page of an unknown id leads to the explorer, one of another path does not", async () => {
  expect((await get(`/raw/${absent}`, chrome)).text).toContain(`<a href="/svc/explorer?id=${absent}">`);
  expect((await get("/no-such-path", chrome)).text).not.toContain("/svc/explorer");
});

test("a frame, and an image, get the message", async () => {
  for (const destination of ["iframe", "image", "empty"]) {
    const headers = { accept: chrome, "sec-fetch-dest": destination };
    const response = await fetch(`${stack.gateway.url}/no-such-path`, { headers });
    expect([response.headers.get("content-type"), await response.json()]).toEqual([
      "application/json; charset=utf-8",
      "Not Found",
    ]);
  }
});

test("routes for programs stay as they are: administration, and methods beside GET and HEAD", async () => {
  expect((await get("/svc/admin/debug", chrome)).headers.get("content-type")).toStartWith("application/json");
  expect((await get("/no-such-path", chrome, "POST")).headers.get("content-type")).toStartWith("application/json");
});
