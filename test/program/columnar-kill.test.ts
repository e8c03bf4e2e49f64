/**
 * N2: a program with a columnar store that is killed while it exports, loads and prunes: after each restart every item
 * is listed once, as before.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { type RunningProgram, startDev } from "../support/program.ts";
import { createRandom } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";
import { eventually } from "../support/until.ts";
import { testItem } from "../support/upload.ts";

const kills = Number(process.env["KILLS"] ?? 6);
const itemsPerKill = 20;
const environment = {
  COLUMNAR_STORE: "duckdb",
  COLUMNAR_PARTITION_HEIGHTS: "3",
  UPLOAD_BUNDLE_WAIT_MS: "50",
  // Query threads give way to others, and a busy machine has many.
  QUERY_TIMEOUT_MS: "60000",
};

let program: RunningProgram | undefined;
afterAll(() => program?.remove());

test(
  `N2: ${kills} kills while heights are loaded and pruned`,
  async () => {
    const seed = newSeed();
    const random = createRandom(seed);
    program = await startDev({ environment });
    let stored = 0;
    for (let kill = 0; kill < kills; kill += 1) {
      const { folder } = program;
      await addItems(program, kill);
      const before = await listed(program);
      await fetch(`${program.line.node}/mine/18`, { method: "POST" });
      const pruning = new AbortController();
      void pruneUntil(program, pruning.signal);
      await Bun.sleep(random.below(1_500)); // The moment of the kill is the test's input.
      await program.kill();
      pruning.abort();
      program = await startDev({ environment, folder });
      expect({ seed, rows: await listed(program) }).toEqual({ seed, rows: before });
      const counts = await countsOf(program);
      expect(counts.storedDataItems).toBeGreaterThanOrEqual(stored);
      stored = counts.storedDataItems;
    }
    const { line } = program;
    await fetch(`${line.node}/mine/30`, { method: "POST" });
    const before = await listed(program);
    const pruning = new AbortController();
    void pruneUntil(program, pruning.signal);
    await eventually(
      () => countsOf({ line }),
      ({ dataItems }) => dataItems === 0,
      60_000,
    );
    pruning.abort();
    expect({ seed, rows: await listed(program) }).toEqual({ seed, rows: before });
  },
  120_000 + kills * 20_000,
);

/** Uploads items, and waits until a block has them. */
async function addItems({ line }: RunningProgram, round: number): Promise<void> {
  const items = Array.from({ length: itemsPerKill }, (_, index) =>
    testItem(`item ${index} of round ${round}`, { tags: [{ name: "Round", value: `${round}` }] }),
  );
  for (const { bytes } of items)
    expect((await fetch(`${line.upload}/v1/tx`, { method: "POST", body: bytes })).status).toBe(200);
  const query = `{ transactions(tags: [{ name: "Round", values: ["${round}"] }], block: { min: 0 }) { count } }`;
  await eventually(
    async () => {
      await fetch(`${line.node}/mine`, { method: "POST" });
      return Number((await graphql(line.gateway, query)).transactions.count);
    },
    (count) => count === itemsPerKill,
    60_000,
  );
}

/** All rows that a block has, with every field that the store must have, in order. */
async function listed({ line }: Pick<RunningProgram, "line">): Promise<unknown[]> {
  const fields =
    "id anchor recipient signatureType owner { address } tags { name value } data { size } bundledIn { id } block { height }";
  const rows: unknown[] = [];
  let after = "";
  for (;;) {
    const page = `first: 100, sort: HEIGHT_ASC, block: { min: 0 }${after}`;
    const query = `{ transactions(${page}) { pageInfo { hasNextPage } edges { cursor node { ${fields} } } } }`;
    const { edges, pageInfo } = (await graphql(line.gateway, query)).transactions;
    rows.push(...edges);
    if (!pageInfo.hasNextPage) return rows;
    after = `, after: "${edges.at(-1).cursor}"`;
  }
}

async function graphql(gateway: string, query: string) {
  const response = await fetch(`${gateway}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query }),
  });
  const { data, errors } = await response.json();
  expect(errors).toBeUndefined();
  return data;
}

async function countsOf({ line }: Pick<RunningProgram, "line">) {
  const headers = { authorization: `Bearer ${line.adminKey}` };
  const response = await fetch(`${line.gateway}/svc/admin/debug`, { headers });
  return (await response.json()).db.counts;
}

/** Requests prunes, one after the other. */
async function pruneUntil({ line }: Pick<RunningProgram, "line">, signal: AbortSignal): Promise<void> {
  const headers = { authorization: `Bearer ${line.adminKey}`, "content-type": "application/json" };
  const body = JSON.stringify({ indexedAtThreshold: 4_000_000_000, startHeight: 0, endHeight: 1_000_000 });
  while (!signal.aborted) {
    await fetch(`${line.gateway}/svc/admin/prune-stable-data-items`, { method: "POST", headers, body, signal }).catch(
      () => {
        // The program was killed.
      },
    );
    await Bun.sleep(20);
  }
}
