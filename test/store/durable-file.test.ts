/**
 * Files that are complete and on the disk when they have their names.
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { replaceFile } from "../../src/store/durable-file.ts";
import { type Need, testWith } from "../support/helpers.ts";
import { temporaryFolder } from "./folder.ts";

const strace: Need = { there: Bun.which("strace") !== null, what: "strace" };

test.each([
  ["a text", "new"],
  ["bytes", new TextEncoder().encode("new")],
])("a file is replaced by %s, which only its owner reads", (_what, content) => {
  using folder = temporaryFolder();
  const path = join(folder.path, "file");
  writeFileSync(path, "the old text, which is longer");
  replaceFile(path, content);
  expect(readFileSync(path, "utf8")).toBe("new");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder.path)).toEqual(["file"]);
});

/** Runs a step in a process whose syncs fail. @returns What it prints. */
function withBadDisk(...step: readonly string[]): string {
  const faults = ["-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO"];
  const command = ["strace", "-f", "-qq", "-o", "/dev/null", ...faults, process.execPath];
  const child = [resolve(import.meta.dir, "replace-child.ts"), ...step];
  return Bun.spawnSync([...command, ...child], { stdio: ["ignore", "pipe", "ignore"] }).stdout.toString();
}

testWith(strace, "a file that cannot be synced is not replaced, and the error is reported", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "file");
  writeFileSync(path, "old");
  expect(withBadDisk("replace", path)).toBe("EIO");
  expect(readFileSync(path, "utf8")).toBe("old");
  expect(readdirSync(folder.path)).toEqual(["file"]);
});

testWith(strace, "a new database that cannot be synced does not get its name", () => {
  using folder = temporaryFolder();
  const path = join(folder.path, "ledger.sqlite");
  expect(withBadDisk("database", path)).toBe("EIO");
  expect(existsSync(path)).toBe(false);
});
