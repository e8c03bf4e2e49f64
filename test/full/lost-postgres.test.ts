/**
 * A data folder knows its ledger also on PostgreSQL: an emptied or another database rejects the start, a way from one
 * to another is taken on purpose only.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { SQL } from "bun";
import { dataFolderAt } from "../../src/app/data-folder.ts";
import { claimDatabases } from "../../src/app/databases.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openLedger } from "../../src/store/ledger/open-ledger.ts";
import { describeWith } from "../support/helpers.ts";
import { type PostgresServer, postgresServer, startPostgres } from "../support/postgres-server.ts";
import { repositoryRoot } from "../support/program.ts";

const made = mkdtempSync(join(tmpdir(), "cairn-databases-"));
let server: PostgresServer | undefined;
afterAll(async () => {
  await server?.remove();
  removeFolder(made);
});

let folders = 0;
const newFolder = () => {
  folders += 1;
  return mkdtempSync(join(made, `${folders}-`));
};

async function newDatabase(): Promise<string> {
  server ??= await startPostgres();
  return await server.createDatabase();
}

/** What a start does with the ledger. */
async function start(root: string, url: string | undefined): Promise<void> {
  const folder = dataFolderAt(root);
  await claimDatabases(folder, { LEDGER_URL: url, WEBHOOK_TARGET_SERVERS: [] }, silentLog);
  await (await openLedger({ url, path: folder.ledger })).close();
}

async function run(url: string, sql: string): Promise<unknown[]> {
  const db = new SQL(url, { max: 1 });
  try {
    return [...(await db.unsafe(sql))];
  } finally {
    await db.close();
  }
}

const drop = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";
const countTables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'";

function cairn(root: string, url: string | undefined, ...words: string[]) {
  const { PATH } = process.env;
  const ledger = url === undefined ? {} : { LEDGER_URL: url };
  const { exitCode, stdout, stderr } = Bun.spawnSync(
    [process.execPath, resolve(repositoryRoot, "src/main.ts"), ...words],
    { env: { PATH, DATA_DIR: root, TRUSTED_NODE_URL: "http://127.0.0.1:1", ...ledger }, cwd: made },
  );
  return { code: exitCode, said: stdout.toString(), complained: stderr.toString() };
}

describeWith(postgresServer, "a ledger on PostgreSQL", () => {
  test("is the folder's from its first start on, and of several folders at once", async () => {
    const url = await newDatabase();
    const [one, two] = [newFolder(), newFolder()];
    await Promise.all([start(one, url), start(two, url)]);
    for (const folder of [one, two, one]) await start(folder, url);
    expect(await run(url, "SELECT count(*)::int AS rows FROM ledger_identity")).toMatchObject([{ rows: 1 }]);
  });

  test("that an older build made is taken as it is", async () => {
    const url = await newDatabase();
    await (await openLedger({ url, path: "" })).close();
    const folder = newFolder();
    await start(folder, url);
    await start(folder, url);
  });

  test.each(["emptied", "another", "an older build's"])(
    "that is %s rejects the start, and nothing is made there",
    async (fault) => {
      const url = await newDatabase();
      const folder = newFolder();
      await start(folder, url);
      let now = url;
      if (fault === "emptied") await run(url, drop);
      if (fault === "an older build's") await run(url, "DROP TABLE ledger_identity");
      if (fault === "another") {
        now = await newDatabase();
        await start(newFolder(), now);
      }
      const tables = await run(now, countTables);
      const says = fault === "emptied" ? "LEDGER_URL is empty: restore it from a backup" : "--accept-loss ledger";
      await expect(start(folder, now)).rejects.toThrow(says);
      const checked = cairn(folder, now, "ledger", "check");
      expect([checked.code, checked.said]).toEqual([1, expect.stringContaining("--accept-loss ledger")]);
      expect(await run(now, countTables)).toEqual(tables);
      expect(cairn(folder, now, "doctor", "--accept-loss", "ledger")).toMatchObject({
        code: 0,
        complained: "",
      });
      await start(folder, now);
      await start(folder, now);
    },
    60_000,
  );

  test("takes the place of the file, and the file its place, on purpose only", async () => {
    const url = await newDatabase();
    const folder = newFolder();
    await start(folder, undefined);
    await expect(start(folder, url)).rejects.toThrow(
      /the ledger of this data folder is in .*ledger\.sqlite, but LEDGER_URL names another one: unset it, or/,
    );
    expect(await run(url, countTables)).toHaveLength(0);
    expect(cairn(folder, url, "doctor", "--accept-loss", "ledger").said).toContain(
      "the next start uses the ledger on PostgreSQL",
    );
    await start(folder, url);
    await expect(start(folder, undefined)).rejects.toThrow(
      "the ledger of this data folder is on PostgreSQL, but LEDGER_URL is not set",
    );
    expect(cairn(folder, undefined, "doctor", "--accept-loss", "ledger").said).toContain(
      "the next start uses ledger.sqlite",
    );
    await start(folder, undefined);
  }, 60_000);
});
