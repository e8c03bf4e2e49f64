/**
 * Walking pages over a real index, through real threads and sockets, while blocks come, go and are unbundled.
 *
 * Every page must be what a filter over all rows gives at that moment; so a walk over a chain that rests is the full
 * scan, and a walk over one that moves neither loses nor repeats a row that stays where it is.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TransactionsArguments } from "../../src/graphql/page-query.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import type { PageRow } from "../../src/store/index/index-types.ts";
import { openPool } from "../../src/threads/pool.ts";
import { executeByGraphqlJs } from "../graphql/oracle.ts";
import { createRandom } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";
import { writeTransactionCursor } from "../support/transaction-cursor.ts";
import { type Choose, known, type MadeUpChain, openMadeUpChain } from "./graphql-chain.ts";
import { openGraphqlServer } from "./graphql-server.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-graphql-"));
const pool = openPool({
  entry: "graphql",
  threads: 1,
  queueMax: 64,
  timeoutMs: 60_000,
  idleMs: Number.POSITIVE_INFINITY,
});
afterAll(async () => {
  await pool.close();
  removeFolder(folder);
});

const query = `query($ids: [ID!], $owners: [String!], $recipients: [String!], $tags: [TagFilter!], $bundledIn: [ID!], $block: BlockFilter, $ingested_at: RangeFilter, $first: Int, $after: String, $sort: SortOrder) {
  transactions(ids: $ids, owners: $owners, recipients: $recipients, tags: $tags, bundledIn: $bundledIn, block: $block, ingested_at: $ingested_at, first: $first, after: $after, sort: $sort) {
    count pageInfo { hasNextPage endCursor }
    edges { node { id anchor signature signatureType recipient owner { address key } fee { winston ar } quantity { winston ar } data { size type } tags { name value } block { id timestamp height previous } bundledIn { id } ingestedAt } }
  }
}`;
const withoutBundles = query.replace(", $bundledIn: [ID!]", "").replace(", bundledIn: $bundledIn", "");

type Node = Readonly<{ id: string }>;
type Connection = {
  count: string | null;
  pageInfo: { hasNextPage: boolean; endCursor?: string | null };
  edges: { node: Node }[];
};

/** A walk over the pages of one query. */
type Walk = Readonly<{
  /** Asks for the next page, compares it with the filter over all rows; false when it was the last. */
  step: () => Promise<boolean>;
  ids: readonly string[];
}>;

function openWalk(url: string, chain: MadeUpChain, given: TransactionsArguments): Walk {
  const text = given.bundledIn === undefined ? withoutBundles : query;
  const ids: string[] = [];
  let after: string | null = null;
  let place: string | null = null;
  return {
    ids,
    step: async () => {
      const rows = chain.rows();
      const ask = (cursor: string | null) => ({ query: text, variables: { ...given, after: cursor } });
      const expected = executeByGraphqlJs(rows, chain.blocks(), chain.signatures, ask(place));
      const response = await fetch(url, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(ask(after)),
      });
      const found = (await response.json()) as { data: { transactions: Connection } };
      const page = found.data?.transactions;
      const end = page?.pageInfo.endCursor ?? null;
      // The position of pending rows is not specified; all other rows must be equal.
      delete page?.pageInfo.endCursor;
      const wanted = JSON.parse(JSON.stringify(expected)) as typeof found;
      delete wanted.data.transactions.pageInfo.endCursor;
      expect(found).toEqual(wanted);
      const last = page.edges.at(-1)?.node.id;
      ids.push(...page.edges.map(({ node }) => node.id));
      const row = rows.find(({ id }) => id === last);
      if (row !== undefined) place = writeTransactionCursor(row.place);
      after = end;
      return page.pageInfo.hasNextPage;
    },
  };
}

/** A filter at random, of which something is usually true. */
function chooseFilter(choose: Choose, rows: readonly PageRow[]): TransactionsArguments {
  const pick = <Value>(list: readonly Value[]): Value => list[choose(list.length)] as Value;
  const tag = () => {
    const { name, value } = pick(known.tags);
    const values = choose(2) === 0 ? [value] : [value, pick(known.tags).value];
    return { name, values, op: choose(4) === 0 ? ("NEQ" as const) : ("EQ" as const) };
  };
  const parents = rows.flatMap(({ parentId }) => parentId ?? []);
  const heights = rows.map(({ block }) => block?.height ?? 0);
  const times = rows.map(({ ingestedAt }) => ingestedAt);
  const range = (values: readonly number[]) => {
    const [min, max] = [pick(values), pick(values)].toSorted((a, b) => a - b);
    return choose(3) === 0 ? { min: min ?? 0 } : { min: min ?? 0, max: max ?? 0 };
  };
  const parts: Partial<TransactionsArguments>[] = [
    {},
    { tags: [tag()] },
    { tags: [tag(), tag()] },
    { tags: [tag(), tag(), tag()] },
    { owners: [pick(known.owners), pick(known.owners)] },
    { recipients: [pick(known.recipients)] },
    { bundledIn: null },
    ...(parents.length > 0 ? [{ bundledIn: [pick(parents), pick(parents), pick(rows).id] }] : []),
    ...(rows.length > 0
      ? [
          { ids: Array.from({ length: 12 }, () => pick(rows).id) },
          { block: range(heights) },
          { ingested_at: range(times) },
        ]
      : []),
  ];
  return {
    ...pick(parts),
    ...(choose(2) === 0 ? pick(parts) : {}),
    sort: pick(["HEIGHT_ASC", "HEIGHT_DESC"] as const),
    first: 1 + choose(20),
  };
}

function move(chain: MadeUpChain, choose: Choose): void {
  const moves = [
    () => chain.addBlock(choose(14)),
    () => chain.addBlock(choose(14)),
    () => chain.reorganise(1 + choose(4), choose(10)),
    () => void chain.unbundle(),
    () => void chain.unbundle(),
    () => void chain.unbundle(),
    () => chain.addPending(),
    () => chain.addPending(),
    () => chain.expirePending(),
  ];
  moves[choose(moves.length)]?.();
}

describe("walking all pages", () => {
  const seeds = [1, 2, 3, newSeed()];
  test.each(seeds)(
    "is the full scan, while the chain moves between pages (seed %d)",
    async (seed) => {
      const choose = createRandom(seed).below;
      const indexPath = join(folder, `moving-${seed}.sqlite`);
      const chain = openMadeUpChain(indexPath, choose);
      const index = openIndexReader(indexPath);
      const server = openGraphqlServer({ pool, index, contentFolder: folder, timeoutMs: 30_000 });
      const url = `${server.url}/graphql`;
      for (let count = 0; count < 6; count++) chain.addBlock(choose(14));
      let walks: Walk[] = [];
      for (let round = 0; round < 40; round++) {
        move(chain, choose);
        while (walks.length < 3) walks.push(openWalk(url, chain, chooseFilter(choose, chain.rows())));
        const more = [];
        for (const walk of walks) if (await walk.step()) more.push(walk);
        walks = more;
      }

      while (chain.unbundle());
      const all = chain.rows().map(({ id }) => id);
      for (const sort of ["HEIGHT_ASC", "HEIGHT_DESC"] as const) {
        const walk = openWalk(url, chain, { sort, first: 17 });
        while (await walk.step());
        expect(walk.ids).toEqual(sort === "HEIGHT_ASC" ? all : all.toReversed());
      }
      await server.close(0);
      index.close();
      chain.close();
    },
    120_000,
  );

  test("of 7 over a block of 1,000 transactions gives each once, both ways", async () => {
    const indexPath = join(folder, "thousand.sqlite");
    const chain = openMadeUpChain(indexPath, createRandom(7).below);
    const index = openIndexReader(indexPath);
    const server = openGraphqlServer({ pool, index, contentFolder: folder });
    chain.addBlock(3);
    chain.addBlock(1_000);
    chain.addBlock(3);
    const ids = chain.rows().map(({ id }) => id);
    for (const sort of ["HEIGHT_ASC", "HEIGHT_DESC"]) {
      const seen: string[] = [];
      let after = "";
      for (;;) {
        const body = JSON.stringify({
          query:
            "query($after: String, $sort: SortOrder) { transactions(first: 7, after: $after, sort: $sort) { pageInfo { hasNextPage } edges { cursor node { id } } } }",
          variables: { after, sort },
        });
        const response = await fetch(`${server.url}/graphql`, {
          method: "POST",
          body,
          headers: { "Content-Type": "application/json" },
        });
        const { data } = (await response.json()) as {
          data: {
            transactions: { pageInfo: { hasNextPage: boolean }; edges: { cursor: string; node: Node }[] };
          };
        };
        const { edges, pageInfo } = data.transactions;
        seen.push(...edges.map(({ node }) => node.id));
        expect(edges.length).toBe(Math.min(7, 1_006 - (seen.length - edges.length)));
        if (!pageInfo.hasNextPage) break;
        after = edges.at(-1)?.cursor ?? "";
      }
      expect(seen).toEqual(sort === "HEIGHT_ASC" ? ids : ids.toReversed());
    }
    await server.close(0);
    index.close();
    chain.close();
  }, 120_000);
});
