/**
 * Clients that disconnect while their request arrives or while the response is sent: no route of any service logs a
 * defect.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createDevnetRoutes } from "../../src/dev/devnet-routes/node-routes.ts";
import { connectRaw } from "../support/raw-request.ts";
import { createRecordingLog } from "../support/recording-log.ts";
import { eventually } from "../support/until.ts";
import { testItem } from "../support/upload.ts";
import { openUploadStack, type UploadStack } from "../support/upload-stack.ts";

let stack: UploadStack;
let large: ReturnType<typeof testItem>;

beforeAll(async () => {
  stack = await openUploadStack({ environment: { ADMIN_API_KEY: "key", JWT_SECRET: "s".repeat(32) } });
  large = testItem(new Uint8Array(4_000_000).fill(7));
  const taken = await fetch(`${stack.uploads}/v1/tx`, { method: "POST", body: large.bytes });
  expect(taken.status).toBe(200);
  await eventually(
    async () => (await fetch(`${stack.content}/raw/${large.id}`)).status,
    (status) => status === 200,
  );
}, 60_000);
afterAll(() => stack.close());

const services = ["gateway", "payment", "upload"] as const;
const urlOf = (service: (typeof services)[number]) =>
  (service === "gateway" ? stack.content : (stack.gateway.serviceUrls.get(service) ?? "")).replace(/\/$/, "");

type Route = Readonly<{ method: string; path: string }>;

/** The routes that a service describes, with values for their parameters. */
async function routesOf(url: string): Promise<readonly Route[]> {
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, object> };
  const parameterOf = (name: string) => (/offset|height|amount|count|size/i.test(name) ? "1" : large.id);
  return Object.entries(paths).flatMap(([pattern, methods]) => {
    const path = pattern.replace(/\{(\w+)\}/g, (_, name) => parameterOf(name));
    return Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path }));
  });
}

/** Parts of a request of a client that disconnects. */
const ways: readonly (readonly [way: string, type: string, head: string, body: string])[] = [
  ["in the middle of its body", "application/json", "Content-Length: 1000", '{"query": "{ transactions'],
  ["in the middle of chunks", "application/json", "Transfer-Encoding: chunked", '5\r\n{"que\r\n'],
  ["in the middle of bytes", "application/octet-stream", "Content-Length: 100000", "\u0001".repeat(5_000)],
  [
    "before the response",
    "application/json",
    "Content-Length: 84",
    '{"query":"{ transactions(first: 100) { edges { cursor node { id } } } }", "x": 12345}'.slice(0, 84),
  ],
];

test.each(services)(
  "the %s service logs no defect",
  async (service) => {
    const url = urlOf(service);
    const routes = await routesOf(url);
    expect(routes.length).toBeGreaterThan(10);
    const before = stack.lines.length;
    for (const { method, path } of routes)
      for (const [_way, type, head, body] of ways) {
        const hasBody = method !== "GET" && method !== "HEAD";
        const lines = [`${method} ${path} HTTP/1.1`, "Host: a.example", "Authorization: Bearer key"];
        const more = hasBody ? [`Content-Type: ${type}`, head] : [];
        const connection = await connectRaw(url);
        await connection.write(`${[...lines, ...more].join("\r\n")}\r\n\r\n${hasBody ? body : ""}`);
        await Bun.sleep(3); // the request is under way
        connection.cut();
      }
    await Bun.sleep(1_000); // time for log lines, which must not appear
    const defects = stack.lines.slice(before).filter(({ level }) => level === "error");
    expect(defects.map((line) => JSON.stringify(line).slice(0, 600))).toEqual([]);
  },
  60_000,
);

test("a client that disconnects during content is not logged as a defect", async () => {
  const before = stack.lines.length;
  for (const range of ["", "Range: bytes=5-\r\n", "Range: bytes=0-9,20-3999990\r\n"])
    for (let count = 0; count < 10; count += 1) {
      const connection = await connectRaw(stack.content);
      await connection.write(`GET /raw/${large.id} HTTP/1.1\r\nHost: a.example\r\n${range}\r\n`);
      await connection.until("\r\n\r\n");
      connection.cut();
    }
  await Bun.sleep(500); // time for log lines, which must not appear
  expect(stack.lines.slice(before).filter(({ level }) => level === "error")).toEqual([]);
});

test("a node of the development chain logs no defect either", async () => {
  const { log, lines } = createRecordingLog();
  const node = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: createDevnetRoutes(stack.devnet, log).fetch,
  });
  for (const path of ["/tx", "/chunk", "/block", "/mint/abc/1"])
    for (const [_way, type, head, body] of ways) {
      const connection = await connectRaw(node.url.href);
      const lines = [`POST ${path} HTTP/1.1`, "Host: a.example", `Content-Type: ${type}`, head];
      await connection.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
      await Bun.sleep(3); // the request is under way
      connection.cut();
    }
  await Bun.sleep(500); // time for log lines, which must not appear
  await node.stop(true);
  expect(lines.filter(({ level }) => level === "error")).toEqual([]);
});
