/**
 * A running program with a columnar store: final heights are loaded, pruned items are still listed, and the file of the
 * index becomes smaller.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";

let program: RunningProgram | undefined;
afterAll(() => program?.remove());

const query = `{
  transactions(first: 100, sort: HEIGHT_ASC) {
    count
    edges { cursor node { id owner { address key } tags { name value } block { height } bundledIn { id } data { size } } }
  }
}`;

test("items that were pruned are listed from DuckDB as before", async () => {
  program = await startDev({ environment: { COLUMNAR_STORE: "duckdb", COLUMNAR_PARTITION_HEIGHTS: "5" } });
  const { gateway, node, adminKey, sample } = program.line;
  const headers = { authorization: `Bearer ${adminKey}`, "content-type": "application/json" };
  const debug = async () => (await fetch(`${gateway}/svc/admin/debug`, { headers })).json();
  const pages = async () => {
    const response = await fetch(`${gateway}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query }),
    });
    return await response.json();
  };
  await fetch(`${node}/mine/30`, { method: "POST" });
  await eventually(pages, ({ data }) => data.transactions.edges.some(byId(sample.manifest)));
  const before = await pages();

  const prune = async () => {
    const body = JSON.stringify({ indexedAtThreshold: 2_000_000_000, startHeight: 1, endHeight: 1_000 });
    const response = await fetch(`${gateway}/svc/admin/prune-stable-data-items`, { method: "POST", headers, body });
    expect([response.status, await response.json()]).toEqual([
      200,
      { message: "Stable data items pruned successfully" },
    ]);
    return (await debug()).db.counts;
  };
  const counts = await eventually(prune, ({ dataItems }) => dataItems === 0, 30_000);
  expect(counts.storedDataItems).toBeGreaterThan(5);
  expect(await pages()).toEqual(before);
  const one = `{ transaction(id: "${sample.manifest}") { id tags { name } } }`;
  const found = await fetch(`${gateway}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query: one }),
  });
  expect(await found.json()).toMatchObject({ data: { transaction: { id: sample.manifest } } });
  expect((await fetch(`${gateway}/raw/${sample.manifest}`)).status).toBe(200);

  // Without the store their rows would be left out of every page.
  expect(await program.stop()).toBe(0);
  const { folder } = program;
  const message = `COLUMNAR_STORE=none leaves out ${counts.storedDataItems} items`;
  expect(await startDev({ folder }).catch(String)).toContain(message);

  renameSync(join(folder, "columnar"), join(folder, "elsewhere"));
  program = await startDev({ folder, environment: { COLUMNAR_STORE: "duckdb", COLUMNAR_PARTITION_HEIGHTS: "5" } });
  const health = await fetch(`${program.line.gateway}/ar-io/healthcheck`);
  expect(await health.text()).toContain("the columnar store has no files of heights 0 to 4: restore ");
  const lost = await fetch(`${program.line.gateway}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query }),
  });
  expect(await lost.json()).toMatchObject({ errors: [{ message: "Columnar store unavailable" }] });
}, 120_000);

const byId = (id: string) => (edge: Readonly<{ node: Readonly<{ id: string }> }>) => edge.node.id === id;
