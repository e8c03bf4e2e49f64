/**
 * Only of SQLite: when a transaction is reported as done, who waits for whose lock, and what a failing disk means.
 * @module
 */
import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { mkdtempSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { yieldToEventLoop } from "../../../src/lib/event-loop.ts";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import type { LedgerDatabase, Tx } from "../../../src/store/ledger/ledger-database.ts";
import { openSqliteLedger } from "../../../src/store/ledger/sqlite-ledger.ts";
import { type Need, testWith } from "../../support/helpers.ts";
import { canMount, fillUp } from "../../support/small-disk.ts";
import { until } from "../../support/until.ts";

const smallDisk: Need = { there: canMount(), what: "the right to mount a tmpfs" };
const strace: Need = { there: Bun.which("strace") !== null, what: "strace" };

const folders: string[] = [];
const ledgers: LedgerDatabase[] = [];

afterEach(async () => {
  for (const ledger of ledgers.splice(0)) await ledger.close();
  for (const folder of folders.splice(0)) removeFolder(folder);
});

function newPath(): string {
  const folder = mkdtempSync(join(tmpdir(), "cairn-ledger-"));
  folders.push(folder);
  return join(folder, "ledger.sqlite");
}

async function openAt(path: string, sync?: (log: FileHandle) => Promise<void>): Promise<LedgerDatabase> {
  const ledger = await openSqliteLedger(sync === undefined ? { path } : { path, sync });
  ledgers.push(ledger);
  return ledger;
}

const add = (id: string) => (tx: Tx) => tx.run("INSERT INTO events (source, event_id, at) VALUES ('card', ?, 1)", id);
const countEvents = async (ledger: LedgerDatabase) => {
  const row = await ledger.read((tx) => tx.get<{ count: bigint }>("SELECT COUNT(*) AS count FROM events"));
  return row?.count;
};
describe("a transaction resolves", () => {
  test("when a synchronisation that began after its commit has ended, and not before", async () => {
    const barriers: PromiseWithResolvers<void>[] = [];
    let held = false;
    const ledger = await openAt(newPath(), async (log) => {
      if (held) {
        const barrier = Promise.withResolvers<void>();
        barriers.push(barrier);
        await barrier.promise;
      }
      await log.datasync();
    });
    held = true;
    const responded: string[] = [];
    const write = (id: string) => ledger.write(add(id)).then(() => responded.push(id));
    const first = write("1");
    await until(() => barriers.length !== 0);
    const second = write("2");
    for (let semaphore = 0; semaphore < 20; semaphore += 1) await yieldToEventLoop();
    // Both are committed, and seen by reads; neither is durable.
    expect([await countEvents(ledger), responded, barriers.length]).toEqual([2n, [], 1]);
    barriers[0]?.resolve();
    await first;
    expect(responded).toEqual(["1"]);
    await until(() => barriers.length !== 1);
    barriers[1]?.resolve();
    await second;
    expect(responded).toEqual(["1", "2"]);
    held = false;
  });

  test("together with its group, after one synchronisation", async () => {
    let synced = 0;
    const ledger = await openAt(newPath(), async (log) => {
      synced += 1;
      await log.datasync();
    });
    const before = synced;
    await Promise.all(Array.from({ length: 60 }, (_, index) => ledger.write(add(`${index}`))));
    expect(await countEvents(ledger)).toBe(60n);
    expect(synced - before).toBe(1);
  });

  test("after a synchronisation of SQLite's log, also when another connection empties the log", async () => {
    const path = newPath();
    const inodes = new Set<number>();
    const ledger = await openAt(path, async (log) => {
      inodes.add((await log.stat()).ino);
      await log.datasync();
    });
    const other = new Database(path);
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(Array.from({ length: 50 }, (_, index) => ledger.write(add(`${round}/${index}`))));
      other.run(`PRAGMA wal_checkpoint(${round % 2 === 0 ? "TRUNCATE" : "RESTART"})`);
    }
    other.close();
    await ledger.write(add("last"));
    expect([...inodes]).toEqual([statSync(`${path}-wal`).ino]);
  });
});

describe("a failed synchronisation", () => {
  test("rejects all its transactions and all later writes; reads continue", async () => {
    const path = newPath();
    let failing = false;
    const ledger = await openAt(path, async (log) => {
      if (failing) throw Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" });
      await log.datasync();
    });
    await ledger.write(add("1"));
    expect(ledger.faults()).toEqual([]);
    failing = true;
    const unavailable = {
      code: "database_unavailable",
      context: { reason: "the ledger could not reach its disk" },
    };
    const ends = await Promise.allSettled([ledger.write(add("2")), ledger.write(add("3"))]);
    for (const end of ends) expect(end).toMatchObject({ status: "rejected", reason: unavailable });
    failing = false;
    await expect(ledger.write(add("4"))).rejects.toMatchObject(unavailable);
    expect(ledger.faults()).toEqual(["Credits cannot be written: the ledger could not reach its disk."]);
    expect(await countEvents(ledger)).toBeGreaterThan(0n);
    await ledger.close();
    const again = await openAt(path);
    await again.write(add("5"));
    // What had failed may be there; what was rejected is not.
    const rows = await again.read((tx) => tx.all<{ event_id: string }>("SELECT event_id FROM events"));
    const ids = rows.map(({ event_id }) => event_id);
    expect(ids).toContain("1");
    expect(ids).not.toContain("4");
  });

  test("rejects a group that was committed meanwhile, though its own synchronisation succeeds", async () => {
    // The system reports a page that it could not write once; what comes behind it in the log is lost with it.
    const first = Promise.withResolvers<void>();
    let syncs = 0;
    let isWatched = false;
    const ledger = await openAt(newPath(), async (log) => {
      if (!isWatched) return await log.datasync();
      syncs += 1;
      if (syncs > 1) return await log.datasync();
      await first.promise;
      throw Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" });
    });
    isWatched = true;
    const one = ledger.write(add("1"));
    await until(() => syncs === 1);
    const two = ledger.write(add("2"));
    for (let turn = 0; (await countEvents(ledger)) !== 2n; turn += 1) expect(turn).toBeLessThan(1_000);
    first.resolve();
    const unavailable = { code: "database_unavailable" };
    for (const end of await Promise.allSettled([one, two]))
      expect(end).toMatchObject({ status: "rejected", reason: unavailable });
    expect(syncs).toBe(2);
  });

  test("is what one waits for before something is promised because of a read", async () => {
    let sync: PromiseWithResolvers<void> | undefined;
    const ledger = await openAt(newPath(), async (log) => {
      await sync?.promise;
      await log.datasync();
    });
    await ledger.confirmed();
    sync = Promise.withResolvers<void>();
    const written = ledger.write(add("1"));
    for (let turn = 0; (await countEvents(ledger)) !== 1n; turn += 1) expect(turn).toBeLessThan(1_000);
    let isConfirmed = false;
    const confirmed = ledger.confirmed().then(() => {
      isConfirmed = true;
    });
    for (let turn = 0; turn < 20; turn += 1) await yieldToEventLoop();
    expect(isConfirmed).toBe(false);
    sync.resolve();
    await confirmed;
    await written;
    sync = Promise.withResolvers<void>();
    const failed = ledger.write(add("2"));
    for (let turn = 0; (await countEvents(ledger)) !== 2n; turn += 1) expect(turn).toBeLessThan(1_000);
    const late = ledger.confirmed();
    sync.reject(Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" }));
    const unavailable = { code: "database_unavailable" };
    for (const end of await Promise.allSettled([failed, late, ledger.confirmed()]))
      expect(end).toMatchObject({ status: "rejected", reason: unavailable });
  });

  testWith(strace, "in the kernel too: no transaction is reported as done", async () => {
    const child = Bun.spawnSync(
      [
        "strace",
        "-f",
        "-qq",
        "-e",
        "trace=fdatasync",
        "-e",
        "inject=fdatasync:error=EIO:when=3+",
        process.execPath,
        resolve(import.meta.dir, "write-child.ts"),
        newPath(),
        "5",
      ],
      { stdio: ["ignore", "pipe", "ignore"] },
    );
    const lines = child.stdout.toString().trim().split("\n");
    expect(lines).toHaveLength(5);
    const failed = lines.findIndex((line) => line !== "done");
    expect(failed).toBeGreaterThan(0);
    expect(failed).toBeLessThan(5);
    expect(new Set(lines.slice(failed))).toEqual(new Set(["database_unavailable"]));
  });
});

describe("another process's lock", () => {
  test("is awaited without blocking the event loop", async () => {
    const path = newPath();
    const ledger = await openAt(path);
    const other = new Database(path);
    other.run("BEGIN IMMEDIATE");
    const writing = ledger.write(add("1"));
    const state = { done: false };
    const settled = writing.finally(() => {
      state.done = true;
    });
    // The event loop goes on while the lock is held.
    for (let semaphore = 0; semaphore < 200; semaphore += 1) await yieldToEventLoop();
    expect(state.done).toBe(false);
    expect(await countEvents(ledger)).toBe(0n);
    other.run("COMMIT");
    other.close();
    await settled;
    expect(await countEvents(ledger)).toBe(1n);
  });
});

describe("a file", () => {
  test("that is not a ledger is rejected by its name", async () => {
    const path = newPath();
    writeFileSync(path, "x".repeat(10_000));
    await expect(openSqliteLedger({ path })).rejects.toThrow(`cannot open the ledger ${path}: file is not a database`);
  });

  test("in no folder is rejected by its name", async () => {
    const path = join(newPath(), "none", "ledger.sqlite");
    await expect(openSqliteLedger({ path })).rejects.toThrow(`cannot open the ledger ${path}`);
  });

  test("O: is opened by two processes at once, and one of them creates the tables", async () => {
    const path = newPath();
    const opened = await Promise.all([openAt(path), openAt(path), openAt(path)]);
    await Promise.all(opened.map((ledger, index) => ledger.write(add(`${index}`))));
    for (const ledger of opened) expect(await countEvents(ledger)).toBe(3n);
  });

  testWith(smallDisk, "on a full disk rejects what does not fit, keeps what it has, and writes again", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cairn-ledger-"));
    folders.push(folder);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", folder]);
    try {
      const ledger = await openAt(join(folder, "ledger.sqlite"));
      await ledger.write(add("before"));
      const filler = await open(join(folder, "rest"), "w");
      await fillUp(filler);
      const large = Array.from({ length: 20 }, (_, index) => ledger.write(add(`${index}-${"x".repeat(20_000)}`)));
      const ends = await Promise.allSettled(large);
      const rejected = ends.filter((end) => end.status === "rejected");
      expect(rejected.length).toBeGreaterThan(0);
      for (const end of rejected) expect(end).toMatchObject({ reason: { code: "database_unavailable" } });
      const stored = BigInt(ends.length - rejected.length) + 1n;
      expect(await countEvents(ledger)).toBe(stored);
      expect(ledger.faults()).toEqual(["Credits cannot be written: the ledger could not commit."]);
      unlinkSync(join(folder, "rest"));
      await ledger.write(add("after"));
      expect(ledger.faults()).toEqual([]);
      expect(await countEvents(ledger)).toBe(stored + 1n);
    } finally {
      for (const ledger of ledgers.splice(0)) await ledger.close();
      execFileSync("umount", ["-l", folder]);
    }
  });
});
