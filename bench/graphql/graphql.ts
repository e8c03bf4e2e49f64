/**
 * GraphQL pages: rows of a real index written directly as bytes, against graphql-js over the same rows; latencies of
 * filtered pages; and CPU time of the main thread for queries in threads.
 * @module
 */
import { createHash } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { graphqlSync } from "graphql";
import { type Address, addressOf, blockHashFromBytes, idFromBytes } from "../../src/arweave/id.ts";
import { transactionCursorBytes } from "../../src/graphql/cursor.ts";
import { createQueryExecutor, type QueryExecutor } from "../../src/graphql/execute.ts";
import { schema } from "../../src/graphql/graphql-schema.ts";
import { createDocuments } from "../../src/graphql/graphql-server.ts";
import { writeAr } from "../../src/graphql/shapes.ts";
import { assert } from "../../src/lib/assert.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import {
  allColumns,
  type IndexReader,
  type ItemRow,
  noColumns,
  type PageRow,
} from "../../src/store/index/index-types.ts";
import { type IndexWriter, openIndexWriter } from "../../src/store/index/index-writer.ts";
import type { Place } from "../../src/store/index/place.ts";
import { type Bench, type BenchSize, inOrder, type Outcome, percentile, perSecond, timed } from "../harness.ts";
import { runLoad } from "../support/http-client.ts";
import { cpuSeconds, threadNanos } from "../support/processor-time.ts";
import { blockRow, transactionRow } from "../support/sample-rows.ts";

const sizes: Readonly<Record<BenchSize, { items: number; rounds: number; pages: number; queries: number }>> = {
  small: { items: 2_000, rounds: 1, pages: 3, queries: 20 },
  large: { items: 200_000, rounds: 7, pages: 200, queries: 1_000 },
};

const pageRows = 100;
const itemsPerBundle = 1_000;
const owners = Array.from({ length: 50 }, (_, seed) => new Uint8Array(512).fill(seed));
const addresses: readonly Address[] = owners.map((owner) => addressOf(owner));

const everyField = `query($after: String) {
  transactions(first: ${pageRows}, after: $after) {
    pageInfo { hasNextPage }
    edges { cursor node {
      id anchor signature recipient owner { address key } fee { winston ar } quantity { winston ar } data { size type }
      tags { name value } block { id timestamp height previous } bundledIn { id }
    } }
  }
}`;
const folderFilter = '[{name: "App-Name", values: ["Bench"]}, {name: "Folder-Id", values: [$folder]}]';
const twoTags = `query($folder: String!) {
  transactions(first: ${pageRows}, tags: ${folderFilter}) { edges { cursor node { id tags { name value } } } }
}`;

/** Pages of 100 rows. */
export const graphqlBench: Bench = {
  name: "graphql",
  measure: async (size) => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-bench-graphql-"));
    try {
      const indexPath = join(folder, "index.sqlite");
      fillIndex(indexPath, sizes[size].items);
      const reader = openIndexReader(indexPath);
      // Signatures are left out on both sides: they are no rows of the index.
      const execute = createQueryExecutor({
        index: reader,
        signatures: { find: () => undefined, of: () => undefined },
      });
      const rows = [
        await measureEngines(reader, execute, size),
        await measureFilters(execute, size),
        ...(await measureThreads(indexPath, folder, reader, size)),
      ];
      reader.close();
      return rows;
    } finally {
      removeFolder(folder);
    }
  },
};

async function measureEngines(reader: IndexReader, execute: QueryExecutor, size: BenchSize) {
  const { pages, rounds } = sizes[size];
  const cursors = cursorsOf(reader, pages);
  const work = (page: (after: string) => Uint8Array | Promise<Uint8Array>) => async (): Promise<Outcome> => {
    let digest = 0n;
    // Quick, so that the page dominates the measurement.
    for (const after of cursors) digest ^= Bun.hash.xxHash64(await page(after));
    return { amount: pages, digest: digest.toString(16) };
  };
  const encoder = new TextEncoder();
  const mine = work((after) => bodyOf(execute, everyField, { after }));
  const theirs = work((after) =>
    encoder.encode(
      JSON.stringify(
        graphqlSync({ schema, source: everyField, rootValue: objectsOf(reader), variableValues: { after } }),
      ),
    ),
  );
  const check = await timed(theirs);
  assert((await timed(mine)).digest === check.digest, "both engines return the same bytes");
  const { rate, against, ratio } = await inOrder(mine, theirs, rounds);
  return {
    name: "GraphQL page of 100, all fields, one thread",
    metric: `${(1e3 / rate).toFixed(2)} ms (${perSecond(rate, "pages")})`,
    reference: `graphql-js, parsing and validating each time, ${perSecond(against, "pages")}`,
    ratio,
    target: "≤ 1.5 ms",
  };
}

async function measureFilters(execute: QueryExecutor, size: BenchSize) {
  const { queries, items } = sizes[size];
  const times: number[] = [];
  for (let query = 0; query < queries + 10; query += 1) {
    const folder = `folder ${(query * 7) % Math.ceil(items / 20)}`;
    const start = performance.now();
    await bodyOf(execute, twoTags, { folder });
    if (query >= 10) times.push(performance.now() - start);
  }
  const at = (share: number) => percentile(times, share).toFixed(2);
  return {
    name: `GraphQL page by two tags of ${items.toLocaleString("en")} items, p50 / p99`,
    metric: `${at(0.5)} / ${at(0.99)} ms`,
    target: "p99 ≤ 20 ms",
  };
}

/** CPU time of a server with one query thread, of all threads and of the main one: a page, ids, a route of text. */
async function measureThreads(indexPath: string, contentFolder: string, reader: IndexReader, size: BenchSize) {
  const requests = sizes[size].queries;
  const program = resolve(import.meta.dir, "graphql-served.ts");
  const child = Bun.spawn([process.execPath, program, indexPath, contentFolder], { stdout: "pipe" });
  try {
    const { value } = await child.stdout.getReader().read();
    const port = Number(Buffer.from(value ?? []).toString());
    const measure = (paths: readonly string[], count: number) =>
      cpuOfRequests(child.pid, { port, paths, requests: count });
    const page = everyField.replace("query($after: String) ", "").replace(", after: $after", "");
    const { rows } = reader.page({ order: "asc", limit: 200, columns: noColumns });
    const fields = "id owner { address } tags { name value } data { size type } block { height }";
    const pathOf = (query: string, variables = {}) =>
      `/graphql?${new URLSearchParams({ query, variables: JSON.stringify(variables) })}`;
    const byVariable = `query($id: ID!) { transaction(id: $id) { ${fields} } }`;
    const variablePaths = rows.map(({ id }) => pathOf(byVariable, { id }));
    const documentPaths = rows.map(({ id }) => pathOf(`{ transaction(id: "${id}") { ${fields} } }`));
    const pageCpu = await measure([pathOf(page)], requests);
    // Over few requests, what the runtime compiles and collects meanwhile takes a third of the time.
    const variableCpu = await measure(await pathsOfOneSize(port, variablePaths), requests * 30);
    const documentCpu = await measure(await pathsOfOneSize(port, documentPaths), requests * 30);
    const textCpu = await measure(["/text"], requests * 30);
    const idRow = (name: string, cpu: Awaited<ReturnType<typeof measure>>) => ({
      name,
      metric: `${cpu.all.toFixed(3)} ms CPU, ${cpu.main.toFixed(3)} ms of it on the main thread`,
      reference: `a route of fixed text ${textCpu.all.toFixed(3)} ms CPU`,
      ratio: cpu.all / textCpu.all,
      target: "≤ 0.15 ms",
    });
    return [
      {
        name: "GraphQL page of 100, all fields, over HTTP",
        metric: `${pageCpu.all.toFixed(2)} ms CPU, ${pageCpu.main.toFixed(2)} ms of it on the main thread`,
        target: "≤ 1.5 ms, ≤ 0.4 ms",
      },
      idRow("GraphQL one id of many in a variable, over HTTP", variableCpu),
      idRow("GraphQL one id of many in the document, over HTTP", documentCpu),
    ];
  } finally {
    child.kill();
    await child.exited;
  }
}

/** The paths whose responses are as large as the first one's, as the load expects. */
async function pathsOfOneSize(port: number, paths: readonly string[]): Promise<string[]> {
  const same: string[] = [];
  let size: number | undefined;
  for (const path of paths) {
    const { length } = await (await fetch(`http://127.0.0.1:${port}${path}`)).bytes();
    size ??= length;
    if (length === size) same.push(path);
  }
  return same;
}

type Requests = Readonly<{ port: number; paths: readonly string[]; requests: number }>;

/** CPU time of each request after a warm-up, in milliseconds: of all threads, and of the main thread. */
async function cpuOfRequests(pid: number, { port, paths, requests }: Requests) {
  const bodyBytes = (await (await fetch(`http://127.0.0.1:${port}${paths[0]}`)).bytes()).length;
  const load = { port, paths, bodyBytes, connections: 4 };
  // Until the runtime has compiled everything, a request takes half as long again.
  await runLoad({ ...load, requests: requests * 2 });
  const before = { all: cpuSeconds(pid), main: threadNanos(pid, pid) };
  await runLoad({ ...load, requests });
  return {
    // Also of threads that have ended, such as those that compile and collect.
    all: ((cpuSeconds(pid) - before.all) * 1e3) / requests,
    main: (threadNanos(pid, pid) - before.main) / 1e6 / requests,
  };
}

const documents = createDocuments();

async function bodyOf(execute: QueryExecutor, query: string, variables: Record<string, unknown>): Promise<Uint8Array> {
  const document = documents.parse(query);
  assert(documents.validate(document).length === 0, "the query is valid");
  const result = await execute({ document, variables }, () => undefined);
  assert(result.kind === "executed", "the variables are valid");
  return result.body;
}

/** Cursors spread over the whole index. */
function cursorsOf(reader: IndexReader, count: number): string[] {
  const tip = reader.tip()?.height ?? 0;
  return Array.from({ length: count }, (_, index) =>
    cursorOf({ height: 1 + Math.floor((index * tip) / count), txIndex: 0, offset: 1_500_000 }),
  );
}

/** The rows as objects, as resolvers return them. */
function objectsOf(reader: IndexReader): object {
  const amount = (winston: bigint) => ({ winston: winston.toString(), ar: writeAr(String(winston)) });
  const node = (row: PageRow) => ({
    id: row.id,
    anchor: row.anchor,
    signature: null,
    recipient: row.target,
    owner: { address: row.ownerAddress, key: row.ownerKey },
    fee: amount(row.reward),
    quantity: amount(row.quantity),
    data: {
      size: String(row.size),
      type: row.tags.find(({ name }) => name === "Content-Type")?.value ?? null,
    },
    tags: row.tags,
    block: row.block === undefined ? null : { ...row.block, id: row.block.hash },
    bundledIn: row.parentId === undefined ? null : { id: row.parentId },
  });
  return {
    transactions: ({ after }: { after: string }) => {
      const place = readPlace(after);
      const columns = allColumns;
      const { rows, hasNextPage } = reader.page({ after: place, order: "desc", limit: pageRows, columns });
      return {
        pageInfo: { hasNextPage },
        edges: rows.map((row) => ({ cursor: cursorOf(row.place), node: node(row) })),
      };
    },
  };
}

function readPlace(cursor: string) {
  const bytes = Buffer.from(cursor, "base64url");
  return {
    height: bytes.readUInt32BE(1),
    txIndex: bytes.readUInt32BE(5),
    offset: bytes.readUIntBE(9, 6) - 1,
  };
}

/** Fills an index with blocks of one bundle of a thousand items with eight tags each. */
export function fillIndex(path: string, items: number): void {
  const writer = openIndexWriter(path, { clock: () => 1_700_000_000_000 });
  for (let height = 1; height <= items / itemsPerBundle; height += 1) addBundle(writer, height);
  writer.close();
}

function addBundle(writer: IndexWriter, height: number): void {
  const id = idFromBytes(hash(`transaction ${height}`));
  const place = { height, txIndex: 0, offset: -1 };
  const blockHash = (at: number) => blockHashFromBytes(createHash("sha384").update(`block ${at}`).digest());
  const owner = owners[0] ?? new Uint8Array(512);
  const size = itemsPerBundle * 2_048;
  writer.addBlock({
    block: blockRow({
      height,
      hash: blockHash(height),
      previous: blockHash(height - 1),
      timestamp: 1_600_000_000 + height,
    }),
    transactions: [
      transactionRow({
        id,
        owner: Buffer.from(owner).toString("base64url"),
        ownerAddress: addressOf(owner),
        reward: 1n,
        dataSize: size,
        dataRoot: id,
      }),
    ],
    missing: [],
    bundles: [{ id, place, parentOffset: null, headerSize: 0, size, depth: 0, bypassFilter: false }],
  });
  assert(writer.takeBundle() !== undefined, "the bundle is due");
  const rows = Array.from({ length: itemsPerBundle }, (_, index) => item(height, index));
  writer.addItems({ bundle: place, rows, firstEntry: 0, nextEntry: rows.length, bundles: [] });
  writer.finishBundle(place, { unbundleFilter: "{}", indexFilter: "{}", itemCount: rows.length });
}

function item(height: number, index: number): ItemRow {
  const serial = height * itemsPerBundle + index;
  const owner = serial % owners.length;
  const digest = hash(`payload ${serial}`);
  return {
    place: { height, txIndex: 0, offset: 40_000 + index * 2_048 },
    id: idFromBytes(hash(`item ${serial}`)),
    parentOffset: null,
    signatureType: 1,
    owner: owners[owner] ?? new Uint8Array(512),
    ownerAddress: addresses[owner] ?? addressOf(new Uint8Array(512)),
    target: "",
    anchor: "",
    tags: [
      { name: "App-Name", value: "Bench" },
      { name: "App-Version", value: "1.0" },
      { name: "Content-Type", value: serial % 3 === 0 ? "application/json" : "image/png" },
      { name: "Entity-Type", value: serial % 2 === 0 ? "file" : "folder" },
      { name: "Entity-Id", value: `entity ${serial}` },
      { name: "Folder-Id", value: `folder ${Math.floor(serial / 20) - 50}` },
      { name: "Unix-Time", value: String(1_600_000_000 + serial) },
      { name: "Sha-256", value: digest.toHex() },
    ],
    headerSize: 1_500,
    size: 500,
    digest,
  };
}

function hash(text: string): Uint8Array {
  return new Uint8Array(createHash("sha256").update(text).digest());
}

function cursorOf(place: Place): string {
  return encodeBase64url(transactionCursorBytes(place));
}
