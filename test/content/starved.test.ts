/**
 * C6: the disk is full, the handles are used up, writes fail. Requested content is passed through, nothing wrong is
 * stored, and it works again by itself.
 * Source: docs/reference/threats.md (C6).
 * @module
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { silentLog } from "../../src/lib/log.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { openExtents } from "../../src/store/extents/extents.ts";
import { type DataNode, openDataNode } from "../chain/data-node.ts";
import { type Need, testWith } from "../support/helpers.ts";
import { type Report, starvedCycles, starvedData } from "./starved.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-starved-"));
const child = resolve(import.meta.dir, "starved-child.ts");
let node: DataNode;
beforeAll(async () => {
  node = await openDataNode(...Array.from({ length: 40 }, (_, number) => starvedData(number)));
});
afterAll(async () => {
  await node.stop();
  removeFolder(folder);
});

const works = (...command: string[]) =>
  Bun.spawnSync(command, { stdio: ["ignore", "ignore", "ignore"] }).exitCode === 0;
const smallDisk: Need = {
  there: works("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", folder),
  what: "unshare and the right to mount a tmpfs",
};
const badDisk: Need = { there: works("strace", "-qq", "-o", "/dev/null", "true"), what: "strace" };

/** A machine that is busy with writing to disks takes its time. */
const patienceMs = 60_000 + 10_000 * starvedCycles;

/** Where the content cache of a folder will put data. */
function pathOf(place: string, number: number): string {
  const extents = openExtents({
    folder: join(place, "content"),
    mapPath: ":memory:",
    bytesMax: 1,
    freeBytesMin: 0,
    clock: Date.now,
    log: silentLog,
  });
  const path = extents.path(starvedData(number).root);
  void extents.close();
  return path;
}

async function run(mode: string, command: readonly string[]): Promise<Report> {
  const process = Bun.spawn([...command], { stdout: "pipe", stderr: "pipe" });
  const [said, errors, code] = await Promise.all([
    new Response(process.stdout).text(),
    new Response(process.stderr).text(),
    process.exited,
  ]);
  if (code !== 0) throw new Error(`without ${mode}: exit ${code}: ${errors.slice(-2_000)}`);
  return JSON.parse(said);
}

describe("C6: without", () => {
  testWith(
    smallDisk,
    "space (16 MiB, of which the map may take 8, filled to the last byte and freed again): every reading is right, and stored again afterwards",
    async () => {
      const words = [process.execPath, child, "space", folder, node.url].map((word) => `'${word}'`).join(" ");
      const script = `mount -t tmpfs -o size=16m tmpfs '${folder}' && exec ${words}`;
      const report = await run("space", ["unshare", "-m", "sh", "-c", script]);
      expect(report).toMatchObject({ fault: 0, wrong: [], faults: [] });
      expect(report.right).toBeGreaterThanOrEqual(17 * starvedCycles);
      expect(report.rejectedWrites).toBeGreaterThan(0);
      expect(report.cachedAgain).toBe(starvedCycles);
    },
    patienceMs,
  );

  testWith(
    { there: works("sh", "-c", "ulimit -n 96"), what: "ulimit" },
    "handles (ulimit -n 96): faults, never wrong bytes; no data counts as lost, and reads recover",
    async () => {
      const words = [process.execPath, child, "handles", join(folder, "handles"), node.url];
      const script = `ulimit -n 96 && exec ${words.map((word) => `'${word}'`).join(" ")}`;
      const report = await run("handles", ["sh", "-c", script]);
      expect(report).toMatchObject({ wrong: [], lost: 0, faults: [], cachedAgain: 8 });
      expect(report.fault).toBeGreaterThan(0);
      expect(report.right).toBeGreaterThanOrEqual(18);
    },
    120_000,
  );

  testWith(
    badDisk,
    "a disk that takes what is written (EIO on every fifth writing and syncing): every reading is right",
    async () => {
      const place = join(folder, "writes");
      // The content's own files only: a program whose database cannot be opened says so and ends.
      const files = Array.from({ length: 10 }, (_, number) => ["-P", pathOf(place, number)]).flat();
      const inject = ["pwrite64", "fdatasync"].flatMap((call) => ["-e", `inject=${call}:error=EIO:when=2+5`]);
      const traced = ["strace", "-f", "-qq", "-o", "/dev/null", ...files, ...inject];
      const words = [process.execPath, child, "writes", place, node.url];
      const report = await run("writes", [...traced, ...words]);
      expect(report).toMatchObject({ fault: 0, wrong: [], faults: [] });
      expect(report.right).toBeGreaterThanOrEqual(30);
      expect(report.rejectedWrites).toBeGreaterThan(0);
    },
    patienceMs,
  );
});
