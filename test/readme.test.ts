/**
 * README held to the program: its table of settings is the program's own, what it links is there.
 * `WRITE=1 bun test test/readme.test.ts` mends it.
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { settingsTable } from "../src/config.ts";

const file = resolve(import.meta.dir, "../README.md");
const begin = "<!-- settings: written by test/readme.test.ts -->";
const end = "<!-- end of settings -->";

test("README's table of settings is the program's own", () => {
  const text = readFileSync(file, "utf8");
  const from = text.indexOf(begin) + begin.length;
  const wanted = `${text.slice(0, from)}\n\n${settingsTable()}\n\n${text.slice(text.indexOf(end))}`;
  if (process.env["WRITE"] === "1") writeFileSync(file, wanted);
  expect(readFileSync(file, "utf8")).toBe(wanted);
});

test("every file that README links is there", () => {
  const links = [...readFileSync(file, "utf8").matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(
    ([, path]) => path ?? "",
  );
  const missing = links.filter((path) => !existsSync(resolve(file, "..", path)));
  expect({ missing, some: links.length > 20 }).toEqual({ missing: [], some: true });
});
