/**
 * The API reference of the payment service: it has every endpoint of the interface (part 4B) and nothing that is not
 * there, at every address where the service is, and what it says of responses is the program's response to its
 * own examples.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createPriceRoutes } from "../../src/http/payment/price-routes.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { closed, faultsOf } from "../support/schema.ts";
import { wrongTexts, wrongValues } from "../support/wrong-values.ts";
import { endpoints } from "./part-4b.ts";
import type { Reference, ReferenceOperation } from "./record-schemas.ts";

/** What the service has beyond part 4B. Source: docs/reference/payment.md#routes. */
const beyond = [
  "GET /price/{type}",
  "GET /account/balance",
  "GET /account/balance/{token}",
  "GET /account/free",
  "GET /account/payments",
  "GET /svc/account/history",
  "GET /svc/account/solvency-proof",
  "GET /account/approval",
  "GET /",
  "GET /info",
  "GET /health",
  "GET /metrics",
  "GET /done",
  "GET /cancelled",
  "GET /redeem",
  "POST /redeem",
  "POST /stripe-webhook",
  "GET /top-up-quote/{id}",
];

let program: RunningProgram;
let reference: Reference;
let operations: readonly (readonly [method: string, path: string, operation: ReferenceOperation])[];

beforeAll(async () => {
  // None of them is called: a request without a payment gets its response from this program.
  const x402 = {
    X402_PAY_TO: `0x${"11".repeat(20)}`,
    X402_FACILITATOR_URL: "http://127.0.0.1:9",
    X402_RPC_URL: "http://127.0.0.1:9",
  };
  program = await startDev({ environment: { HOST: "127.0.0.1", ...x402 } });
  reference = await (await fetch(`${program.line.payment}/openapi.json`)).json();
  operations = Object.entries(reference.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [method.toUpperCase(), path, operation] as const),
  );
}, 120_000);
afterAll(() => program.remove());

const named = (method: string, path: string) => `${method} ${path}`;
/** Names of parameters are the document's own. */
const unnamed = (name: string) => name.replace(/\{\w+\}/g, "{}");

describe("the document", () => {
  test("has every endpoint of part 4B, what is named beyond them, and nothing else", () => {
    const wanted = [...endpoints.map(([method, path]) => named(method, path)), ...beyond];
    const found = operations.map(([method, path]) => named(method, path));
    expect(found.map(unnamed).toSorted()).toEqual(wanted.map(unnamed).toSorted());
  });

  test("describes every route of prices", () => {
    const unasked = () => {
      throw new Error("only the descriptions of the routes are read");
    };
    const prices = {
      bytes: unasked,
      token: unasked,
      fiat: unasked,
      rates: unasked,
      rate: unasked,
      limits: unasked,
      topUp: unasked,
      tokenFor: unasked,
    };
    const { routes } = createPriceRoutes({ prices, promoGuard: { guarded: unasked } });
    const served = routes.map(({ method, path }) => named(method, path.replace(/:(\w+)/g, "{$1}")));
    const found = operations
      .map(([method, path]) => named(method, path))
      .filter((name) => /^GET \/(price|rates|currencies)/.test(name));
    expect(found.toSorted()).toEqual(served.toSorted());
  });

  test("says of each what it is for, and gives an example of what it needs", () => {
    for (const [method, path, { summary, parameters = [], responses }] of operations) {
      expect(summary, named(method, path)).toBeString();
      const inPath = parameters.filter((each) => each.in === "path").map(({ name }) => name);
      expect(inPath, path).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? ""));
      for (const each of parameters.filter(({ required }) => required)) expect(each.example, path).toBeString();
      expect(Object.keys(responses), path).toContain("200");
    }
  });

  test("of the gateway has no route of the services that are mounted on it", async () => {
    const { paths } = await (await fetch(`${program.line.gateway}/openapi.json`)).json();
    expect(Object.keys(paths)).toContain("/tx/{id}/status");
    expect(Object.keys(paths).filter((path) => /^\/(payment|upload)/.test(path))).toEqual([]);
  });

  test("is the same below /v1, and where the service is mounted on the gateway, and so is its page", async () => {
    const { payment, gateway } = program.line;
    for (const origin of [`${payment}/v1`, `${gateway}/payment`, `${gateway}/payment/v1`]) {
      const response = await fetch(`${origin}/openapi.json`);
      expect([origin, response.status]).toEqual([origin, 200]);
      expect(await response.json()).toEqual({ ...reference, servers: [{ url: origin }] });
      const page = await fetch(`${origin}/api-docs`);
      expect([origin, page.status]).toEqual([origin, 200]);
      for (const [, file] of (await page.text()).matchAll(/(?:src|href)="(api-docs\/[^"]+)"/g)) {
        const part = await fetch(`${origin}/${file}`);
        expect([origin, file, part.status]).toEqual([origin, file, 200]);
      }
    }
  });
});

test("every example gets the documented response, at each path", async () => {
  const { payment, gateway } = program.line;
  for (const origin of [payment, `${payment}/v1`, `${gateway}/payment`, `${gateway}/payment/v1`])
    for (const [method, path, operation] of operations) await checkResponse(origin, method, path, operation);
}, 120_000);

/** Parameters whose well-formed but unknown values get the response of malformed values. */
const unfound = [
  "GET /balance address",
  "GET /account/balance address",
  "GET /account/balance/{token} address",
  "GET /top-up-quote/{id} id",
  "GET /redeem id",
  "POST /redeem id",
];

test("rejects every parameter of a path or a query that is not of the kind that the document shows", async () => {
  const rejected = new Set<string>();
  for (const [method, path, operation] of operations) {
    const right = await responseOf(method, path, operation, {});
    for (const { name, in: place, schema } of operation.parameters ?? []) {
      const where = `${method} ${path} ${name}`;
      for (const wrong of place === "header" ? [] : wrongTexts(schema)) {
        const { status, body } = await responseOf(method, path, operation, { [name]: wrong });
        expect([400, 403, 404], `${where}=${wrong} responded ${status} ${body}`).toContain(status);
        expect(Object.keys(operation.responses), where).toContain(String(status));
        if (!unfound.includes(where)) expect(body, `${where}=${wrong}`).not.toBe(right.body);
        rejected.add(name);
      }
    }
  }
  expect([...rejected].toSorted()).toEqual([
    "address",
    "amount",
    "approvedAddress",
    "cancelUrl",
    "cursor",
    "destinationAddress",
    "destinationAddressType",
    "email",
    "giftMessage",
    "id",
    "limit",
    "method",
    "payingAddress",
    "qty",
    "returnUrl",
    "successUrl",
    "token",
    "type",
    "uiMode",
    "userAddress",
  ]);
}, 120_000);

test("rejects every field of a body that is not of the kind that the document shows", async () => {
  const [method, path] = ["POST", "/account/balance/{token}"];
  const [, , operation] = operations.find((each) => each[0] === method && each[1] === path) ?? [];
  const { schema, example } = operation?.requestBody?.content["application/json"] ?? {};
  if (operation === undefined || schema === undefined) throw new Error("a report has no body");
  const wrong = wrongValues(schema, example);
  expect(wrong.length).toBeGreaterThan(5);
  for (const body of wrong)
    expect(await responseOf(method, path, operation, {}, body), JSON.stringify(body)).toEqual({
      status: 400,
      body: '"Missing tx_id in request body"',
    });
}, 120_000);

/** What an example gets, with other values, or with another body. */
async function responseOf(
  method: string,
  path: string,
  { parameters = [], requestBody }: ReferenceOperation,
  values: Readonly<Record<string, string>>,
  body: unknown = Object.values(requestBody?.content ?? {})[0]?.example,
): Promise<Readonly<{ status: number; body: string }>> {
  const valueFor = (name: string) => values[name] ?? parameters.find((each) => each.name === name)?.example;
  const query = parameters
    .filter((each) => each.in === "query" && valueFor(each.name) !== undefined)
    .map(({ name }) => `${name}=${valueFor(name)}`);
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => valueFor(name) ?? "");
  const response = await fetch(`${program.line.payment}${filled}?${query.join("&")}`, {
    method,
    headers: { Connection: "close" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.text() };
}

async function checkResponse(
  origin: string,
  method: string,
  path: string,
  operation: ReferenceOperation,
): Promise<void> {
  const { parameters = [], requestBody, responses } = operation;
  const exampleOf = (name: string) => parameters.find((each) => each.name === name)?.example ?? "";
  const needed = parameters.filter((each) => each.in === "query" && each.required);
  const query = new URLSearchParams(needed.map(({ name }) => [name, exampleOf(name)]));
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => exampleOf(name));
  const [sent] = Object.values(requestBody?.content ?? {});
  // The root of a version or a mount has no slash at its end.
  const place = filled === "/" && !origin.endsWith(program.line.payment) ? origin : `${origin}${filled}`;
  const response = await fetch(`${place}?${query}`, {
    method,
    redirect: "manual",
    ...(sent === undefined ? {} : { body: JSON.stringify(sent.example) }),
  });
  const body = await response.text();
  const where = `${method} ${place}?${query} responded ${response.status} ${body.slice(0, 200)}`;
  expect(Object.keys(responses), where).toContain(String(response.status));
  const [type = ""] = (response.headers.get("content-type") ?? "").split(";");
  const content = responses[response.status]?.content;
  if (content === undefined) return expect(body, where).toBe("");
  const schema = content[type]?.schema ?? content["*/*"]?.schema;
  expect(schema, `${where}: ${type}`).toBeDefined();
  const value = type === "application/json" ? JSON.parse(body) : body;
  expect(faultsOf(value, closed(schema ?? {}), closed(reference.components.schemas)), where).toEqual([]);
}
