/**
 * The commands of exported history, given wrong arguments: one sentence each, and nothing is written.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../store/folder.ts";
import { indexFile } from "../store/index/index-file.ts";
import { createFixture } from "../store/index/index-fixture.ts";
import { createRandom } from "../support/random.ts";
import { newSeed } from "../support/seed.ts";
import { runCairn } from "./command.ts";

const place = temporaryFolder();
const at = (name: string) => join(place.path, name);
const id = "A".repeat(43);

beforeAll(() => {
  for (const name of ["no-index", "short", "empty", "full"]) mkdirSync(at(name));
  for (const [name, blocks] of [
    ["short", 3],
    ["full", 40],
  ] as const) {
    const file = indexFile();
    const fixture = createFixture(createRandom(newSeed()), (clock) => {
      Object.defineProperty(file, "nowMs", { get: clock });
      return file;
    });
    for (let block = 0; block < blocks; block += 1) fixture.addBlock(2);
    file.reader.close();
    file.writer.close();
    renameSync(file.path, join(at(name), "index.sqlite"));
  }
});
afterAll(() => place[Symbol.dispose]());

test.each<[words: string[], data: string, message: string]>([
  [["export"], "full", "missing argument <folder> for 'cairn export'; see cairn export --help"],
  [["export", "a", "b"], "full", "unexpected argument 'b' for 'cairn export'"],
  [["export", "a"], "no-index", "{data} has no index; fill one with: cairn serve"],
  [["export", "a"], "short", "the index in {data} has no final block yet: those are 18 below the newest one"],
  [["export", "a", "--from", "-1"], "full", "invalid value '-1' for --from: expected 0–4194302"],
  [["export", "a", "--to", "x"], "full", "invalid value 'x' for --to: expected 0–4194302"],
  [["export", "a", "--rows", "1.5"], "full", "invalid value '1.5' for --rows: expected 0–2147483648"],
  [["export", "a", "--partition", "0"], "full", "invalid value '0' for --partition: expected 1–4194302"],
  [["export", "a", "--from", "9", "--to", "8"], "full", "--to must not be below --from"],
  [["import"], "full", "missing argument <folder> for 'cairn import'; see cairn import --help"],
  [["import", "a"], "full", "cairn import requires COLUMNAR_STORE: duckdb or clickhouse"],
  [["import", "a", "--from", "other"], "full", "invalid value 'other' for --from: expected ar-io-node"],
  [["snapshot"], "full", "missing argument <action> for 'cairn snapshot'; see cairn snapshot --help"],
  [
    ["snapshot", "publish", "{empty}"],
    "full",
    "{empty} has no exported partitions; write some with: cairn export {empty}",
  ],
  [["snapshot", "fetch", "x"], "full", "invalid value 'x' for <id>: expected an id of 43 base64url characters"],
  [["snapshot", "fetch", id], "full", "missing option --gateway"],
  [["snapshot", "delete", id], "full", "invalid value 'delete' for <action>: expected publish or fetch"],
  [["sql"], "full", "missing argument <query> for 'cairn sql'; see cairn sql --help"],
  [["sql", "SELECT 1"], "full", "no exported files in {data}; write some with: cairn export {data}/export"],
  [
    ["sql", "SELECT 1", "--folder", "{empty}"],
    "full",
    "no exported files in {empty}; write some with: cairn export {empty}",
  ],
  [["sql", "SELECT 1", "--json", "--csv"], "full", "--json and --csv exclude each other"],
])("cairn %p in the folder %s", async (words, data, message) => {
  const filled = (text: string) => text.replaceAll("{data}", at(data)).replaceAll("{empty}", at("empty"));
  const before = readdirSync(place.path, { recursive: true }).sort();
  const ran = await runCairn(words.map(filled), { environment: { DATA_DIR: at(data) }, cwd: at("empty") });
  expect({ ...ran, err: ran.err.trimEnd() }).toMatchObject({ code: 2, out: "", err: filled(message) });
  const after = readdirSync(place.path, { recursive: true }).sort();
  // Databases leave their shared memory there, and the folder its lock.
  expect(after.filter((name) => !/-(shm|wal)$|lock\.sqlite$/.test(String(name)))).toEqual(
    before.filter((name) => !/-(shm|wal)$|lock\.sqlite$/.test(String(name))),
  );
});

test("an import of a folder without exports fails in one sentence", async () => {
  const environment = { DATA_DIR: at("empty"), COLUMNAR_STORE: "duckdb" };
  for (const folder of [at("no-index"), at("absent")]) {
    const { code, out, err } = await runCairn(["import", folder], { environment });
    expect([code, out, err]).toEqual([1, "", `cairn: ${folder} has no exported partitions\n`]);
  }
});
