/**
 * The program name in the commands that `cairn dev` prints.
 * @module
 */
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startedAs, typedProgram } from "../../src/cli/environment.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";

const started = { main: "/home/me/cairn/src/main.ts", cwd: "/home/me/cairn", bunVersion: "1.4.5" };
const bun = { execPath: "/usr/local/bin/bun", hasBun: true };

test.each([
  ["bun on the path", bun, "bun src/main.ts"],
  ["bun in another folder", { ...bun, cwd: "/home/me" }, "bun cairn/src/main.ts"],
  ["npx, without which its user has no bun", { ...bun, hasBun: false }, "npx --yes bun@1.4.5 src/main.ts"],
  ["a binary", { main: "/$bunfs/root/cairn", execPath: "/usr/bin/cairn", hasBun: false }, "/usr/bin/cairn"],
])("started by %s, the printed command works", (_how, how, typed) => {
  expect(typedProgram({ ...started, ...how })).toBe(typed);
});

test("bun counts as installed only in a permanent folder: not that of npx, nor that of the runtime for scripts", () => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-path-"));
  try {
    const binIn = (path: string) => {
      mkdirSync(join(folder, path), { recursive: true });
      symlinkSync(process.execPath, join(folder, path, "bun"));
      return join(folder, path);
    };
    const passing = [binIn("home/.npm/_npx/9c0/node_modules/.bin"), binIn("bun-node-a7733435c"), "/nowhere"];
    expect(startedAs(passing.join(":")).hasBun).toBe(false);
    expect(startedAs([...passing, binIn("bin")].join(":")).hasBun).toBe(true);
    expect(startedAs("").hasBun).toBe(false);
  } finally {
    removeFolder(folder);
  }
});
