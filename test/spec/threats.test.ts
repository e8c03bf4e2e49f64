/**
 * Every row of the threat table that belongs to the gateway has a test that names it.
 * Source: reference/trust.md A3; issue "Faults and limits".
 * @module
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Glob } from "bun";

const tests = resolve(import.meta.dir, "..");
const rows = ["R1", "R2", "R3", "C1", "C2", "C3", "C4", "C5", "C6", "X1", "X2", "X3", "M1"];
const more = ["G1", "G2", "S1", "S2", "K1", "P1", "N1", "N3", "N4"];

/** A name of a test or of a group that begins with rows: "R1, R2: a body in …". */
const named = /\b(?:test|describe)(?:\.each\([\s\S]*?\))?\(\s*["'`]((?:[A-Z]\d(?:, )?)+): /g;

test.each([...rows, ...more])("%s is named by a test", async (row) => {
  const files = [...new Glob("**/*.test.ts").scanSync({ cwd: tests })].filter(
    (file) => !file.includes("node_modules"),
  );
  const found = files.filter((file) => {
    const text = readFileSync(resolve(tests, file), "utf8");
    return (
      [...text.matchAll(named)].some(([, names = ""]) => names.split(", ").includes(row)) ||
      new RegExp(`^\\s*\\]?\\)?\\(["'\`](?:[A-Z]\\d, )*${row}: `, "m").test(text)
    );
  });
  expect(found).not.toEqual([]);
});
