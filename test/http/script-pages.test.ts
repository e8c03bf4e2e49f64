/**
 * The pages with scripts and their files: never framed, stored, or with anything of other origins. The console needs
 * no key, cannot be read by other origins, and is only where the admin API is; the explorer is where GraphQL is. The
 * module that verifies content is for pages of all origins.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openStack, type Stack } from "../support/stack.ts";
import { openUploadStack, type UploadStack } from "../support/upload-stack.ts";

let stack: Stack;
let own: Stack;
let unisolated: Stack;
let uploading: UploadStack;

beforeAll(async () => {
  stack = await openStack({ ARNS_ROOT_HOST: "gateway.test" });
  unisolated = await openStack({ CONTENT_ISOLATION: "off" });
  own = await openStack({ ADMIN_LISTEN: "127.0.0.1:0" });
  uploading = await openUploadStack({ environment: { ARNS_ROOT_HOST: "gateway.test" } });
}, 120_000);
afterAll(async () => {
  await stack.close();
  await own.close();
  await unisolated.close();
  await uploading.close();
});

/** Names, and the gateways that serve them. */
const pages: readonly (readonly [name: string, url: () => string])[] = [
  ["console", () => stack.gateway.url],
  ["explorer", () => stack.gateway.url],
  ["upload", () => uploading.content],
  ["account", () => uploading.content],
];

describe("a page with scripts", () => {
  test.each(pages)("%s is a page under a policy that lets nothing else in", async (name, url) => {
    const response = await fetch(`${url()}/svc/${name}`);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    const policy = response.headers.get("content-security-policy") ?? "";
    for (const part of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"])
      expect(policy).toContain(part);
    expect(policy).not.toContain("unsafe");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("referrer-policy")).toBe("no-referrer");
    expect(response.headers.get("cross-origin-opener-policy")).toBe("same-origin");
    expect(await response.text()).not.toMatch(/https?:\/\//);
  });

  test.each(pages)(
    "%s has a script and a style of this origin, compressed, without addresses of others",
    async (name, url) => {
      const html = await (await fetch(`${url()}/svc/${name}`)).text();
      const paths = [...html.matchAll(/(?:src|href)="([^".:]+\/[^"]+)"/g)].map(([, path]) => path ?? "");
      expect(paths.map((path) => path.split("?")[0])).toEqual([`${name}/${name}.css`, `${name}/${name}.js`]);
      for (const path of paths) {
        const address = new URL(path, `${url()}/svc/${name}`);
        const compressed = await fetch(address, { headers: { "Accept-Encoding": "gzip" }, decompress: false });
        expect(compressed.headers.get("content-encoding")).toBe("gzip");
        const bytes = await compressed.bytes();
        expect(bytes.length).toBeLessThan(100_000);
        const plain = await fetch(address, { headers: { "Accept-Encoding": "identity" } });
        expect(Bun.gunzipSync(bytes)).toEqual(await plain.bytes());
      }
    },
  );

  test.each(pages)("%s is not on hosts of content", async (name, url) => {
    const response = await fetch(`${url()}/svc/${name}`, { headers: { host: "name.gateway.test" } });
    expect(response.status).toBe(404);
  });
});

describe("GET /svc/explorer", () => {
  test("is not where GraphQL is not", async () => {
    expect((await fetch(`${own.gateway.adminUrl}/svc/explorer`)).status).toBe(404);
  });

  test("is behind the first door of the front page", async () => {
    const front = await (await fetch(stack.gateway.url, { headers: { accept: "text/html" } })).text();
    const doors = [...front.matchAll(/<li><a href="([^"]+)"/g)].map(([, href]) => href);
    expect(doors.slice(0, 2)).toEqual(["/svc/explorer", "/graphql"]);
    expect(doors.at(-1)).toBe("/svc/console");
  });
});

describe('the front page\'s link "Operate"', () => {
  test.each([
    ["the console, where this origin serves it", () => stack, "/svc/console"],
    ["the health record, without isolation", () => unisolated, "/svc/healthcheck"],
    ["the health record, with ADMIN_LISTEN", () => own, "/svc/healthcheck"],
  ])("leads to %s", async (_target, at, href) => {
    const front = await (await fetch(at().gateway.url, { headers: { accept: "text/html" } })).text();
    expect(/<a href="([^"]+)"><h2>Operate</.exec(front)?.[1]).toBe(href);
  });
});

describe("GET /svc/upload", () => {
  test.each([
    ["without uploads", { environment: {}, hasWallet: false }],
    ["with UPLOAD_PAGE=false", { environment: { UPLOAD_PAGE: "false" } }],
    ["without mounted services", { environment: { MOUNT_SERVICES: "false" } }],
    ["without isolation, where content could use a connected wallet", { environment: { CONTENT_ISOLATION: "off" } }],
  ])(
    "is off %s",
    async (_case, options) => {
      const without = await openUploadStack(options);
      try {
        for (const path of ["", "/upload.js", "/test-wallet"])
          expect([path, (await fetch(`${without.content}/svc/upload${path}`)).status]).toEqual([path, 404]);
      } finally {
        await without.close();
      }
    },
    60_000,
  );

  test.each(["upload", "account"])("%s gives no wallet outside a development chain", async (name) => {
    const response = await fetch(`${uploading.content}/svc/${name}/test-wallet`);
    expect([response.status, await response.text()]).toEqual([200, "null"]);
  });
});

describe("GET /svc/account", () => {
  test.each([
    ["with ACCOUNT_PAGE=false", { ACCOUNT_PAGE: "false" }],
    ["without mounted services", { MOUNT_SERVICES: "false" }],
    ["without isolation, where content could use a connected wallet", { CONTENT_ISOLATION: "off" }],
  ])(
    "is off %s",
    async (_case, environment) => {
      const without = await openUploadStack({ environment });
      try {
        for (const path of ["", "/account.js", "/test-wallet"])
          expect([path, (await fetch(`${without.content}/svc/account${path}`)).status]).toEqual([path, 404]);
      } finally {
        await without.close();
      }
    },
    60_000,
  );

  test("is linked by the front page and by the page for uploads", async () => {
    const front = await (await fetch(uploading.content, { headers: { accept: "text/html" } })).text();
    expect(front).toContain('<a href="/svc/account"><h2>Credits<');
    expect(await (await fetch(`${uploading.content}/svc/upload`)).text()).toContain('<a href="account">Credits</a>');
  });
});

describe("GET /svc/verify.js", () => {
  test("is a module that pages of all origins may import", async () => {
    const headers = { "Accept-Encoding": "gzip" };
    const response = await fetch(`${stack.gateway.url}/svc/verify.js`, { headers, decompress: false });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(response.headers.get("cache-control")).toBe("public, max-age=3600");
    expect((await response.bytes()).length).toBeLessThan(40_000);
  });

  test("exports what its documentation names", async () => {
    const text = await (await fetch(`${stack.gateway.url}/svc/verify.js`)).text();
    expect(new Bun.Transpiler({ loader: "js" }).scan(text)).toEqual({
      exports: ["VerificationError", "fetchVerified"],
      imports: [],
    });
  });

  test("is not on hosts of content", async () => {
    const response = await fetch(`${stack.gateway.url}/svc/verify.js`, { headers: { host: "name.gateway.test" } });
    expect(response.status).toBe(404);
  });
});

describe("GET /svc/console", () => {
  test("cannot be read by pages of other origins", async () => {
    const response = await fetch(`${stack.gateway.url}/svc/console`);
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
  });

  test("needs no key, and gives none of the values", async () => {
    expect((await fetch(`${stack.gateway.url}/svc/admin/status`)).status).toBe(401);
  });

  test("is not where scripts of content have its origin: without isolation, only on ADMIN_LISTEN", async () => {
    expect((await fetch(`${unisolated.gateway.url}/svc/console`)).status).toBe(404);
    expect((await fetch(`${unisolated.gateway.url}/svc/admin/status`)).status).toBe(401);
  });

  test("is where the admin API is: with ADMIN_LISTEN, not at the gateway", async () => {
    expect((await fetch(`${own.gateway.url}/svc/console`)).status).toBe(404);
    const { adminUrl } = own.gateway;
    expect((await fetch(`${adminUrl}/svc/console`)).status).toBe(200);
    expect((await fetch(`${adminUrl}/svc/console/console.js`)).status).toBe(200);
  });
});
