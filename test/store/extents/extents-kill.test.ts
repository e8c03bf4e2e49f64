/**
 * The content cache and kill -9: flushed roots are present, present bytes are right, and no orphaned file remains.
 * KILLS sets how many.
 * @module
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { madeBytes } from "../../chain/data-node.ts";
import { newSeed } from "../../support/seed.ts";
import { killedRoot, killedRootBytes, openKilledExtents } from "./killed-roots.ts";

const folder = mkdtempSync(join(tmpdir(), "cairn-kill-"));
afterAll(() => removeFolder(folder));

const kills = Number(process.env["KILLS"] ?? 12);
const bytesMax = 24 * 2 ** 20;

test(
  `N2: after each of ${kills} kills the flushed roots are complete, no present byte is wrong, and no file is orphaned`,
  async () => {
    const seed = newSeed();
    let next = 0;
    let present = 0;
    for (let kill = 0; kill < kills; kill++) {
      const waitMs = 30 + ((seed >> kill) % 97);
      const written = await writeUntilKilled(next, waitMs);
      const extents = openKilledExtents(folder, bytesMax);
      expect(extents.integrity()).toEqual([]);
      for (let number = 0; number <= written + 40; number++) {
        const expected = madeBytes(number, killedRootBytes);
        for (let start = 0; start < killedRootBytes; start += 65_536) {
          const span = { start, end: Math.min(killedRootBytes, start + 65_536) };
          const bytes = await extents.read(killedRoot(number), span);
          if (bytes === undefined) continue;
          present += 1;
          expect(Buffer.compare(bytes, expected.subarray(span.start, span.end))).toBe(0);
        }
      }
      // The last root of a flush cannot have been evicted for the roots written just after it.
      const whole = { start: 0, end: killedRootBytes };
      if (written >= 0) expect(extents.present(killedRoot(written), whole)).toBe(true);
      expect(extents.stats()).toMatchObject({ damagedSteps: 0, lostFiles: 0 });
      expect(extents.stats().bytes).toBeLessThanOrEqual(bytesMax);
      await extents.close(); // waits for the sweep
      expect(filesOnDisk()).toBeLessThanOrEqual(Math.ceil(bytesMax / killedRootBytes) + 1);
      next = Math.max(next, written + 1) + 40;
    }
    expect(present).toBeGreaterThan(100);
  },
  20_000 + kills * 8_000,
);

/** Runs the writer; kills it some time after its first flush. @returns The last flushed root. */
async function writeUntilKilled(first: number, waitMs: number): Promise<number> {
  const writer = Bun.spawn(
    [process.execPath, new URL("./extents-writer.ts", import.meta.url).pathname, folder, String(first)],
    {
      stdout: "pipe",
      stderr: "inherit",
    },
  );
  let last = -1;
  let isDoomed = false;
  for await (const piece of writer.stdout.pipeThrough(new TextDecoderStream())) {
    if (!isDoomed) setTimeout(() => writer.kill("SIGKILL"), waitMs);
    isDoomed = true;
    const lines = piece.split("\n").filter((line) => line !== "");
    last = Math.max(last, ...lines.map(Number));
  }
  await writer.exited;
  return last;
}

function filesOnDisk(): number {
  const content = join(folder, "content");
  return readdirSync(content).reduce((sum, part) => sum + readdirSync(join(content, part)).length, 0);
}
