/**
 * A disk that is full while history is exported or imported: one sentence says so, no incomplete file has its name, and
 * the same command continues when there is space.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync, renameSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { readPartition, writtenPartitions } from "../../src/columnar/partition.ts";
import { complaintsIn, runCairn } from "../cli/command.ts";
import { temporaryFolder } from "../store/folder.ts";
import { indexFile } from "../store/index/index-file.ts";
import { createFixture } from "../store/index/index-fixture.ts";
import { createRandom } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";
import { canMount, enlargeDisk, withDisk } from "../support/small-disk.ts";
import { writeArIoNodeExport } from "./ar-io-node-export.ts";
import { rowsOfFiles } from "./exported-chain.ts";

const place = temporaryFolder();
const data = join(place.path, "data");
const ours = join(place.path, "ours");
const theirs = join(place.path, "theirs");
const disk = join(place.path, "disk");
const seed = newSeed();

beforeAll(async () => {
  mkdirSync(data);
  const file = indexFile();
  const fixture = createFixture(createRandom(seed), (clock) => {
    Object.defineProperty(file, "nowMs", { get: clock });
    return file;
  });
  for (let step = 0; step < 150; step += 1) fixture.step();
  for (let block = 0; block < 30; block += 1) fixture.addBlock(3);
  file.reader.close();
  file.writer.close();
  renameSync(file.path, join(data, "index.sqlite"));
  expect(await run(["export", ours], data)).toMatchObject({ code: 0 });
  await writeArIoNodeExport(ours, theirs);
});
afterAll(() => place[Symbol.dispose]());

async function run(words: readonly string[], dataFolder: string) {
  const environment = { DATA_DIR: dataFolder, COLUMNAR_STORE: "duckdb" };
  const ran = await runCairn(words, { environment, cwd: place.path });
  return { ...ran, err: complaintsIn(ran.err) };
}

/** No file below a folder is incomplete: each file with a record's name has its rows. */
async function expectComplete(folder: string): Promise<void> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  expect(names.filter((name) => name.endsWith(".part"))).toEqual([]);
  for (const heights of writtenPartitions(folder)) {
    for (const table of ["blocks", "transactions", "tags", "postings"] as const)
      await rowsOfFiles(readPartition(folder, heights), table);
  }
}

const expected = async (): Promise<string[][]> => {
  const partitions = writtenPartitions(ours).map((heights) => readPartition(ours, heights));
  return await Promise.all(partitions.map((partition) => rowsOfFiles(partition, "transactions")));
};

/** Runs a command with enough space. @returns The space that it used. KiB. */
async function spaceFor(words: string[], folder: string): Promise<number> {
  let needed = 0;
  await withDisk(disk, 200_000, async () => {
    expect(await run(words, folder)).toMatchObject({ code: 0 });
    const { blocks, bfree, bsize } = statfsSync(disk);
    needed = ((blocks - bfree) * bsize) / 1_024;
  });
  return needed;
}

test.skipIf(!canMount()).each([0.05, 0.25, 0.5, 0.9])(
  "an export to a disk of %d times the size that it needs fails in one sentence, and is continued",
  async (share) => {
    const needed = await spaceFor(["export", join(disk, "out"), "--partition", "10"], data);
    await withDisk(disk, Math.floor(needed * share), async () => {
      const target = join(disk, "out");
      const { code, out, err } = await run(["export", target, "--partition", "10"], data);
      expect([code, out]).toEqual([1, ""]);
      expect(err).toMatch(/^cairn: .*no space left on device.*\n$/i);
      await expectComplete(target);
      enlargeDisk(disk);
      expect(await run(["export", target, "--partition", "10"], data)).toMatchObject({ code: 0, err: "" });
      await expectComplete(target);
      const partitions = writtenPartitions(target).map((heights) => readPartition(target, heights));
      const rows = await Promise.all(partitions.map((partition) => rowsOfFiles(partition, "transactions")));
      expect({ seed, rows: rows.flat().toSorted() }).toEqual({ seed, rows: (await expected()).flat().toSorted() });
    });
  },
  60_000,
);

test.skipIf(!canMount()).each([
  [ours, 0.5],
  [ours, 0.9],
  [theirs, 0.5],
  [theirs, 0.9],
])(
  "an import of %s to a disk of %d times the size that it needs fails in one sentence, and is continued",
  async (source, share) => {
    const needed = await spaceFor(["import", source], disk);
    await withDisk(disk, Math.floor(needed * share), async () => {
      const { code, out, err } = await run(["import", source], disk);
      expect([code, out]).toEqual([1, ""]);
      expect(err).toMatch(/^(cairn: )?(ENOSPC: no space left on device.*|.*database or disk is full.*)\n$/i);
      enlargeDisk(disk);
      expect(await run(["import", source], disk)).toMatchObject({ code: 0, err: "" });
      const folder = join(disk, "columnar");
      await expectComplete(folder);
      const partitions = writtenPartitions(folder).map((heights) => readPartition(folder, heights));
      const rows = await Promise.all(partitions.map((partition) => rowsOfFiles(partition, "transactions")));
      expect({ seed, rows }).toEqual({ seed, rows: await expected() });
    });
  },
  60_000,
);
