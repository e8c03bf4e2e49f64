/**
 * A page of a database that is damaged while the program runs: an error in the log and in health, and a program that
 * goes on; at the next start a sentence, and for the index the way to build it again.
 * @module
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { closeSync, openSync, statSync, writeSync } from "node:fs";
import { join, resolve } from "node:path";
import { type RunningProgram, repositoryRoot, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";

let program: RunningProgram;
beforeAll(async () => {
  program = await startDev();
}, 120_000);
afterAll(() => program.remove());

const pathOf = (name: string) => join(program.folder, `${name}.sqlite`);

/** Overwrites every page of a file but the first. */
function damage(name: string): void {
  const db = new Database(pathOf(name));
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  const { page_size: page } = db.query<{ page_size: number }, []>("PRAGMA page_size").get() ?? {
    page_size: 0,
  };
  db.close();
  const file = openSync(pathOf(name), "r+");
  const { size } = statSync(pathOf(name));
  for (let at = page; at < size; at += page) writeSync(file, Buffer.alloc(page, 0xa5), 0, page, at);
  closeSync(file);
}

async function healthOf(origin: string): Promise<{ status: string; reasons: readonly string[] }> {
  return await (await fetch(`${origin}/health`)).json();
}

const errors = () =>
  program
    .errors()
    .split("\n")
    .filter((line) => line.includes('"level":"error"'))
    .map((line): string => JSON.parse(line).message);

/** Waits for a line of the log: health may tell the reason before the line is read from the pipe. */
async function logged(line: RegExp): Promise<void> {
  await eventually(
    async () => errors(),
    (lines) => lines.some((each) => line.test(each)),
  );
}

describe("N7: a database that is damaged while the program runs", () => {
  test("the ledger: 503 without it, health of both services says what to do, everything else goes on", async () => {
    const { gateway, payment, sample, wallets } = program.line;
    damage("ledger");
    const balance = `${payment}/v1/balance?address=${wallets[0]?.account}`;
    await eventually(
      () => fetch(balance),
      ({ status }) => status === 503,
    );
    for (const origin of [payment, gateway]) {
      const health = await eventually(
        () => healthOf(origin),
        ({ status }) => status === "unhealthy",
      );
      expect(health.reasons.join("\n")).toContain(`${pathOf("ledger")} is damaged`);
    }
    await logged(/ledger\.sqlite is damaged .*restore it from a backup/);
    expect((await fetch(`${gateway}/raw/${sample.manifest}`)).status).toBe(200);
    expect((await fetch(`${gateway}/metrics`)).status).toBe(200);
  }, 60_000);

  test("the index: health says what to do, the process goes on, and stops in order", async () => {
    const { gateway, node, sample } = program.line;
    damage("index");
    await fetch(`${node}/mine`);
    await eventually(
      () => fetch(`${gateway}/tx/${sample.bundle}`),
      ({ status }) => status === 500,
    );
    const health = await eventually(
      () => healthOf(gateway),
      ({ reasons }) => reasons.join("\n").includes("cairn doctor --accept-loss index"),
    );
    expect(health.status).toBe("unhealthy");
    expect(new Set(health.reasons).size).toBe(health.reasons.length);
    await logged(/index\.sqlite is damaged .*built again from the chain/);
    expect((await fetch(`${gateway}/metrics`)).status).toBe(200);
    expect(await program.stop()).toBe(0);
  }, 60_000);

  test("then no start has a stack to tell, each is set aside by a command, and the index is built again", async () => {
    const run = async (...words: string[]) => {
      const child = Bun.spawn([process.execPath, resolve(repositoryRoot, "src/main.ts"), ...words], {
        env: { ...process.env, DATA_DIR: program.folder, LOG_LEVEL: "error" },
        stdout: "pipe",
        stderr: "pipe",
      });
      const err = await new Response(child.stderr).text();
      return { code: await child.exited, err };
    };
    for (const name of ["ledger", "index"]) {
      const started = await run("dev", "--port", "0");
      expect([name, started.code]).toEqual([name, 2]);
      const lines = started.err.trim().split("\n");
      expect(lines).toHaveLength(1);
      expect(lines[0]).toMatch(new RegExp(`${name}\\.sqlite is damaged .*cairn doctor --accept-loss ${name}`));
      expect((await run("doctor", "--accept-loss", name)).code).toBe(0);
    }
    const { sample } = program.line;
    program = await startDev({ folder: program.folder });
    const { gateway } = program.line;
    await eventually(
      () => healthOf(gateway),
      ({ status }) => status === "ok",
    );
    const found = await eventually(
      () => fetch(`${gateway}/tx/${sample.bundle}/status`),
      ({ status }) => status === 200,
    );
    expect(await found.json()).toMatchObject({ block_height: expect.any(Number) });
  }, 120_000);
});
