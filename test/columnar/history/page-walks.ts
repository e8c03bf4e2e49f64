/**
 * Every page of ten query shapes, oldest and newest first, written to files: one row a line.
 * @module
 */
import { closeSync, createReadStream, mkdirSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { appNames, type LongChain, rareTag } from "./long-chain.ts";

/** A query shape: the filter as GraphQL's variables, and rows a page. */
export type QueryShape = Readonly<{ name: string; first: number; filter: Readonly<Record<string, unknown>> }>;

/** Rows of each shape, by its name. */
export type WalkedRows = Readonly<Record<string, number>>;

const orders = ["HEIGHT_ASC", "HEIGHT_DESC"] as const;

const variables = [
  "$ids: [ID!], $owners: [String!], $recipients: [String!], $tags: [TagFilter!], $bundledIn: [ID!]",
  "$block: BlockFilter, $ingested_at: RangeFilter, $first: Int, $after: String, $sort: SortOrder",
].join(", ");

const names = "ids owners recipients tags bundledIn block ingested_at first after sort".split(" ");

const query = `query (${variables}) {
  transactions(${names.map((name) => `${name}: $${name}`).join(", ")}) {
    count
    pageInfo { hasNextPage endCursor }
    edges { cursor node {
      id anchor signatureType recipient owner { address key } fee { winston } quantity { winston } data { size type }
      tags { name value } block { id timestamp height previous } bundledIn { id } parent { id } ingestedAt
    } }
  }
}`;

type Page = Readonly<{
  count: string | null;
  pageInfo: Readonly<{ hasNextPage: boolean; endCursor: string | null }>;
  edges: readonly Readonly<{ cursor: string; node: Readonly<{ ingestedAt: number }> }>[];
}>;

/** The ten shapes. */
export async function queryShapes(gateway: string, chain: LongChain): Promise<readonly QueryShape[]> {
  const common = { name: "App-Name", values: [appNames[0], appNames[1]] };
  const rare = { name: rareTag.name, values: [rareTag.value] };
  const block = { min: chain.first + 2, max: chain.last - 1 };
  const { edges } = await page(gateway, { block, first: 1_000, sort: "HEIGHT_DESC" });
  const times = edges.map(({ node }) => node.ingestedAt);
  const unknown = Buffer.alloc(32, 7).toString("base64url");
  return [
    { name: "rare tag", first: 7, filter: { tags: [rare] } },
    { name: "common tag", first: 1_000, filter: { tags: [common] } },
    { name: "common and rare tag", first: 10, filter: { tags: [common, rare] } },
    { name: "owner", first: 500, filter: { owners: [chain.owner] } },
    {
      name: "owner and tags",
      first: 100,
      filter: { owners: [chain.owner], tags: [common, { name: "Topic", values: ["t1", "t2"], op: "NEQ" }] },
    },
    { name: "recipient", first: 100, filter: { recipients: [chain.recipient] } },
    { name: "bundledIn", first: 100, filter: { bundledIn: chain.bundles } },
    { name: "ids", first: 10, filter: { ids: [unknown, ...chain.sample.map(({ id }) => id)].slice(0, 1_000) } },
    { name: "block range", first: 1_000, filter: { block } },
    { name: "ingested_at", first: 1_000, filter: { ingested_at: { max: Math.min(...times) - 1 } } },
  ];
}

/** Walks every page of each shape. @param folder - Has one file for each shape and order afterwards. */
export async function walkShapes(gateway: string, shapes: readonly QueryShape[], folder: string): Promise<WalkedRows> {
  mkdirSync(folder, { recursive: true });
  const rows: Record<string, number> = {};
  for (const shape of shapes)
    for (const sort of orders) rows[`${shape.name}, ${sort}`] = await walkPages(gateway, shape, sort, folder);
  return rows;
}

async function walkPages(gateway: string, shape: QueryShape, sort: string, folder: string): Promise<number> {
  const { name, first, filter } = shape;
  const file = openSync(join(folder, `${name} ${sort}`), "w");
  let rows = 0;
  for (let after: string | null = null; ; ) {
    const { count, pageInfo, edges } = await page(gateway, { ...filter, first, sort, after });
    writeSync(file, [`count ${count}`, ...edges.map((edge) => JSON.stringify(edge)), ""].join("\n"));
    rows += edges.length;
    if (!pageInfo.hasNextPage) break;
    after = pageInfo.endCursor;
  }
  closeSync(file);
  return rows;
}

type GraphqlResponse = Readonly<{
  data?: Readonly<{ transactions: Page | null }>;
  errors?: readonly Readonly<{ extensions?: Readonly<{ code?: string }> }>[];
}>;

/** Attempts for a page. On a busy machine a query may pass its deadline, which is an error and leaves out no row. */
const attemptsMax = 8;

async function page(gateway: string, given: Readonly<Record<string, unknown>>): Promise<Page> {
  for (let attempt = 1; ; attempt += 1) {
    const response = await fetch(`${gateway}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query, variables: given }),
    });
    const { data, errors } = (await response.json()) as GraphqlResponse;
    const found = data?.transactions ?? undefined;
    if (found !== undefined && errors === undefined) return found;
    if (errors?.[0]?.extensions?.code !== "QUERY_TIMEOUT" || attempt === attemptsMax)
      throw new Error(`${response.status} ${JSON.stringify(errors)} for ${JSON.stringify(given)}`);
  }
}

/** The first line of a walk that differs from that of another walk; undefined when all lines are the same. */
export async function firstDifference(
  shapes: readonly QueryShape[],
  before: string,
  after: string,
): Promise<Readonly<{ walk: string; line: number; before: unknown; after: unknown }> | undefined> {
  for (const { name } of shapes)
    for (const sort of orders) {
      const walk = `${name} ${sort}`;
      const others = linesOf(join(after, walk));
      let line = 0;
      for await (const expected of linesOf(join(before, walk))) {
        line += 1;
        const { value = undefined } = await others.next();
        if (value !== expected) return { walk, line, before: expected, after: value };
      }
      const { value } = await others.next();
      if (value !== undefined) return { walk, line: line + 1, before: undefined, after: value };
    }
  return undefined;
}

async function* linesOf(path: string): AsyncGenerator<string> {
  yield* createInterface({ input: createReadStream(path) });
}
