/**
 * Changes that administration confirmed are durable: the process is killed right after the response, and the next
 * process has them.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { idOf } from "../support/memory-content.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";

const key = "kill-test-key";
const folder = mkdtempSync(join(tmpdir(), "cairn-admin-kill-"));
let program: RunningProgram | undefined;

afterAll(async () => {
  await program?.kill();
  removeFolder(folder);
});

/** Starts the program on the one folder. */
async function start(): Promise<RunningProgram> {
  program = await startDev({ folder, environment: { ADMIN_API_KEY: key } });
  return program;
}

/** One thing to ask, and what must hold of the next process. */
type Case = readonly [
  name: string,
  method: string,
  path: string,
  body: (sample: RunningProgram["line"]["sample"]) => unknown,
  holds: (running: RunningProgram) => Promise<void>,
];

async function asOwner(running: RunningProgram, method: string, path: string, body?: unknown) {
  return await fetch(`${running.line.gateway}/svc/admin/${path}`, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const isBlocked = async (running: RunningProgram) => {
  const { status } = await fetch(`${running.line.gateway}/raw/${running.line.sample.sound}`);
  expect(status).toBe(451);
};

const cases: readonly Case[] = [
  ["a rule", "PUT", "block-data", ({ sound }) => ({ id: sound }), isBlocked],
  [
    "a blocked name",
    "PUT",
    "block-name",
    () => ({ name: "killed" }),
    async (running) => {
      const { blocks } = await (await asOwner(running, "GET", "blocks")).json();
      expect(blocks.map(({ value }: { value: string }) => value)).toContain("killed");
    },
  ],
  [
    "a staged bundle",
    "POST",
    "queue-bundle",
    () => ({ id: idOf("staged and killed") }),
    async (running) => {
      const response = await asOwner(running, "GET", `bundle-status/${idOf("staged and killed")}`);
      expect([response.status, (await response.json()).firstQueuedAt]).toEqual([200, expect.any(Number)]);
    },
  ],
  [
    "an export",
    "POST",
    "export-parquet",
    () => ({ outputDir: "a", startHeight: 0, endHeight: 1, maxFileRows: 0 }),
    async (running) => {
      const { status } = await (await asOwner(running, "GET", "export-parquet/status")).json();
      expect(["errored", "interrupted"]).toContain(status);
    },
  ],
  [
    "a rule taken back",
    "PUT",
    "unblock-data",
    ({ sound }) => ({ id: sound }),
    async (running) => {
      const url = `${running.line.gateway}/raw/${running.line.sample.sound}`;
      const response = await eventually(
        () => fetch(url, { headers: { range: "bytes=0-9" } }),
        ({ status }) => status !== 404,
      );
      expect(response.status).toBe(206);
    },
  ],
];

test("N2: confirmed changes hold in the next process, however this one ended", async () => {
  let running = await start();
  for (const [name, method, path, body, holds] of cases) {
    const response = await asOwner(running, method, path, body(running.line.sample));
    expect([name, response.status]).toEqual([name, 200]);
    await running.kill();
    running = await start();
    await holds(running);
  }
}, 240_000);
