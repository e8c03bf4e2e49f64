/**
 * Upstream requests of a response: unread content is not fetched, content that many clients request is fetched once,
 * and a cold path begins within two round trips.
 * @module
 */
import { afterEach, describe, expect, test } from "bun:test";
import type { Id } from "../../src/arweave/id.ts";
import { manifestContentType } from "../../src/arweave/manifest.ts";
import { type DataNode, type MadeData, madeBytes, madeId, makeData, openDataNode } from "../chain/data-node.ts";
import { type FaultServer, openFaultServer } from "../chain/fault-server.ts";
import { type Harness, isSame, locatedOf, openHarness } from "../content/content-harness.ts";
import { type GatewayServer, openGatewayServer, wire } from "../support/gateway-server.ts";

const mebibyte = 2 ** 20;
const none = new AbortController().signal;
const patient = { firstByteMs: 30_000, stallMs: 30_000, totalMs: 60_000 };

/** A gateway over content of an upstream, none of it cached. */
type Fixture = Readonly<{ url: string; harness: Harness; node: DataNode; gateway: GatewayServer }>;

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** `slow` delays responses of the upstream. */
async function openFixture(data: readonly MadeData[], slow?: SlowUpstream): Promise<Fixture> {
  const node = await openDataNode(...data);
  closers.push(node.stop);
  const url = slow?.url ?? node.url;
  slow?.leadTo(node.url);
  const harness = openHarness({ nodeUrls: [url], gatewayUrls: [url], timeouts: patient });
  closers.push(harness.close);
  for (const { root } of data) harness.index.set(root.id, { ...locatedOf(root.id, root), contentType: "image/png" });
  const gateway = openGatewayServer({ content: harness.content, nodes: harness.nodes });
  closers.push(gateway.close);
  return { url: gateway.url, harness, node, gateway };
}

/** A manifest as data of a transaction, whose only path leads to an id. */
function makeManifest({ harness, node }: Fixture, seed: number, path: string, target: string) {
  const text = JSON.stringify({
    manifest: "arweave/paths",
    version: "0.2.0",
    index: { path },
    paths: { [path]: { id: target } },
  });
  const made = makeData(seed, text.length, [text.length], Buffer.from(text));
  node.add(made);
  harness.index.set(made.root.id, {
    ...locatedOf(made.root.id, made.root),
    contentType: manifestContentType,
  });
  return made.root.id;
}

describe("what opens no upstream transfer", () => {
  test("HEAD and responses without a body, of content that is not cached", async () => {
    const large = makeData(1, 40 * mebibyte);
    const small = makeData(2, 5_000);
    const fixture = await openFixture([large, small]);
    const item = madeId(3);
    const slice = { start: 1_000_000, end: 1_400_000 };
    fixture.harness.index.set(item, locatedOf(item, large.root, slice));
    const path = "a/picture.png";
    const manifest = makeManifest(fixture, 4, path, large.root.id);
    await (await fetch(`${fixture.url}/raw/${manifest}`)).bytes();
    const before = fixture.node.requests.length;

    const sizes = { [`/${large.root.id}`]: large, [`/raw/${small.root.id}`]: small };
    for (const [address, { bytes }] of Object.entries(sizes)) {
      const head = await fetch(`${fixture.url}${address}`, { method: "HEAD" });
      expect([head.status, head.headers.get("content-length")]).toEqual([200, String(bytes.length)]);
      const tag = head.headers.get("etag") ?? "";
      const rows: readonly (readonly [string, string, Record<string, string>, number])[] = [
        ["HEAD", address, { range: "bytes=10-19" }, 206],
        ["HEAD", address, { "if-none-match": tag }, 304],
        ["GET", address, { "if-none-match": tag }, 304],
        ["GET", address, { "if-none-match": `"other", W/${tag}` }, 304],
        ["GET", address, { "if-none-match": "*" }, 304],
        ["GET", address, { "if-match": '"other"' }, 412],
        ["GET", address, { range: `bytes=${bytes.length}-` }, 416],
        ["GET", address, { range: "bytes=0-9", "if-none-match": tag }, 304],
      ];
      for (const [method, asked, headers, status] of rows) {
        const response = await fetch(`${fixture.url}${asked}`, { method, headers });
        expect([method, headers, response.status]).toEqual([method, headers, status]);
      }
    }
    for (const address of [`/${item}`, `/${manifest}/${path}`, `/${manifest}/`, `/${manifest}`]) {
      const head = await fetch(`${fixture.url}${address}`, { method: "HEAD", redirect: "manual" });
      expect([address, [200, 301].includes(head.status)]).toEqual([address, true]);
    }
    expect(fixture.node.requests.slice(before)).toEqual([]);
  });

  test("HEAD of what only a trusted gateway has asks it for its headers, and for no body", async () => {
    const fixture = await openFixture([]);
    const id = madeId(5);
    fixture.node.addRaw(id, madeBytes(5, 300_000), { "content-type": "image/png" });
    const head = await fetch(`${fixture.url}/${id}`, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, "300000"]);
    expect(fixture.node.requests.filter((line) => line === `GET /raw/${id}`)).toEqual([]);
  });
});

describe("what many want at once", () => {
  // Sockets of their own: a client library would make them wait for one another.
  const asMany = async (fixture: Fixture, path: string) =>
    await Promise.all(
      Array.from({ length: 1_000 }, () => wire(fixture.gateway.server.port, `GET ${path} HTTP/1.1`, 100_000)),
    );

  test("1,000 misses of one id: one upstream fetch", async () => {
    const data = makeData(10, 20_000);
    const fixture = await openFixture([data]);
    fixture.node.setFault(() => ({ kind: "delay", ms: 200 }));
    const responses = await asMany(fixture, `/${data.root.id}`);
    const wrong = responses.filter(({ status, body }) => status !== 200 || !isSame(body, data.bytes));
    expect([responses.length, wrong.length]).toEqual([1_000, 0]);
    expect(fixture.node.requests).toHaveLength(1);
  }, 120_000);

  test("1,000 misses of one path: one fetch of the manifest, one of what it leads to", async () => {
    const data = makeData(11, 20_000);
    const fixture = await openFixture([data]);
    const manifest = makeManifest(fixture, 12, "index.html", data.root.id);
    fixture.node.setFault(() => ({ kind: "delay", ms: 100 }));
    const responses = await asMany(fixture, `/${manifest}/index.html`);
    const wrong = responses.filter(({ status, body }) => status !== 200 || !isSame(body, data.bytes));
    expect([responses.length, wrong.length]).toEqual([1_000, 0]);
    expect(fixture.node.requests).toHaveLength(2);
  }, 120_000);

  test("1,000 misses of one range in a large body: one fetch of the chunk that it touches", async () => {
    const data = makeData(13, 20 * mebibyte);
    const fixture = await openFixture([data]);
    fixture.node.setFault(() => ({ kind: "delay", ms: 200 }));
    const path = `/${data.root.id}`;
    const responses = await Promise.all(
      Array.from({ length: 1_000 }, (_, at) => {
        const head = `GET ${path} HTTP/1.1\r\nRange: bytes=${1_000 + at}-${1_999 + at}`;
        return wire(fixture.gateway.server.port, head, 100_000);
      }),
    );
    const wrong = responses.filter(
      ({ status, body }, at) => status !== 206 || !isSame(body, data.bytes.subarray(1_000 + at, 2_000 + at)),
    );
    expect([responses.length, wrong.length]).toEqual([1_000, 0]);
    expect(fixture.node.requests).toHaveLength(1);
  }, 120_000);
});

/** An upstream that sends its responses in rounds, on request of the test. */
type SlowUpstream = Pick<FaultServer, "url" | "requests" | "stop"> &
  Readonly<{ leadTo: (url: string) => void; waiting: () => number; release: () => void }>;

async function openSlowUpstream(): Promise<SlowUpstream> {
  let upstream = "";
  let held: (() => void)[] | undefined;
  const server = await openFaultServer(async ({ method, path, headers }) => {
    if (held !== undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      held.push(resolve);
      await promise;
    }
    const range = headers.get("range");
    const response = await fetch(`${upstream}${path}`, {
      method,
      headers: range === undefined ? {} : { range },
    });
    const stored = ["content-range", "content-type", ...(method === "HEAD" ? ["content-length"] : [])];
    const named = stored.flatMap((name) => {
      const value = response.headers.get(name);
      return value === null ? [] : [[name, value] as const];
    });
    return { status: response.status, headers: Object.fromEntries(named), body: await response.bytes() };
  });
  closers.push(server.stop);
  return {
    ...server,
    leadTo: (url) => {
      upstream = url;
    },
    waiting: () => {
      held ??= [];
      return held.length;
    },
    release: () => {
      for (const go of held?.splice(0) ?? []) go();
    },
  };
}

/**
 * Long enough for all requests that follow a response; too short a time only counts more rounds.
 */
const settleMs = 200;

/** Returns the number of upstream responses before the first byte. */
async function roundsUntilFirstByte(slow: SlowUpstream, url: string) {
  expect(slow.waiting()).toBe(0); // from now on it holds its responses back
  const asked = fetch(url).then(async (response) => {
    const reader = response.body?.getReader();
    const first = await reader?.read();
    return { status: response.status, first: first?.value, reader };
  });
  let isThere = false;
  void asked.then(() => {
    isThere = true;
  });
  let rounds = 0;
  for (;;) {
    await Bun.sleep(settleMs);
    if (isThere) return { rounds, ...(await asked) };
    if (slow.waiting() > 0) rounds += 1;
    slow.release();
  }
}

describe("the first byte of a cold path, its manifest at hand", () => {
  const rows: readonly (readonly [string, number, "known" | "unknown" | "of an item"])[] = [
    ["a small body", 5_000, "known"],
    ["a small body whose place in the weave is not known", 5_000, "unknown"],
    ["a body of 40 MiB", 40 * mebibyte, "known"],
    ["a body of 40 MiB whose place in the weave is not known", 40 * mebibyte, "unknown"],
    ["an item in a bundle of 40 MiB", 40 * mebibyte, "of an item"],
  ];
  test.each(rows)(
    "%s: at most two upstream round trips",
    async (_, size, place) => {
      const data = makeData(20, size);
      const slow = await openSlowUpstream();
      const fixture = await openFixture([data], slow);
      const { harness } = fixture;
      const { weaveStart: _place, ...unplaced } = data.root;
      if (place === "unknown")
        harness.index.set(data.root.id, { ...locatedOf(data.root.id, unplaced), contentType: "image/png" });
      const item = madeId(21);
      harness.index.set(item, locatedOf(item, data.root, { start: size >> 1, end: (size >> 1) + 2_000 }));
      const target = place === "of an item" ? item : data.root.id;
      const manifest = makeManifest(fixture, 22, "file", target);
      await readHere(fixture, manifest);

      const { rounds, status, first, reader } = await roundsUntilFirstByte(slow, `${fixture.url}/${manifest}/file`);
      const start = place === "of an item" ? size >> 1 : 0;
      expect([status, isSame(first, data.bytes.subarray(start, start + (first?.length ?? 0)))]).toEqual([200, true]);
      expect(first?.length).toBeGreaterThan(0);
      expect(rounds).toBeLessThanOrEqual(2);
      void reader?.cancel();
    },
    120_000,
  );

  test("of what the index does not have: one question more for each who may know of it", async () => {
    const fixture = await openFixture([]);
    const [id, body] = [madeId(23), madeBytes(23, mebibyte)];
    fixture.node.addRaw(id, body, { "content-type": "image/png" });
    const manifest = makeManifest(fixture, 24, "file", id);
    await readHere(fixture, manifest);
    const before = fixture.node.requests.length;
    expect(isSame(await (await fetch(`${fixture.url}/${manifest}/file`)).bytes(), body)).toBe(true);
    expect(fixture.node.requests.slice(before)).toEqual([
      `GET /tx/${id}`,
      `HEAD /raw/${id}`,
      "POST /graphql",
      `GET /raw/${id}`,
    ]);
  });
});

/** Brings content onto this disk, as an earlier reader did. */
async function readHere({ harness }: Fixture, id: Id): Promise<void> {
  const opened = await harness.content.open(id, none);
  await opened.bytes({ start: 0, end: opened.size }, none);
}
