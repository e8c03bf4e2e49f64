/**
 * Lookups over HTTP: which documents the thread that serves executes by itself, when, and with which response.
 * Source: docs/decisions/117-lookups.md.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createGraphqlServer, type GraphqlJob, type GraphqlServer } from "../../src/graphql/graphql-server.ts";
import {
  createLookups,
  documentCharactersMax,
  type LookupPlan,
  requestCharactersMax,
} from "../../src/graphql/lookups.ts";
import type { GraphqlOptions } from "../../src/http/graphql/graphql-routes.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { blockOf, createMemoryIndex, idOf, noSignatures, rowAt } from "../graphql/memory-index.ts";
import { createRandom } from "../support/random.ts";
import { createRecordingLog } from "../support/recording-log.ts";
import { newSeed } from "../support/seed.ts";
import { openMadeUpChain } from "./graphql-chain.ts";
import { openGraphqlServer, poolOf } from "./graphql-server.ts";

const rows = [
  rowAt({ height: 1, txIndex: 0, offset: -1 }, { tags: [{ name: 'A "quote"', value: "漢字\n" }] }),
  rowAt({ height: 1, txIndex: 0, offset: 96 }),
];
const blocks = [blockOf(0), blockOf(1)];
const memory = { ...createMemoryIndex(rows, blocks), path: "" };
const id = idOf("1/0/-1");
const json = { "Content-Type": "application/json" };

type Sent = Readonly<{ query: string; variables?: unknown; operationName?: string; extensions?: unknown }>;

/** A listener whose query thread is counted. */
function openCounted(
  serve: GraphqlServer,
  index: GraphqlOptions["index"],
  more: Partial<Pick<GraphqlOptions, "log" | "store">> = {},
) {
  let executed = 0;
  const pool = poolOf((job: GraphqlJob) => {
    executed += 1;
    return serve(job, () => undefined);
  });
  const server = openGraphqlServer({ pool, index, ...more });
  const url = `${server.url}/graphql`;
  const post = async (body: string, headers: Record<string, string> = json) => {
    const response = await fetch(url, { method: "POST", body, headers });
    return { status: response.status, type: response.headers.get("content-type"), text: await response.text() };
  };
  return {
    url,
    /** Requests that the query thread has executed. */
    executed: () => executed,
    post,
    ask: (sent: Sent, headers: Record<string, string> = {}) => post(JSON.stringify(sent), { ...json, ...headers }),
    close: () => server.close(0),
  };
}

const overMemory = () => openCounted(createGraphqlServer({ index: memory, signatures: noSignatures }), memory);

const everyField =
  "id anchor signatureType recipient owner { address key } fee { winston ar } quantity { winston ar } " +
  "data { size type } tags { name value } block { id timestamp height previous } parent { id } bundledIn { id } ingestedAt";

describe("a document that a query thread has validated is executed without one", () => {
  const documents: [string, Sent][] = [
    ["an id in the document", { query: `{ transaction(id: "${id}") { ${everyField} } }` }],
    ["an id in a variable", { query: `query($id: ID!) { transaction(id: $id) { id } }`, variables: { id } }],
    [
      "an id in a variable that is used twice",
      { query: "query($id: ID!) { transaction(id: $id) { id } transaction(id: $id) { anchor } }", variables: { id } },
    ],
    ["a name of the operation", { query: `query Q { transaction(id: "${id}") { id } }`, operationName: "Q" }],
    ["a name that the request leaves out", { query: `query Q { transaction(id: "${id}") { id } }` }],
    ["an alias", { query: `{ a: transaction(id: "${id}") { b: id c: tags { d: name } } }` }],
    ["the names of types", { query: `{ transaction(id: "${id}") { __typename owner { __typename } } }` }],
    [
      "fragments",
      {
        query: `{ transaction(id: "${id}") { ...F ... { fee { ar } } } } fragment F on Transaction { id data { size } }`,
      },
    ],
    ["a fragment on the root", { query: `{ ...F } fragment F on Query { transaction(id: "${id}") { id } }` }],
    ["an item", { query: `{ transaction(id: "${idOf("1/0/96")}") { ${everyField} } }` }],
    ["an id that is not in the index", { query: `{ transaction(id: "${idOf("nowhere")}") { id } }` }],
    ["a block", { query: `{ block(id: "${blockOf(1).hash}") { id timestamp height previous } }` }],
    [
      "a block in a variable",
      { query: "query($h: String!) { block(id: $h) { id } }", variables: { h: blockOf(0).hash } },
    ],
    ["the hash of a block as an id", { query: `{ transaction(id: "${blockOf(1).hash}") { id } }` }],
    ["a comment", { query: `# one row\n{ transaction(id: "${id}") { id } } # with its "id"` }],
    [
      "variables that the document does not have",
      { query: `{ transaction(id: "${id}") { id } }`, variables: { x: 1 } },
    ],
  ];
  test.each(documents)("%s", async (_name, sent) => {
    const server = overMemory();
    const first = await server.ask(sent);
    expect(first.status).toBe(200);
    for (let count = 0; count < 3; count += 1) expect(await server.ask(sent)).toEqual(first);
    expect(server.executed()).toBe(1);
    await server.close();
  });

  test("however it is sent, and as whatever the client accepts", async () => {
    const server = overMemory();
    const query = `{ transaction(id: "${id}") { id } }`;
    const text = `{"data":{"transaction":{"id":"${id}"}}}`;
    await server.ask({ query });
    const type = "application/json; charset=utf-8";
    const found = { status: 200, type, text };
    expect(await server.post(query, { "Content-Type": "application/graphql" })).toEqual(found);
    const form = new URLSearchParams({ query });
    const formType = { "Content-Type": "application/x-www-form-urlencoded" };
    expect(await server.post(String(form), formType)).toEqual(found);
    expect(await (await fetch(`${server.url}?${form}`)).text()).toBe(text);
    const modern = "application/graphql-response+json";
    expect(await server.ask({ query }, { Accept: modern })).toEqual({ ...found, type: `${modern}; charset=utf-8` });
    const events = await server.ask({ query }, { Accept: "text/event-stream" });
    expect(events.text).toBe(`event: next\ndata: ${text}\n\nevent: complete\ndata:\n\n`);
    expect(server.executed()).toBe(1);
    await server.close();
  });

  test("with the value that each request has for its variable", async () => {
    const server = overMemory();
    const query = "query($id: ID!) { transaction(id: $id) { id } }";
    await server.ask({ query, variables: { id } });
    for (const other of [idOf("1/0/96"), id])
      expect((await server.ask({ query, variables: { id: other } })).text).toContain(`"${other}"`);
    expect((await server.ask({ query, variables: { id: idOf("nowhere") } })).text).toBe(
      '{"data":{"transaction":null}}',
    );
    expect(server.executed()).toBe(1);
    await server.close();
  });

  test("with the id that each document has", async () => {
    const server = overMemory();
    const queryOf = (name: string) => `query Q { transaction(id: "${name}") { id owner { address } } } # "${id}"`;
    await server.ask({ query: queryOf(id) });
    for (const other of [idOf("1/0/96"), id])
      expect((await server.ask({ query: queryOf(other) })).text).toContain(`{"id":"${other}"`);
    const absent = '{"data":{"transaction":null}}';
    expect((await server.ask({ query: queryOf(idOf("nowhere")) })).text).toBe(absent);
    expect((await server.ask({ query: queryOf(blockOf(1).hash) })).text).toBe(absent);
    expect(server.executed()).toBe(1);
    await server.close();
  });

  const other = idOf("1/0/96");
  const twins: [string, Sent, Sent][] = [
    [
      "a name in a comment where the other has its id",
      { query: `{ transaction(id: "${id}") { id # ""\n} }` },
      { query: `{ transaction(id: "") { id # "${other}"\n} }` },
    ],
    [
      "another block string",
      { query: `{ transaction(id: """${id}""") { id } }` },
      { query: `{ transaction(id: """${other}""") { id } }` },
    ],
    [
      "a name outside a comment",
      { query: `query($id: ID!) { transaction(id: $id) { id } } # "${id}"`, variables: { id } },
      { query: `query($id: ID!) { transaction(id: $id) { id } } # "${other}"`, variables: { id: other } },
    ],
    [
      "another id in one of two places",
      { query: `{ transaction(id: "${id}") { id } transaction(id: "${id}") { anchor } }` },
      { query: `{ transaction(id: "${other}") { id } transaction(id: "${id}") { anchor } }` },
    ],
    [
      "another field",
      { query: `{ transaction(id: "${id}") { id } }` },
      { query: `{ transaction(id: "${id}") { anchor } }` },
    ],
    ["no name", { query: `{ transaction(id: "${id}") { id } }` }, { query: '{ transaction(id: "") { id } }' }],
  ];
  test.each(twins)("but not a document that differs in more than the id: %s", async (_name, sent, twin) => {
    const server = overMemory();
    const alone = overMemory();
    for (let count = 0; count < 3; count += 1) await server.ask(sent);
    const executed = server.executed();
    expect(await server.ask(twin)).toEqual(await alone.ask(twin));
    expect(server.executed()).toBe(executed + 1);
    await Promise.all([server.close(), alone.close()]);
  });
});

describe("a query thread executes", () => {
  const long = `{ transaction(id: "${id}") { id } }`.padEnd(documentCharactersMax + 1);
  const documents: [string, Sent][] = [
    ["a signature", { query: `{ transaction(id: "${id}") { signature } }` }],
    ["a field that is written twice", { query: `{ transaction(id: "${id}") { tags { name } t: tags { name } } }` }],
    ["two rows", { query: `{ transaction(id: "${id}") { id } block(id: "x") { id } }` }],
    ["a directive", { query: `{ transaction(id: "${id}") { id anchor @skip(if: true) } }` }],
    ["a page", { query: `{ transactions(ids: ["${id}"]) { edges { node { id } } } }` }],
    [
      "two operations",
      { query: `query A { transaction(id: "${id}") { id } } query B { __typename }`, operationName: "A" },
    ],
    ["a default of a variable", { query: `query($id: ID! = "${id}") { transaction(id: $id) { id } }` }],
    ["an id that is a number", { query: "{ transaction(id: 7) { id } }" }],
    ["an id that is a block string", { query: `{ transaction(id: """${id}""") { id } }` }],
    [
      "fields that are selected in two places",
      { query: `{ transaction(id: "${id}") { id } transaction(id: "${id}") { anchor } }` },
    ],
    ["an id in escapes", { query: `{ transaction(id: "\\u0041${id.slice(1)}") { id } }` }],
    ["what cannot be an id", { query: '{ transaction(id: "x") { id } }' }],
    ["an id after another name in a comment", { query: `# "${idOf("1/0/96")}"\n{ transaction(id: "${id}") { id } }` }],
    ["the schema", { query: "{ __schema { queryType { name } } }" }],
    ["the name of the root type", { query: `{ __typename transaction(id: "${id}") { id } }` }],
    ["a document that is longer than a lookup may be", { query: long }],
  ];
  test.each(documents)("%s, each time", async (_name, sent) => {
    const server = overMemory();
    const first = await server.ask(sent);
    expect(first.status).toBe(200);
    for (let count = 0; count < 3; count += 1) expect(await server.ask(sent)).toEqual(first);
    expect(server.executed()).toBe(4);
    await server.close();
  });

  test("a document of the longest lookup only once", async () => {
    const server = overMemory();
    const query = long.slice(0, -1);
    for (let count = 0; count < 3; count += 1) await server.ask({ query });
    expect(server.executed()).toBe(1);
    await server.close();
  });

  test("a row with more than 16 KiB of tags", async () => {
    const tags = [{ name: "Long", value: "x".repeat(20_000) }];
    const [long, short] = [rowAt({ height: 1, txIndex: 1, offset: -1 }, { tags }), rows[0]!];
    const index = { ...createMemoryIndex([...rows, long], blocks), path: "" };
    const server = openCounted(createGraphqlServer({ index, signatures: noSignatures }), index);
    const query = "query($id: ID!) { transaction(id: $id) { tags { value } } }";
    const value = async (of: string) =>
      JSON.parse((await server.ask({ query, variables: { id: of } })).text).data.transaction.tags[0].value;
    for (const [of, executed] of [
      [short.id, 1],
      [short.id, 1],
      [long.id, 2],
      [long.id, 3],
    ] as const)
      expect([await value(of), server.executed()]).toEqual([of === long.id ? "x".repeat(20_000) : "漢字\n", executed]);
    await server.close();
  });

  test("requests that are longer than those that are parsed on the thread that serves", async () => {
    const server = overMemory();
    const text = JSON.stringify({ query: `{ transaction(id: "${id}") { id } }` });
    await server.post(text);
    const first = await server.post(text.padEnd(requestCharactersMax));
    expect(server.executed()).toBe(1);
    expect(await server.post(text.padEnd(requestCharactersMax + 1))).toEqual(first);
    expect(server.executed()).toBe(2);
    await server.close();
  });

  const query = "query Q($id: ID!) { transaction(id: $id) { id } }";
  const others: [string, Sent, string][] = [
    ["a variable that is a number", { query, variables: { id: 7 } }, '{"data":{"transaction":null}}'],
    ["a variable that is null", { query, variables: { id: null } }, '{"errors":'],
    ["a variable that is missing", { query }, '{"errors":'],
    ["another name of the operation", { query, variables: { id }, operationName: "P" }, '{"errors":'],
    [
      "a name of an operation without one",
      { query: query.replace(" Q", ""), variables: { id }, operationName: "Q" },
      '{"errors":',
    ],
    ["extensions that are no object", { query, variables: { id }, extensions: [] }, '{"errors":'],
    ["variables that are no object", { query, variables: "x" }, '{"errors":'],
  ];
  test.each(others)("of a known lookup: %s", async (_name, sent, beginning) => {
    const server = overMemory();
    const before = await server.ask(sent);
    for (let count = 0; count < 3; count += 1) await server.ask({ query: sent.query, variables: { id } });
    const executed = server.executed();
    expect(await server.ask(sent)).toEqual(before);
    expect(before.text).toStartWith(beginning);
    expect(server.executed()).toBe(executed + 1);
    await server.close();
  });

  test("all documents if the gateway has a columnar store", async () => {
    const serve = createGraphqlServer({ index: memory, signatures: noSignatures });
    const store = { folder: "", memoryBytesMax: 0, threads: 1 } as unknown as NonNullable<GraphqlOptions["store"]>;
    const server = openCounted(serve, memory, { store });
    for (let count = 0; count < 4; count += 1) await server.ask({ query: `{ transaction(id: "${id}") { id } }` });
    expect(server.executed()).toBe(4);
    await server.close();
  });

  test("a lookup whose row cannot be read in the thread that serves, and that is logged", async () => {
    const { log, lines } = createRecordingLog();
    const fail = (): never => {
      throw new Error("page 7 is malformed");
    };
    const serve = createGraphqlServer({ index: memory, signatures: noSignatures });
    const server = openCounted(serve, { path: "", encodedRow: fail, block: fail }, { log });
    const query = `{ transaction(id: "${id}") { id } }`;
    for (let count = 0; count < 3; count += 1)
      expect((await server.ask({ query })).text).toBe(`{"data":{"transaction":{"id":"${id}"}}}`);
    expect(server.executed()).toBe(3);
    expect(lines.filter((line) => JSON.stringify(line).includes("lookup failed"))).toHaveLength(2);
    await server.close();
  });
});

test("plans of the 128 documents that were used last are known", () => {
  const lookups = createLookups(memory);
  const planOf = (key: string): LookupPlan => ({
    query: `{ ${key}: transaction(id: "${id}") { id } }`,
    operationName: undefined,
    root: "transaction",
    id: { at: `{ ${key}: transaction(id: `.length },
    key,
    fields: [{ key: "id", name: "id", inner: [] }],
  });
  const textOf = (key: string) => {
    const body = lookups.execute({ form: "document", text: planOf(key).query });
    return body === undefined ? undefined : Buffer.from(body).toString();
  };
  for (let count = 0; count < 128; count += 1) lookups.add(planOf(`k${count}`));
  expect(textOf("k0")).toBe(`{"data":{"k0":{"id":"${id}"}}}`);
  lookups.add(planOf("k128"));
  expect(textOf("k0")).toBeDefined();
  expect(textOf("k1")).toBeUndefined();
  expect(textOf("k2")).toBeDefined();
});

describe("over a real index", () => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-lookups-"));
  afterAll(() => removeFolder(folder));

  test.each([1, 2, newSeed()])(
    "each row and block is what a query thread reads, while the chain moves (seed %d)",
    async (seed) => {
      const choose = createRandom(seed).below;
      const path = join(folder, `${seed}.sqlite`);
      const chain = openMadeUpChain(path, choose);
      for (let count = 0; count < 4; count += 1) chain.addBlock(5);
      const mine = openIndexReader(path);
      const threads = openIndexReader(path);
      const serve = createGraphqlServer({ index: threads, signatures: noSignatures });
      const server = openCounted(serve, mine);
      const row = `query($id: ID!) { transaction(id: $id) { ${everyField} } }`;
      const block = "query($id: String!) { block(id: $id) { id timestamp height previous } }";
      const names: string[] = [];
      for (let round = 0; round < 12; round += 1) {
        chain.addBlock(choose(6));
        if (round % 4 === 3) chain.reorganise(1 + choose(3), choose(6));
        while (choose(2) === 0 && chain.unbundle());
        chain.addPending();
        if (round % 5 === 4) chain.expirePending();
        names.push(...chain.rows().map((each) => each.id), ...chain.blocks().map(({ hash }) => hash));
        for (const name of Array.from({ length: 25 }, () => names[choose(names.length)] ?? ""))
          for (const query of [row, block]) {
            const job = {
              request: { form: "json", text: JSON.stringify({ query, variables: { id: name } }) },
            } as const;
            const { body } = await serve(
              { ...job, mediaType: "application/json", acceptsEvents: false },
              () => undefined,
            );
            expect((await server.ask({ query, variables: { id: name } })).text).toBe(Buffer.from(body).toString());
          }
      }
      // Each document was valid before the first of these requests, and a lookup after it.
      expect(server.executed()).toBe(2);
      await server.close();
      for (const reader of [mine, threads]) reader.close();
      chain.close();
    },
  );
});
