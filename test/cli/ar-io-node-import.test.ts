/**
 * `cairn import --from ar-io-node`, as an operator runs it on the data folder of the other gateway.
 * @module
 */
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { idFromBytes } from "../../src/arweave/id.ts";
import { dataRootOf } from "../../src/arweave/merkle.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { sha256 } from "../../src/lib/hash.ts";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openBlockList } from "../../src/store/block-list.ts";
import { openExtents } from "../../src/store/extents/extents.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { allColumns } from "../../src/store/index/index-types.ts";
import { firstHeight, itemsPerBlock, makeChain, transactionsPerBlock } from "../support/ar-io-node-chain.ts";
import {
  blockedAt,
  contiguousFile,
  inDatabase,
  type SourceTransaction,
  writeArIoNodeFolder,
} from "../support/ar-io-node-folder.ts";
import { type Need, testWith } from "../support/helpers.ts";
import { canMount } from "../support/small-disk.ts";
import { runCairn } from "./command.ts";

const smallDisk: Need = { there: canMount(), what: "the right to mount a tmpfs" };

const root = mkdtempSync(join(tmpdir(), "cairn-ar-io-node-"));
afterAll(() => removeFolder(root));

/** Runs the import into a folder of its own. */
async function imported(source: string, target: string, environment: Record<string, string> = {}) {
  const words = ["import", source, "--from", "ar-io-node", "--json"];
  const ran = await runCairn(words, { environment: { DATA_DIR: target, ...environment } });
  if (ran.code === 0) expect(ran.out).toMatch(/^{.*}\n$/); // one line
  return { ...ran, report: ran.code === 0 ? JSON.parse(ran.out) : undefined };
}

const bytes = (size: number, seed: number) => Uint8Array.from({ length: size }, (_, at) => (at * 31 + seed) % 251);
const idOf = (seed: number) => sha256(bytes(8, seed));

/** Names, sizes, times and bytes of all files of a folder. */
function stateOf(folder: string): readonly unknown[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const stats = statSync(join(folder, name));
      const digest = stats.isFile() ? encodeBase64url(sha256(readFileSync(join(folder, name)))) : "";
      return [name, stats.size, stats.mtimeMs, digest];
    });
}

describe("the settings of ar-io-node", () => {
  const home = join(root, "settings");
  const env = "ADMIN_API_KEY=hidden\nTRUSTED_NODE_HOST=arweave.net\nPARQUET_PATH=./parquet\n";
  mkdirSync(home);
  writeArIoNodeFolder(join(home, "data"), { env });
  const environment = { DATA_DIR: join(root, "settings-target") };

  test("are reported with their meaning here, and no secret is printed", async () => {
    const { code, out, err } = await runCairn(["import", join(home, "data"), "--from", "ar-io-node"], { environment });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain(`settings of ${join(home, ".env")}\n\ntaken (1):\n  ADMIN_API_KEY\n`);
    expect(out).toContain("  TRUSTED_NODE_HOST: TRUSTED_NODE_URL=https://arweave.net\n");
    expect(out).toContain("  PARQUET_PATH: use cairn export");
    expect(out).not.toContain("hidden");
  });

  test("are machine-readable with --json, and --env names another file", async () => {
    const env = join(root, "other.env");
    writeFileSync(env, "GATEWAY_PORT=http\n");
    const words = ["import", home, "--from", "ar-io-node", "--env", env, "--json"];
    const { code, out } = await runCairn(words, { environment });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      settings: {
        path: env,
        names: [{ name: "GATEWAY_PORT", kind: "taken", note: "" }],
        invalid: ["invalid value 'http' for GATEWAY_PORT: expected 0–65535"],
      },
    });
  });
});

describe("the block list", () => {
  const source = join(root, "blocked", "data");
  const target = join(root, "blocked-target");
  const blocked = { ids: [idOf(1), idOf(2)], hashes: [idOf(3)], names: ["bad-name"], source: "a list" };
  mkdirSync(join(root, "blocked"));
  writeArIoNodeFolder(source, { blocked });
  inDatabase(source, "moderation", (db) => db.run("INSERT INTO blocked_ids VALUES (x'0102', NULL, NULL, 'late')"));

  test("is taken over with sources, notes and times, once", async () => {
    const before = stateOf(source);
    const first = await imported(source, target);
    expect(first.err).toBe("");
    expect(first.report.blockList).toEqual({ ids: 2, hashes: 1, names: 1, present: 0, invalid: 1 });
    const second = await imported(source, target);
    expect(second.report.blockList).toEqual({ ids: 0, hashes: 0, names: 0, present: 4, invalid: 1 });
    expect(stateOf(source)).toEqual(before);
    const list = openBlockList(join(target, "moderation.sqlite"), systemClock);
    const entries = list.list(10);
    list.close();
    const common = { source: "a list", notes: "a note", blockedAt };
    const rows = [
      { kind: "hash", value: encodeBase64url(idOf(3)), ...common },
      ...[1, 2].map((seed) => ({ kind: "id", value: encodeBase64url(idOf(seed)), ...common })),
      { kind: "name", value: "bad-name", ...common },
    ];
    expect(entries).toHaveLength(4);
    expect(entries).toEqual(expect.arrayContaining(rows));
  });
});

describe("F2: cached files", () => {
  const source = join(root, "files", "data");
  const sizes = [1, 65_536, 262_144 + 100, 1_000_000];
  const contents = sizes.map((size, seed) => ({ id: idOf(100 + seed), bytes: bytes(size, seed) }));
  const transactionOf = (id: Uint8Array, dataRoot: Uint8Array, dataSize: number, index: number): SourceTransaction => ({
    ...{ id, height: 1, index, signature: null, format: 2, lastTx: new Uint8Array(), owner: bytes(512, 9) },
    ...{ target: new Uint8Array(), quantity: "0", reward: "0", dataSize, dataRoot, offset: null, tags: [] },
  });
  const others = {
    item: { id: idOf(200), bytes: bytes(70_000, 50) },
    unproven: { id: idOf(201), bytes: bytes(70_001, 51) },
    unsigned: { id: idOf(202), bytes: bytes(70_002, 52) },
    damaged: { id: idOf(203), bytes: bytes(70_003, 53) },
    absent: { id: idOf(204), bytes: bytes(70_004, 54) },
  };
  mkdirSync(join(root, "files"));
  writeArIoNodeFolder(source, {
    files: [...contents, ...Object.values(others)],
    transactions: [
      ...contents.map(({ id, bytes }, at) =>
        transactionOf(id, dataRootOf(bytes, at % 2 === 0 ? "halved" : "plain"), bytes.length, at),
      ),
      transactionOf(others.unproven.id, idOf(1), 70_001, 10),
      transactionOf(others.unsigned.id, new Uint8Array(), 70_002, 11),
      transactionOf(others.damaged.id, dataRootOf(others.damaged.bytes, "halved"), 70_003, 12),
      transactionOf(others.absent.id, dataRootOf(others.absent.bytes, "halved"), 70_004, 13),
    ],
  });
  const damagedFile = contiguousFile(source, sha256(others.damaged.bytes));
  writeFileSync(damagedFile, others.damaged.bytes.with(500, 7));
  rmSync(contiguousFile(source, sha256(others.absent.bytes)));
  const total = sizes.reduce((sum, size) => sum + size, 0);

  const openCache = (target: string) =>
    openExtents({
      ...{ folder: join(target, "content"), mapPath: join(target, "content.sqlite"), clock: systemClock },
      ...{ log: silentLog, bytesMax: 2 ** 30, freeBytesMin: 0 },
    });

  test("with the data root of their transaction are linked, and others are left out with the reason", async () => {
    const target = join(root, "files-target");
    const before = stateOf(source);
    const first = await imported(source, target);
    expect(first.err).toBe("");
    expect(first.report.content).toMatchObject({ linked: 4, copied: 0, bytes: total, present: 0 });
    expect(Object.entries(first.report.content.skipped).map(([reason, count]) => [reason.slice(0, 30), count])).toEqual(
      expect.arrayContaining([
        ["not the data of a transaction:", 1],
        ["the file does not have the dat", 1],
        ["the transaction has no data ro", 1],
        ["the SHA-256 of the file is not", 1],
        ["the file does not exist, or ha", 1],
      ]),
    );
    const second = await imported(source, target);
    expect(second.report.content).toMatchObject({ linked: 0, copied: 0, bytes: 0, present: 4 });
    expect(stateOf(source)).toEqual(before);
    const cache = openCache(target);
    for (const [at, { id, bytes }] of contents.entries()) {
      const dataRoot = encodeBase64url(dataRootOf(bytes, at % 2 === 0 ? "halved" : "plain"));
      const spec = { id: idFromBytes(id), dataRoot, size: bytes.length };
      expect(await cache.read(spec, { start: 0, end: bytes.length })).toEqual(Buffer.from(bytes));
      expect(cache.digest(spec)).toEqual(sha256(bytes));
    }
    expect(cache.stats()).toMatchObject({ damagedSteps: 0, lostFiles: 0 });
    await cache.close();
    expect(stateOf(source)).toEqual(before);
  });

  testWith(smallDisk, "are copied to another disk, which keeps CACHE_FREE_BYTES_MIN free", async () => {
    const disk = join(root, "disk");
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=16m", "tmpfs", disk]);
    try {
      const full = await imported(source, join(disk, "full"), { CACHE_FREE_BYTES_MIN: "16777216" });
      expect(full.report.content).toMatchObject({ linked: 0, copied: 0 });
      // Space is checked before a file is read: two of these are not valid.
      expect(Object.values(full.report.content.skipped)).toContain(6);
      const free = await imported(source, join(disk, "free"), { CACHE_FREE_BYTES_MIN: "0" });
      expect(free.report.content).toMatchObject({ linked: 0, copied: 4, bytes: total });
    } finally {
      execFileSync("umount", [disk]);
    }
  });

  testWith(smallDisk, "leave no partial file on a disk that becomes full, and one sentence says so", async () => {
    const disk = join(root, "full-disk");
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=900k", "tmpfs", disk]);
    try {
      const { code, err } = await imported(source, disk, { CACHE_FREE_BYTES_MIN: "0" });
      expect(code).toBe(1);
      expect(err).toMatch(/^cairn: [^\n]*(no space|disk is full)[^\n]*\n$/);
      const complete = new Set(sizes);
      for (const name of readdirSync(disk, { recursive: true, encoding: "utf8" }))
        if (/^content\/../.test(name) && statSync(join(disk, name)).isFile())
          expect(complete.has(statSync(join(disk, name)).size)).toBe(true);
    } finally {
      execFileSync("umount", [disk]);
    }
  });

  test("stay within CACHE_BYTES_MAX", async () => {
    const { report } = await imported(source, join(root, "files-small"), { CACHE_BYTES_MAX: "500000" });
    expect(report.content).toMatchObject({ linked: 3, bytes: total - 1_000_000 });
    expect(Object.keys(report.content.skipped).join()).toContain("raise CACHE_BYTES_MAX");
  });
});

describe("F2: the state in which ar-io-node left its databases", () => {
  const source = join(root, "log", "data");
  mkdirSync(join(root, "log"));
  writeArIoNodeFolder(source, {});
  const copy = join(root, "log-copy");
  // The copy of an open database has its log, as after a kill.
  const open = new Database(join(source, "sqlite", "moderation.db"));
  open.run("INSERT INTO blocked_names VALUES ('in-the-log', NULL, NULL, 1)");
  cpSync(source, copy, { recursive: true });
  open.close(true);

  test("with a log: its rows are imported, and the folder stays as it is", async () => {
    const before = stateOf(copy);
    expect(before.map((file) => Array.isArray(file) && file[0])).toContain("sqlite/moderation.db-wal");
    const target = join(root, "log-target");
    expect((await imported(copy, target)).report.blockList).toMatchObject({ names: 1 });
    expect(stateOf(copy)).toEqual(before);
    expect(readdirSync(target).filter((name) => name.startsWith("import-"))).toEqual([]);
  });

  test("open: one sentence says so", async () => {
    const path = join(source, "sqlite", "moderation.db");
    const open = new Database(path);
    open.run("DELETE FROM blocked_names");
    const { code, err } = await imported(source, join(root, "open-target"));
    open.close(true);
    expect({ code, err }).toEqual({
      code: 1,
      err: `cairn: ${path} is in use: stop ar-io-node, and run the command again\n`,
    });
  });
});

describe("an import that is killed", () => {
  const source = join(root, "killed", "data");
  const blockCount = 500;
  const kills = 8;
  const contents = Array.from({ length: 20 }, (_, at) => bytes(200_000 + at, at));
  const chain = makeChain(11, blockCount);
  mkdirSync(join(root, "killed"));
  writeArIoNodeFolder(source, {
    ...chain,
    transactions: (chain.transactions ?? []).map((row, at) => {
      const data = contents[at];
      const dataRoot = data === undefined ? row.dataRoot : dataRootOf(data, "halved");
      return { ...row, dataRoot, dataSize: data?.length ?? row.dataSize };
    }),
    items: (chain.items ?? []).filter(({ height }) => height >= firstHeight + 7),
    files: contents.map((data, at) => ({ id: chain.transactions?.[at]?.id ?? idOf(at), bytes: data })),
    blocked: { ids: Array.from({ length: 30 }, (_, at) => idOf(at)) },
  });

  /** Rows, blocked entries, and cached bytes. */
  function stateIn(folder: string) {
    const reader = openIndexReader(join(folder, "index.sqlite"));
    const { rows } = reader.page({ order: "asc", limit: 100_000, columns: allColumns });
    const { items, blocks, nestedItems, owners, transactions } = reader.counts();
    const faults = reader.integrity();
    reader.close();
    const list = openBlockList(join(folder, "moderation.sqlite"), systemClock);
    const blocked = list.list(100);
    list.close();
    const files = readdirSync(join(folder, "content"), { recursive: true, encoding: "utf8" }).filter(
      (name) => name.length > 10,
    );
    return {
      ...{ faults, blocked, counts: { items, blocks, nestedItems, owners, transactions }, files: files.sort() },
      rows: rows.map(({ ingestedAt: _, ...row }) => row),
    };
  }

  test("is completed by the same command, with nothing twice", async () => {
    const target = join(root, "killed-target");
    const startedAt = performance.now();
    await imported(source, join(root, "killed-once"));
    const usualMs = performance.now() - startedAt;
    for (let kill = 1; kill <= kills; kill++) {
      const ran = await runCairn(["import", source, "--from", "ar-io-node", "--json"], {
        environment: { DATA_DIR: target },
        onStart: (child) => setTimeout(() => child.kill("SIGKILL"), (usualMs * (kill + 1)) / (kills + 4)),
      });
      if (ran.code === 0) break;
    }
    const { report, err } = await imported(source, target);
    expect(err).toBe("");
    expect(report.content.skipped).toEqual({});
    const [killed, once] = [stateIn(target), stateIn(join(root, "killed-once"))];
    expect(once.rows).toHaveLength(blockCount * transactionsPerBlock + (blockCount - 7) * itemsPerBlock);
    expect(once.files).toHaveLength(20);
    expect(killed).toEqual(once);
    expect(readdirSync(target).filter((name) => name.startsWith("import-"))).toEqual([]);
  }, 60_000);
});

describe("a folder that cannot be imported", () => {
  test.each([
    [["--from", "ar-io-node"], `${root} is not a data folder of ar-io-node: sqlite/core.db does not exist`],
    [["--from", "arlocal"], "invalid value 'arlocal' for --from: expected ar-io-node"],
    [["--env", "x.env"], "--env requires --from ar-io-node"],
  ])("ends with 2 and one sentence: %p", async (words, message) => {
    const { code, out, err } = await runCairn(["import", root, ...words]);
    expect({ code, out, err }).toEqual({ code: 2, out: "", err: `${message}\n` });
  });
});
