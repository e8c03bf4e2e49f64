/**
 * A data folder knows its databases: what a start, `cairn doctor` and `cairn ledger check` say of one that is missing,
 * emptied, foreign, damaged, or an older copy, and how an operator goes on from there.
 * @module
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type DatabaseName, databaseNames, dataFolderAt } from "../../src/app/data-folder.ts";
import { claimDatabases, examineDatabases } from "../../src/app/databases.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openAdministration } from "../../src/store/administration-database.ts";
import { openBlockList } from "../../src/store/block-list.ts";
import { openExtentMap } from "../../src/store/extents/extent-map.ts";
import { openIndexWriter } from "../../src/store/index/index-writer.ts";
import { openSqliteLedger } from "../../src/store/ledger/sqlite-ledger.ts";
import { openOutbox } from "../../src/store/outbox.ts";
import { repositoryRoot } from "../support/program.ts";
import { createRecordingLog } from "../support/recording-log.ts";

const made = mkdtempSync(join(tmpdir(), "cairn-databases-"));
afterAll(() => removeFolder(made));

const settings = { LEDGER_URL: undefined, WEBHOOK_TARGET_SERVERS: ["http://127.0.0.1:1/"] };
const clock = () => 1_800_000_000_000;

/** Opens everything that a start opens, and closes it. */
async function start(root: string, log = silentLog): Promise<void> {
  const folder = dataFolderAt(root);
  await claimDatabases(folder, settings, log);
  await (await openSqliteLedger({ path: folder.ledger })).close();
  openBlockList(folder.moderation, clock).close();
  openAdministration(folder.administration, clock).close();
  openOutbox(folder.webhooks, [], clock).close();
  openIndexWriter(folder.index, { clock }).close();
  openExtentMap(folder.contentMap, () => undefined).close();
}

/** Of two starts, one of it, and another folder's. */
const own = join(made, "own");
const older = join(made, "older");
const foreign = join(made, "foreign");

beforeAll(async () => {
  for (const folder of [own, foreign]) {
    mkdirSync(folder);
    await start(folder);
  }
  cpSync(own, older, { recursive: true });
  await start(own);
});

let folders = 0;
/** A copy of the folder that was started twice. */
function copyOf(source = own): string {
  folders += 1;
  const copy = join(made, `copy-${folders}`);
  cpSync(source, copy, { recursive: true });
  return copy;
}

const fileOf = (root: string, name: DatabaseName) => join(root, `${name}.sqlite`);

type Fault = "missing" | "emptied" | "foreign" | "damaged" | "older";
const faults: Readonly<Record<Fault, (path: string, name: DatabaseName) => void>> = {
  missing: (path) => rmSync(path),
  emptied: (path) => writeFileSync(path, ""),
  foreign: (path, name) => cpSync(fileOf(foreign, name), path),
  damaged: (path) => writeFileSync(path, Buffer.alloc(statSync(path).size, "damaged")),
  older: (path, name) => cpSync(fileOf(older, name), path),
};

/** What a start does, and what its sentence says. */
type Outcome = "starts" | readonly ["rejected" | "warned", ...says: string[]];
const backup = "restore it from a backup";
const lost = (name: DatabaseName, what: string): Record<Fault, Outcome> => ({
  missing: ["rejected", "is missing", backup, `cairn doctor --accept-loss ${name}`, what],
  emptied: ["rejected", "is empty", backup, `cairn doctor --accept-loss ${name}`, what],
  foreign: ["rejected", "belongs to another data folder", `cairn doctor --accept-loss ${name}`],
  damaged: ["rejected", "is damaged (file is not a database)", backup, "cannot be built again"],
  older: ["warned", "is an older copy than the one of the last start"],
});
const table: Record<DatabaseName, Record<Fault, Outcome>> = {
  ledger: lost("ledger", "credits"),
  moderation: lost("moderation", "blocked content"),
  administration: lost("administration", "queued transactions"),
  webhooks: lost("webhooks", "webhook events"),
  index: {
    missing: ["warned", "is missing: it is built again from the chain"],
    emptied: ["warned", "is empty: it is built again from the chain"],
    foreign: ["warned", "belongs to another data folder: it is used as it is"],
    damaged: ["rejected", "it can be built again from the chain", "cairn doctor --accept-loss index"],
    older: "starts",
  },
  content: {
    missing: ["warned", "is missing: content is fetched again"],
    emptied: ["warned", "is empty: content is fetched again"],
    foreign: ["warned", "belongs to another data folder: it is used as it is"],
    damaged: ["warned", "is damaged", "content is fetched again"],
    older: "starts",
  },
};
const rows = databaseNames.flatMap((name) =>
  (["missing", "emptied", "foreign", "damaged", "older"] as const).map(
    (fault) => [name, fault, table[name][fault]] as const,
  ),
);

test("N7: a damaged cache with a log beside it, as a kill leaves it, begins anew at once", async () => {
  const root = copyOf();
  const path = fileOf(root, "content");
  const db = new Database(path);
  db.run("PRAGMA wal_autocheckpoint = 0");
  db.run("CREATE TABLE beside (at INTEGER)");
  const stored = ["-wal", "-shm"].map((suffix) => [path + suffix, readFileSync(path + suffix)] as const);
  db.close();
  faults.damaged(path, "content");
  for (const [name, bytes] of stored) writeFileSync(name, bytes);
  const first = createRecordingLog();
  await start(root, first.log);
  expect(first.lines.map(({ message }) => message)).toEqual([expect.stringContaining("is damaged")]);
  const second = createRecordingLog();
  await start(root, second.log);
  expect(second.lines).toEqual([]);
});

test.each(["index", "content"] as const)("N7: a lost %s whose log a kill has left is built again", async (name) => {
  const root = copyOf();
  const path = fileOf(root, name);
  const db = new Database(path);
  db.run("PRAGMA wal_autocheckpoint = 0");
  db.run("CREATE TABLE beside (at INTEGER)");
  const stored = ["-wal", "-shm"].map((suffix) => [path + suffix, readFileSync(path + suffix)] as const);
  db.close();
  faults.missing(path, name);
  for (const [file, bytes] of stored) writeFileSync(file, bytes);
  const first = createRecordingLog();
  await start(root, first.log);
  expect(first.lines.map(({ message }) => message)).toEqual([expect.stringContaining("is missing")]);
  const again = new Database(path);
  expect(again.query("SELECT name FROM sqlite_schema WHERE name = 'beside'").all()).toEqual([]);
  again.close();
  const second = createRecordingLog();
  await start(root, second.log);
  expect(second.lines).toEqual([]);
});

describe("N7: the start, of one database of a folder", () => {
  test.each(rows)("%s that is %s: %p", async (name, fault, outcome) => {
    const root = copyOf();
    const path = fileOf(root, name);
    faults[fault](path, name);
    const before = existsSync(path) ? readFileSync(path) : undefined;
    const { databases } = await examineDatabases(dataFolderAt(root), settings);
    const findings = databases.flatMap(({ finding }) => (finding === undefined ? [] : [finding]));
    expect(findings.map((finding) => [finding.name, finding.fault])).toEqual(
      outcome === "starts" ? [] : [[name, fault]],
    );
    const { log, lines } = createRecordingLog();
    const started = await start(root, log).then(
      () => "started",
      (error: Error) => error.message,
    );
    if (outcome === "starts") return expect([started, lines.length]).toEqual(["started", 0]);
    const [kind, ...says] = outcome;
    const message = kind === "rejected" ? started : lines.map(({ message }) => message).join("\n");
    expect(kind === "rejected" || started).toBe(kind === "rejected" ? true : "started");
    expect(message.split("\n")).toHaveLength(1);
    for (const part of [path, ...says]) expect(message).toContain(part);
    const after = existsSync(path) ? readFileSync(path) : undefined;
    // A rejected start changes nothing, so that the operator can restore a backup.
    if (kind === "rejected") return expect(after).toEqual(before);
    const again = createRecordingLog();
    await start(root, again.log);
    expect(again.lines).toEqual([]);
  });

  test("all lost databases are reported at once", async () => {
    const root = copyOf();
    for (const name of ["ledger", "moderation"] as const) rmSync(fileOf(root, name));
    const message = await start(root).catch((error: Error) => error.message);
    expect(String(message).split("\n")).toEqual([
      expect.stringContaining("ledger.sqlite is missing"),
      expect.stringContaining("moderation.sqlite is missing"),
    ]);
  });

  test("a folder of a build that stored no record is taken as it is, also when that start is cut short", async () => {
    const root = copyOf();
    rmSync(join(root, "databases.json"));
    for (const name of databaseNames) {
      const db = new Database(fileOf(root, name));
      db.run("DROP TABLE database_identity");
      db.close();
    }
    rmSync(fileOf(root, "index"));
    // As a kill leaves it between the plan and the first database.
    const cut = copyOf(root);
    await start(root);
    const record = JSON.parse(readFileSync(join(root, "databases.json"), "utf8"));
    expect(Object.keys(record.databases).toSorted()).toEqual([...databaseNames].toSorted());
    for (const entry of Object.values<{ generation: number }>(record.databases)) entry.generation = 0;
    writeFileSync(join(cut, "databases.json"), JSON.stringify(record));
    const { log, lines } = createRecordingLog();
    await start(cut, log);
    expect(lines).toEqual([]);
    expect(await examineDatabases(dataFolderAt(cut), settings)).toMatchObject({ isRecordLost: false });
  });

  test.each(["", "{", '{"databases":{"ledger":{"id":1}}}', undefined])(
    "a record that reads %p is written again, and what is missing beside it is still lost",
    async (text) => {
      const root = copyOf();
      const path = join(root, "databases.json");
      if (text === undefined) rmSync(path);
      else writeFileSync(path, text);
      const withoutLedger = copyOf(root);
      const { log, lines } = createRecordingLog();
      await start(root, log);
      expect(lines.map(({ message }) => message)).toEqual([expect.stringContaining("it is written again")]);
      rmSync(fileOf(withoutLedger, "ledger"));
      await expect(start(withoutLedger)).rejects.toThrow("ledger.sqlite is missing");
    },
  );

  test("a folder that is restored whole from a backup starts", async () => {
    const { log, lines } = createRecordingLog();
    await start(copyOf(older), log);
    expect(lines).toEqual([]);
  });
});

/** Runs a command on a folder. */
function cairn(root: string, ...words: string[]) {
  const { PATH } = process.env;
  const env = { PATH, DATA_DIR: root, TRUSTED_NODE_URL: "http://127.0.0.1:1", LOG_LEVEL: "error" };
  const main = resolve(repositoryRoot, "src/main.ts");
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, main, ...words], { env, cwd: made });
  return { code: exitCode, said: stdout.toString(), complained: stderr.toString() };
}

describe("N7: the commands", () => {
  test("a lost ledger: serve rejects in one line, doctor and ledger check end with 1, and no new ledger is made", () => {
    const root = copyOf();
    rmSync(fileOf(root, "ledger"));
    const served = cairn(root, "serve", "--port", "0");
    expect([served.code, served.said]).toEqual([2, ""]);
    expect(served.complained).toMatch(/^\S+ledger\.sqlite is missing: restore it .*--accept-loss ledger\n$/);
    const doctor = cairn(root, "doctor", "--offline", "--json");
    const report = JSON.parse(doctor.said);
    expect([doctor.code, report.databases.ledger]).toEqual([1, "missing"]);
    expect(report.faults).toEqual([expect.stringContaining("ledger.sqlite is missing")]);
    for (const words of [["check"], ["check", "--json"]]) {
      const checked = cairn(root, "ledger", ...words);
      expect([checked.code, checked.said]).toEqual([1, expect.stringContaining("ledger.sqlite is missing")]);
    }
    expect(cairn(root, "ledger", "repair").code).toBe(2);
    expect(existsSync(fileOf(root, "ledger"))).toBe(false);
  }, 60_000);

  test.each([
    ["moderation", "missing", "the next start creates a new moderation.sqlite", false],
    ["ledger", "emptied", "and the next start creates a new ledger.sqlite", true],
    ["ledger", "damaged", "and the next start creates a new ledger.sqlite", true],
    ["ledger", "foreign", "the next start uses ledger.sqlite as it is", false],
    ["index", "damaged", "and the next start creates a new index.sqlite", true],
  ] as const)("doctor --accept-loss %s, which is %s: %s", async (name, fault, says, isSetAside) => {
    const root = copyOf();
    faults[fault](fileOf(root, name), name);
    const accepted = cairn(root, "doctor", "--accept-loss", name);
    expect([accepted.code, accepted.complained]).toEqual([0, ""]);
    expect(accepted.said).toContain(says);
    const aside = readdirSync(root).filter((file) => file.startsWith(`${name}.sqlite.2`));
    expect(aside).toHaveLength(isSetAside ? 1 : 0);
    const { log, lines } = createRecordingLog();
    await start(root, log);
    expect(lines).toEqual([]);
    await start(root, log);
    expect(lines).toEqual([]);
  });

  test.each([
    [["ledger"], "ledger.sqlite is intact and belongs to this data folder: there is no loss to accept"],
    [["credits"], "invalid value 'credits' for --accept-loss: expected one of ledger, moderation"],
  ])("doctor --accept-loss %p is rejected", (words, says) => {
    const root = copyOf();
    const { code, said, complained } = cairn(root, "doctor", "--accept-loss", ...words);
    expect([code, said]).toEqual([2, ""]);
    expect(complained).toContain(says);
  });
});
