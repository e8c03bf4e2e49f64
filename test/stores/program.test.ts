/**
 * A running program with ClickHouse: pruned items are listed as before; while the server is down, queries fail at once
 * with an error, and all is as before when the server is up again.
 * @module
 */
import { afterAll, expect } from "bun:test";
import { temporaryFolder } from "../store/folder.ts";
import { type ClickhouseServer, openClickhouseServer } from "../support/clickhouse-server.ts";
import { clickhouseEngine, testWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";

let program: RunningProgram | undefined;
let server: ClickhouseServer | undefined;
afterAll(async () => {
  await program?.remove();
  await server?.close();
});

const query = `{
  transactions(first: 100, sort: HEIGHT_ASC) {
    count
    edges { cursor node { id owner { address key } tags { name value } block { height } bundledIn { id } data { size } } }
  }
}`;

testWith(
  clickhouseEngine,
  "items that were pruned are listed from ClickHouse as before, also after the server was down",
  async () => {
    using folder = temporaryFolder();
    server = await openClickhouseServer({ folder: folder.path, password: "secret" });
    const port = Number(new URL(server.url).port);
    const settings = { COLUMNAR_STORE: "clickhouse", COLUMNAR_PARTITION_HEIGHTS: "5" };
    program = await startDev({
      environment: { ...settings, CLICKHOUSE_URL: server.url, CLICKHOUSE_PASSWORD: "secret" },
    });
    const { gateway, node, adminKey, sample } = program.line;
    const send = async (path: string, body: object) =>
      await fetch(`${gateway}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const pages = async () => (await send("/graphql", { query })).json();
    const prune = () =>
      send("/svc/admin/prune-stable-data-items", {
        ...{ indexedAtThreshold: 2_000_000_000, startHeight: 1, endHeight: 1_000 },
      });
    const counts = async () => {
      const headers = { authorization: `Bearer ${adminKey}` };
      return (await (await fetch(`${gateway}/svc/admin/debug`, { headers })).json()).db.counts;
    };

    await fetch(`${node}/mine/30`, { method: "POST" });
    await eventually(pages, ({ data }) =>
      data.transactions.edges.some((edge: { node: { id: string } }) => edge.node.id === sample.manifest),
    );
    const before = await pages();
    const pruned = async () => {
      const { status } = await prune();
      return { status, ...(await counts()) };
    };
    const { status, storedDataItems } = await eventually(pruned, ({ dataItems }) => dataItems === 0, 30_000);
    expect([status, storedDataItems > 5]).toEqual([200, true]);
    expect(await pages()).toEqual(before);

    await server.kill();
    const started = performance.now();
    const failed = await pages();
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(failed.data?.transactions ?? null).toBeNull();
    expect(failed.errors.length).toBe(1);
    expect((await prune()).status).toBe(503);

    server = await openClickhouseServer({ folder: folder.path, password: "secret", port });
    expect(await pages()).toEqual(before);
    expect((await fetch(`${gateway}/raw/${sample.manifest}`)).status).toBe(200);
  },
  180_000,
);
