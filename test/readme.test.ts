/**
 * README and the pages of docs/: every link leads to a file, every feature has a test.
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const file = resolve(import.meta.dir, "../README.md");
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

test("README is a first page: at most 120 lines", () => {
  expect(readFileSync(file, "utf8").split("\n").length).toBeLessThanOrEqual(121);
});

test("every feature links a test", () => {
  const features = resolve(import.meta.dir, "../docs/features.md");
  const table = readFileSync(features, "utf8").split("| shown by |")[1]?.split("\n\n")[0] ?? "";
  const rows = table.split("\n").filter((line) => /^\| \w/.test(line));
  const unshown = rows.filter((row) => !/\]\(\.\.\/test\/[^)]+\.test\.ts\)/.test(row));
  expect({ unshown, some: rows.length > 20 }).toEqual({ unshown: [], some: true });
});
