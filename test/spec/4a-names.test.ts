/**
 * Specification part 1 (`APEX_TX_ID`, `APEX_REGISTRY_NAME`) and names, through the whole gateway with its settings:
 * names of a file that changes, of another gateway of the same program, rejected by an operator, after a restart.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { type Id, idOfSignature } from "../../src/arweave/id.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { post, rsa } from "../dev/devnet/support.ts";
import { type WireResponse, wire } from "../support/gateway-server.ts";
import { signers } from "../support/signers.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { until } from "../support/until.ts";

const signer = signers[1] as Signer;
function item(type: string, data: string): Readonly<{ id: Id; bytes: Uint8Array }> {
  const bytes = createDataItem({ data, tags: [{ name: "Content-Type", value: type }] }, signer);
  return { id: idOfSignature(bytes.subarray(2, 2 + signer.scheme.signatureSize)), bytes };
}
const page = item("text/html", "<p>page");
const other = item("text/html", "<p>other");
const site = item(
  "application/x.arweave-manifest+json",
  JSON.stringify({
    manifest: "arweave/paths",
    version: "0.2.0",
    index: { path: "index.html" },
    paths: { "index.html": { id: page.id }, "docs/a": { id: other.id } },
  }),
);

const folder = mkdtempSync(join(tmpdir(), "cairn-names-"));
const namesPath = join(folder, "names.json");
const writeNames = (names: unknown) => writeFileSync(namesPath, JSON.stringify(names));
const key = "names";
const open: Stack[] = [];
let named: Stack;

/** A gateway with the site on its chain. */
async function openWith(environment: Readonly<Record<string, string>>): Promise<Stack> {
  const stack = await openStack({ ARNS_ROOT_HOST: "gw.localhost", ADMIN_API_KEY: key, ...environment });
  open.push(stack);
  const data = writeBundle([page, other, site].map(({ bytes }) => bytes));
  const tags = [
    { name: "Bundle-Format", value: "binary" },
    { name: "Bundle-Version", value: "2.0.0" },
  ];
  await post(stack.devnet, rsa, { data, tags });
  await stack.devnet.mine(1);
  await stack.settled();
  return stack;
}

beforeAll(async () => {
  writeNames({
    docs: site.id,
    many: { id: page.id, undernameLimit: 1, undernames: { a: other.id, b: page.id } },
  });
  named = await openWith({ NAMES_FILE: namesPath, APEX_ARNS_NAME: "docs" });
}, 120_000);
afterAll(async () => {
  for (const stack of open) await stack.close();
  removeFolder(folder);
});

const ask = (stack: Stack, path: string, host = "127.0.0.1", more = "") =>
  wire(stack.port, `GET ${path} HTTP/1.1\r\nHost: ${host}${more}`);
const shown = ({ status, body }: WireResponse) => [status, body.toString()];
const header = (response: WireResponse, name: string) => response.headers.find(([found]) => found === name)?.[1];
const administer = async (stack: Stack, what: string, name: string) => {
  const headers = { Authorization: `Bearer ${key}` };
  const body = JSON.stringify({ name });
  const response = await fetch(`${stack.gateway.url}/svc/admin/${what}`, { method: "PUT", headers, body });
  expect(response.status).toBe(200);
};

describe("GET /", () => {
  test("is the content of APEX_TX_ID, and so is every path that nothing else takes", async () => {
    const stack = await openWith({ APEX_TX_ID: site.id });
    const root = await ask(stack, "/");
    expect([...shown(root), header(root, "content-type")]).toEqual([200, "<p>page", "text/html; charset=utf-8"]);
    expect(header(root, "cache-control")).toBe("public, max-age=300");
    expect(shown(await ask(stack, "/docs/a"))).toEqual([200, "<p>other"]);
    expect((await ask(stack, "/docs/b")).status).toBe(404);
    expect((await ask(stack, "/svc/info")).status).toBe(200);
    expect(shown(await ask(stack, `/${other.id}`))).toEqual([200, "<p>other"]);
  }, 120_000);

  test("is the content of APEX_REGISTRY_NAME, which APEX_ARNS_NAME is as well", async () => {
    for (const host of ["127.0.0.1", "gw.localhost", "www.gw.localhost"]) {
      const root = await ask(named, "/", host);
      expect([...shown(root), header(root, "content-type")]).toEqual([200, "<p>page", "text/html; charset=utf-8"]);
      expect(header(root, "x-arns-name")).toBe("docs");
      expect(shown(await ask(named, "/docs/a", host))).toEqual([200, "<p>other"]);
      expect((await ask(named, "/svc/info", host)).status).toBe(200);
    }
  });

  test("is the information record where neither is set", async () => {
    const stack = await openWith({});
    expect(JSON.parse((await ask(stack, "/")).body.toString())).toHaveProperty("supportedManifestVersions");
    expect((await ask(stack, "/docs/a")).status).toBe(404);
  }, 120_000);

  test("is the content of APEX_TX_ID where both are set", async () => {
    const alone = await openWith({ APEX_TX_ID: site.id });
    const both = await openWith({ APEX_TX_ID: site.id, APEX_ARNS_NAME: "another-name" });
    for (const path of ["/", "/docs/a", "/absent"]) {
      const [first, second] = [await ask(alone, path), await ask(both, path)];
      expect([path, second.status, second.body.toString()]).toEqual([path, first.status, first.body.toString()]);
    }
    expect((await ask(both, "/")).status).toBe(200);
  }, 120_000);
});

describe("names of a file", () => {
  test("are served on their hosts and returned by the resolver", async () => {
    const response = await ask(named, "/docs/a", "docs.gw.localhost");
    expect([...shown(response), header(response, "x-ar-io-verified")]).toEqual([200, "<p>other", "true"]);
    expect(header(response, "cache-control")).toBe("public, max-age=900");
    expect(shown(await ask(named, "/", "a_many.gw.localhost"))).toEqual([200, "<p>other"]);
    expect((await ask(named, "/", "b_many.gw.localhost")).status).toBe(402);
    expect(JSON.parse((await ask(named, "/svc/resolver/docs")).body.toString()).txId).toBe(site.id);
  });

  test("change with the file, and stay while it is spoilt, which health tells", async () => {
    const untilShown = async (host: string, wanted: unknown) => {
      await until(async () => Bun.deepEquals(shown(await ask(named, "/", host)), wanted));
    };
    writeNames({ docs: site.id, fresh: other.id });
    await untilShown("fresh.gw.localhost", [200, "<p>other"]);
    writeFileSync(namesPath, "{");
    const health = async () => JSON.parse((await ask(named, "/svc/healthcheck")).body.toString());
    await until(async () => JSON.stringify((await health()).reasons).includes("NAMES_FILE"));
    expect((await health()).status).toBe("ok");
    expect(shown(await ask(named, "/", "fresh.gw.localhost"))).toEqual([200, "<p>other"]);
    writeNames({ docs: site.id, later: page.id });
    await untilShown("later.gw.localhost", [200, "<p>page"]);
    expect((await health()).reasons).toEqual([]);
    expect((await ask(named, "/", "fresh.gw.localhost")).status).toBe(404);
  }, 120_000);

  test("that cannot be read end the start, with a complaint", async () => {
    await expect(openStack({ NAMES_FILE: join(folder, "none.json") })).rejects.toThrow(
      /^Bad settings:\n {2}NAMES_FILE: .*ENOENT/,
    );
  });
});

describe("names of another gateway", () => {
  test("are those that it serves, also while it is away", async () => {
    writeNames({ docs: site.id, far: { id: site.id, ttlSeconds: 1 } });
    const template = `http://__NAME__.gw.localhost:${named.port}`;
    const stack = await openWith({ TRUSTED_ARNS_GATEWAY_URL: template });
    await until(async () => (await ask(named, "/svc/resolver/far")).status === 200);
    expect(shown(await ask(stack, "/docs/a", "docs.gw.localhost"))).toEqual([200, "<p>other"]);
    expect((await ask(stack, "/", "none.gw.localhost")).status).toBe(404);
    expect(shown(await ask(stack, "/", "far.gw.localhost"))).toEqual([200, "<p>page"]);

    await named.restart(); // at another port: for the second gateway it is gone
    await Bun.sleep(1_100); // beyond the name's time
    const response = await ask(stack, "/", "far.gw.localhost");
    expect([...shown(response), header(response, "cache-control")]).toEqual([200, "<p>page", "public, max-age=0"]);
    expect((await ask(stack, "/", "unknown.gw.localhost")).status).toBe(502);
    const stats = (await ask(stack, "/metrics")).body.toString();
    expect(stats).toMatch(/^arns_cache_miss_total [1-9]/m);
    expect(stats).toMatch(/^arns_resolution_time_ms_count [1-9]/m);
  }, 120_000);
});

describe("PUT /svc/admin/block-name", () => {
  const everywhere = [
    ["/", "docs.gw.localhost"],
    ["/docs/a", "docs.gw.localhost"],
    ["/", "DOCS.gw.localhost"],
    ["/", "x_docs.gw.localhost"],
    ["/svc/resolver/docs", "127.0.0.1"],
    ["/ar-io/resolver/docs", "127.0.0.1"],
    ["/", "127.0.0.1"], // the apex
    ["/docs/a", "gw.localhost"],
  ] as const;
  const statuses = async () => {
    const found = new Set<number>();
    for (const [path, host] of everywhere)
      for (const more of ["", "\r\nRange: bytes=0-0", "\r\nIf-None-Match: *"])
        found.add((await ask(named, path, host, more)).status);
    return found;
  };

  test("rejects it on every way to it with its response, after a restart, and until it is unblocked", async () => {
    expect(await statuses()).not.toContain(451);
    await administer(named, "block-name", "Docs");
    expect(await statuses()).toEqual(new Set([451]));
    await named.restart();
    await named.settled();
    expect(await statuses()).toEqual(new Set([451]));
    expect((await ask(named, `/${page.id}`)).status).toBe(200);
    await administer(named, "unblock-name", "docs");
    expect(await statuses()).not.toContain(451);
  }, 120_000);
});
