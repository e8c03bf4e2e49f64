/**
 * Metrics of requests: every response of every service is counted once and logged once, under its service and the
 * pattern of its route, and nothing that strangers send makes the metrics grow.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { METHODS, STATUS_CODES } from "node:http";
import { sandboxLabel } from "../../src/http/hosts.ts";
import { createRequestMetrics } from "../../src/http/request-metrics.ts";
import { withBodySize } from "../../src/http/responses.ts";
import { createRouteLabels, unrouted } from "../../src/http/route-table.ts";
import { createLog, silentLog } from "../../src/lib/log.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { version } from "../../src/version.ts";
import { wire } from "../support/gateway-server.ts";
import { eventually } from "../support/until.ts";
import { testItem } from "../support/upload.ts";
import { openUploadStack, type UploadStack } from "../support/upload-stack.ts";

type Sample = Readonly<{ name: string; labels: Readonly<Record<string, string>>; value: number }>;

const root = "gateway.test";
let stack: UploadStack;
let item: ReturnType<typeof testItem>;
const urlOf = (service: "payment" | "upload") => (stack.gateway.serviceUrls.get(service) ?? "").replace(/\/$/, "");

beforeAll(async () => {
  stack = await openUploadStack({ environment: { ARNS_ROOT_HOST: root, ADMIN_API_KEY: "key", LOG_REQUESTS: "true" } });
  item = testItem(new Uint8Array(1_000).fill(7));
  const taken = await fetch(`${stack.uploads}/v1/tx`, { method: "POST", body: item.bytes });
  expect(taken.status).toBe(200);
  await eventually(
    async () => (await fetch(`${stack.content}/raw/${item.id}`)).status,
    (status) => status === 200,
  );
}, 60_000);
afterAll(() => stack.close());

function samplesOf(text: string): readonly Sample[] {
  return [...text.matchAll(/^([a-z_0-9]+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = "", labels = "", value]) => ({
    name,
    labels: Object.fromEntries([...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, each]) => [key, each])),
    value: Number(value),
  }));
}

const samples = async () => samplesOf(await (await fetch(`${stack.content}/metrics`)).text());

/** Responses so far by "service path method status", without those of /metrics. */
async function counts(): Promise<ReadonlyMap<string, number>> {
  const found = (await samples()).filter(({ name }) => name === "http_request_duration_seconds_count");
  return new Map(
    found
      .filter(({ labels }) => labels["path"] !== "/metrics")
      .map(({ labels: { service, path, method, status_code }, value }) => [
        `${service} ${path} ${method} ${status_code}`,
        value,
      ]),
  );
}

describe("every response is counted once and logged once", () => {
  const name = "A".repeat(43);
  const json = { "content-type": "application/json" };
  type Row = readonly [kind: string, url: () => string, init: RequestInit, label: string];
  const on = (service: "content" | "payment" | "upload", path: string) => () =>
    `${service === "content" ? stack.content : urlOf(service)}${path}`;
  const of = (path: (id: string) => string) => () => `${stack.content}${path(item.id)}`;
  const rows: readonly Row[] = [
    ["content", of((id) => `/raw/${id}?x`), { headers: { "if-match": "*" } }, "gateway /raw/{id} GET 200"],
    ["content from memory", of((id) => `/raw/${id}`), {}, "gateway /raw/{id} GET 200"],
    ["a range", of((id) => `/raw/${id}`), { headers: { range: "bytes=0-9" } }, "gateway /raw/{id} GET 206"],
    ["what is unchanged", of((id) => `/raw/${id}`), { headers: { "if-none-match": "*" } }, "gateway /raw/{id} GET 304"],
    ["HEAD", of((id) => `/raw/${id}`), { method: "HEAD" }, "gateway /raw/{id} HEAD 200"],
    ["content by id", of((id) => `/${id}`), { headers: { "if-match": "*" } }, "gateway /{id} GET 200"],
    ["unknown content", on("content", `/${name}`), {}, "gateway /{id} GET 404"],
    ["a malformed path", on("content", "/raw/%zz"), {}, "gateway unrouted GET 400"],
    ["an unknown path", on("content", "/svc/nothing"), {}, "gateway unrouted GET 404"],
    ["a wrong method", on("content", "/info"), { method: "DELETE" }, "gateway unrouted DELETE 405"],
    ["a preflight", on("content", "/info"), { method: "OPTIONS" }, "gateway unrouted OPTIONS 204"],
    ["the other spelling", on("content", "/ar-io/info"), {}, "gateway /svc/info GET 200"],
    ["a record", on("content", `/tx/${name}/status`), {}, "gateway /tx/{id}/status GET 404"],
    [
      "a query",
      on("content", "/graphql"),
      { method: "POST", headers: json, body: '{"query":"{__typename}"}' },
      "gateway /graphql POST 200",
    ],
    ["administration", on("content", "/svc/admin/debug"), {}, "admin /svc/admin/debug GET 401"],
    ["a price, mounted", on("content", "/payment/v1/price/bytes/10"), {}, "payment /price/bytes/{amount} GET 200"],
    ["a price", on("payment", "/v1/price/bytes/10"), {}, "payment /price/bytes/{amount} GET 200"],
    ["a price without version", on("payment", "/price/bytes/10"), {}, "payment /price/bytes/{amount} GET 200"],
    ["no payment path", on("payment", `/${name}`), {}, "payment unrouted GET 404"],
    ["an upload", on("upload", "/v1/tx"), { method: "POST", body: "no item" }, "upload /tx POST 400"],
    ["an upload, mounted", on("content", "/upload/v1/tx"), { method: "POST", body: "no item" }, "upload /tx POST 400"],
    ["no upload path", on("content", "/upload/nothing"), {}, "upload unrouted GET 404"],
    ["the service itself", on("upload", "/v1"), {}, "upload / GET 200"],
  ];

  const responded = () =>
    stack.lines.filter(({ message, path }) => message === "request completed" && path !== "/metrics");

  test.each(rows)("%s", async (_kind, url, init, label) => {
    await (await fetch(url(), init)).arrayBuffer(); // brings into memory what may be there
    const [before, linesBefore] = [await counts(), responded().length];
    const times = 5;
    for (let time = 0; time < times; time += 1) await (await fetch(url(), init)).arrayBuffer();
    const after = await counts();
    const changed = [...after].filter(([key, count]) => count !== (before.get(key) ?? 0));
    expect(changed.map(([key, count]) => [key, count - (before.get(key) ?? 0)])).toEqual([[label, times]]);
    expect(responded().length - linesBefore).toBe(times);
    const [service, route] = label.split(" ");
    expect(responded().at(-1)).toMatchObject({ service, route });
  });

  test("content on a host of its own", async () => {
    const before = await counts();
    for (const path of ["/", "/info", "/svc/admin/debug"])
      await wire(Number(new URL(stack.content).port), `GET ${path} HTTP/1.1\r\nHost: ${sandboxLabel(item.id)}.${root}`);
    const after = await counts();
    const changed = [...after].filter(([key, count]) => count !== (before.get(key) ?? 0));
    expect(changed.map(([key]) => key.split(" ").slice(0, 2).join(" "))).toEqual(changed.map(() => "gateway /{id}"));
    expect(changed.reduce((sum, [key, count]) => sum + count - (before.get(key) ?? 0), 0)).toBe(3);
  });
});

describe("the access log and the metrics of bytes", () => {
  const lineOf = (path: string) =>
    stack.lines.filter((line) => line["message"] === "request completed" && line["path"] === path).at(-1);
  const headers = { "user-agent": `test/1 ${"u".repeat(300)}` };

  test.each([
    ["content from disk", { ...headers, "if-match": "*" }, { from: "disk", bytes: 1_000 }],
    ["a range", { ...headers, range: "bytes=0-9" }, { from: "disk", bytes: 10 }],
  ])("the line of %s names the client, the user agent, the bytes and where they were", async (_kind, sent, line) => {
    const url = `${stack.content}/raw/${item.id}`;
    await (await fetch(url)).arrayBuffer();
    await (await fetch(url, { headers: sent })).arrayBuffer();
    const logged = lineOf(`/raw/${item.id}`);
    expect(logged).toMatchObject({ ...line, userAgent: headers["user-agent"].slice(0, 256), service: "gateway" });
    expect(String(logged?.["client"])).toMatch(/127\.0\.0\.1|::1/);
  });

  const kinds = [
    ["/", "application/json"],
    ["/", "text/html"],
    ["/no-such-path", "application/json"],
    ["/no-such-path", "text/html"],
    ["/%zz", "application/json"],
    [`/raw/${"A".repeat(43)}`, "application/json"],
    ["/payment/v1/no-such-path", "application/json"],
    ["/payment/v1/done", "text/html"],
    ["/svc/info", "application/json"],
    ["/block/height/99999", "application/json"],
    ["/graphql", "text/html"],
    ["/api-docs", "text/html"],
    ["/health", "application/json"],
  ] as const;
  test.each(kinds)("the line of %s as %s has the bytes of its body", async (path, accept) => {
    const response = await fetch(`${stack.content}${path}`, { headers: { accept }, decompress: false });
    const { byteLength } = await response.arrayBuffer();
    expect(byteLength).toBeGreaterThan(0);
    expect(lineOf(path)).toMatchObject({ status: response.status, bytes: byteLength });
  });

  test("the line of a response that is not content has no place, and HEAD has no bytes", async () => {
    await (await fetch(`${stack.content}/info`)).arrayBuffer();
    const info = lineOf("/info");
    expect(info).not.toHaveProperty("from");
    expect(Number(info?.["bytes"])).toBeGreaterThan(0);
    await fetch(`${stack.content}/raw/${item.id}`, { method: "HEAD" });
    expect(lineOf(`/raw/${item.id}`)).toMatchObject({ method: "HEAD", bytes: 0 });
  });

  test("a response from memory has such a line, and is counted by service and route with its bytes", async () => {
    const lines: string[] = [];
    const log = createLog({ level: "info", format: "json", clock: () => 0, write: (line) => void lines.push(line) });
    const metrics = createMetrics();
    const stats = createRequestMetrics(metrics, log);
    const request = new Request("http://gateway.test/raw/a?b", { headers });
    const label = createRouteLabels("gateway").ofCached(request.url);
    const response = withBodySize(new Response("12345"), 5);
    stats.respondedFromCache({ request, requestId: "mine", label, response, clientAddress: () => "192.0.2.1" });
    expect(JSON.parse(lines.join(""))).toMatchObject({
      ...{
        requestId: "mine",
        method: "GET",
        path: "/raw/a",
        service: "gateway",
        route: "/raw/{id}",
        status: 200,
        durationMs: 0,
      },
      ...{ bytes: 5, from: "memory", client: "192.0.2.1", userAgent: headers["user-agent"].slice(0, 256) },
    });
    const counted = samplesOf(await metrics.text()).filter(({ name }) => !name.endsWith("_bucket"));
    const route = { service: "gateway", path: "/raw/{id}" };
    expect(counted.filter(({ name }) => name === "http_memory_hits_total")).toEqual([
      { name: "http_memory_hits_total", labels: route, value: 1 },
    ]);
    expect(counted.filter(({ name }) => name === "http_response_bytes_total")).toEqual([
      { name: "http_response_bytes_total", labels: { ...route, from: "memory" }, value: 5 },
    ]);
  });

  test("recent responses are bounded, newest first, and errors are stored apart", () => {
    const stats = createRequestMetrics(createMetrics(), silentLog);
    const label = createRouteLabels("gateway").ofUnrouted("/");
    for (let at = 0; at < 200; at += 1)
      stats.responded({
        request: { method: "GET", headers: new Headers() },
        context: {
          requestId: String(at),
          target: { scheme: "http", host: "a", path: "/", query: "" },
          clientAddress: () => "",
          headOnly: false,
        },
        label,
        response: new Response(null, { status: at % 10 === 0 ? 500 : 200 }),
        durationMs: at,
      });
    const { requests, errors } = stats.recent();
    expect(requests.map(({ requestId }) => Number(requestId))).toEqual(Array.from({ length: 50 }, (_, at) => 199 - at));
    expect(errors.map(({ requestId }) => Number(requestId))).toEqual(
      Array.from({ length: 20 }, (_, at) => 190 - 10 * at),
    );
    expect(stats.totals()).toMatchObject({ responses: 200, serverErrors: 20 });
  });
});

describe("N5: unknown requests add no series to the metrics", () => {
  let made = 0;
  const newName = () => {
    made += 1;
    return `new-${made}`;
  };
  /** New methods, paths, hosts and headers. */
  async function send(): Promise<void> {
    const ports = [stack.content, urlOf("payment"), urlOf("upload")].map((url) => Number(new URL(url).port));
    const heads: string[] = [];
    const paths = ["/info", `/${newName()}`, "/graphql", "/svc/admin/debug", "/v1/price/bytes/1", "/payment/v1/rates"];
    for (const path of paths)
      for (const method of METHODS.filter((each) => each !== "CONNECT")) heads.push(`${method} ${path} HTTP/1.1`);
    for (let count = 0; count < 1_000; count += 1) {
      heads.push(`GET /${newName()}/${newName()}?${newName()} HTTP/1.1`);
      heads.push(`GET /${newName()} HTTP/1.1\r\nHost: ${newName()}.${root}`);
    }
    for (const [at, head] of heads.entries()) {
      const port = ports[at % ports.length] ?? 0;
      await wire(port, `${head}\r\nConnection: close`, 2_000);
    }
  }

  const seriesOf = (all: readonly Sample[]) =>
    new Set(all.map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`));

  test("thousands of other methods, paths and hosts add no series, and every label has a value of its table", async () => {
    await send();
    await samples(); // the page counts itself when it has been sent
    const before = await samples();
    await send();
    const after = await samples();
    expect([...seriesOf(after)].filter((each) => !seriesOf(before).has(each))).toEqual([]);

    const documents = await Promise.all(
      [stack.content, urlOf("payment"), urlOf("upload")].map(async (url) =>
        (await fetch(`${url}/openapi.json`)).json(),
      ),
    );
    const described = documents.flatMap(({ paths }) => Object.keys(paths));
    const pages = ["/api-docs", "/api-docs/{file}", "/openapi.json", "/graphql/assets/{name}", "/graphql"];
    const table: Readonly<Record<string, ReadonlySet<string>>> = {
      service: new Set(["gateway", "payment", "upload", "admin"]),
      path: new Set([...described, ...pages, "/{id}", "/raw/{id}", "/", unrouted]),
      method: new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "OTHER"]),
      status_code: new Set([...Object.keys(STATUS_CODES), "499"]),
      le: new Set(["+Inf", "0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1", "3", "10", "30", "100"]),
      queue_name: new Set([
        "export",
        "index",
        "verify",
        "content",
        "unbundle",
        "query",
        "bundles",
        "intake",
        "receipts",
        "merges",
      ]),
      pool: new Set(["export", "index", "verify", "content", "unbundle", "query", "merges"]),
      breaker: new Set(after.flatMap(({ labels }) => labels["breaker"] ?? []).slice(0, 1)),
      source: new Set(["memory", "hints", "nodes", "gateways", "cdb64", "graphql", "network", "feed"]),
      status: new Set(["found", "not_found", "error", "success", "fail"]),
      from: new Set(["memory", "disk", "source", "none"]),
      state: new Set(["running", "waiting", "filling", "planned", "prepared", "posted", "seeded", "permanent"]),
      request_type: new Set(["full", "range"]),
      token: new Set(["native"]),
      total: new Set(["liabilities", "revenue", "promotions", "adjustments"]),
      folder: new Set(["data", "content", "uploads"]),
      version: new Set([version]),
      runtime: new Set([`bun ${Bun.version}`]),
    };
    const unknown = after.flatMap(({ name, labels }) =>
      Object.entries(labels)
        .filter(([label, value]) => !table[label]?.has(value))
        .map(([label, value]) => `${name} ${label}=${value}`),
    );
    expect([...new Set(unknown)]).toEqual([]);
  }, 60_000);

  test("an unregistered status counts by its class, and an unregistered method as OTHER", async () => {
    const metrics = createMetrics();
    const stats = createRequestMetrics(metrics, silentLog);
    const label = createRouteLabels("gateway").ofUnrouted("/");
    const target = { scheme: "http", host: "a", path: "/", query: "" };
    for (let status = 200; status < 600; status += 1)
      stats.responded({
        request: { method: `M${status}`, headers: new Headers() },
        context: { requestId: "a", target, clientAddress: () => "", headOnly: false },
        label,
        response: new Response(null, { status }),
        durationMs: 1,
      });
    const found = samplesOf(await metrics.text());
    const values = (name: string) => new Set(found.flatMap(({ labels }) => labels[name] ?? []));
    expect([...values("method")]).toEqual(["OTHER"]);
    const known = Object.keys(STATUS_CODES).filter((status) => Number(status) >= 200);
    expect([...values("status_code")].sort()).toEqual([...known, "499", "2xx", "3xx", "4xx", "5xx"].sort());
  });

  test("a label of any other metric has the values of its table, and one for all others", async () => {
    const metrics = createMetrics();
    const counter = metrics.counter({ name: "a_total", help: "A.", labels: { peer: ["known"] } });
    metrics.gaugesOf({
      name: "b",
      help: "B.",
      label: "peer",
      values: ["known"],
      read: () => announced,
    });
    const announced: Record<string, number> = { known: 1 };
    for (let peer = 0; peer < 1_000; peer += 1) {
      announced[`peer-${peer}`] = 1;
      counter.inc({ peer: `peer-${peer}` });
    }
    counter.inc({ peer: "known" });
    const found = samplesOf(await metrics.text()).map(({ name, labels, value }) => [name, labels["peer"], value]);
    expect(found).toEqual([
      ["a_total", "other", 1_000],
      ["a_total", "known", 1],
      ["b", "known", 1],
      ["b", "other", 1_000],
    ]);
  });
});

test("metrics move to the admin listener by a setting, and are then nowhere else", async () => {
  const apart = await openUploadStack({
    environment: { ADMIN_LISTEN: "127.0.0.1:0", METRICS_ON_ADMIN_LISTEN: "true", ADMIN_API_KEY: "key" },
  });
  const { adminUrl = "", serviceUrls } = apart.gateway;
  const services = ["payment", "upload"] as const;
  const places = services.flatMap((name) => [
    `${serviceUrls.get(name)}/metrics`,
    `${serviceUrls.get(name)}/v1/metrics`,
    `${apart.content}/${name}/metrics`,
    `${apart.content}/${name}/v1/metrics`,
  ]);
  const own = ["/metrics", "/svc/__gateway_metrics", "/ar-io/__gateway_metrics"];
  for (const url of [...places, ...own.map((path) => apart.content + path)])
    expect([url, (await fetch(url)).status]).toEqual([url, 404]);
  for (const path of own) {
    const response = await fetch(adminUrl + path);
    expect([path, response.status]).toEqual([path, 200]);
    expect(await response.text()).toContain("upload_items_taken_total 0");
  }
  await apart.close();
}, 30_000);
