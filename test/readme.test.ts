/**
 * README held to the program: its table of settings is the program's own, what it links is there.
 * `WRITE=1 bun test test/readme.test.ts` mends it.
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { settingsTable } from "../src/config/config.ts";

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

/** What a page links in the repository, by the places of the files. */
function linksOf(page: string): string[] {
  const links = readFileSync(page, "utf8").matchAll(/\]\((?!https?:)([^)#]+)\)/g);
  return [...links].map(([, path = ""]) => resolve(page, "..", path));
}

test("every file that README links is there", () => {
  const links = linksOf(file);
  const missing = links.filter((path) => !existsSync(path));
  expect({ missing, some: links.length > 20 }).toEqual({ missing: [], some: true });
});

test("every file that the guides link is there, and every guide is linked", () => {
  const docs = resolve(import.meta.dir, "../docs");
  const guides = readdirSync(docs).filter((name) => name.endsWith(".md"));
  const pages = [...guides, ...readdirSync(join(docs, "decisions")).map((name) => join("decisions", name))];
  const missing = pages.flatMap((page) => linksOf(join(docs, page))).filter((path) => !existsSync(path));
  const linked = new Set([file, ...guides.map((name) => join(docs, name))].flatMap(linksOf));
  const lonely = guides.filter((name) => !linked.has(join(docs, name)));
  expect({ missing, lonely }).toEqual({ missing: [], lonely: [] });
});

test("every row of what it does links a test", () => {
  const table = readFileSync(file, "utf8").split("| shown by |")[1]?.split("\n\n")[0] ?? "";
  const rows = table.split("\n").filter((line) => /^\| \w/.test(line));
  const unshown = rows.filter((row) => !/\]\(test\/[^)]+\.test\.ts\)/.test(row));
  expect({ unshown, some: rows.length > 20 }).toEqual({ unshown: [], some: true });
});
