/**
 * Behaviours that the test suites of other projects check, as rows of our own against a running `cairn dev`, each with
 * the line of docs/compatibility.md that decides the response.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { arIoNode } from "./ar-io-node.ts";
import { ardriveCoreJs } from "./ardrive-core-js.ts";
import { arlocal, arlocalControls } from "./arlocal.ts";
import { arweaveJs } from "./arweave-js.ts";
import { type Fixture, openFixture } from "./fixture.ts";
import { graphqlHttp } from "./graphql-http.ts";
import { paymentService } from "./payment-service.ts";
import { type Behaviour, type Expected, suites, type Table } from "./rows.ts";
import { turboSdk } from "./turbo-sdk.ts";
import { uploadService } from "./upload-service.ts";
import { wayfinderCore } from "./wayfinder-core.ts";

const tables: readonly Table[] = [
  arlocal,
  arweaveJs,
  ardriveCoreJs,
  arIoNode,
  wayfinderCore,
  turboSdk,
  paymentService,
  uploadService,
  graphqlHttp,
  // They change the chain that the others ask about.
  arlocalControls,
];

/** Longest wait for one response. Milliseconds. */
const timeoutMs = 60_000;

let fixture: Fixture | undefined;

beforeAll(async () => {
  fixture = await openFixture();
}, 300_000);

afterAll(() => fixture?.program.remove());

for (const { suite, rows } of tables) {
  describe(suite, () => {
    test.each(rows.map((row) => [`${row.on}: ${row.name}`, row] as const))(
      "%s",
      (_name, row) => expectResponse(need(), row),
      timeoutMs,
    );
  });
}

describe("the rows", () => {
  const page = readFileSync(resolve(import.meta.dir, "../../../docs/compatibility.md"), "utf8");
  const lines = [...page.matchAll(/^- \*\*([A-Z]\d+)\.\*\* /gm)].map(([, line]) => line);

  test("cite lines that docs/compatibility.md has, and leave none of them unshown", () => {
    const cited = tables.flatMap(({ rows }) => rows.map(({ line }) => line));
    expect([...new Set(lines)]).toEqual(lines);
    expect([...new Set(cited)].sort()).toEqual([...lines].sort() as string[]);
  });

  test("cover every suite, at least a hundred of them, each once", () => {
    expect([...new Set(tables.map(({ suite }) => suite))]).toEqual([...suites]);
    const names = tables.flatMap(({ suite, rows }) => rows.map(({ on, name }) => `${suite}: ${on}: ${name}`));
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBeGreaterThanOrEqual(100);
  });

  test("that differ from their suite are listed in docs/compatibility.md under its name", () => {
    const untold = tables.flatMap(({ suite, rows }) => {
      const section = page.split(`### ${suite}\n`)[1]?.split("\n#")[0] ?? "";
      return rows.filter(({ same, line }) => !same && !section.includes(`| ${line} |`));
    });
    expect(untold.map(({ name, line }) => `${name} (${line})`)).toEqual([]);
  });
});

async function expectResponse(place: Fixture, row: Behaviour): Promise<void> {
  const asked = row.ask(place);
  const { path, ...init } = typeof asked === "string" ? { path: asked } : asked;
  const signal = AbortSignal.timeout(timeoutMs);
  const response = await fetch(`${place[row.on]}${path}`, { redirect: "manual", signal, ...init });
  const text = await response.text();
  const expected: Expected = typeof row.expect === "function" ? row.expect(place) : row.expect;
  const said = `${response.status} ${text.slice(0, 1_000)}`;
  expect(response.status, said).toBe(expected.status);
  for (const [name, value] of Object.entries(expected.headers ?? {})) {
    const header = response.headers.get(name);
    if (value instanceof RegExp) expect(header ?? "", `${name} of ${said}`).toMatch(value);
    else expect(header, `${name} of ${said}`).toBe(value);
  }
  if (expected.text instanceof RegExp) expect(text).toMatch(expected.text);
  else if (expected.text !== undefined) expect(text).toBe(expected.text);
  if ("json" in expected) expect(JSON.parse(text)).toEqual(expected.json);
  if (expected.has !== undefined) expect(JSON.parse(text)).toMatchObject(expected.has);
}

function need(): Fixture {
  if (fixture === undefined) throw new Error("the program did not start");
  return fixture;
}
