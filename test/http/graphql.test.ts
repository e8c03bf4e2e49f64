/**
 * `/graphql` on the wire: methods, statuses, media types, bodies, limits, and hidden details.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Failure } from "../../src/failures.ts";
import { createGraphqlServer, type GraphqlJob } from "../../src/graphql/graphql-server.ts";
import { blockOf, createMemoryIndex, noSignatures, rowAt } from "../graphql/memory-index.ts";
import { createRecordingLog } from "../support/recording-log.ts";
import { openGraphqlServer, poolOf } from "./graphql-server.ts";

const blocks = [blockOf(0), blockOf(1)];
const index = createMemoryIndex([rowAt({ height: 1, txIndex: 0, offset: -1 })], blocks);
const serve = createGraphqlServer({ index, signatures: noSignatures });
const server = openGraphqlServer({
  pool: poolOf((job: GraphqlJob) => serve(job, () => undefined)),
});
afterAll(() => server.close(0));

const url = `${server.url}/graphql`;
const json = "application/json";
const modern = "application/graphql-response+json";
const good = "{ blocks(first: 1) { edges { node { height } } } }";
const goodResponse = '{"data":{"blocks":{"edges":[{"node":{"height":1}}]}}}';
const bad = "{ nope }";
const badMessage = 'Cannot query field "nope" on type "Query".';

const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  fetch(url, { method: "POST", body, headers: { "Content-Type": json, ...headers } });
const get = (parameters: Record<string, string>, headers: Record<string, string> = {}) =>
  fetch(`${url}?${new URLSearchParams(parameters)}`, { headers });
const messages = async (response: Response) => {
  const body = (await response.json()) as { errors: { message: string }[] };
  return body.errors.map(({ message }) => message);
};

describe("a query", () => {
  const ways: [string, () => Promise<Response>, string][] = [
    ["POST with JSON", () => post(JSON.stringify({ query: good })), json],
    [
      "POST with JSON and a character set",
      () => post(JSON.stringify({ query: good }), { "Content-Type": "application/json; charset=utf-8" }),
      json,
    ],
    ["POST with application/graphql", () => post(good, { "Content-Type": "application/graphql" }), json],
    [
      "POST with application/graphql+json",
      () => post(JSON.stringify({ query: good }), { "Content-Type": "application/graphql+json" }),
      json,
    ],
    [
      "POST with a form",
      () =>
        post(String(new URLSearchParams({ query: good })), {
          "Content-Type": "application/x-www-form-urlencoded",
        }),
      json,
    ],
    ["GET", () => get({ query: good }), json],
    ["GET that ends with yoga's health path", () => get({ query: good, x: "/health" }), json],
    ["any media type", () => post(JSON.stringify({ query: good }), { Accept: "*/*" }), json],
    ["the newer media type", () => post(JSON.stringify({ query: good }), { Accept: modern }), modern],
    [
      "the newer media type before the older",
      () => post(JSON.stringify({ query: good }), { Accept: `${modern}, ${json};q=0.9` }),
      modern,
    ],
    [
      "a media type of ours after a foreign one",
      () => post(JSON.stringify({ query: good }), { Accept: `image/png, ${json}` }),
      json,
    ],
    ["unknown keys", () => post(JSON.stringify({ query: good, id: 7, extensions: {} })), json],
    [
      "nulls where nothing is meant",
      () => post(JSON.stringify({ query: good, variables: null, operationName: null, extensions: null })),
      json,
    ],
  ];
  test.each(ways)("gets a response: %s", async (_name, ask, type) => {
    const response = await ask();
    expect(await response.text()).toBe(goodResponse);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe(`${type}; charset=utf-8`);
    expect(response.headers.get("content-length")).toBe(String(goodResponse.length));
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
  });

  test("has variables and an operation, by POST and by GET", async () => {
    const query = "query A { __typename } query B($n: Int!) { blocks(first: $n) { edges { node { height } } } }";
    const body = JSON.stringify({ query, variables: { n: 1 }, operationName: "B" });
    expect(await (await post(body)).text()).toBe(goodResponse);
    expect(await (await get({ query, variables: '{"n":1}', operationName: "B" })).text()).toBe(goodResponse);
  });

  test("asked by HEAD has the headers of GET", async () => {
    const response = await fetch(`${url}?${new URLSearchParams({ query: good })}`, { method: "HEAD" });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await response.text()).toBe("");
  });
});

describe("a subscription", () => {
  const query = "query Other { __typename } subscription Blocks { blocks(height: { min: 7, max: 9 }) { kind } }";
  const ask = (operationName: string, acceptsEvents: boolean) =>
    serve(
      { request: { form: "json", text: JSON.stringify({ query, operationName }) }, mediaType: json, acceptsEvents },
      () => undefined,
    );

  test("is planned also when its document is cached, and after another operation of it was executed", async () => {
    const kind = { key: "kind", name: "kind", inner: [] };
    const selection = { key: "blocks", fields: [kind] };
    const plan = { topic: "blocks", selection, rows: undefined, blocks: { min: 7, max: 9 }, after: undefined } as const;
    for (let round = 0; round < 3; round += 1) {
      expect((await ask("Blocks", true)).subscription).toEqual(plan);
      const { subscription, body } = await ask("Other", true);
      expect([subscription, new TextDecoder().decode(body)]).toEqual([undefined, '{"data":{"__typename":"Query"}}']);
      const rejected = await ask("Blocks", false);
      expect([rejected.status, rejected.subscription]).toEqual([406, undefined]);
    }
  });
});

describe("a mistake", () => {
  const rows: [string, () => Promise<Response>, number, string][] = [
    [
      "in the document, for clients of application/json",
      () => post(JSON.stringify({ query: bad }), { Accept: json }),
      200,
      badMessage,
    ],
    ["in the document, without Accept", () => post(JSON.stringify({ query: bad })), 200, badMessage],
    [
      "in the document, for clients of the newer type",
      () => post(JSON.stringify({ query: bad }), { Accept: modern }),
      400,
      badMessage,
    ],
    ["in the document, by GET", () => get({ query: bad }), 200, badMessage],
    [
      "in the syntax",
      () => post(JSON.stringify({ query: "{" }), { Accept: modern }),
      400,
      "Syntax Error: Expected Name, found <EOF>.",
    ],
    [
      "in the variables",
      () => post(JSON.stringify({ query: "query($n: Int!) { blocks(first: $n) { count } }" })),
      200,
      'Variable "$n" of required type "Int!" was not provided.',
    ],
    [
      "in the variables, for clients of the newer type",
      () =>
        post(JSON.stringify({ query: "query($n: Int!) { blocks(first: $n) { count } }" }), {
          Accept: modern,
        }),
      400,
      'Variable "$n" of required type "Int!" was not provided.',
    ],
    [
      "in an argument, for clients of the newer type",
      () => post(JSON.stringify({ query: "{ blocks(first: 0) { count } }" }), { Accept: modern }),
      200,
      '"first" is 0; it must be 1 or more.',
    ],
    [
      "a mutation by GET",
      () => get({ query: "mutation { __typename }" }),
      200,
      "Schema is not configured to execute mutation operation.",
    ],
    ["invalid JSON", () => post("{"), 400, "The body is not JSON."],
    ["no body", () => post(""), 400, "The body is not JSON."],
    ["JSON that is not an object", () => post("7"), 400, "The body must be a JSON object."],
    ["null", () => post("null"), 400, "The body must be a JSON object."],
    ["a batch", () => post(JSON.stringify([{ query: good }, { query: good }])), 400, "Batching is not supported."],
    ["no query", () => post("{}"), 400, '"query" must be a non-empty string.'],
    ["no query, by GET", () => get({}, { Accept: json }), 400, '"query" must be a non-empty string.'],
    ["a query that is a number", () => post('{"query":7}'), 400, '"query" must be a non-empty string.'],
    [
      "variables that are a list",
      () => post(JSON.stringify({ query: good, variables: [] })),
      400,
      '"variables" must be an object.',
    ],
    [
      "extensions that are a list",
      () => post(JSON.stringify({ query: good, extensions: [] })),
      400,
      '"extensions" must be an object.',
    ],
    [
      "variables that are a text",
      () => post(JSON.stringify({ query: good, variables: "{}" })),
      400,
      '"variables" must be an object.',
    ],
    [
      "variables that are no JSON, by GET",
      () => get({ query: good, variables: "{" }),
      400,
      'The "variables" is not JSON.',
    ],
    [
      "an operation name that is a number",
      () => post(JSON.stringify({ query: good, operationName: 7 })),
      400,
      '"operationName" must be a string.',
    ],
    ["bytes that are not UTF-8", () => post(new Uint8Array([0x7b, 0xff, 0x7d])), 400, "The body is not UTF-8."],
    [
      "a body of another type",
      () => post(good, { "Content-Type": "text/plain" }),
      415,
      'A body of type "text/plain" is not supported; send application/json.',
    ],
    [
      "a file upload",
      () => post("", { "Content-Type": "multipart/form-data; boundary=x" }),
      415,
      'A body of type "multipart/form-data" is not supported; send application/json.',
    ],
    [
      "a body above 64 KiB",
      () => post(JSON.stringify({ query: good, x: "x".repeat(65_536) })),
      413,
      "The body is larger than 65536 bytes.",
    ],
    [
      "an Accept without a type of ours",
      () => post(JSON.stringify({ query: good }), { Accept: "image/png" }),
      406,
      "Responses are application/json or application/graphql-response+json, and text/event-stream for subscriptions.",
    ],
  ];
  test.each(rows)("gets its error: %s", async (_name, ask, status, message) => {
    const response = await ask();
    expect({ messages: await messages(response), status: response.status }).toEqual({
      messages: [message],
      status,
    });
    expect(response.headers.get("content-type")).toMatch(/^application\/(graphql-response\+)?json/);
  });

  test("has its line and column, and names no stack, path of ours or HTTP detail", async () => {
    const text = await (await post(JSON.stringify({ query: "{\n  nope\n}" }))).text();
    expect(JSON.parse(text)).toEqual({
      errors: [{ message: badMessage, locations: [{ line: 2, column: 3 }] }],
    });
  });

  test("of size is reported for a body in pieces without a length", async () => {
    const pieces = new ReadableStream({
      start: (controller) => {
        for (let index = 0; index < 70; index++) controller.enqueue(new Uint8Array(1_024).fill(32));
        controller.close();
      },
    });
    const response = await fetch(url, { method: "POST", body: pieces, headers: { "Content-Type": json } });
    expect(response.status).toBe(413);
  });

  test.each(["PUT", "DELETE", "PATCH"])("of method is reported: %s", async (method) => {
    const response = await fetch(url, { method });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toMatch(/GET, HEAD, POST|POST, GET, HEAD/);
  });
});

describe("errors of the server", () => {
  const faulty = async (error: unknown, accept = json) => {
    const { log, lines } = createRecordingLog();
    const pool = poolOf(() => {
      throw error;
    });
    const other = openGraphqlServer({ pool, log });
    const response = await fetch(`${other.url}/graphql`, {
      method: "POST",
      body: JSON.stringify({ query: good }),
      headers: { "Content-Type": json, Accept: accept, "X-Request-Id": "the-request" },
    });
    const text = await response.text();
    await other.close(0);
    return { response, text, lines: JSON.stringify(lines) };
  };

  test.each([json, modern])("that is a defect is 500, masked, and logged whole (%s)", async (accept) => {
    const { response, text, lines } = await faulty(new Error("disk on fire at /secret"), accept);
    expect(response.status).toBe(500);
    expect(text).toBe('{"errors":[{"message":"Internal Server Error"}]}');
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(lines).toContain("disk on fire at /secret");
    expect(lines).toContain("the-request");
  });

  test("when all threads are busy is 503 and says when to come again", async () => {
    const { response, text } = await faulty(new Failure("busy", { entry: "query" }));
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("5");
    expect(text).toBe('{"errors":[{"message":"Service busy"}]}');
  });

  test("when a thread hung is 504", async () => {
    const { response, text } = await faulty(new Failure("worker_failed", { hung: true }));
    expect(response.status).toBe(504);
    expect(text).toBe('{"errors":[{"message":"The query took too long."}]}');
  });

  test("when a thread died is 500", async () => {
    const { response, text } = await faulty(new Failure("worker_failed", { hung: false }));
    expect(response.status).toBe(500);
    expect(text).toBe('{"errors":[{"message":"Internal Server Error"}]}');
  });

  test("within a response is masked there, and logged with the request's id", async () => {
    const { log, lines } = createRecordingLog();
    const broken = createGraphqlServer({
      index: {
        ...index,
        encodedPage: () => {
          throw new Error("page 7 is malformed");
        },
      },
      signatures: noSignatures,
    });
    const other = openGraphqlServer({
      pool: poolOf((job: GraphqlJob) => broken(job, () => undefined)),
      log,
    });
    const response = await fetch(`${other.url}/graphql`, {
      method: "POST",
      body: JSON.stringify({ query: "{ transactions { edges { cursor } } }" }),
      headers: { "Content-Type": json, "X-Request-Id": "the-request" },
    });
    expect(await response.json()).toMatchObject({
      data: null,
      errors: [{ message: "Internal Server Error", path: ["transactions"] }],
    });
    expect(
      lines
        .map((line) => JSON.stringify(line))
        .filter((line) => line.includes("page 7 is malformed") && line.includes("the-request")),
    ).toHaveLength(1);
    await other.close(0);
  });
});

test("a query whose client disconnects before a thread is free is not executed, and is not a defect", async () => {
  const { log, lines } = createRecordingLog();
  const { promise: left, resolve: leave } = Promise.withResolvers<unknown>();
  const begun = Promise.withResolvers<void>();
  const waiting = openGraphqlServer({
    pool: {
      ...poolOf(() => undefined),
      run: (_name, _job, options) =>
        new Promise((_, reject) => {
          options?.signal?.addEventListener("abort", () => {
            leave(options.signal?.reason);
            reject(options.signal?.reason);
          });
          begun.resolve();
        }),
    },
    log,
  });
  const leaving = new AbortController();
  const asked = fetch(`${waiting.url}/graphql`, {
    method: "POST",
    body: JSON.stringify({ query: good }),
    headers: { "Content-Type": json },
    signal: leaving.signal,
  }).catch(() => undefined);
  await begun.promise;
  leaving.abort();
  await asked;
  expect(await left).toBeDefined();
  await waiting.close(100);
  expect(lines.filter((line) => JSON.stringify(line).includes("defect"))).toEqual([]);
});

describe("GraphiQL", () => {
  test("is what a browser sees, under a policy that lets nothing else in", async () => {
    const response = await fetch(url, { headers: { Accept: "text/html,application/xhtml+xml,*/*;q=0.8" } });
    const html = await response.text();
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(response.headers.get("cross-origin-opener-policy")).toBe("same-origin");
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe");
    expect(html).not.toMatch(/https?:\/\//);
    const nonce = /nonce="([^"]+)"/.exec(html)?.[1];
    expect(policy).toContain(`'nonce-${nonce}'`);
  });

  test("has its script and style from this origin, compressed, to be stored for good", async () => {
    const html = await (await fetch(url, { headers: { Accept: "text/html" } })).text();
    const paths = [...html.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map((match) => match[1] ?? "");
    expect(paths).toHaveLength(2);
    for (const path of paths) {
      const compressed = await fetch(server.url + path, {
        headers: { "Accept-Encoding": "gzip" },
        decompress: false,
      });
      expect(compressed.headers.get("content-encoding")).toBe("gzip");
      expect(compressed.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      const plain = await fetch(server.url + path, { headers: { "Accept-Encoding": "identity" } });
      expect(plain.headers.get("content-encoding")).toBeNull();
      expect(Bun.gunzipSync(await compressed.bytes())).toEqual(await plain.bytes());
    }
  });
});
