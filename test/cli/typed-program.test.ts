/**
 * The words that `cairn dev` prints before commands.
 * @module
 */
import { expect, test } from "bun:test";
import { typedProgram } from "../../src/cli/typed-program.ts";

const started = {
  main: "/home/me/cairn/src/main.ts",
  execPath: "",
  cwd: "/home/me/cairn",
  bunVersion: "1.4.5",
};

test.each([
  ["bun on the path", { execPath: "/usr/local/bin/bun" }, "bun src/main.ts"],
  ["another folder", { execPath: "/usr/local/bin/bun", cwd: "/home/me" }, "bun cairn/src/main.ts"],
  [
    "npx, without which its user has no bun",
    { execPath: "/home/me/.npm/_npx/9c0/node_modules/bun/bin/bun.exe" },
    "npx --yes bun@1.4.5 src/main.ts",
  ],
  ["a binary", { main: "/$bunfs/root/cairn", execPath: "/usr/bin/cairn" }, "/usr/bin/cairn"],
])("started by %s, a command is typed so that it works", (_how, how, typed) => {
  expect(typedProgram({ ...started, ...how })).toBe(typed);
});
