/**
 * The identity of a database file: a new file is complete when it has its name, and an existing one keeps what it has.
 * @module
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { readIdentity, writeIdentity } from "../../src/store/database-identity.ts";
import { temporaryFolder } from "./folder.ts";

const options = { pageBytes: 8_192 };

test("a new file has its identity, its page size and a log for writing ahead", () => {
  using folder = temporaryFolder();
  const path = `${folder.path}/ledger.sqlite`;
  expect(readIdentity(path)).toEqual({ kind: "absent" });
  writeIdentity(path, { id: "one", generation: 1 }, options);
  expect(readIdentity(path)).toEqual({ kind: "marked", id: "one", generation: 1 });
  const db = new Database(path, { readonly: true });
  const read = (name: string) => Object.values(db.query<Record<string, unknown>, []>(`PRAGMA ${name}`).get() ?? {});
  expect([read("page_size"), read("auto_vacuum"), read("journal_mode")]).toEqual([[8_192], [2], ["wal"]]);
  expect(read("integrity_check")).toEqual(["ok"]);
  db.close();
});

test("what an interrupted start left of a new file is replaced", () => {
  using folder = temporaryFolder();
  const path = `${folder.path}/ledger.sqlite`;
  writeFileSync(`${path}.new`, "more than a page ".repeat(4_096));
  writeIdentity(path, { id: "two", generation: 1 }, options);
  expect(readIdentity(path)).toEqual({ kind: "marked", id: "two", generation: 1 });
  expect(readdirSync(folder.path).filter((name) => name.includes(".new"))).toEqual([]);
});

test("an existing file keeps what it has, and gets the next generation", () => {
  using folder = temporaryFolder();
  const path = `${folder.path}/ledger.sqlite`;
  writeIdentity(path, { id: "three", generation: 1 }, options);
  const db = new Database(path);
  db.run("CREATE TABLE rows (text TEXT)");
  db.run("INSERT INTO rows VALUES ('here')");
  db.close();
  writeIdentity(path, { id: "three", generation: 2 }, options);
  expect(readIdentity(path)).toEqual({ kind: "marked", id: "three", generation: 2 });
  const again = new Database(path, { readonly: true });
  expect(again.query("SELECT text FROM rows").all()).toEqual([{ text: "here" }]);
  again.close();
  expect(existsSync(`${path}.new`)).toBe(false);
});
