/**
 * Removal of folders while another process removes some of their entries.
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";

/** The runtime's own removal leaves the folder in a third of the rounds. */
const rounds = 30;

/** Removes every fourth file of a folder. */
const removesFiles =
  "const [folder] = process.argv.slice(1); console.log('ready');" +
  "for (let at = 0; at < 400; at += 4) require('node:fs').rmSync(folder + '/' + at, { force: true });";

test("a folder is removed while another process removes its files", async () => {
  for (let round = 0; round < rounds; round += 1) {
    const folder = folderOf(400);
    const other = Bun.spawn([process.execPath, "-e", removesFiles, folder], { stdout: "pipe" });
    await other.stdout.getReader().read();
    removeFolder(folder);
    await other.exited;
    expect(existsSync(folder)).toBe(false);
  }
}, 60_000);

test("a link that leads nowhere is removed, and what a link leads to stays", () => {
  const folder = folderOf(1);
  symlinkSync(join(folder, "nowhere"), join(folder, "dangling"));
  const target = folderOf(1);
  symlinkSync(target, join(folder, "away"));
  removeFolder(join(folder, "dangling"));
  expect(readdirSync(folder).sort()).toEqual(["0", "away"]);
  removeFolder(folder);
  expect([existsSync(folder), readdirSync(target)]).toEqual([false, ["0"]]);
  removeFolder(target);
});

test("a folder with others in it, a file, and what is not there", () => {
  const folder = folderOf(3);
  mkdirSync(join(folder, "a", "b"), { recursive: true });
  writeFileSync(join(folder, "a", "b", "file"), "");
  removeFolder(join(folder, "1"));
  expect(existsSync(join(folder, "1"))).toBe(false);
  removeFolder(folder);
  expect(existsSync(folder)).toBe(false);
  removeFolder(folder);
});

function folderOf(files: number): string {
  const folder = mkdtempSync(join(tmpdir(), "cairn-remove-"));
  for (let at = 0; at < files; at += 1) writeFileSync(join(folder, String(at)), "");
  return folder;
}
