/**
 * `cairn backup` and `cairn restore` as an operator runs them: what was accepted is in the backup, beside a running
 * program too, and a backup or a folder that is not fit is rejected with its reason.
 * Source: docs/operating.md#back-up-and-restore.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { dataFolderAt } from "../../src/app/data-folder.ts";
import { claimDatabases } from "../../src/app/databases.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { cursorText } from "../../src/store/index/journal/journal-cursor.ts";
import { openSqliteLedger } from "../../src/store/ledger/sqlite-ledger.ts";
import { runCairn } from "../cli/command.ts";
import { type RunningProgram, repositoryRoot, startDev } from "../support/program.ts";
import { rsaKeys } from "../support/rsa-keys.ts";
import { eventually } from "../support/until.ts";
import { type TestItem, testItem } from "../support/upload.ts";

/** Nothing is bundled while this runs. */
const environment = { UPLOAD_BUNDLE_WAIT_MS: "86400000" };

const main = [process.execPath, resolve(repositoryRoot, "src/main.ts")] as const;

let program: RunningProgram;
let scratch: string;

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), "cairn-"));
  program = await startDev({ environment });
}, 120_000);
afterAll(async () => {
  await program.remove();
  removeFolder(scratch);
});

const cairn = (words: readonly string[], dataFolder: string) =>
  runCairn(words, { cwd: scratch, environment: { DATA_DIR: dataFolder } });

const at = (name: string) => join(scratch, name);

async function send(upload: string, item: TestItem): Promise<void> {
  // The price needs a block, and a new gateway has none yet.
  const response = await eventually(
    () => fetch(`${upload}/v1/tx`, { method: "POST", body: item.bytes }),
    ({ status }) => status !== 503,
  );
  expect(await response.text()).toContain(item.id);
}

async function bodyOf(gateway: string, id: string): Promise<string> {
  return await (await fetch(`${gateway}/raw/${id}`)).text();
}

/** The first event that a client gets which continues at a cursor. */
async function firstEventAfter(gateway: string, cursor: string): Promise<string> {
  const { body } = await fetch(`${gateway}/svc/events`, {
    headers: { "Last-Event-ID": cursor },
    signal: AbortSignal.timeout(30_000),
  });
  const reader = body?.getReader();
  let text = "";
  while (reader !== undefined && !/^event: .*\n/m.test(text)) {
    const { done, value } = await reader.read();
    if (done) break;
    text += new TextDecoder().decode(value);
  }
  await reader?.cancel();
  return text;
}

/** A gateway with uploads that follows the chain of `program`, on free ports. */
async function startServe(folder: string) {
  const wallet = at("wallet.json");
  writeFileSync(wallet, JSON.stringify(rsaKeys.other));
  const child = Bun.spawn([...main, "serve", "--port", "0", "--json"], {
    env: {
      ...{ PATH: process.env["PATH"], DATA_DIR: folder, WALLET_FILE: wallet, START_HEIGHT: "0" },
      ...{ TRUSTED_NODE_URL: program.line.node, LOG_LEVEL: "error", STOP_DELAY_MS: "0" },
      ...{ FREE_UPLOAD_BYTES: "1MiB", UPLOAD_BUNDLE_WAIT_MS: "200", FOLLOW_INTERVAL_MS: "50" },
    },
    cwd: scratch,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  let text = "";
  while (!text.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the gateway ended before it printed its line");
    text += new TextDecoder().decode(value);
  }
  const line: Readonly<{ gateway: string; upload: string }> = JSON.parse(text);
  return {
    ...line,
    stop: async () => {
      child.kill("SIGTERM");
      return await child.exited;
    },
  };
}

describe("a folder of cairn dev", () => {
  const items = ["small", "x".repeat(3_000_000)].map((text) => ({ text, item: testItem(text) }));

  test("is not copied while its chain is in use", async () => {
    for (const { item } of items) await send(program.line.upload, item);
    const { code, err } = await cairn(["backup", at("early")], program.folder);
    expect([code, existsSync(at("early"))]).toEqual([2, false]);
    expect(err).toContain("its chain can be copied only while it is stopped");
  });

  test("continues from its backup with all accepted items, its chain, its wallets and its keys", async () => {
    const { line, folder } = program;
    expect(await program.stop()).toBe(0);
    const backup = await cairn(["backup", at("dev"), "--json"], folder);
    expect([backup.code, backup.err]).toEqual([0, expect.any(String)]);
    expect(JSON.parse(backup.out)).toMatchObject({ folder: at("dev"), ledger: "file", index: true });

    const reader = openIndexReader(join(at("dev"), "index.sqlite"));
    const cursor = cursorText({ journal: reader.journal.name(), number: reader.journal.newest() });
    reader.close();

    const restored = await cairn(["restore", at("dev"), "--json"], at("restored"));
    expect([restored.code, restored.err]).toEqual([0, expect.any(String)]);
    expect((await cairn(["ledger", "check"], at("restored"))).out).toContain("no inconsistency");
    expect((await cairn(["doctor", "--offline"], at("restored"))).out).toContain("no faults found");

    const other = await startDev({ environment, folder: at("restored") });
    try {
      expect(other.errors()).not.toContain("warn");
      expect(other.line.adminKey).toBe(line.adminKey);
      expect(other.line.wallets.map(({ credits }) => credits)).toEqual(line.wallets.map(({ credits }) => credits));
      for (const { text, item } of items) expect((await bodyOf(other.line.gateway, item.id)) === text).toBe(true);
      // The restored index will give the numbers of later changes to other ones.
      expect(await firstEventAfter(other.line.gateway, cursor)).toContain("event: reset");
    } finally {
      await other.stop();
      program = await startDev({ environment, folder });
    }
  }, 180_000);
});

test("a database that only other settings use is backed up too", async () => {
  mkdirSync(at("webhooks"));
  const settings = { LEDGER_URL: undefined, WEBHOOK_TARGET_SERVERS: ["http://127.0.0.1:1/"] };
  const folder = dataFolderAt(at("webhooks"));
  await claimDatabases(folder, settings, silentLog);
  await (await openSqliteLedger({ path: folder.ledger })).close();
  const { code, err } = await cairn(["backup", at("of webhooks")], at("webhooks"));
  expect([code, err]).toEqual([0, expect.any(String)]);
  expect(existsSync(join(at("of webhooks"), "webhooks.sqlite"))).toBe(true);
});

describe("a running gateway", () => {
  test("is copied while it accepts and posts items, and loses none that was accepted before", async () => {
    const serve = await startServe(at("serve"));
    const accepted: TestItem[] = [];
    const stop = new AbortController();
    const sending = (async () => {
      while (!stop.signal.aborted) {
        const item = testItem(`item ${accepted.length}`);
        await send(serve.upload, item);
        accepted.push(item);
      }
    })();
    try {
      for (const round of [1, 2, 3]) {
        await eventually(
          async () => accepted.length,
          (count) => count >= round * 20,
        );
        const before = [...accepted];
        const { code, err } = await cairn(["backup", at(`serve-${round}`), "--without-index"], at("serve"));
        expect([round, code, err]).toEqual([round, 0, expect.any(String)]);
        const dataFolder = at(`serve-restored-${round}`);
        expect((await cairn(["restore", at(`serve-${round}`)], dataFolder)).code).toBe(0);
        expect((await cairn(["ledger", "check"], dataFolder)).out).toContain("no inconsistency");
        if (round === 3) await expectReadable(dataFolder, before);
      }
    } finally {
      stop.abort();
      await sending;
      await serve.stop();
    }
  }, 300_000);
});

/** Starts a gateway on a restored folder and reads items: from their files, or from the chain. */
async function expectReadable(dataFolder: string, items: readonly TestItem[]): Promise<void> {
  const again = await startServe(dataFolder);
  try {
    for (const item of items)
      await eventually(
        async () => (await fetch(`${again.gateway}/raw/${item.id}`)).status,
        (status) => status === 200,
      );
  } finally {
    await again.stop();
  }
}

describe("rejected", () => {
  const change = (name: string, edit: (folder: string) => void) => {
    cpSync(at("dev"), at(name), { recursive: true });
    edit(at(name));
    return at(name);
  };
  const overwrite = (path: string) => writeFileSync(path, readFileSync(path).fill(1, 0, 1));
  const record = (folder: string) => join(folder, "backup.json");
  const edited = (folder: string, from: string, to: string) =>
    writeFileSync(record(folder), readFileSync(record(folder), "utf8").replace(from, to));

  test.each([
    ["a folder without a record", (folder: string) => rmSync(record(folder)), "is not a complete backup"],
    [
      "a record of another format",
      (folder: string) => edited(folder, '"format": 1', '"format": 2'),
      "has the format 2",
    ],
    [
      "a record with a path outside",
      (folder: string) => edited(folder, '"path": "databases.json"', '"path": "../databases.json"'),
      "is not the record of a backup",
    ],
    ["a missing file", (folder: string) => rmSync(join(folder, "ledger.sqlite")), "is missing"],
    ["a truncated file", (folder: string) => writeFileSync(join(folder, "ledger.sqlite"), "x"), "has 1 bytes instead"],
    ["a changed byte", (folder: string) => overwrite(join(folder, "ledger.sqlite")), "its hash differs"],
  ])("a backup with %s", async (name, edit, reason) => {
    const { code, err } = await cairn(["restore", change(name, edit)], at(`to ${name}`));
    expect([code, err]).toEqual([2, expect.stringContaining(reason)]);
  });

  test("a restore that ended early: the program does not start on the folder", async () => {
    const folder = at("to a changed byte");
    const { code, err } = await cairn(["serve", "--port", "0"], folder);
    expect([code, err]).toEqual([2, expect.stringContaining("is missing: restore it from a backup")]);
  });

  test.each([
    ["a data folder with files", ["restore", "dev"], "dev", "is not empty"],
    ["a backup to a folder with files", ["backup", "dev"], "restored", "is not an empty folder"],
    ["a backup into the data folder", ["backup", "restored/copy"], "restored", "must be apart"],
    ["one whose name begins with dots", ["backup", "restored/..copy"], "restored", "must be apart"],
    ["a backup around the data folder", ["backup", "."], "restored", "must be apart"],
    ["a backup of an absent folder", ["backup", "new"], "absent", "is not an existing folder"],
  ])("%s", async (_, words, dataFolder, reason) => {
    const { code, err } = await cairn(words, at(dataFolder));
    expect([code, err]).toEqual([2, expect.stringContaining(reason)]);
  });

  test("a damaged database is not backed up", async () => {
    mkdirSync(at("damaged"));
    cpSync(at("restored"), at("damaged"), { recursive: true });
    const path = join(at("damaged"), "ledger.sqlite");
    writeFileSync(path, readFileSync(path).fill(0, 4_096, 40_000));
    const { code, err } = await cairn(["backup", at("of damaged")], at("damaged"));
    expect(code).not.toBe(0);
    expect(err).toContain("damaged");
    expect(existsSync(join(at("of damaged"), "backup.json"))).toBe(false);
  });
});
