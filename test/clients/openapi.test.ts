/**
 * The API references of all three services, as tools for clients read them: they are valid, a linter finds no error,
 * and the clients that generators make of them compile.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { validate } from "@readme/openapi-parser";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { type RunningProgram, startDev } from "../support/program.ts";

const here = import.meta.dir;
const services = ["gateway", "payment", "upload"] as const;

describe("the API reference", () => {
  let program: RunningProgram;
  let folder: string;
  const documents = new Map<string, string>();

  beforeAll(async () => {
    program = await startDev();
    folder = mkdtempSync(join(tmpdir(), "cairn-openapi-"));
    for (const service of services) {
      const text = await (await fetch(`${program.line[service]}/openapi.json`)).text();
      documents.set(service, text);
      writeFileSync(join(folder, `${service}.json`), text);
    }
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    symlinkSync(join(here, "node_modules"), join(folder, "node_modules"));
  }, 120_000);
  afterAll(async () => {
    await program?.remove();
    removeFolder(folder);
  });

  async function run(...words: string[]): Promise<string> {
    const child = Bun.spawn([process.execPath, ...words], { cwd: folder, stdout: "pipe", stderr: "pipe" });
    const said = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    return (await child.exited) === 0 ? "" : said.join("\n");
  }

  test.each(services)("of %s is valid OpenAPI", async (service) => {
    const result = await validate(JSON.parse(documents.get(service) ?? ""));
    expect(result).toMatchObject({ valid: true });
  });

  test.each(services)("of %s names the address of the service", (service) => {
    expect(JSON.parse(documents.get(service) ?? "").servers).toEqual([{ url: program.line[service] }]);
  });

  test.each(services)("of %s has no error for a linter", async (service) => {
    const config = await createConfig({ extends: ["recommended"] });
    const found = await lintFromString({ source: documents.get(service) ?? "", config });
    expect(found.filter(({ severity }) => severity === "error").map(({ message }) => message)).toEqual([]);
  });

  test.each(services)("of %s shows no empty example for a body with required fields", (service) => {
    const { paths } = JSON.parse(documents.get(service) ?? "");
    const empty = Object.entries<Record<string, { requestBody?: unknown }>>(paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { requestBody }]) =>
        JSON.stringify(requestBody ?? "").includes('"example":{}') &&
        /"required":\[|\$ref/.test(JSON.stringify(requestBody))
          ? [`${method} ${path}`]
          : [],
      ),
    );
    expect(empty).toEqual([]);
  });

  test("becomes clients that compile, by orval and openapi-typescript", async () => {
    for (const service of services) {
      const input = `${service}.json`;
      const generator = join(here, "node_modules/.bin/orval");
      expect(await run(generator, "--input", input, "--output", `${service}-client.ts`, "--client", "fetch")).toBe("");
      expect(await run(join(here, "node_modules/.bin/openapi-typescript"), input, "-o", `${service}.d.ts`)).toBe("");
    }
    const files = services.flatMap((service) => [`${service}-client.ts`, `${service}.d.ts`]);
    const options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "esnext", "--module", "preserve"];
    const compiler = resolve(here, "../../node_modules/.bin/tsc");
    expect(await run(compiler, ...options, "--lib", "esnext,dom,dom.iterable", "--types", "", ...files)).toBe("");
  }, 240_000);
});
