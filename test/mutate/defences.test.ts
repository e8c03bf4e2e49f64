/**
 * The tables of defences match the program: each text is still there, once, and what takes its place can be read.
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { threats } from "../support/threats.ts";
import { defences } from "./defences.ts";

const root = resolve(import.meta.dir, "../..");
const transpiler = new Bun.Transpiler({ loader: "ts" });

test("the names of the defences are distinct within their files", () => {
  const names = defences.map(({ file, name }) => `${file}: ${name}`);
  expect(new Set(names).size).toBe(names.length);
});

test.each(defences)("$threat, $name: its text occurs once in $file", ({ file, text, instead }) => {
  const source = readFileSync(resolve(root, file), "utf8");
  expect(source.split(text).length - 1).toBe(1);
  expect(() => transpiler.transformSync(source.replace(text, () => instead))).not.toThrow();
});

test("every defence names a row of the threat model, and tests that are there", () => {
  const rows = new Set(threats.map(({ name }) => name));
  const wrong = defences.filter(
    ({ threat, tests }) =>
      !rows.has(threat) || tests.length === 0 || !tests.every((path) => existsSync(resolve(root, path))),
  );
  expect(wrong).toEqual([]);
});
