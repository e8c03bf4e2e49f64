/**
 * Reaching what others name: public addresses and ports of peers only, and no name that changes its mind.
 * @module
 */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openNode } from "../../src/chain/node.ts";
import { createReach, isPublicAddress, type ReachRules } from "../../src/chain/reach.ts";
import { openHttp } from "../../src/lib/http-client.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { makeCertificate, openssl } from "../support/certificates.ts";
import { testWith } from "../support/helpers.ts";
import { openFaultServer } from "./fault-server.ts";

const none = new AbortController().signal;
const timeouts = { firstByteMs: 5_000, stallMs: 5_000, totalMs: 10_000 };
const server = await openFaultServer(() => ({ status: 200, body: "7" }));
const port = Number(new URL(server.url).port);

afterEach(() => {
  server.setFault(() => undefined);
  server.requests.length = 0;
});
afterAll(server.stop);

/** What a name server says; names that it does not know have no address. */
function reachOf(names: Readonly<Record<string, readonly string[]>>, rules: Partial<ReachRules> = {}) {
  const asked: string[] = [];
  const resolve = async (name: string) => {
    asked.push(name);
    const addresses = names[name];
    if (addresses === undefined) throw new Error(`ENOTFOUND ${name}`);
    return addresses;
  };
  const reach = createReach({ ports: [80, 443, 1984, port], allowsPrivate: false, resolve, ...rules });
  return { reach, asked };
}

const publicAddresses = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700::1", "2a00:1450:4001::1", "::ffff:8.8.8.8"];
const privateAddresses = [
  "127.0.0.1",
  "127.255.255.254",
  "0.0.0.0",
  "10.0.0.1",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "100.64.0.1",
  "169.254.169.254",
  "192.0.0.1",
  "192.0.2.1",
  "198.18.0.1",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::ffff:127.0.0.1",
  "::ffff:10.0.0.1",
  "::127.0.0.1",
  "64:ff9b::7f00:1",
  "64:ff9b:1::a00:1",
  "2002:7f00:1::",
  "2001:0:7f00:1::",
  "2001:db8::1",
  "100::1",
  "fc00::1",
  "fd12:3456:789a::1",
  "fe80::1",
  "fec0::1",
  "ff02::1",
];

describe("S1: an address", () => {
  test("is public or not", () => {
    for (const address of publicAddresses) expect([address, isPublicAddress(address)]).toEqual([address, true]);
    for (const address of privateAddresses) expect([address, isPublicAddress(address)]).toEqual([address, false]);
    for (const nonsense of ["", "localhost", "1.2.3.4.5", "1.2.3.4:80", "[::1]"])
      expect(isPublicAddress(nonsense)).toBe(false);
  });
});

describe("S1: a URL", () => {
  const urls: readonly (readonly [string, string | RegExp])[] = [
    ["http://8.8.8.8/x?y", "http://8.8.8.8/x?y"],
    ["http://8.8.8.8:1984/info", "http://8.8.8.8:1984/info"],
    ["https://[2606:4700::1]/", "https://[2606:4700::1]/"],
    ["https://public.example/a", "https://93.184.216.34/a"],
    ["https://six.example/a", "https://[2606:4700::1]/a"],
    ["http://127.0.0.1:1984/", /not public/],
    ["http://[::ffff:10.0.0.1]:1984/", /not public/],
    ["http://[::1]:1984/", /not public/],
    ["http://0x7f.1/", /not public/],
    ["http://0177.0.0.1/", /not public/],
    ["http://2130706433/", /not public/],
    ["http://127.1/", /not public/],
    ["http://169.254.169.254/latest/meta-data", /not public/],
    ["http://0/", /not public/],
    ["http://inside.example/", /not public/],
    ["http://both.example/", /not public/],
    ["http://mapped.example/", /not public/],
    ["http://nowhere.example/", /cannot be resolved/],
    ["http://empty.example/", /no address/],
    ["http://8.8.8.8:22/", /port 22/],
    ["http://8.8.8.8:25/", /port 25/],
    ["http://8.8.8.8:6379/", /port 6379/],
    ["https://8.8.8.8:8443/", /port 8443/],
    ["localhost:22", /no http/],
    ["ftp://8.8.8.8/", /no http/],
    ["file:///etc/passwd", /no http/],
    ["nonsense", /no http/],
  ];
  const names = {
    "public.example": ["93.184.216.34"],
    "six.example": ["2606:4700::1", "93.184.216.34"],
    "inside.example": ["10.1.2.3"],
    "both.example": ["93.184.216.34", "127.0.0.1"],
    "mapped.example": ["::ffff:192.168.0.1"],
    "empty.example": [],
  };
  test.each(urls)("%s leads to %p", async (url, wanted) => {
    const reached = await reachOf(names).reach(url, none);
    if (typeof wanted === "string") expect(reached).toMatchObject({ kind: "reached", url: wanted });
    else expect(reached).toMatchObject({ kind: "fault", detail: expect.stringMatching(wanted) });
  });

  test("may be private where the operator allows it, on the allowed ports only", async () => {
    const { reach } = reachOf({ "peer.example": ["127.0.0.1"] }, { allowsPrivate: true });
    expect(await reach(`http://peer.example:${port}/`, none)).toMatchObject({ kind: "reached" });
    expect(await reach("http://127.0.0.1:22/", none)).toMatchObject({ kind: "fault" });
  });
});

describe("S1: a call", () => {
  test("to a blocked address never connects", async () => {
    const node = openNode(server.url, timeouts, { reach: reachOf({}).reach });
    expect(await node.height(none)).toMatchObject({ kind: "fault", reason: "connect" });
    expect(server.requests).toEqual([]);
    node.close();
  });

  test("connects to the checked address under the original name, and each call is checked again", async () => {
    let calls = 0;
    const responses = [["93.184.216.34"], ["127.0.0.1"]];
    const rebinding = async () => responses[calls++ % 2] ?? [];
    const { reach } = reachOf({}, { resolve: rebinding });
    const first = await reach("http://rebinds.example/", none);
    expect(first).toMatchObject({ kind: "reached", url: "http://93.184.216.34/", host: "rebinds.example" });
    expect(await reach("http://rebinds.example/", none)).toMatchObject({ kind: "fault" });

    let host: string | undefined;
    server.setFault(({ headers }) => {
      host = headers.get("host");
      return undefined;
    });
    const here = reachOf({ "peer.example": ["127.0.0.1"] }, { allowsPrivate: true });
    const node = openNode(`http://peer.example:${port}`, timeouts, { reach: here.reach });
    for (const count of [1, 2]) {
      expect(await node.height(none)).toEqual({ kind: "ok", value: 7 });
      expect(here.asked.length).toBe(count);
    }
    expect(host).toBe(`peer.example:${port}`);
    node.close();
  });

  test("does not follow a redirect to a blocked address", async () => {
    const location = `${server.url}/inside`;
    server.setFault(({ path }) =>
      path === "/height" ? { kind: "response", response: { status: 302, headers: { location } } } : undefined,
    );
    const { reach } = reachOf({}, { allowsPrivate: true });
    const node = openNode(server.url, timeouts, { reach });
    expect(await node.height(none)).toMatchObject({ kind: "fault", reason: "status" });
    expect(server.requests).toEqual(["GET /height"]);
    node.close();
  });

  testWith(openssl, "over https wants the certificate of the name, not of the address", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-reach-"));
    const { cert, key } = await makeCertificate(folder, "peer"); // of localhost and of 127.0.0.1
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "reach-child.ts"), cert, key], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: cert },
      stdout: "pipe",
      stderr: "inherit",
    });
    const said = JSON.parse(await new Response(child.stdout).text());
    removeFolder(folder);
    expect(said).toEqual([7, "connect", 7]);
  });

  test("ends a slow name lookup at the call's timeout", async () => {
    const { reach } = reachOf({}, { resolve: () => new Promise(() => undefined) });
    const http = openHttp({ firstByteMs: 50, stallMs: 50, totalMs: 100 }, reach);
    const request = { method: "GET", url: "http://slow.example/" } as const;
    expect(await http.whole(request, 10, none)).toMatchObject({ kind: "fault", reason: "timeout" });
    http.close();
  });
});
