/**
 * `cairn sql` as an operator runs it: what it prints, what it rejects, and that it changes nothing.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { exportedChain } from "../columnar/exported-chain.ts";
import { readTable } from "../columnar/read-parquet.ts";
import { temporaryFolder } from "../store/folder.ts";
import { repositoryRoot } from "../support/program.ts";
import { newSeed } from "../support/seed.ts";
import { eventually } from "../support/until.ts";
import { runCairn } from "./command.ts";

const place = temporaryFolder();
const folder = join(place.path, "export");
let files: string[];

const listed = () => readdirSync(place.path, { recursive: true, encoding: "utf8" }).sort();

beforeAll(async () => {
  using chain = exportedChain(newSeed(), 100);
  mkdirSync(folder);
  await chain.exportTo(folder, { start: 100, end: chain.end });
  writeFileSync(join(place.path, "secret.csv"), "a,b\n1,2\n");
  files = listed();
});
afterAll(() => place[Symbol.dispose]());

const environment = { DATA_DIR: place.path, XDG_STATE_HOME: join(place.path, "state") };
const sql = (...words: string[]) => runCairn(["sql", ...words], { environment, cwd: place.path });
const inFolder = (...words: string[]) => sql("--folder", folder, ...words);
const json = async (query: string) => JSON.parse((await inFolder(query, "--json")).out);

const text = (bytes: unknown) => (bytes instanceof Uint8Array ? Buffer.from(bytes).toString("base64url") : null);
const utf8 = (bytes: unknown) => (bytes instanceof Uint8Array ? Buffer.from(bytes).toString() : "");

describe("cairn sql", () => {
  test("shows each exported row as an item with ids and times as text", async () => {
    const [transactions, blocks, tags] = await Promise.all([
      readTable(folder, "transactions"),
      readTable(folder, "blocks"),
      readTable(folder, "tags"),
    ]);
    const times = new Map(blocks.map((block) => [block["height"], Number(block["block_timestamp"])]));
    const items = await json("SELECT *, epoch(time) AS seconds, tags_of(place) AS tags FROM items ORDER BY place");
    expect(items).toHaveLength(transactions.length);
    const sorted = transactions.toSorted((a, b) => (BigInt(String(a["place"])) < BigInt(String(b["place"])) ? -1 : 1));
    for (const [index, row] of sorted.entries()) {
      const own = tags
        .filter((tag) => tag["place"] === row["place"])
        .toSorted((a, b) => Number(a["tag_index"]) - Number(b["tag_index"]));
      expect(items[index]).toMatchObject({
        id: text(row["id"]),
        is_data_item: row["is_data_item"],
        height: Number(row["height"]),
        seconds: times.get(row["height"]) ?? null,
        owner: text(row["owner_address"]),
        target: text(row["target"] ?? null),
        anchor: text(row["anchor"] ?? null),
        parent: text(row["parent"] ?? null),
        root: text(row["root_transaction_id"] ?? null),
        size: Number(row["data_size"]),
        tags:
          own.length === 0 ? null : own.map((tag) => ({ name: utf8(tag["tag_name"]), value: utf8(tag["tag_value"]) })),
      });
    }
  });

  test("sums bytes by a tag and month in one line", async () => {
    const sizes = new Map<string | null, number>();
    const types = new Map<unknown, string>();
    for (const tag of (await readTable(folder, "tags")).toReversed())
      if (utf8(tag["tag_name"]) === "Content-Type") types.set(tag["place"], utf8(tag["tag_value"]));
    for (const row of await readTable(folder, "transactions")) {
      const type = types.get(row["place"]) ?? null;
      sizes.set(type, (sizes.get(type) ?? 0) + Number(row["data_size"]));
    }
    const by = "date_trunc('month', time) AS month, sum(size) AS bytes";
    const rows = await json(`SELECT tag(place, 'Content-Type') AS type, ${by} FROM items GROUP BY ALL`);
    const sums = (rows as readonly { type: string | null; bytes: number }[]).map(
      ({ type, bytes }) => [type, bytes] as const,
    );
    expect(new Map(sums)).toEqual(sizes);
    const [tagged] = await json("SELECT count(*) AS count FROM item_tags WHERE name = 'Content-Type'");
    expect(tagged.count).toBeGreaterThanOrEqual(types.size);
  });

  test("prints a table, CSV and JSON", async () => {
    const query = `SELECT 'a"b,c' AS text, NULL AS nothing, 12 AS number, [1, 2] AS list, 1.50 AS amount`;
    expect(await inFolder(query)).toMatchObject({
      code: 0,
      out: 'text   nothing  number  list    amount\n-----  -------  ------  ------  ------\na"b,c               12  [1, 2]  1.50\n(1 row)\n',
    });
    expect((await inFolder(query, "--csv")).out).toBe('text,nothing,number,list,amount\n"a""b,c",,12,"[1, 2]",1.50\n');
    expect(await json(query)).toEqual([{ text: 'a"b,c', nothing: null, number: 12, list: [1, 2], amount: "1.50" }]);
    expect(await json("SELECT 1 WHERE false")).toEqual([]);
    expect(await json("SELECT 9007199254740993 AS large, {'a': 1} AS fields, MAP {'k': 2} AS entries")).toEqual([
      { large: "9007199254740993", fields: { a: 1 }, entries: { k: 2 } },
    ]);
    expect((await inFolder("SELECT chr(27) || '[31m' AS colour")).out).toContain("\\x1b[31m");
  });

  test("describes tables and explains selections", async () => {
    expect((await json("DESCRIBE tags")).map((row: { column_name: string }) => row.column_name)).toContain("tag_name");
    const plan = await inFolder("EXPLAIN (FORMAT text) SELECT count(*) FROM items");
    expect(plan).toMatchObject({ code: 0, out: expect.stringContaining("READ_PARQUET") });
    expect((await inFolder("/* a comment */ -- another\n(SELECT 1)")).code).toBe(0);
  });

  test("runs nothing but one selection, and leaves the folder as it was", async () => {
    const path = join(folder, "evil");
    const statements = [
      "",
      "SELEC 1",
      `COPY (SELECT 1) TO '${path}'`,
      `EXPLAIN ANALYZE COPY (SELECT 1) TO '${path}'`,
      `EXPLAIN (ANALYZE) COPY (SELECT 1) TO '${path}'`,
      `EXPLAIN /* a */ ANALYZE COPY (SELECT 1) TO '${path}'`,
      `/* a */ EXPORT DATABASE '${path}'`,
      `EXPLAIN EXPORT DATABASE '${path}'`,
      `SELECT 1; EXPORT DATABASE '${path}'`,
      `ATTACH '${path}'`,
      "INSTALL httpfs",
      "LOAD httpfs",
      "SET lock_configuration = false",
      "PRAGMA enable_profiling",
      "CREATE TABLE items2 AS SELECT 1",
      "DROP VIEW items",
      "CALL enable_logging('QueryLog')",
      "USE memory",
      "CHECKPOINT",
    ];
    for (const statement of statements) {
      const { code, out, err } = await inFolder(statement);
      expect([statement, code, out, err]).toEqual([
        statement,
        2,
        "",
        "expected one SELECT, WITH, DESCRIBE or EXPLAIN statement: the files are read-only\n",
      ]);
    }
    for (const statement of [
      "WITH a AS (SELECT 1) INSERT INTO items SELECT * FROM a",
      `SELECT * FROM enable_logging('QueryLog', storage = 'file', storage_path = '${path}'), items`,
      `SELECT * FROM enable_profiling(save_location = '${path}.txt'), items`,
      `SELECT * FROM query('COPY (SELECT 1) TO "${path}"')`,
    ]) {
      await inFolder(statement);
    }
    expect(listed()).toEqual(files);
  }, 60_000);

  test("reads no file outside the folder", async () => {
    const secret = join(place.path, "secret.csv");
    for (const query of [
      "SELECT * FROM read_text('/etc/passwd')",
      `SELECT * FROM '${secret}'`,
      `SELECT * FROM read_csv('${folder}/../secret.csv')`,
      "SELECT * FROM glob('/etc/*')",
      "SELECT * FROM read_parquet('https://example.com/a.parquet')",
      "SELECT * FROM read_parquet('s3://bucket/a.parquet')",
      `SELECT * FROM sniff_csv('${secret}')`,
    ]) {
      const { code, out, err } = await inFolder(query);
      expect([query, code, out, err]).toEqual([query, 1, "", expect.stringMatching(/^cairn: DuckDB: /)]);
    }
    expect(listed()).toEqual(files);
  }, 60_000);

  test("explains errors with a hint", async () => {
    const { code, err } = await inFolder("SELECT nope FROM items");
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/"nope" not found[\s\S]*\ntables: items, item_tags, .*DESCRIBE items"\n$/),
    ]);
    const none = join(place.path, "none");
    expect(await sql("SELECT 1", "--folder", none)).toMatchObject({
      code: 2,
      err: `invalid value '${none}' for --folder: expected a folder of \`cairn export\`\n`,
    });
    expect((await sql("SELECT 1", "--folder", place.path)).err).toBe(
      `no exported files in ${place.path}; write some with: cairn export ${place.path}\n`,
    );
    expect((await inFolder("SELECT 1", "--json", "--csv")).err).toBe("--json and --csv exclude each other\n");
  });

  test("reads the exports of the data folder by default", async () => {
    expect(await sql("SELECT count(*) > 0 AS some FROM items", "--csv")).toMatchObject({
      code: 0,
      out: "some\ntrue\n",
    });
  });

  test("ends without a word when its reader has closed the pipe, and in one line when the disk is full", async () => {
    const command = [process.execPath, resolve(repositoryRoot, "src/main.ts"), "sql", "--folder", folder, "SELECT 1"];
    const env = { ...process.env, ...environment };
    const closed = Bun.spawn(command, { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    await closed.stdout.cancel();
    expect([await new Response(closed.stderr).text(), await closed.exited]).toEqual(["", 0]);
    const full = Bun.spawn(command, { env, stdin: "ignore", stdout: Bun.file("/dev/full"), stderr: "pipe" });
    const complained = await new Response(full.stderr).text();
    expect([complained, await full.exited]).toEqual([expect.stringMatching(/^ENOSPC: .*\n$/), 1]);
  });

  test("prints rows as they arrive, ends with its reader, and stops at SIGINT", async () => {
    const started = performance.now();
    let first = 0;
    const large = await runCairn(
      ["sql", "--folder", folder, "--csv", "SELECT range, repeat('x', 100) FROM range(400000)"],
      {
        environment,
        onText: () => {
          first ||= performance.now() - started;
        },
      },
    );
    expect([large.code, large.err]).toEqual([0, ""]);
    expect(large.out.split("\n")).toHaveLength(400_002);
    expect(first).toBeLessThan(performance.now() - started);
    expect(large.peakBytes).toBeLessThan(400 * 2 ** 20);

    const temporary = join(place.path, "temporary");
    mkdirSync(temporary);
    let child: Readonly<{ kill: (signal: NodeJS.Signals) => void }> | undefined;
    const endless = "SELECT sum(a.range * b.range) FROM range(100000000) a, range(100000000) b";
    const ended = runCairn(["sql", "--folder", folder, endless], {
      environment: { ...environment, TMPDIR: temporary },
      onStart: (opened) => {
        child = opened;
      },
    });
    const spillFolders = () => readdirSync(temporary).filter((name) => name.startsWith("cairn-sql-"));
    await eventually(spillFolders, (names) => names.length > 0);
    child?.kill("SIGINT");
    expect(await ended).toMatchObject({ code: 130, out: "", err: "cairn: interrupted\n" });
    expect(spillFolders()).toEqual([]);
  }, 30_000);
});
