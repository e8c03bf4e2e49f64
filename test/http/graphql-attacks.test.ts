/**
 * Hostile queries: each gets a valid response, and the same thread serves further queries.
 * Source: docs/reference/threats.md (G1).
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { openPool } from "../../src/threads/pool.ts";
import { createRandom } from "../support/random.ts";
import { attackSet } from "./graphql-attack-set.ts";
import { known, openMadeUpChain } from "./graphql-chain.ts";
import { openGraphqlServer } from "./graphql-server.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-attacks-"));
const indexPath = join(folder, "index.sqlite");
const chain = openMadeUpChain(indexPath, createRandom(11).below);
for (let count = 0; count < 30; count++) chain.addBlock(40);
while (chain.unbundle());
const pool = openPool({
  entry: "graphql",
  threads: 1,
  queueMax: 64,
  timeoutMs: 30_000,
  idleMs: Number.POSITIVE_INFINITY,
});
const index = openIndexReader(indexPath);
const server = openGraphqlServer({ pool, index, contentFolder: folder, timeoutMs: 20_000 });
afterAll(async () => {
  await server.close(0);
  await pool.close();
  index.close();
  chain.close();
  removeFolder(folder);
});

const post = (body: string) =>
  fetch(`${server.url}/graphql`, { method: "POST", body, headers: { "Content-Type": "application/json" } });
const ask = (query: string, variables: unknown = {}) => post(JSON.stringify({ query, variables }));
const attacks = attackSet(known.tags, { name: "App-Name", value: "plain" });
const page = "pageInfo { hasNextPage } edges { cursor node { id tags { name value } } }";

describe("G1: a query made to hurt", () => {
  test.each([...attacks])(
    "gets a valid response: %s",
    async (_name, attack, status, expected) => {
      const response = await post(attack);
      const body = (await response.json()) as { data?: object; errors?: { message: string }[] };
      const messages = (body.errors ?? []).map(({ message }) => message);
      expect(messages).not.toContain("Internal Server Error");
      if (expected === "data")
        expect({ messages, hasData: body.data !== undefined }).toEqual({ messages: [], hasData: true });
      else expect(messages.join("\n")).toMatch(expected);
      expect(response.status).toBe(status);
      expect(await (await ask("{ blocks(first: 1) { edges { node { height } } } }")).text()).toBe(
        '{"data":{"blocks":{"edges":[{"node":{"height":29}}]}}}',
      );
      expect(pool.load().threads).toBe(1);
    },
    120_000,
  );
});

describe("G1: a query without end", () => {
  test("is ended between steps when its time is up, with an error that says so", async () => {
    const late = openGraphqlServer({ pool, index, contentFolder: folder, timeoutMs: -1 });
    const body = JSON.stringify({ query: `{ transactions(first: 1000) { ${page} } }` });
    const headers = { "Content-Type": "application/json" };
    const response = await fetch(`${late.url}/graphql`, { method: "POST", body, headers });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      data: null,
      errors: [
        {
          message: "The query took too long.",
          path: ["transactions"],
          extensions: { code: "QUERY_TIMEOUT" },
        },
      ],
    });
    await late.close(0);
  });
});
