/**
 * R1, N1: clients that ask for bodies of every kind and do not read hold a bounded part of the memory, over HTTP/1.1
 * and over HTTP/2, and others are served beside them.
 *
 * COUNT sets how many clients of mixed kinds there are; server and clients are processes of their own.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Id } from "../../src/arweave/id.ts";
import { lineReader } from "../support/line-reader.ts";
import { until } from "../support/until.ts";
import type { SlowOutcome, SlowRequests } from "./slow-readers-sent.ts";

const count = Number(process.env["COUNT"] ?? 300);
const mebibyte = 2 ** 20;

/** Clients of one kind, which request ten times the memory of one address. */
const perKind = 24;

/** Beside what bodies may hold: what the runtime and its allocator take for so many connections. */
const growthMax = 300 * mebibyte;

type Served = Readonly<{
  url: string;
  reported: string;
  ids: Readonly<{ small: Id; data: Id; body: Id; source: Id; hot: Id; middle: readonly Id[] }>;
}>;
type Memory = Readonly<{ rss: number; responseBytes: number; requestBytes: number }>;

const served = Bun.spawn([process.execPath, new URL("slow-readers-served.ts", import.meta.url).pathname], {
  stdout: "pipe",
  env: process.env,
});
const sent = Bun.spawn([process.execPath, new URL("slow-readers-sent.ts", import.meta.url).pathname], {
  stdin: "pipe",
  stdout: "pipe",
  env: process.env,
});
const sentLine = lineReader(sent.stdout);
let gateway: Served;
let idle: Memory;

beforeAll(async () => {
  gateway = JSON.parse(await lineReader(served.stdout)());
  // Memory that the runtime keeps for code does not belong to a client.
  for (const { head, bodyBytes } of kinds) {
    const [, path = "", range] = /^\S+ (\S+) HTTP.1.1(?:\r\nRange: (.*))?/.exec(head()) ?? [];
    if (bodyBytes === undefined)
      await (await fetch(`${gateway.url}${path}`, { headers: range === undefined ? {} : { range } })).bytes();
  }
  idle = await memory();
});
afterAll(async () => {
  served.kill();
  sent.kill();
  await Promise.all([served.exited, sent.exited]);
});

async function memory(): Promise<Memory> {
  return JSON.parse(await (await fetch(gateway.reported)).text());
}

async function send(wanted: Omit<SlowRequests, "port" | "waitMs">): Promise<SlowOutcome> {
  const line: SlowRequests = { ...wanted, port: Number(new URL(gateway.url).port), waitMs: 1_000 };
  sent.stdin.write(`${JSON.stringify(line)}\n`);
  await sent.stdin.flush();
  return JSON.parse(await sentLine());
}

/** Closes all clients, and waits until their bodies are given back. */
async function leave(): Promise<void> {
  sent.stdin.write("\n");
  await sent.stdin.flush();
  await sentLine();
  await until(async () => {
    const { responseBytes, requestBytes } = await memory();
    return responseBytes + requestBytes === 0;
  });
}

/** Sixteen disjoint ranges that are most of a body. */
const sixteen = Array.from({ length: 16 }, (_, index) => `${index * 490_000}-${index * 490_000 + 480_000}`);

type Kind = Readonly<{ name: string; head: () => string; bodyBytes?: number; share: number }>;

/** The requested content; `share` is the memory of one client address, in bytes. */
const kinds: readonly Kind[] = [
  { name: "data as text", head: () => `GET /tx/${gateway.ids.data}/data HTTP/1.1`, share: 32 },
  { name: "a record with its data", head: () => `GET /tx/${gateway.ids.data} HTTP/1.1`, share: 32 },
  {
    name: "a frame's record",
    head: () => `GET /local/social/frame/${gateway.ids.data} HTTP/1.1\r\nAccept: application/json`,
    share: 32,
  },
  { name: "a body with an ignored range", head: () => rawBody("x"), share: 0 },
  { name: "a body with a range that only the runtime reads", head: () => rawBody("bytes = 0-9"), share: 32 },
  { name: "16 ranges", head: () => rawBody(`bytes=${sixteen.join(",")}`), share: 32 },
  { name: "a file", head: () => `GET /raw/${gateway.ids.body} HTTP/1.1`, share: 0 },
  { name: "a stream", head: () => `GET /raw/${gateway.ids.source} HTTP/1.1`, share: 32 },
  {
    name: "a posted body",
    head: () => "POST /tx HTTP/1.1\r\nContent-Length: 13000000",
    bodyBytes: 12_900_000,
    share: 32,
  },
];

function rawBody(range: string): string {
  return `GET /raw/${gateway.ids.body} HTTP/1.1\r\nRange: ${range}`;
}

async function expectOthersToBeServed(): Promise<void> {
  const other = { headers: { "x-forwarded-for": "192.0.2.1" } };
  for (let round = 0; round < 2; round++) {
    const small = await fetch(`${gateway.url}/raw/${gateway.ids.small}`, other);
    expect([small.status, (await small.bytes()).length]).toEqual([200, 1_000]);
    const data = await fetch(`${gateway.url}/tx/${gateway.ids.data}/data`, other);
    expect([data.status, (await data.bytes()).length]).toEqual([200, 16_000_000]);
  }
}

describe("R1, N1, N6: clients that do not read", () => {
  test.each(kinds.map((kind) => [kind.name, kind] as const))(
    "many of one address that ask for %s hold its share of memory, and others get theirs",
    async (_name, { head, bodyBytes, share }) => {
      const request = { head: head(), count: perKind, ...(bodyBytes === undefined ? {} : { bodyBytes }) };
      const { statuses } = await send({ requests: [request], addresses: 1 });
      const { rss, responseBytes, requestBytes } = await memory();
      expect(responseBytes + requestBytes).toBeLessThanOrEqual(share * mebibyte + 2 ** 20);
      expect(rss - idle.rss).toBeLessThan(3 * share * mebibyte + 64 * mebibyte);
      const known = ["200", "206", "503", "none"].reduce((sum, each) => sum + (statuses[0]?.[each] ?? 0), 0);
      expect({ statuses, known }).toEqual({ statuses, known: perKind });
      await expectOthersToBeServed();
      await leave();
    },
    120_000,
  );

  test("a response without free memory becomes 503 with Retry-After and no-store", async () => {
    await send({ requests: [{ head: rawBody(`bytes=${sixteen.join(",")}`), count: 8 }], addresses: 1 });
    const response = await fetch(`${gateway.url}/raw/${gateway.ids.body}`, {
      headers: { range: `bytes=${sixteen.join(",")}`, "x-forwarded-for": "10.0.0.0" },
    });
    const { status, headers } = response;
    expect([status, headers.get("retry-after"), headers.get("cache-control")]).toEqual([503, "5", "no-store"]);
    expect(await response.text()).toBe('"Service busy"');
    const stats = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(stats).toMatch(/^http_response_body_bytes [1-9]\d{7}$/m);
    expect(stats).toMatch(/^http_response_body_refused_total [1-9]\d*$/m);
    await leave();
  }, 120_000);

  test(`${count} of mixed kinds and many addresses hold what bodies may, and others are served`, async () => {
    const each = Math.ceil(count / kinds.length);
    const requests = kinds.map(({ head, bodyBytes }) => ({
      head: head(),
      count: each,
      // So many clients share one process, too.
      ...(bodyBytes === undefined ? {} : { bodyBytes: Math.min(bodyBytes, Math.ceil(1e9 / count)) }),
    }));
    const before = await delays();
    const { statuses } = await send({ requests, addresses: 100 });
    const { rss, responseBytes, requestBytes } = await memory();
    const during = await delays();
    await Bun.sleep(3_500); // until requests that waited for bytes have their responses
    const later = await memory();
    console.log(
      `${count} clients: ${inMegabytes(rss - idle.rss)} MB more, ${inMegabytes(later.rss - idle.rss)} MB after 3.5 s;`,
      `${inMegabytes(responseBytes)} MB of responses, ${inMegabytes(requestBytes)} MB of requests;`,
      `others' p50 and p99 ${before} ms before, ${during} ms beside them, ${await delays()} ms after 3.5 s;`,
      JSON.stringify(statuses),
    );
    expect(Math.max(rss, later.rss) - idle.rss).toBeLessThan(growthMax);
    expect(responseBytes).toBeLessThanOrEqual(256 * mebibyte);
    expect(requestBytes).toBeLessThanOrEqual(128 * mebibyte);
    await leave();
  }, 600_000);
});

/** How long others wait for content from memory: the median and the 99th of a hundred. Milliseconds. */
async function delays(): Promise<string> {
  const waits: number[] = [];
  for (let round = 0; round < 500; round++) {
    const startedAt = performance.now();
    const small = await fetch(`${gateway.url}/raw/${gateway.ids.small}`);
    expect([small.status, (await small.bytes()).length]).toEqual([200, 1_000]);
    waits.push(performance.now() - startedAt);
  }
  waits.sort((a, b) => a - b);
  return [0.5, 0.99].map((part) => (waits[Math.floor(waits.length * part)] ?? 0).toFixed(2)).join(" and ");
}

function inMegabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}
