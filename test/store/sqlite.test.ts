/**
 * SQLite files across versions of the program: migrated, or rejected when they are opened.
 * @module
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { openBlockList } from "../../src/store/block-list.ts";
import { writeIdentity } from "../../src/store/database-identity.ts";
import {
  closeDatabase,
  createCheckpoints,
  openForReading,
  openForWriting,
  pageBytes,
  releaseFreePages,
} from "../../src/store/sqlite.ts";
import { temporaryFolder } from "./folder.ts";

const first = "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1);";
const second = "ALTER TABLE a ADD COLUMN y INTEGER;";

const open = (path: string, migrations: readonly string[]) =>
  openForWriting(path, { migrations, synchronous: "NORMAL", cacheBytes: 2 ** 20 });

test("a file of an older version is migrated once, with its contents", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "x.sqlite");
  for (const migrations of [[first], [first, second], [first, second]]) closeDatabase(open(path, migrations));
  const db = new Database(path);
  expect(db.query("SELECT * FROM a").all()).toEqual([{ x: 1, y: null }]);
  expect(db.query("SELECT version FROM schema_version").all()).toEqual([{ version: 2 }]);
  expect(db.query("SELECT count(*) AS n FROM schema_fingerprint").get()).toEqual({ n: 1 });
  db.close();
});

const edited = [first.replace("x INTEGER", "x INTEGER NOT NULL"), second];
const rejections: [string, readonly string[], string][] = [
  ["whose last script was edited", [first, `${second} CREATE TABLE b (x INTEGER) STRICT;`], "version 2 has"],
  ["whose first script was edited", edited, "version 2 has the fingerprint"],
  ["that has run more scripts", [first], "a newer program created this database: its version is 2, this build knows 1"],
];
test.each(rejections)("a file %s is rejected when it is opened, and stays unchanged", (_, migrations, reason) => {
  using folder = temporaryFolder();
  const path = join(folder.path, "x.sqlite");
  closeDatabase(open(path, [first, second]));
  expect(() => open(path, migrations)).toThrow(`cannot open the database ${path}: `);
  expect(() => open(path, migrations)).toThrow(reason);
  closeDatabase(open(path, [first, second]));
});

test("a file from before fingerprints were stored is rejected", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "moderation.sqlite");
  openBlockList(path, () => 0).close();
  const db = new Database(path);
  db.run("DROP TABLE schema_fingerprint");
  db.close();
  expect(() => openBlockList(path, () => 0)).toThrow("has the fingerprint none");
});

test("a file that the program created becomes smaller when rows are removed", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "index.sqlite");
  // The program writes the identity before the first table.
  writeIdentity(path, { id: "id", generation: 0 }, { pageBytes });
  const db = open(path, [first]);
  db.run(
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100000) INSERT INTO a SELECT x FROM n",
  );
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  const before = statSync(path).size;
  db.run("DELETE FROM a");
  expect(releaseFreePages(db)).toBe(false);
  closeDatabase(db);
  expect(before).toBeGreaterThan(800_000);
  expect(statSync(path).size).toBeLessThan(100_000);
});

test("many free pages are returned in steps, so that others can use the connection in between", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "x.sqlite");
  const db = open(path, [first, "CREATE TABLE b (bytes BLOB) STRICT;"]);
  const count = 5_000;
  db.run(
    `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ${count})
     INSERT INTO b SELECT zeroblob(${pageBytes - 100}) FROM n`,
  );
  db.run("DELETE FROM b");
  const free = () => db.query<{ freelist_count: number }, []>("PRAGMA freelist_count").get()?.freelist_count ?? 0;
  const left = [free()];
  while (releaseFreePages(db)) left.push(free());
  expect(free()).toBe(0);
  expect(left.length).toBe(3);
  for (const [step, pages] of left.slice(1).entries()) expect((left[step] ?? 0) - pages).toBe(2_000);
  closeDatabase(db);
  expect(statSync(path).size).toBeLessThan(100_000);
});

test("another connection folds a long log into the file, and leaves a short one", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "x.sqlite");
  const writer = openForWriting(path, {
    migrations: [first],
    synchronous: "NORMAL",
    cacheBytes: 2 ** 20,
    checkpointPages: 8_000,
  });
  const other = openForReading(path, 2 ** 20);
  const checkpoint = createCheckpoints(other, 100);
  const pagesLeft = (): number => {
    const [state] = other.query<{ log: number; checkpointed: number }, []>("PRAGMA wal_checkpoint(NOOP)").all();
    return (state?.log ?? 0) - (state?.checkpointed ?? 0);
  };
  writer.run("CREATE TABLE b (x BLOB NOT NULL) STRICT");
  const before = pagesLeft();
  checkpoint();
  expect(pagesLeft()).toBe(before);

  for (let count = 0; count < 200; count += 1) writer.run("INSERT INTO b VALUES (zeroblob(?))", [pageBytes]);
  expect(pagesLeft()).toBeGreaterThan(200);
  checkpoint();
  expect(pagesLeft()).toBe(0);
  // The writer begins the log anew.
  writer.run("INSERT INTO b VALUES (zeroblob(1))");
  expect(other.query("SELECT count(*) AS n FROM b").get()).toEqual({ n: 201 });
  closeDatabase(other);
  closeDatabase(writer);
});
