/**
 * `GRAPHQL_HOST`: forwarded requests, returned responses, and errors.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { type BodyMemory, createBodyMemory } from "../../src/http/body-memory.ts";
import { graphqlForward, graphqlOrigin } from "../../src/http/graphql/graphql-forward.ts";
import type { HttpServer } from "../../src/http/server.ts";
import { openHttp } from "../../src/lib/http-client.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { openServer } from "../support/http-server.ts";
import { eventually } from "../support/until.ts";

const mebibyte = 2 ** 20;
const patient = openHttp({ firstByteMs: 20_000, stallMs: 20_000, totalMs: 60_000 });
const hasty = openHttp({ firstByteMs: 300, stallMs: 300, totalMs: 2_000 });
const opened: { close: () => unknown }[] = [patient, hasty];
afterAll(async () => {
  for (const each of opened) await each.close();
});

/** A gateway that forwards. */
function openForwarder(origin: string, name = "us", http = patient, memory?: BodyMemory): HttpServer {
  const server = openServer({
    hostname: "127.0.0.1",
    port: 0,
    app: graphqlForward({ origin, http, name, log: silentLog }),
    bodyBytesMax: 2 ** 20,
    memory,
    log: silentLog,
    stats: { responded: () => undefined, respondedFromCache: () => undefined },
  });
  opened.push({ close: () => server.close(0) });
  return server;
}

/** A host with configurable responses. */
function openHost(reply: (request: Request) => Response | Promise<Response>): string {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: reply });
  opened.push({ close: () => server.stop(true) });
  return `http://127.0.0.1:${server.port}`;
}

const ask = (server: HttpServer, headers: Record<string, string> = {}, body = '{"query":"{ __typename }"}') =>
  fetch(`${server.url}/graphql`, {
    method: "POST",
    body,
    headers: { "Content-Type": "application/json", ...headers },
  });
const shown = async (response: Response) => ({ status: response.status, body: await response.json() });

describe("G2: a query that is forwarded", () => {
  test("takes method, query string, body, Content-Type and Accept with it, and nothing else of its client", async () => {
    const seen: Record<string, unknown>[] = [];
    const origin = openHost(async (request) => {
      seen.push({
        url: new URL(request.url).pathname + new URL(request.url).search,
        method: request.method,
        body: await request.text(),
        headers: Object.fromEntries(request.headers),
      });
      return Response.json({ data: {} });
    });
    const server = openForwarder(origin);
    await ask(server, {
      Accept: "application/graphql-response+json",
      Authorization: "Bearer secret",
      Cookie: "a=b",
      "X-Forwarded-For": "10.0.0.1",
    });
    await fetch(`${server.url}/graphql?query=%7Bx%7D&variables=%7B%7D`);
    expect(seen[0]).toMatchObject({ url: "/graphql", method: "POST", body: '{"query":"{ __typename }"}' });
    expect(seen[1]).toMatchObject({
      url: "/graphql?query=%7Bx%7D&variables=%7B%7D",
      method: "GET",
      body: "",
    });
    const headers = Object.keys(seen[0]?.["headers"] as object);
    expect(headers).toContain("accept");
    for (const name of ["authorization", "cookie", "x-forwarded-for", "x-request-id"])
      expect(headers).not.toContain(name);
  });

  test("is never a subscription: no host is requested, or the request accepts JSON only", async () => {
    const seen: (string | null)[] = [];
    const origin = openHost((request) => {
      seen.push(request.headers.get("accept"));
      return Response.json({ data: {} });
    });
    const server = openForwarder(origin);
    expect(await shown(await ask(server, { Accept: "text/event-stream" }))).toEqual({
      status: 406,
      body: { errors: [{ message: "Subscriptions are not forwarded to the query host." }] },
    });
    for (const Accept of ["*/*", "text/event-stream, application/graphql-response+json"])
      expect((await ask(server, { Accept })).status).toBe(200);
    expect(seen).toEqual(["application/json", "application/graphql-response+json"]);
  });

  test("brings back status, type and body as they are", async () => {
    const origin = openHost(
      () =>
        new Response('{"errors":[{"message":"x"}]}', {
          status: 400,
          headers: {
            "Content-Type": "application/graphql-response+json; charset=utf-8",
            "Set-Cookie": "a=b",
            "X-Secret": "1",
          },
        }),
    );
    const response = await ask(openForwarder(origin));
    expect(response.headers.get("content-type")).toBe("application/graphql-response+json; charset=utf-8");
    expect(response.headers.get("set-cookie")).toBeNull();
    expect(response.headers.get("x-secret")).toBeNull();
    expect(await shown(response)).toEqual({ status: 400, body: { errors: [{ message: "x" }] } });
  });

  const none = "The query host sent no valid response.";
  const faults: [string, () => string, number, string][] = [
    ["a host that is not there", () => "http://127.0.0.1:1", 502, none],
    ["a redirect", () => openHost(() => Response.redirect("http://127.0.0.1:1/", 302)), 502, none],
    [
      "a page of a proxy",
      () => openHost(() => new Response("<html>", { status: 503, headers: { "Content-Type": "text/html" } })),
      502,
      none,
    ],
    [
      "an endless response",
      () =>
        openHost(
          () =>
            new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(2 ** 20)) }), {
              headers: { "Content-Type": "application/json" },
            }),
        ),
      502,
      none,
    ],
    ["silence", () => openHost(() => new Promise(() => undefined)), 504, "The query host did not respond in time."],
  ];
  test.each(faults)("meets %s", async (name, origin, status, message) => {
    const server = openForwarder(origin(), "us", name === "silence" ? hasty : patient);
    expect(await shown(await ask(server))).toEqual({
      status,
      body: { errors: [{ message }] },
    });
  });

  test("is rejected above 64 KiB", async () => {
    const response = await ask(openForwarder(openHost(() => Response.json({}))), {}, "x".repeat(65_537));
    expect(await shown(response)).toEqual({
      status: 413,
      body: { errors: [{ message: "The body is larger than 65536 bytes." }] },
    });
  });

  test("that loops is rejected, directly and through another forwarder", async () => {
    const ring: { first?: string } = {};
    const relay = openHost(
      async (request) =>
        await fetch(`${ring.first}/graphql`, {
          method: "POST",
          body: await request.text(),
          headers: request.headers,
        }),
    );
    const first = openForwarder(relay, "first");
    ring.first = first.url;
    const looped = { status: 508, body: { errors: [{ message: "The query was forwarded in a loop." }] } };
    expect(await shown(await ask(first))).toEqual(looped);
    const second = openForwarder(first.url, "second");
    expect(await shown(await ask(second))).toEqual(looped);
  });

  test("R1, N1: counts what has come of a response against the memory of responses, and ends with 503 without it", async () => {
    const memory = createBodyMemory({
      responseBytesMax: 64 * mebibyte,
      requestBytesMax: mebibyte,
      metrics: createMetrics(),
      waitMsMax: 100,
    });
    const rest = Promise.withResolvers<void>();
    let asked = 0;
    const host = openHost(() => {
      asked += 1;
      let sent = 0;
      const body = new ReadableStream({
        pull: async (controller) => {
          sent += 1;
          if (sent <= 6) controller.enqueue(new Uint8Array(mebibyte).fill(0x20));
          else {
            await rest.promise;
            controller.enqueue(new TextEncoder().encode("[]"));
            controller.close();
          }
        },
      });
      return new Response(body, { headers: { "Content-Type": "application/json" } });
    });
    const server = openForwarder(host, "us", patient, memory);
    const first = ask(server);
    await eventually(
      async () => memory.responseBytes(),
      (bytes) => bytes >= 5 * mebibyte,
      20_000,
    );
    const others = await Promise.all(Array.from({ length: 4 }, async () => await shown(await ask(server))));
    expect(others).toEqual(Array(4).fill({ status: 503, body: "Service busy" }));
    expect(asked).toBeGreaterThan(1);
    expect(memory.responseBytes()).toBeLessThanOrEqual(8 * mebibyte); // the share of one address
    rest.resolve();
    expect((await (await first).text()).length).toBe(6 * mebibyte + 2);
    await eventually(
      async () => memory.responseBytes(),
      (bytes) => bytes === 0,
      20_000,
    );
  }, 60_000);

  test("shows a browser our own GraphiQL", async () => {
    const response = await fetch(`${openForwarder("http://127.0.0.1:1").url}/graphql`, {
      headers: { Accept: "text/html" },
    });
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
  });
});

describe("G2: GRAPHQL_HOST", () => {
  const rows: [string, number, string | undefined][] = [
    ["core", 4_000, "http://core:4000"],
    ["core:5000", 4_000, "http://core:5000"],
    ["core:80", 4_000, "http://core"],
    ["core", 443, "https://core"],
    ["127.0.0.1", 4_000, "http://127.0.0.1:4000"],
    ["[::1]", 4_000, "http://[::1]:4000"],
    ["[::1]:5000", 4_000, "http://[::1]:5000"],
    ["https://arweave.net", 4_000, "https://arweave.net"],
    ["http://core:4000/", 4_000, "http://core:4000"],
    ["https://arweave.net/graphql", 4_000, undefined],
    ["https://user:password@core", 4_000, undefined],
    ["core/path", 4_000, undefined],
    ["", 4_000, undefined],
    ["ftp://core", 4_000, undefined],
    ["two words", 4_000, undefined],
  ];
  test.each(rows)("%p with port %p means %p", (host, port, origin) => {
    expect(graphqlOrigin(host, port)).toBe(origin as never);
  });
});
