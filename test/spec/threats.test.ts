/**
 * Every row of the threat table that belongs to the gateway and to payment has a test that names it, and so has every
 * fault of the peer's that ours must not have.
 * Source: reference/trust.md A3; reference/payment.md §8, A to Q; issues "Faults and limits", "Credits".
 * @module
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Glob } from "bun";

const tests = resolve(import.meta.dir, "..");
const rows = ["R1", "R2", "R3", "C1", "C2", "C3", "C4", "C5", "C6", "X1", "X2", "X3", "M1"];
const more = ["G1", "G2", "S1", "S2", "S3", "K1", "P1", "N1", "N3", "N4"];
const payment = ["L1", "L2", "L3", "L4", "L5", "L6"];
/** Faults of payment are letters alone. */
const faults = [..."ABCDEFGHIJKLMNOPQ"];

/** Names of tests or of groups that begin with rows, "R1, R2: a body in …"; the second one after a table of cases. */
const named = [
  /\b(?:test|describe)(?:\.each\([\s\S]*?\))?\(\s*["'`]((?:[A-Z]\d?(?:, )?)+): /g,
  /^\s*\]?\)?\(["'`]((?:[A-Z]\d?(?:, )?)+): /gm,
];

const found = new Set(
  [...new Glob("**/*.test.ts").scanSync({ cwd: tests })]
    .filter((file) => !file.includes("node_modules"))
    .map((file) => readFileSync(resolve(tests, file), "utf8"))
    .flatMap((text) => named.flatMap((pattern) => [...text.matchAll(pattern)]))
    .flatMap(([, names = ""]) => names.split(", ")),
);

test.each([...rows, ...more, ...payment, ...faults])("%s is named by a test", (row) => {
  expect(found).toContain(row);
});
