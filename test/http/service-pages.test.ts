/**
 * The port of a service in a browser: an unknown address is a page with the reason and a way on; programs get JSON.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { Elysia } from "elysia";
import { createServiceFailurePage } from "../../src/http/failure-page.ts";
import { openTestServer } from "../support/http-server.ts";

const server = openTestServer({
  app: new Elysia().get("/here", () => "text"),
  failurePage: createServiceFailurePage("payment"),
});
afterAll(() => server.close(0));

const browser = { accept: "text/html,application/xhtml+xml,*/*;q=0.8", "sec-fetch-dest": "document" };

test("a browser gets the reason, and a link to what programs can do there", async () => {
  const response = await fetch(`${server.url}/no-such-path`, { headers: browser });
  const text = await response.text();
  expect([response.status, response.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
  expect(response.headers.get("vary")).toBe("Accept");
  expect(text).toContain("<h1>There is nothing here</h1>");
  expect(text).toContain("This is the address of the payment service, which programs use.");
  expect(text).toContain("<dd>Not Found</dd>");
  expect(text).toContain('<a href="/api-docs">');
});

test.each([
  ["a program", "/no-such-path", { accept: "*/*" }],
  ["a script of a page", "/no-such-path", { ...browser, "sec-fetch-dest": "empty" }],
])("%s gets JSON", async (_who, path, headers) => {
  const response = await fetch(`${server.url}${path}`, { headers });
  expect([response.status, await response.json()]).toEqual([404, "Not Found"]);
});

test("what succeeds is as it was", async () => {
  expect(await (await fetch(`${server.url}/here`, { headers: browser })).text()).toBe("text");
});
