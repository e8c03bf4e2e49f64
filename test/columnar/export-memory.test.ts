/**
 * The memory of an export is bounded, whatever the rows of a partition.
 * @module
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../store/folder.ts";

const child = new URL("./export-memory-child.ts", import.meta.url).pathname;

/** Each has some twenty rows in all tables. */
const items = Number(process.env["ITEMS"] ?? 50_000);

/** A run of postings has 24 MiB, a row group some, and the garbage collector doubles that (docs/evidence.md). MiB. */
const peakMax = 512;

test(`an export of ${items} items in one partition`, async () => {
  using folder = temporaryFolder();
  const exporting = Bun.spawn(["bun", child, join(folder.path, "out"), String(items)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const { peak, rows } = JSON.parse(await new Response(exporting.stdout).text());
  console.log(`${rows} rows: ${Math.round(peak)} MiB`);
  expect(rows).toBeGreaterThanOrEqual(items * 20);
  expect(peak).toBeLessThan(peakMax);
}, 600_000);
