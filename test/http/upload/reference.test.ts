/**
 * What the API reference says of uploads, held against the routes, and against the responses of a running program.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type AnyElysia, Elysia } from "elysia";
import { type Operation, operationsOf } from "../../../src/http/reference/document.ts";
import { type Responses, sampleId } from "../../../src/http/reference/openapi-types.ts";
import { createUploadInformationRoutes } from "../../../src/http/service-information.ts";
import { createItemRoutes, createReceiptRoutes, createStatusRoutes } from "../../../src/http/upload/item-routes.ts";
import { createMultipartRoutes } from "../../../src/http/upload/multipart-routes.ts";
import { createUploadPriceRoutes } from "../../../src/http/upload/upload-price-routes.ts";
import { uploadReference } from "../../../src/http/upload/upload-reference.ts";
import { createX402UploadRoutes } from "../../../src/http/upload/x402-upload-routes.ts";
import { createMetrics } from "../../../src/lib/metrics.ts";
import { createSemaphore } from "../../../src/lib/semaphore.ts";
import { added, specified } from "../../spec/part-4c.ts";
import { type RunningProgram, startDev } from "../../support/program.ts";
import { closed, faultsOf } from "../../support/schema.ts";
import { testItem } from "../../support/upload.ts";
import { wrongTexts } from "../../support/wrong-values.ts";

const { records } = uploadReference;
const unasked = () => {
  throw new Error("nothing is asked of these routes");
};

const served = [
  createItemRoutes({ intake: undefined, writeReceipt: unasked }),
  createStatusRoutes({ findStatus: unasked, nested: unasked }),
  createReceiptRoutes({ find: unasked, writeReceipt: unasked, semaphore: createSemaphore(1, 0) }),
  createUploadPriceRoutes({ prices: { bytes: unasked } }),
  createMultipartRoutes({ multipart: undefined, writeReceipt: unasked }),
  createX402UploadRoutes({
    uploads: undefined,
    intake: undefined,
    writeReceipt: unasked,
    publicUrl: () => "",
  }),
  createUploadInformationRoutes({
    release: "1.2.3",
    gatewayUrl: () => "",
    addresses: new Map(),
    freeBytesMax: 0,
    itemBytesMax: 0,
    health: { record: unasked },
    metrics: createMetrics(),
  }),
].reduce<AnyElysia>((all, routes) => all.use(routes), new Elysia()).routes;
const descriptions = operationsOf(served);

test("every route that is served is in it", () => {
  // The root of `/v1` has no slash at its end: one route more, of the same meaning.
  const routes = served.filter(({ path }) => path !== "");
  expect(routes.length).toBeGreaterThan(15);
  const undescribed = routes.filter((route) => operationsOf([route]).length === 0);
  expect(undescribed.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
});

test("it has every endpoint of part 4C, what is added to it, and nothing else", () => {
  const wanted = [...specified, ...added, "GET /metrics"];
  const unnamed = (name: string) => name.replace(/\{\w+\}|:\w+/g, "{}");
  const described = descriptions.map(({ method, path }) => unnamed(`${method} ${path}`));
  expect(described.toSorted()).toEqual(wanted.map(unnamed).toSorted());
});

test("every required parameter has an example, and every record that is named is there", () => {
  for (const { parameters = [] } of descriptions)
    for (const each of parameters.filter(({ required }) => required)) expect(each.example).toBeString();
  for (const [, name] of JSON.stringify([descriptions, records]).matchAll(/"#\/components\/schemas\/(\w+)"/g))
    expect(Object.keys(records)).toContain(name ?? "");
});

describe("of a running program", () => {
  let program: RunningProgram;
  const item = testItem("an item of the reference");
  const large = testItem(new Uint8Array(6 * 2 ** 20));

  beforeAll(async () => {
    program = await startDev({ environment: { FREE_UPLOAD_BYTES: "100000000" } });
  }, 120_000);
  afterAll(() => program?.remove());

  /** Sends a request as a description has it, and holds the response against it. */
  async function hold(
    { method, path, responses }: Operation,
    named: Readonly<Record<string, string>>,
    status: number,
    body?: Uint8Array<ArrayBuffer>,
  ): Promise<unknown> {
    const at = path.replace(/:(\w+)/g, (_, name: string) => named[name] ?? "unnamed");
    const url = `${program.line.upload}/v1${at === "/" ? "" : at}`;
    const response = await fetch(url, { method, ...(body === undefined ? {} : { body }) });
    expect([`${method} ${at}`, response.status]).toEqual([`${method} ${at}`, status]);
    return await held(response, responses, at);
  }

  async function held(response: Response, responses: Responses, at: string): Promise<unknown> {
    const said = responses[response.status];
    expect(said, at).toBeDefined();
    const [type, content] = Object.entries(said?.content ?? {})[0] ?? [];
    if (type === undefined) return await response.text();
    expect(response.headers.get("content-type"), at).toStartWith(type);
    const value = type === "application/json" ? await response.json() : await response.text();
    expect(faultsOf(value, closed(content?.schema ?? {}), closed(records)), at).toEqual([]);
    return value;
  }

  const of = (method: string, path: string): Operation => {
    const found = descriptions.find((each) => each.method === method && each.path === path);
    if (found === undefined) throw new Error(`${method} ${path} is not described`);
    return found;
  };

  test("every response is as it says", async () => {
    const names = { token: "arweave", id: item.id, size: "1048576" };
    await hold(of("POST", "/tx"), names, 200, item.bytes);
    await hold(of("POST", "/tx/:token"), names, 200, item.bytes);
    for (const { method, path } of descriptions) {
      if (method === "GET" && !path.startsWith("/chunks")) await hold(of(method, path), names, 200);
    }
  });

  test("every response about parts is as it says", async () => {
    const begun = await hold(of("GET", "/chunks/:token/-1/-1"), { token: "solana" }, 200);
    const uploadId = String((begun as { id: string }).id);
    const names = { token: "solana", uploadId, offset: "0" };
    await hold(of("POST", "/chunks/:token/:uploadId/:offset"), names, 200, large.bytes);
    await hold(of("GET", "/chunks/:token/:uploadId/-1"), names, 200);
    await hold(of("GET", "/chunks/:token/:uploadId/status"), names, 200);
    const receipt = await hold(of("POST", "/chunks/:token/:uploadId/-1"), names, 200);
    expect(await hold(of("GET", "/tx/:id/receipt"), { id: large.id }, 200)).toEqual(receipt);
    await hold(of("POST", "/chunks/:token/:uploadId/finalize"), names, 200);
    const ended = await hold(of("GET", "/chunks/:token/:uploadId/status"), names, 200);
    expect(ended).toMatchObject({ status: "FINALIZED" });
  });

  test("every rejection is one that it names", async () => {
    const names = { token: "nonsense", id: "A".repeat(43), size: "-1", uploadId: "unknown", offset: "0" };
    await hold(of("POST", "/tx"), names, 400, new Uint8Array(2_000));
    await hold(of("POST", "/tx/:token"), names, 400, item.bytes);
    await hold(of("GET", "/tx/:id/status"), names, 404);
    await hold(of("GET", "/tx/:id/offsets"), names, 404);
    await hold(of("GET", "/tx/:id/receipt"), names, 404);
    await hold(of("GET", "/price/:token"), names, 400);
    await hold(of("GET", "/price/:token/:size"), { ...names, token: "arweave" }, 400);
    await hold(of("GET", "/chunks/:token/-1/-1"), names, 400);
    for (const { method, path } of descriptions) {
      if (!path.startsWith("/chunks") || path.endsWith("/-1/-1")) continue;
      const body = method === "POST" ? item.bytes : undefined;
      await hold(of(method, path), { ...names, token: "arweave" }, 404, body);
    }
  });

  test("every parameter of a path or a query that is not of the kind that it shows is rejected", async () => {
    const right: Readonly<Record<string, string>> = {
      token: "arweave",
      id: item.id,
      size: "1048576",
      uploadId: "unknown",
      offset: "0",
      chunkSize: "5242880",
      totalBytes: "6000000",
      address: sampleId,
      signatureType: "1",
    };
    const responseOf = async ({ method, path, parameters = [] }: Operation, values: typeof right) => {
      const query = parameters.filter((each) => each.in === "query");
      const asked = query.map(({ name }) => `${name}=${values[name]}`).join("&");
      const at = path.replace(/:(\w+)/g, (_, name: string) => values[name] ?? "unnamed");
      const body = method === "POST" ? { body: item.bytes } : {};
      const headers = { Connection: "close" };
      const response = await fetch(`${program.line.upload}/v1${at}?${asked}`, { method, headers, ...body });
      return { at: `${method} ${at}?${asked}`, status: response.status, body: await response.text() };
    };
    const rejected = new Set<string>();
    for (const description of descriptions) {
      const { parameters = [], responses } = description;
      const evaluated = parameters.filter((each) => each.in !== "header");
      const taken = await responseOf(description, right);
      for (const { name, schema } of evaluated) {
        // -1 is in the place of an offset for the whole item.
        const wrong = wrongTexts(schema).filter((text) => !(name === "offset" && text === "-1"));
        for (const text of wrong) {
          const { at, status, body } = await responseOf(description, { ...right, [name]: text });
          expect([400, 404], `${at} responded ${body}`).toContain(status);
          expect(Object.keys(responses), at).toContain(String(status));
          expect(body, at).not.toBe(taken.body);
          rejected.add(name);
        }
      }
    }
    expect([...rejected].toSorted()).toEqual([
      "address",
      "chunkSize",
      "id",
      "offset",
      "signatureType",
      "size",
      "token",
      "totalBytes",
    ]);
  }, 120_000);

  test("the document is served, with every path", async () => {
    const { upload, gateway } = program.line;
    for (const url of [upload, `${upload}/v1`, `${gateway}/upload`, `${gateway}/upload/v1`]) {
      const { paths } = await (await fetch(`${url}/openapi.json`)).json();
      const named = descriptions.map(({ path }) => path.replace(/:(\w+)/g, "{$1}"));
      expect(Object.keys(paths).sort()).toEqual([...new Set(named)].sort());
    }
  });
});
