/**
 * `servers` of an API reference: the address under which the caller sees the service, also behind proxies.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { request } from "node:http";
import { openUploadStack, type UploadStack } from "../support/upload-stack.ts";

let direct: UploadStack;
let proxied: UploadStack;
beforeAll(async () => {
  direct = await openUploadStack();
  proxied = await openUploadStack({
    environment: { TRUSTED_PROXIES: "127.0.0.1", UPLOAD_PUBLIC_URL: "https://up.example/base/" },
  });
}, 120_000);
afterAll(async () => {
  await direct.close();
  await proxied.close();
});

/** The one address that a document names, asked with these headers, which may name any host. */
async function serverOf(url: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const text = await new Promise<string>((resolve, reject) => {
    const asked = request(url, { headers }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (piece) => {
        body += piece;
      });
      response.on("end", () => resolve(body));
    });
    asked.on("error", reject).end();
  });
  const { servers } = JSON.parse(text);
  expect(servers.length).toBe(1);
  return servers[0].url;
}

test.each(["", "/upload", "/upload/v1", "/payment", "/payment/v1"])(
  "is the address that was asked: %p",
  async (prefix) => {
    const url = `${direct.content}${prefix}`;
    expect(await serverOf(`${url}/openapi.json`)).toBe(url);
  },
);

test("is that of a service's own port, below /v1 too", async () => {
  const { uploads } = direct;
  expect(await serverOf(`${uploads}/openapi.json`)).toBe(uploads);
  expect(await serverOf(`${uploads}/v1/openapi.json`)).toBe(`${uploads}/v1`);
});

const forwarded = { "X-Forwarded-Proto": "https", "X-Forwarded-Host": "Evil.example" };

test.each([
  ["the Host header", { Host: "node.example:8443" }, "http://node.example:8443"],
  ["a Host header, even with X-Forwarded-Host", { Host: "node.example", ...forwarded }, "http://node.example"],
  ["an IPv6 address", { Host: "[::1]:3000" }, "http://[::1]:3000"],
])("without a trusted proxy is %s", async (_what, headers, expected) => {
  expect(await serverOf(`${direct.content}/openapi.json`, headers)).toBe(expected);
});

test.each([
  [{ Host: "barrier.example", "X-Forwarded-Proto": "https" }, "https://barrier.example"],
  [{ Host: "inner:80", ...forwarded }, "https://evil.example"],
  [{ Host: "barrier.example", "X-Forwarded-Proto": "https", "X-Forwarded-Port": "443" }, "https://barrier.example"],
  [
    { Host: "barrier.example", "X-Forwarded-Proto": "https", "X-Forwarded-Port": "8443" },
    "https://barrier.example:8443",
  ],
  [{ Host: "barrier.example:1", "X-Forwarded-Port": "8443" }, "http://barrier.example:1"],
  [{ Host: "barrier.example", "X-Forwarded-Host": "a b", "X-Forwarded-Port": "x" }, "http://barrier.example"],
  [{ Host: "barrier.example", "X-Forwarded-Host": 'x"}],"y":[{"' }, "http://barrier.example"],
])("behind a trusted proxy with %p is %p", async (headers, expected) => {
  const { content } = proxied;
  expect(await serverOf(`${content}/openapi.json`, headers)).toBe(expected);
  expect(await serverOf(`${content}/payment/openapi.json`, headers)).toBe(`${expected}/payment`);
});

test("is what the operator says where it is set", async () => {
  expect(await serverOf(`${proxied.uploads}/openapi.json`)).toBe("https://up.example/base");
  expect(await serverOf(`${proxied.content}/upload/v1/openapi.json`)).toBe("https://up.example/base");
});
