/**
 * The threat model and the tests agree: each row of docs/reference/threats.md has tests that name it, each row that a
 * test names is on the page, and the page lists the files.
 * @module
 */
import { expect, test } from "bun:test";
import { filesNamingThreats, threats } from "../support/threats.ts";

const files = filesNamingThreats();
const names = threats.map(({ name }) => name);

test("the names of the rows are distinct", () => {
  expect(names.length).toBeGreaterThan(40);
  expect(new Set(names).size).toBe(names.length);
});

test.each(threats)("$name lists the test files that name it, and there is at least one", ({ name, tests }) => {
  const naming = [...files].filter(([, rows]) => rows.has(name)).map(([file]) => file);
  expect(naming).not.toEqual([]);
  expect([...tests].sort()).toEqual(naming);
});

test("every row that a test names is on the page", () => {
  const known = new Set(names);
  const unknown = [...files].flatMap(([file, rows]) =>
    [...rows].filter((row) => !known.has(row)).map((row) => `${file} names ${row}`),
  );
  expect(unknown).toEqual([]);
});
