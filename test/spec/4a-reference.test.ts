/**
 * The API reference: it has every endpoint of the interface (part 4A) and nothing that is not there, and what it says
 * of responses is a running gateway's response to its own examples.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Transaction } from "../../src/arweave/transaction.ts";
import { post, rsa, testBytes } from "../dev/devnet/support.ts";
import { closed, faultsOf } from "../support/schema.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { isRecord, wrongTexts, wrongValues } from "../support/wrong-values.ts";
import { endpoints } from "./part-4a.ts";
import type { Reference, ReferenceOperation, Schema } from "./record-schemas.ts";

/** What the gateway has beyond part 4A, for clients and operators that exist. Source: docs/reference/gateway.md. */
const beyond = [
  "PUT /svc/admin/unblock-data",
  "GET /svc/admin/blocks",
  "POST /svc/admin/queue-bundles",
  "POST /svc/admin/retry-bundle",
  "GET /svc/admin/status",
  "GET /svc/admin/metrics-history",
  "GET /svc/proof/{id}",
  "GET /svc/events",
  "GET /svc/invalid-items/{id}",
  "GET /svc/resolver/{name}",
  "GET /health",
  "GET /ready",
  "GET /metrics",
  "GET /openapi.json",
  "GET /api-docs",
  "GET /{txId}/{path}",
  "GET /graphql",
  "GET /tx/{id}/{field}",
  "GET /unconfirmed_tx/{id}",
  "POST /tx",
  "POST /chunk",
  "GET /chunk/{offset}/data",
];

type Named = readonly [name: string, operation: ReferenceOperation];

const key = "key-of-the-test";
let stack: Stack;
let reference: Reference;
let operations: readonly Named[];
/** Values that represents something on this chain, by parameter. */
let real: Readonly<Record<string, string>>;
let small: Transaction;

beforeAll(async () => {
  stack = await openStack({ ADMIN_API_KEY: key });
  small = await post(stack.devnet, rsa, {
    data: testBytes(1_000),
    tags: [{ name: "Content-Type", value: "text/plain" }],
  });
  await stack.devnet.mine(1);
  await stack.settled();
  reference = await (await fetch(`${stack.gateway.url}/openapi.json`)).json();
  operations = Object.entries(reference.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Named => [`${method.toUpperCase()} ${path}`, operation]),
  );
  const { offset } = await (await fetch(`${stack.gateway.url}/tx/${small.id}/offset`)).json();
  real = {
    id: small.id,
    txId: small.id,
    offset,
    height: "1",
    hash: stack.devnet.blockAt(1)?.hash ?? "",
    address: rsa.address,
    size: "1000",
    target: rsa.address,
    field: "owner",
    path: "nothing-here",
  };
}, 120_000);
afterAll(() => stack.close());

describe("the document", () => {
  test("has every endpoint of part 4A, with the patterns of its parameters", () => {
    for (const [method, path, pattern] of endpoints) {
      const operation = Object.fromEntries(operations)[`${method} ${path}`];
      expect(operation, `${method} ${path}`).toBeDefined();
      const [first] = operation?.parameters?.filter((each) => each.in === "path") ?? [];
      expect<unknown>(first?.schema["pattern"], `${method} ${path}`).toBe(pattern);
    }
  });

  test("has nothing but them and what is named beyond them", () => {
    const expected = [...endpoints.map(([method, path]) => `${method} ${path}`), ...beyond];
    expect(operations.map(([name]) => name).toSorted()).toEqual(expected.toSorted());
  });

  test("describes the purpose, input and responses of each", () => {
    for (const [name, { summary, tags, parameters = [], responses, requestBody, security }] of operations) {
      expect(summary, name).toBeString();
      expect(tags, name).toHaveLength(1);
      const inPath = parameters.filter((each) => each.in === "path").map((each) => each.name);
      expect(inPath, name).toEqual([...name.matchAll(/\{(\w+)\}/g)].map(([, each]) => each ?? ""));
      for (const each of parameters.filter(({ required }) => required)) expect(each.example, name).toBeString();
      expect(Object.keys(responses), name).toContain("200");
      for (const { description } of Object.values(responses)) expect(description, name).toBeString();
      if (/^(POST|PUT)/.test(name)) expect(requestBody, name).toBeDefined();
      expect(security !== undefined, name).toBe(name.includes("/svc/admin/"));
    }
  });

  test("names the range header and the entity tag where content is served", () => {
    for (const path of ["/{txId}", "/raw/{txId}"])
      expect(reference.paths[path]?.["get"]?.parameters?.map(({ name }) => name)).toEqual([
        "txId",
        "Range",
        "If-None-Match",
      ]);
    const range = reference.paths["/{txId}"]?.["get"]?.parameters?.[1]?.schema["pattern"];
    expect<unknown>(range).toBe("^bytes=\\d*-\\d*(?:,\\d*-\\d*)*$");
  });

  test("has the limits of bodies", () => {
    for (const limit of ["8 MiB", "10,000", "64 KiB", "15 MiB", "750,000 bytes", "16 KiB"])
      expect(reference.info.description).toContain(limit);
  });

  test("has no reference that leads nowhere", () => {
    for (const [, name] of JSON.stringify(reference).matchAll(/"#\/components\/schemas\/(\w+)"/g))
      expect(Object.keys(reference.components.schemas)).toContain(name ?? "");
  });
});

describe("a running gateway", () => {
  test("responds to each example as documented", async () => {
    for (const [name, operation] of operations) {
      const status = await checkResponse(name, operation, {});
      if (/queue-data-item|graphql/.test(name)) expect(status, name).toBe(200);
      else expect(status, name).not.toBe(401);
    }
  }, 120_000);

  test("responds with success for existing content, as documented", async () => {
    for (const [name, operation] of operations) {
      if (!/^(GET|HEAD)/.test(name) || /bundle-status|invalid-items|resolver|\{path\}/.test(name)) continue;
      expect(await checkResponse(name, operation, real), name).toBe(200);
    }
  }, 120_000);

  test("responds to the admin API without its key as documented", async () => {
    for (const [name, operation] of operations.filter(([each]) => each.includes("/svc/admin/")))
      expect(await checkResponse(name, operation, {}, "wrong key"), name).toBe(401);
  }, 120_000);

  test("tells mistakes in a document as the document says", async () => {
    const ask = Object.fromEntries(operations)["POST /graphql"];
    if (ask === undefined) throw new Error("queries are not described");
    for (const query of [
      "{",
      "{ nonsense }",
      "query($n: Int!) { blocks(first: $n) { edges { cursor } } }",
      '{ blocks(after: "nonsense") { edges { cursor } } }',
      `{ ${Array.from({ length: 500 }, (_, index) => `a${index}: __typename`).join(" ")} }`,
    ]) {
      const content = { "application/json": { schema: {}, example: { query } } };
      expect(await checkResponse("POST /graphql", { ...ask, requestBody: { content } }, {}), query).toBe(200);
    }
  });

  test("rejects every parameter of a path or a query that is not of the kind that the document shows", async () => {
    let count = 0;
    for (const [name, operation] of operations) {
      const checked = operation.parameters?.filter((each) => each.in !== "header") ?? [];
      for (const parameter of checked) {
        for (const wrong of wrongTexts(parameter.schema)) {
          const status = await statusOf(name, operation, { [parameter.name]: wrong });
          expect([400, 404], `${name} with ${parameter.name}=${wrong}`).toContain(status);
          count += 1;
        }
      }
    }
    expect(count).toBeGreaterThan(60);
  }, 120_000);

  test("rejects a question that lacks a parameter of its query", async () => {
    const lacking = operations.filter(([, { parameters = [] }]) =>
      parameters.some((each) => each.in === "query" && each.required),
    );
    expect(lacking.map(([name]) => name)).toEqual(["GET /graphql"]);
    for (const [name, operation] of lacking) expect(await statusOf(name, operation, {}), name).toBe(400);
  }, 120_000);

  test("rejects every field of a body that is not of the kind that the document shows", async () => {
    let count = 0;
    for (const [name, operation] of operations) {
      const { schema, example } = operation.requestBody?.content["application/json"] ?? {};
      if (!(name.includes("/svc/admin/") || name.includes("/graphql")) || !isRecord(schema)) continue;
      for (const wrong of wrongValues(schema, example)) {
        const where = `${name} with ${JSON.stringify(wrong).slice(0, 500)}`;
        expect([400, 413], where).toContain(await statusOf(name, operation, {}, wrong));
        count += 1;
      }
    }
    expect(count).toBeGreaterThan(100);
  }, 120_000);

  test("serves the page and its files from here, with a policy that lets nothing else in", async () => {
    const page = await fetch(`${stack.gateway.url}/api-docs`);
    const html = await page.text();
    const policy = page.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|https?:/);
    expect(html).not.toMatch(/https?:\/\//);
    const files = [...html.matchAll(/(?:src|href)="(api-docs\/[^"]+)"/g)].map(([, file]) => file ?? "");
    expect(files).toHaveLength(3);
    for (const file of files) {
      const response = await fetch(`${stack.gateway.url}/${file}`);
      expect([file, response.status, response.headers.get("cache-control")]).toEqual([
        file,
        200,
        "public, max-age=31536000, immutable",
      ]);
      expect((await response.text()).length).toBeGreaterThan(100);
    }
  });
});

/** The text of a response; the first bytes of a stream of events, which has no end. */
async function bodyOf(response: Response): Promise<string> {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return await response.text();
  const reader = response.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return new TextDecoder().decode(value);
}

/** The status of an example with other values, or with another body. */
async function statusOf(
  name: string,
  { parameters = [], requestBody }: ReferenceOperation,
  values: Readonly<Record<string, string>>,
  body: unknown = Object.values(requestBody?.content ?? {})[0]?.example,
): Promise<number> {
  const [method = ""] = name.split(" ");
  const query = parameters.filter((each) => each.in === "query" && values[each.name] !== undefined);
  const asked = query.map((each) => `${each.name}=${values[each.name]}`).join("&");
  const response = await fetch(
    `${stack.gateway.url}${filledPath(name, parameters, values)}${asked === "" ? "" : `?${asked}`}`,
    {
      method,
      redirect: "manual",
      headers: {
        Connection: "close",
        Authorization: `Bearer ${key}`,
        ...(requestBody === undefined ? {} : { "Content-Type": Object.keys(requestBody.content)[0] ?? "" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    },
  );
  await bodyOf(response);
  return response.status;
}

/** The path with these values, and with examples for the others. */
function filledPath(
  name: string,
  parameters: NonNullable<ReferenceOperation["parameters"]>,
  values: Readonly<Record<string, string>>,
): string {
  const [, path = ""] = name.split(" ");
  return path.replace(
    /\{(\w+)\}/g,
    (_, each) => values[each] ?? parameters.find((one) => one.name === each)?.example ?? "",
  );
}

/** Sends one example and holds the response to the document. @returns The status. */
async function checkResponse(
  name: string,
  { tags = [], parameters = [], requestBody, responses }: ReferenceOperation,
  values: Readonly<Record<string, string>>,
  bearer = key,
): Promise<number> {
  const [method = "", path = ""] = name.split(" ");
  const [type, sent] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const needed = parameters.filter((each) => each.in === "query" && each.required);
  const query = needed.map((each) => `?${each.name}=${encodeURIComponent(each.example ?? "")}`).join("");
  const response = await fetch(`${stack.gateway.url}${filledPath(name, parameters, values)}${query}`, {
    method,
    redirect: "manual",
    headers: {
      Connection: "close",
      ...(path.startsWith("/svc/admin/") ? { Authorization: `Bearer ${bearer}` } : {}),
      ...(type === undefined ? {} : { "Content-Type": type }),
    },
    ...(sent === undefined ? {} : { body: JSON.stringify(sent.example) }),
  });
  const body = await bodyOf(response);
  const said = responses[response.status];
  const where = `${name} responded ${response.status} ${body.slice(0, 200)}`;
  expect(Object.keys(responses), where).toContain(String(response.status));
  const responded = { body, typeLine: response.headers.get("content-type") ?? "" };
  if (said?.content === undefined) expect(body, where).toBe("");
  else expect(faultsOfBody(responded, said.content, tags), where).toEqual([]);
  return response.status;
}

/** Nodes' records may have more than is shown of them, for they are passed on; ours have no field besides. */
const ofNodes = new Set(["Network", "Blocks", "Transactions", "Chunks", "Social frame"]);

function faultsOfBody(
  { body, typeLine }: Readonly<{ body: string; typeLine: string }>,
  content: Readonly<Record<string, { schema: Schema }>>,
  tags: readonly string[],
): string[] {
  const [type = ""] = typeLine.split(";");
  const { schema } = content[type] ?? content["*/*"] ?? {};
  if (schema === undefined) return [`type ${typeLine} is not among ${Object.keys(content)}`];
  const value = type === "application/json" && content[type] !== undefined ? JSON.parse(body) : body;
  const { schemas } = reference.components;
  return tags.some((tag) => ofNodes.has(tag))
    ? faultsOf(value, schema, schemas)
    : faultsOf(value, closed(schema), closed(schemas));
}
