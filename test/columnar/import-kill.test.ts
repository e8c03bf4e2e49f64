/**
 * N2: an import that is killed at any moment is continued by the same command, and lists every item once.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { openDuckdbStore } from "../../src/columnar/duckdb-store.ts";
import { openIndexReader } from "../../src/store/index/index-reader.ts";
import { allColumns } from "../../src/store/index/index-types.ts";
import { complaintsIn, runCairn } from "../cli/command.ts";
import { temporaryFolder } from "../store/folder.ts";
import { createRandom } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";
import { writeArIoNodeExport } from "./ar-io-node-export.ts";
import { exportedChain } from "./exported-chain.ts";
import { readTable } from "./read-parquet.ts";
import { createTextPages } from "./text-pages.ts";

const kills = Number(process.env["KILLS"] ?? 6);
const seed = newSeed();
const random = createRandom(seed);

let place: ReturnType<typeof temporaryFolder>;
let expected: string[];
beforeAll(async () => {
  place = temporaryFolder();
  const ours = join(place.path, "ours");
  using chain = exportedChain(seed, 200);
  for (let start = 100; start <= chain.end; start += 5)
    await chain.exportTo(ours, { start, end: Math.min(start + 4, chain.end) });
  await writeArIoNodeExport(ours, join(place.path, "theirs"));
  const items = (await readTable(ours, "transactions")).filter((row) => row["is_data_item"] === true);
  expected = items.map((row) => Buffer.from(row["id"] as Uint8Array).toString("base64url"));
});
afterAll(() => place[Symbol.dispose]());

test.each(["ours", "theirs"])(
  `N2: ${kills} kills of an import of %s`,
  async (source) => {
    let data = "";
    let completed = true;
    for (let kill = 0; kill < kills; kill += 1) {
      if (completed) data = join(place.path, `${source}-${kill}`);
      const { code } = await importUntil(data, source, 150 + random.below(600));
      completed = code === 0;
      if (completed) await expectAll(data);
    }
    const { code, err } = await importUntil(data, source, undefined);
    // A slow machine shows the progress.
    expect({ code, errors: err.split("\n").filter((line) => !/^(importing .*)?$/.test(line)) }).toEqual({
      code: 0,
      errors: [],
    });
    await expectAll(data);
  },
  60_000 + kills * 10_000,
);

/** Runs the command, and kills it so long after its start. Milliseconds. */
async function importUntil(data: string, source: string, killAfterMs: number | undefined) {
  mkdirSync(data, { recursive: true });
  let timer: Timer | undefined;
  const ran = await runCairn(["import", join(place.path, source)], {
    environment: { DATA_DIR: data, COLUMNAR_STORE: "duckdb" },
    onStart: (child) => {
      if (killAfterMs !== undefined) timer = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
    },
  });
  clearTimeout(timer);
  return { ...ran, err: complaintsIn(ran.err) };
}

/** Every item of the export is listed once, and counted. */
async function expectAll(data: string): Promise<void> {
  const folder = realpathSync(join(data, "columnar"));
  const reader = openIndexReader(join(data, "index.sqlite"));
  const store = await openDuckdbStore({ folder, libraryFolder: folder });
  const { signal } = new AbortController();
  const plan = { order: "asc", limit: 100_000, columns: allColumns } as const;
  const { rows } = await createTextPages(reader, store, () => signal).page(plan);
  expect({ seed, ids: rows.map(({ id }) => String(id)) }).toEqual({ seed, ids: expected });
  expect({ seed, count: reader.counts().storedItems }).toEqual({ seed, count: expected.length });
  await store.close();
  reader.close();
}
