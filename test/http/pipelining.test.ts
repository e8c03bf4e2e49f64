/**
 * Requests that a client sends without waiting for the responses before them. Responses from memory are
 * sent in order. Slower responses are not: the runtime closes the connection when the next request arrives before
 * the response is complete, and gives the program no way to hold that request back. No response is ever given to
 * another request. docs/operating.md, "Pipelining".
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { readBody } from "../../src/http/request-body.ts";
import { textResponse } from "../../src/http/responses.ts";
import { openTestServer } from "../support/http-server.ts";
import { connectRaw } from "../support/raw-request.ts";

const server = openTestServer({
  app: new Elysia({ strictPath: true })
    .get("/now/:name", ({ params }) => textResponse(`<${params.name}>`))
    .get("/later/:name", async ({ params }) => {
      await Bun.sleep(20);
      return textResponse(`<${params.name}>`);
    })
    .post(
      "/body/:name",
      async ({ request, params }) => {
        const { byteLength } = await readBody(request, 100);
        return textResponse(`<${params.name}${byteLength}>`);
      },
      { parse: "none" },
    ),
  cachedResponse: ({ url }) => (url.endsWith("/hit") ? new Response("<hit>") : undefined),
});
afterAll(() => server.close(100));

const get = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nHost: a.example\r\n${more}\r\n`;
const post = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: a.example\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const last = "Connection: close\r\n";

/** Sends all at once, and gives the bodies in the order of arrival when the server has closed the connection. */
async function pipeline(requests: readonly string[]): Promise<readonly string[]> {
  const connection = await connectRaw(server.url);
  await connection.write(requests.join(""));
  const text = await connection.ended;
  return [...text.matchAll(/<\w+>/g)].map(([body]) => body);
}

describe("H1: responses from memory are sent in order", () => {
  const ten = Array.from({ length: 9 }, (_, at) => `n${at}`);
  test.each([
    ["two", [get("/now/a"), get("/now/b", last)], ["<a>", "<b>"]],
    ["ten", [...ten.map((name) => get(`/now/${name}`)), get("/now/z", last)], [...ten, "z"].map((n) => `<${n}>`)],
    [
      "from memory and from routes",
      [get("/hit"), get("/now/a"), get("/hit"), get("/now/b", last)],
      ["<hit>", "<a>", "<hit>", "<b>"],
    ],
    ["with bodies", [post("/body/a", "1"), post("/body/b", "22"), get("/now/c", last)], ["<a1>", "<b2>", "<c>"]],
    ["and one that is not, at the end", [get("/now/a"), get("/later/b", last)], ["<a>", "<b>"]],
  ] as const)("%s", async (_name, requests, expected) => {
    expect(await pipeline(requests)).toEqual([...expected]);
  });
});

// When these fail with a newer runtime, it responds: then they belong above, and the section leaves docs/operating.md.
describe(`the runtime (Bun ${Bun.version}) closes a connection whose next request arrives too early`, () => {
  test.each([
    ["two", [get("/later/a"), get("/later/b", last)]],
    ["three", [get("/later/a"), get("/later/b"), get("/later/c", last)]],
    ["before one that is served from memory", [get("/later/a"), get("/now/b", last)]],
  ])("%s", async (_name, requests) => {
    expect(await pipeline(requests)).toEqual([]);
  });

  test("and responses one that says that it is the last, whatever follows it", async () => {
    expect(await pipeline([get("/later/a", last), get("/now/b")])).toEqual(["<a>"]);
  });
});

test("every request on a connection gets its response, however long each takes", async () => {
  const connection = await connectRaw(server.url);
  for (const name of ["a", "b", "c"]) {
    await connection.write(get(`/later/${name}`));
    await connection.until(`<${name}>`);
  }
  connection.cut();
});
