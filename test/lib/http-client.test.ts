/**
 * The client of other machines: bodies as they are.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import { openGateways } from "../../src/chain/gateways.ts";
import { gatewayAt } from "../../src/config/setting-readers.ts";
import { openHttp } from "../../src/lib/http-client.ts";
import { silentLog } from "../../src/lib/log.ts";

const plain = new TextEncoder().encode("said again and again, ".repeat(100));
const coded = Bun.gzipSync(plain);
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: (request) => {
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "");
    const headers = { "content-encoding": "gzip", "content-length": String(coded.length) };
    if (range === null) return new Response(coded, { headers });
    const part = coded.subarray(Number(range[1]), Number(range[2]) + 1);
    const place = `bytes ${range[1]}-${range[2]}/${coded.length}`;
    return new Response(part, {
      status: 206,
      headers: { "content-encoding": "gzip", "content-range": place },
    });
  },
});
afterAll(() => server.stop(true));

const url = `http://127.0.0.1:${server.port}`;
const { signal } = new AbortController();
const timeouts = { firstByteMs: 5_000, stallMs: 5_000, totalMs: 5_000 };

describe("a body with a coding", () => {
  test.each([
    [true, coded],
    [undefined, plain],
  ] as const)("is returned undecoded on request: %p", async (keepsCoding, wanted) => {
    const http = openHttp(timeouts);
    const request = { method: "GET", url, ...(keepsCoding && { keepsCoding }) } as const;
    const response = await http.whole(request, 1e6, signal);
    expect(response.kind === "response" ? Buffer.from(response.body).equals(wanted) : response).toBe(true);
    http.close();
  });

  test("is the content of an id at a gateway, complete and in part", async () => {
    const gateways = openGateways([gatewayAt(url)], {
      clock: Date.now,
      random: () => 0,
      log: silentLog,
      timeouts,
    });
    const found = await gateways.find("id", async (value) => ({ kind: "ok", value }) as const, signal);
    if (found.kind !== "ok") throw new Error(`not found: ${Bun.inspect(found)}`);
    expect(found.value).toMatchObject({ size: coded.length, contentEncoding: "gzip" });
    for (const span of [
      { start: 0, end: coded.length },
      { start: 3, end: 20 },
    ]) {
      const pieces = await Array.fromAsync(gateways.read("id", found.value, span, signal));
      expect(Buffer.concat(pieces).equals(coded.subarray(span.start, span.end))).toBe(true);
    }
    gateways.close();
  });
});

test("C5: readers that are slow keep from others neither look-ups nor a response", async () => {
  const size = 2 ** 20;
  const signal = AbortSignal.timeout(60_000);
  const slow = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: ({ method }) => {
      if (method === "HEAD") return new Response(null, { headers: { "content-length": String(size) } });
      return new Response(new ReadableStream({ start: (stream) => stream.enqueue(new Uint8Array(1_000)) }));
    },
  });
  const gateways = openGateways([gatewayAt(`http://127.0.0.1:${slow.port}`)], {
    clock: Date.now,
    random: () => 0,
    log: silentLog,
    timeouts: { firstByteMs: 10_000, stallMs: 10_000, totalMs: 2_000 },
  });
  const find = () => gateways.find("id", async (value) => ({ kind: "ok", value }) as const, signal);
  const found = await find();
  if (found.kind !== "ok") throw new Error(`not found: ${Bun.inspect(found)}`);
  const open = () => gateways.read("id", found.value, { start: 0, end: size }, signal)[Symbol.asyncIterator]();
  const readers = Array.from({ length: 64 }, open);
  for (const reader of readers) expect((await reader.next()).value).toHaveLength(1_000);
  expect((await find()).kind).toBe("ok");
  await expect(open().next()).rejects.toMatchObject({ code: "busy" });
  gateways.close();
  await slow.stop(true);
});

describe("C2: a body that is larger than its caller accepts", () => {
  const endless = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url: asked, signal: left }) => {
      if (asked.endsWith("/announced")) return new Response(new Uint8Array(100_001));
      const stream = new ReadableStream<Uint8Array>({
        pull: async (controller) => {
          if (left.aborted) return controller.close();
          controller.enqueue(new Uint8Array(10_000));
          await Bun.sleep(1);
        },
      });
      return new Response(stream);
    },
  });
  afterAll(() => endless.stop(true));

  test.each(["announced", "endless"])(
    "is left when it is %s, with the reason",
    async (kind) => {
      const http = openHttp({ firstByteMs: 20_000, stallMs: 20_000, totalMs: 20_000 });
      const request = { method: "GET", url: `http://127.0.0.1:${endless.port}/${kind}` } as const;
      const response = await http.whole(request, 100_000, AbortSignal.timeout(30_000));
      expect(response).toMatchObject({ kind: "fault", reason: "too_large" });
      http.close();
    },
    60_000,
  );
});

test("S1: a redirect is returned, and not followed", async () => {
  let asked = 0;
  const inner = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => {
      asked += 1;
      return new Response("internal");
    },
  });
  const outer = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => Response.redirect(`http://127.0.0.1:${inner.port}/`, 302),
  });
  const http = openHttp(timeouts);
  const request = { method: "GET", url: `http://127.0.0.1:${outer.port}` } as const;
  expect(await http.whole(request, 1_000, signal)).toMatchObject({ kind: "response", status: 302 });
  const stream = await http.stream(request, signal);
  expect(stream).toMatchObject({ kind: "stream", status: 302 });
  if (stream.kind === "stream") stream.cancel();
  expect(asked).toBe(0);
  http.close();
  await Promise.all([inner.stop(true), outer.stop(true)]);
});

describe("C3: a source that hangs", () => {
  const hanging = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: async ({ url: asked, signal: left }) => {
      const gone = new Promise<void>((resolve) => left.addEventListener("abort", () => resolve()));
      if (asked.endsWith("/headers")) await gone;
      const pauseMs = asked.endsWith("/trickle") ? 20 : 60_000;
      const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
        controller.enqueue(new Uint8Array(10));
        await Promise.race([gone, Bun.sleep(pauseMs)]);
        if (left.aborted) controller.close();
      };
      return new Response(new ReadableStream<Uint8Array>({ pull }));
    },
  });
  afterAll(() => hanging.stop(true));
  const patient = { firstByteMs: 60_000, stallMs: 60_000, totalMs: 60_000 };

  test.each([
    ["before its headers", "headers", { firstByteMs: 200 }],
    ["between two pieces", "stall", { stallMs: 200 }],
    ["by sending a little again and again", "trickle", { totalMs: 500 }],
  ])(
    "%s ends by the one limit that is about that",
    async (_when, path, limit) => {
      const http = openHttp({ ...patient, ...limit });
      const request = { method: "GET", url: `http://127.0.0.1:${hanging.port}/${path}` } as const;
      const response = await http.whole(request, 2 ** 20, AbortSignal.timeout(25_000));
      expect(response).toMatchObject({ kind: "fault", reason: "timeout" });
      http.close();
    },
    60_000,
  );
});

describe("a body with a length beside a transfer coding", () => {
  test("is not read beyond its limit, however much is sent", async () => {
    const limit = 2 ** 16;
    const piece = Buffer.concat([Buffer.from("10000\r\n"), new Uint8Array(2 ** 16), Buffer.from("\r\n")]);
    let sent = 0;
    const endless = createServer((socket) => {
      socket.on("error", () => undefined); // the client leaves
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n");
      const more = () => {
        while (!socket.destroyed && socket.write(piece)) sent += piece.length;
      };
      socket.on("drain", more);
      more();
    });
    await new Promise<void>((resolve) => endless.listen(0, "127.0.0.1", resolve));
    const address = endless.address();
    if (address === null || typeof address === "string") throw new Error("a server listens on a port");
    const http = openHttp({ firstByteMs: 20_000, stallMs: 20_000, totalMs: 20_000 });
    const request = { method: "GET", url: `http://127.0.0.1:${address.port}/` } as const;
    const response = await http.whole(request, limit, AbortSignal.timeout(25_000));
    expect(response.kind === "fault" ? response.reason : response.body.length).not.toBe("timeout");
    expect(sent).toBeLessThan(64 * 2 ** 20);
    http.close();
    endless.close();
  }, 60_000);
});
