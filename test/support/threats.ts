/**
 * The threat model: the rows of docs/reference/threats.md, and the test files that name them.
 * @module
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Glob } from "bun";

/** A row of the threat model. */
type Threat = Readonly<{
  /** `R1`; faults of payment services are a single character. */
  name: string;
  asset: string;
  attack: string;
  behaviour: string;
  /** Files below the repository's root, as the row lists them. */
  tests: readonly string[];
}>;

const root = resolve(import.meta.dir, "../..");

/** Relative to the repository's root. */
const threatsPage = "docs/reference/threats.md";

const rowPattern = /^\| ([A-Z]\d?) \| (.*?) \| (.*?) \| (.*?) \| (.*?) ?\|$/gm;

/** The rows in the order of the page. */
export const threats: readonly Threat[] = [
  ...readFileSync(resolve(root, threatsPage), "utf8").matchAll(rowPattern),
].map(([, name = "", asset = "", attack = "", behaviour = "", links = ""]) => ({
  name,
  asset,
  attack,
  behaviour,
  tests: [...links.matchAll(/\]\(\.\.\/\.\.\/([^)]+)\)/g)].map(([, file = ""]) => file),
}));

/** Titles of tests or groups that begin with rows: "R1, R2: a body in …". */
const titlePattern = /\(\s*["'`]((?:[A-Z]\d?, )*[A-Z]\d?): /g;

/** Test files, and the rows that their titles name. */
export function filesNamingThreats(): ReadonlyMap<string, ReadonlySet<string>> {
  const files = [...new Glob("test/**/*.test.ts").scanSync({ cwd: root })]
    .filter((file) => !file.includes("node_modules"))
    .sort();
  return new Map(
    files.map((file) => {
      const titles = [...readFileSync(resolve(root, file), "utf8").matchAll(titlePattern)];
      return [file, new Set(titles.flatMap(([, names = ""]) => names.split(", ")))];
    }),
  );
}
