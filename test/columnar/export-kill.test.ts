/**
 * N2: an export that is killed at any moment is continued, and has every row once.
 * @module
 */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { openExportRows } from "../../src/store/index/export-rows.ts";
import { temporaryFolder } from "../store/folder.ts";
import { indexFile } from "../store/index/index-file.ts";
import { createFixture } from "../store/index/index-fixture.ts";
import { canonicalRows } from "../store/index/model.ts";
import { createRandom } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";
import { readTable } from "./read-parquet.ts";

const kills = Number(process.env["KILLS"] ?? 8);
const child = new URL("./export-child.ts", import.meta.url).pathname;

test(
  `N2: ${kills} kills of an export`,
  async () => {
    const seed = newSeed();
    const random = createRandom(seed);
    using file = indexFile();
    const fixture = createFixture(random, (clock) => {
      Object.defineProperty(file, "nowMs", { get: clock });
      return file;
    });
    for (let step = 0; step < 150; step += 1) fixture.step();
    for (let block = 0; block < 20; block += 1) fixture.addBlock(3);
    const index = openExportRows(file.path);
    const end = index.stableHeight();
    index.close();
    const expected = canonicalRows(fixture.rows())
      .filter(({ place }) => place.height <= end)
      .map(({ id }) => id);

    using folder = temporaryFolder();
    let completed = 0;
    for (let kill = 0; kill < kills; kill += 1) {
      const target = `${folder.path}/${completed}`;
      const ended = await exportUntil(file.path, target, random.below(250));
      if (ended) completed += 1;
    }
    // Each folder is brought to its end: those that were complete before stay as they are.
    for (let number = 0; number <= completed; number += 1) {
      const target = `${folder.path}/${number}`;
      expect(await exportUntil(file.path, target, Number.POSITIVE_INFINITY)).toBe(true);
      const rows = await readTable(target, "transactions");
      const ids = rows.map(({ id }) => Buffer.from(id as Uint8Array).toString("base64url"));
      expect({ seed, ids: ids.toSorted() }).toEqual({ seed, ids: expected.toSorted() });
      const left = readdirSync(target, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".part"));
      expect({ seed, left }).toEqual({ seed, left: [] });
    }
  },
  60_000 + kills * 5_000,
);

/** Runs an export, kills it so long after its start, and returns whether it had completed. Milliseconds. */
async function exportUntil(indexPath: string, folder: string, killAfterMs: number): Promise<boolean> {
  const exporting = Bun.spawn(["bun", child, indexPath, folder], { stdout: "pipe", stderr: "inherit" });
  for await (const _line of exporting.stdout) {
    if (killAfterMs === Number.POSITIVE_INFINITY) continue;
    await Bun.sleep(killAfterMs); // The moment of the kill is the test's input.
    exporting.kill("SIGKILL");
  }
  return (await exporting.exited) === 0;
}
