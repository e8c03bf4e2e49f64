/**
 * Tests that need something which may be absent: they skip by a name that says what, and never silently.
 *
 * With CAIRN_REQUIRE=all an absent need is a failure, so that a machine that should have everything proves it. With
 * CAIRN_REQUIRE=helpers only the real data may be absent: its licences keep it out of the repository.
 * @module
 */
import { describe, test } from "bun:test";
import { existsSync } from "node:fs";
import { resolve } from "node:path";

const { CAIRN_REQUIRE } = process.env;

/** Something that tests may need; `isData` where it is not a program or package, but real data. */
export type Need = Readonly<{ there: boolean; what: string; isData?: boolean }>;

/** Published client libraries, installed apart from the program's own dependencies. */
export const clientLibraries: Need = {
  there: existsSync(resolve(import.meta.dir, "../clients/node_modules")),
  what: "test/clients/node_modules (bun install --cwd test/clients)",
};

/** ClickHouse's engine, half a gigabyte. */
export const clickhouseEngine: Need = {
  there: existsSync(resolve(import.meta.dir, "../stores/node_modules")),
  what: "test/stores/node_modules (bun install --cwd test/stores)",
};

/** Declares a test that runs where the need is there. */
export function testWith(need: Need, name: string, body: () => void | Promise<void>, timeoutMs?: number): void {
  if (need.there) test(name, body, timeoutMs);
  else if (isRequired(need)) test(name, () => failFor(need));
  else test.skip(`${name} (needs ${need.what})`, body);
}

/** Declares a group of tests that run where the need is there; their bodies are not even read elsewhere. */
export function describeWith(need: Need, name: string, body: () => void): void {
  if (need.there) describe(name, body);
  else testWith(need, name, () => failFor(need));
}

function isRequired({ isData = false }: Need): boolean {
  return CAIRN_REQUIRE === "all" || (CAIRN_REQUIRE === "helpers" && !isData);
}

function failFor(need: Need): never {
  throw new Error(`${need.what} is missing, and CAIRN_REQUIRE=${CAIRN_REQUIRE}`);
}
